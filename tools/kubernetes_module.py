"""Write the wrapper go.mod of a Kubernetes release: ``python -m tools.kubernetes_module VERSION DIR COMMAND...``.

``k8s.io/kubernetes`` cannot be built as a dependency by itself: its go.mod requires the staging modules (k8s.io/api
and so on) as v0.0.0 and replaces them by folders of its own repository, and Go ignores the replacements and the
godebug line of a dependency. The wrapper repeats both. The list of staging modules differs from minor to minor, so it
is read from the release and never copied by hand.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tools import toolsets
from tools.diagnosis import diagnose, redact, tail
from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence

_KUBERNETES = "k8s.io/kubernetes"
_VERSION = re.compile(r"v1(\.\d+\.\d+(?:-[a-z]+\.\d+)?)")


def wrapper(upstream: str, *, version: str, name: str, commands: Sequence[str]) -> str:
    """Text of a go.mod that builds *commands* of one Kubernetes release.

    Args:
        upstream: Text of the release's own go.mod.
        version: Version of the release, such as ``v1.36.4``.
        name: Name of the toolset, the last element of the wrapper's module path.
        commands: Folders below ``cmd/`` of the release, such as ``kube-apiserver``.

    Raises:
        ToolError: When *version* is no Kubernetes version, or a staging module would stay at v0.0.0.
    """
    staging_version = _staging_version(version)
    go = re.search(r"^go (\S+)$", upstream, re.MULTILINE)
    if go is None:
        raise ToolError(f"the go.mod of {_KUBERNETES} {version} has no go line")
    godebug = re.search(r"^godebug (.+)$", upstream, re.MULTILINE)
    replaced = set(re.findall(r"^\t(\S+) => \./staging/", upstream, re.MULTILINE))
    required = set(re.findall(r"^\t(k8s\.io/\S+) v0\.0\.0(?: //.*)?$", upstream, re.MULTILINE))
    if astray := sorted(required - replaced):
        raise ToolError(
            f"{_KUBERNETES} {version} requires {', '.join(astray)} v0.0.0 but replaces it nowhere"
        )
    blocks = [
        f"module dra-infra.invalid/tools/{name}",
        f"go {go[1]}",
        *([f"godebug {godebug[1]}"] if godebug else []),
        _block("tool", [f"{_KUBERNETES}/cmd/{command}" for command in sorted(set(commands))]),
        f"require {_KUBERNETES} {version}",
        # Modules that are replaced but not required are samples that no command imports.
        _block("replace", [f"{module} => {module} {staging_version}" for module in sorted(required)]),
    ]
    return "\n\n".join(blocks) + "\n"


def write(folder: Path, *, version: str, commands: Sequence[str]) -> None:
    """Write go.mod and go.sum of a wrapper into *folder*, both or none.

    Raises:
        ToolError: When the release or one of its modules cannot be had.
    """
    _staging_version(version)
    with tempfile.TemporaryDirectory() as name:
        draft = Path(name)
        release = json.loads(_go(["list", "-m", "-json", f"{_KUBERNETES}@{version}"], draft))
        upstream = Path(release["GoMod"]).read_text()
        text = wrapper(upstream, version=version, name=folder.name, commands=commands)
        (draft / "go.mod").write_text(text)
        # Adds what the commands need, and only that: `go mod tidy` would add what their tests need as well.
        _go(["list", "-mod=mod", "-deps", "tool"], draft)
        folder.mkdir(parents=True, exist_ok=True)
        for file in ("go.mod", "go.sum"):
            shutil.copyfile(draft / file, folder / file)


def _staging_version(version: str) -> str:
    """Version of the staging modules that belong to a release: v0.37.1 for v1.37.1."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ToolError(f"version: {version!r} is not one of Kubernetes", hint="write it like v1.36.4")
    return f"v0{found[1]}"


def _go(arguments: Sequence[str], folder: Path) -> str:
    if shutil.which("go") is None:
        raise ToolError("go is not on PATH", hint="install the Go version that tools/*/go.mod names")
    done = subprocess.run(
        ["go", *arguments],
        cwd=folder,
        env=toolsets.build_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        printed = redact(done.stderr)
        found = diagnose(printed, done.returncode)
        raise ToolError(f"{found.message} [{found.cause}]\n{tail(printed)}", hint=found.hint)
    return done.stdout


def _block(word: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{word} (", *(f"\t{line}" for line in lines), ")"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.kubernetes_module",
        description="Write the go.mod and go.sum that build commands of one Kubernetes release.",
    )
    parser.add_argument("version", metavar="VERSION", help="such as v1.36.4")
    parser.add_argument("folder", metavar="DIR", type=Path, help="such as tools/kubernetes-1.36")
    parser.add_argument("commands", metavar="COMMAND", nargs="+", help="such as kube-apiserver")
    options = parser.parse_args(arguments)
    try:
        write(options.folder, version=options.version, commands=options.commands)
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {options.folder}/go.mod and go.sum; now add a [[toolset]] called {options.folder.name}")
    print("to tools/toolsets.toml, like kubernetes-1.37 and with `optional = true`, and run")
    print(f"  python -m tools.build --only {options.folder.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
