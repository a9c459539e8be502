"""Build a release twice, compare, look into it, install it: ``python -m tools.release`` or ``make release-check``."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.errors import ToolError
from tools.release import contents, installation, sources
from tools.release.artefacts import digest

DIST: Final = sources.ROOT / "dist"

_OTHERWISE: Final = {"TZ": "Pacific/Kiritimati", "LC_ALL": "C", "PYTHONHASHSEED": "7", "UMASK": "077"}
"""What differs in the second build, besides the folder and the time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.release", description="Build a release twice, and try it."
    )
    parser.add_argument(
        "--tag", metavar="TAG", help="tag that is released, such as v1.2.3: has to name the version"
    )
    parser.add_argument("--no-image", action="store_true", help="leave out the image, which needs apt")
    options = parser.parse_args(arguments)
    try:
        check(tag=options.tag, with_image=not options.no_image)
    except ToolError as error:
        print(f"make release-check: {error}", file=sys.stderr)
        return 1
    return 0


def check(*, tag: str | None, with_image: bool) -> None:
    """Build, compare, look into what was built, install it, and leave it in `dist/`.

    Raises:
        ToolError: When something is not as it has to be; `dist/` is as it was then.
    """
    version = sources.version()
    tracked = sources.tracked()
    notes = notes_of(tag, version, (sources.ROOT / "CHANGELOG.md").read_text())
    print(f"version {version}, from {len(tracked)} tracked files", flush=True)
    if left_out := sources.untracked():
        print(
            f"left out, for git does not track it: {', '.join(left_out[:5])}{' ...' if left_out[5:] else ''}"
        )
    with tempfile.TemporaryDirectory(prefix="dra-infra-release-") as folder:
        once = build(Path(folder) / "once", {}, with_image=with_image)
        again = build(Path(folder) / "and-again", _OTHERWISE, with_image=with_image)
        compare(once, again)
        (wheel,), (sdist,) = once.glob("*.whl"), once.glob("*.tar.gz")
        print(f"{wheel.name} holds {contents.check_wheel(wheel, tracked)}; nothing else")
        project = (sources.ROOT / "pyproject.toml").read_text()
        print(f"{sdist.name} holds {contents.check_sdist(sdist, tracked, project)}; nothing else")
        contents.check_wheel_of_sdist(sdist, wheel)
        print(f"{sdist.name} builds the same wheel", flush=True)
        tried = installation.check(
            wheel,
            sources.ROOT / "requirements" / "run.txt",
            sources.ROOT / "examples" / "00-quickstart",
            version,
        )
        print(f"installed in an empty environment: {', '.join(tried)}")
        sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(once.iterdir()))
        (once / "NOTES.md").write_text(notes)
        (once / "SHA256SUMS").write_text(sums)
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(once, DIST)
    without = "" if with_image else ", without the image"
    print(f"release-check passed: all of it is in {DIST.name}/{without}")


def notes_of(tag: str | None, version: str, changelog: str) -> str:
    """What the changelog says of what is released: below the version where a tag is given, else below `Unreleased`.

    Raises:
        ToolError: When the tag names another version, or the changelog has nothing to say of it.
    """
    if tag is None:
        return sources.notes(changelog, "Unreleased" if "\n## Unreleased\n" in changelog else version)
    if tag != f"v{version}":
        raise ToolError(
            f"the tag {tag} is not v{version}, the version in pyproject.toml", hint="see docs/releasing.md"
        )
    return sources.notes(changelog, version)


def build(home: Path, otherwise: Mapping[str, str], *, with_image: bool) -> Path:
    """Build everything from a copy of the sources, with empty caches; returns the folder of the artefacts.

    Args:
        home: Gets the copy, the caches and the artefacts.
        otherwise: Variables that are set differently than here, and `UMASK`.
        with_image: Whether the image is built.

    Raises:
        ToolError: When something cannot be built.
    """
    started = time.monotonic()
    copy = home / "sources"
    artefacts = home / "artefacts"
    artefacts.mkdir(parents=True)
    sources.copy(copy)
    command = [
        sys.executable,
        "-m",
        "tools.release.artefacts",
        str(artefacts),
        "--time",
        str(sources.commit_time()),
    ]
    done = subprocess.run(
        [*command, *([] if with_image else ["--no-image"])],
        cwd=copy,
        env={
            **os.environ,
            "PYTHONPATH": "",
            "DRA_INFRA_CACHE": str(home / "cache"),
            "UV_CACHE_DIR": str(home / "wheels"),
            **otherwise,
        },
        umask=int(otherwise.get("UMASK", "022"), 8),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ToolError((done.stderr or done.stdout).strip())
    print(f"built {home.name.replace('-', ' ')}: {time.monotonic() - started:.0f} s", flush=True)
    return artefacts


def compare(once: Path, again: Path) -> None:
    """Print each artefact with its digest.

    Raises:
        ToolError: When one of them differs, or is in one folder only.
    """
    names = sorted({path.name for path in (*once.iterdir(), *again.iterdir())})
    differing = []
    for name in names:
        found = [digest(folder / name) if (folder / name).is_file() else None for folder in (once, again)]
        if found[0] == found[1]:
            print(f"same bytes: {name}  {(once / name).stat().st_size / 1e6:.1f} MB  sha256:{found[0]}")
        else:
            differing.append(name)
    if differing:
        raise ToolError(
            f"built twice to other bytes: {', '.join(differing)}",
            hint="something in it depends on the folder, the time, the umask, the locale or an order; diffoscope shows what",
        )


if __name__ == "__main__":
    sys.exit(main())
