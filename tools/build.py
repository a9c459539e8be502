"""Build the pinned real binaries, once per user: ``python -m tools.build`` or ``make tools``.

Uses the standard library only, so that it runs before anything is installed. Go fetches what go.mod and go.sum pin
while it builds; there is no separate download step, for that one fetches (and needs) more than the build does.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tools import ahead, cache, inventory, toolsets
from tools.diagnosis import diagnose, redact, tail
from tools.errors import ToolError
from tools.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.inventory import Row
    from tools.toolsets import Toolset

_OVERRIDE = "DRA_INFRA_BIN"
_NO_GO = "go is not on PATH; the real parts are built with it"
_INSTALL_GO = "install the Go version that tools/*/go.mod names, or a newer one"
_MEMORY_OF_ONE_LINKER = 3 * 1024**3


def binary(name: str, *, toolset: str | None = None) -> Path:
    """Path of a built binary.

    ``$DRA_INFRA_BIN`` names a folder whose binaries are taken instead, for those who have their own.

    Args:
        name: Such as ``kube-apiserver``.
        toolset: Where to look when several toolsets have one of that name; the default is the first of them.

    Where there is no Go to ask for its version, what any Go built from the same go.mod, go.sum and flags is taken.

    Raises:
        ToolError: When it is not built, or built from another go.mod, go.sum, Go or flags than are here now.
    """
    if override := os.environ.get(_OVERRIDE):
        path = Path(override) / name
        if not path.is_file():
            raise ToolError(
                f"{name} is not in {override}, the folder that {_OVERRIDE} names", hint=f"unset {_OVERRIDE}"
            )
        return path
    candidates = [one for one in toolsets.load() if name in one.binaries and toolset in (None, one.name)]
    if not candidates:
        raise ToolError(f"{name}: no toolset{f' {toolset}' if toolset else ''} has a binary of that name")
    built = _find(candidates[0])
    if built is None:
        message = f"{name} is not built (toolset {candidates[0].name} {candidates[0].version})"
        if has_go():
            by_name = f"python -m tools.build --only {candidates[0].name}"
            raise ToolError(message, hint=f"run `{by_name if candidates[0].optional else 'make tools'}`")
        raise ToolError(f"{message}, and {_NO_GO}", hint=f"{_INSTALL_GO}, and run `make tools`")
    return built.folder / name


def has_go() -> bool:
    """Whether there is a Go on PATH."""
    return shutil.which("go") is not None


@functools.cache
def go_version() -> str:
    """What ``go version`` prints, such as ``go version go1.26.8 linux/amd64``.

    Raises:
        ToolError: When there is no Go on PATH.
    """
    if not has_go():
        raise ToolError(
            _NO_GO,
            hint=_INSTALL_GO,
        )
    return _go("version")


def build(chosen: Iterable[Toolset], *, jobs: int, progress: Progress) -> list[Row]:
    """Build what is not cached yet and return one row per binary, sorted as built.

    Raises:
        ToolError: When a build fails; what was finished before stays.
    """
    wanted = list(chosen)
    rows: list[Row] = []
    for place, toolset in enumerate(wanted):
        built = _find(toolset)
        is_fresh = built is None
        if built is None:
            # Tells what is missing before anything is begun.
            go_version()
            following = next((each for each in wanted[place + 1 :] if _find(each) is None), None)
            # With memory for one job there is none for a second build.
            built = _build_one(
                toolset, following=following if jobs > 1 else None, jobs=jobs, progress=progress
            )
        if not toolset.optional:
            cache.link(built)
        rows += inventory.of_build(toolset, built, is_fresh=is_fresh)
    return rows


def _find(toolset: Toolset) -> cache.Built | None:
    return cache.find(toolset, go_version()) if has_go() else cache.find_by_any_go(toolset)


def _build_one(toolset: Toolset, *, following: Toolset | None, jobs: int, progress: Progress) -> cache.Built:
    def say_waiting() -> None:
        progress.say(f"{toolset.name}: another process builds it, waiting for that")

    with cache.locked(toolset.name, say_waiting):
        if (built := cache.find(toolset, go_version())) is not None:
            return built
        progress.say(f"{toolset.name} {toolset.version}: {', '.join(sorted(toolset.binaries))}")
        progress.say(f"  {toolset.purpose}")
        progress.say(
            f"  usually about {toolset.minutes} min on two cores, seconds where Go has compiled it before"
        )
        started = time.monotonic()
        with cache.unfinished(toolset) as folder, ahead.compiling(following, jobs=jobs):
            for command in toolset.commands(folder, jobs=jobs):
                _run_go(toolset, command, progress)
            built = cache.publish(toolset, go_version(), folder, seconds=time.monotonic() - started)
        progress.say(f"  done in {built.seconds:.0f} s")
        return built


def _run_go(toolset: Toolset, command: Sequence[str], progress: Progress) -> None:
    # A file and not a pipe: nothing has to be read while the build runs.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command, cwd=toolset.folder, env=toolsets.build_environment(), stdout=output, stderr=output
        )
        try:
            status = progress.wait(process, toolset.name)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if status == 0:
            return
        output.seek(0)
        printed = redact(output.read(), _hosts())
    found = diagnose(printed, status)
    lines = "\n".join(f"  | {line}" for line in tail(printed).splitlines())
    message = f"toolset {toolset.name} was not built: {found.message} [{found.cause}]"
    raise ToolError(f"{message}\n{lines}" if lines else message, hint=found.hint)


def _go(*arguments: str) -> str:
    # In tools/, so that no go.mod or go.work of the caller's folder has a say.
    done = subprocess.run(
        ["go", *arguments],
        cwd=toolsets.FOLDER,
        env=toolsets.build_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ToolError(f"`go {' '.join(arguments)}` failed: {redact(done.stderr.strip())}")
    return done.stdout.strip()


def _hosts() -> list[str]:
    """Names of the hosts that Go asks for modules and checksums."""
    settings = _go("env", "GOPROXY", "GOSUMDB")
    return [host for host in re.findall(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", settings) if host]


def default_jobs() -> int:
    """One job per core, but no more than there is memory to link with."""
    free = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    fitting = int(free[1]) * 1024 // _MEMORY_OF_ONE_LINKER if free else 1
    return max(1, min(len(os.sched_getaffinity(0)), fitting))


def _choose(names: Sequence[str] | None) -> list[Toolset]:
    available = toolsets.load()
    if not names:
        return [toolset for toolset in available if not toolset.optional]
    by_name = {toolset.name: toolset for toolset in available}
    if unknown := sorted(set(names) - set(by_name)):
        raise ToolError(
            f"--only: no toolset is called {', '.join(unknown)}", hint=f"choose from {', '.join(by_name)}"
        )
    return [by_name[name] for name in by_name if name in names]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.build",
        description="Build the real parts that tests run against, once per user.",
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="build these toolsets only")
    parser.add_argument(
        "--list", action="store_true", help="show what is built and what is not; build nothing"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="compile N packages at a time")
    options = parser.parse_args(arguments)
    progress = Progress(sys.stderr)
    try:
        chosen = _choose(options.only)
        if options.list:
            # What is built only by name is shown too, so that the name can be known.
            rows = inventory.of_cache(chosen if options.only else toolsets.load(), _find)
        else:
            rows = build(chosen, jobs=options.jobs or default_jobs(), progress=progress)
    except ToolError as error:
        progress.say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        progress.say("stopped; finished toolsets are kept, Go keeps what it compiled")
        return 130
    if options.json:
        print(json.dumps({"bin": str(cache.links()), "binaries": [asdict(row) for row in rows]}, indent=2))
    else:
        print(inventory.table(rows))
        print(f"\non PATH with: export PATH={cache.links()}:$PATH")
    return 0


if __name__ == "__main__":
    # As other programs do whose reader, such as head, has seen enough.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
