"""Programs of tests in TypeScript and Go, compiled with the SDKs that are generated from our schema.

`sdk-generator` writes the SDKs as the vendor's hosts do; the hosts themselves cannot be built. Programs run by Pulumi's Automation API,
which needs no host. They are built into the per-user cache, once for each schema and source: `make tools` does it, and a test that changes
one of these does it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tools import build, cache, toolsets
from tools.errors import ToolError
from tools.node_packages import node, node_modules

_ROOT: Final = Path(__file__).parents[1]
SCHEMA: Final = _ROOT / "dra_infra" / "provider" / "schema.json"
SOURCES: Final = _ROOT / "tests" / "e2e" / "languages" / "programs"

_GO_PACKAGE: Final = "github.com/dra-infra/pulumi-dra-infra/sdk/go/dra-infra"
"""As the generator names it, after the repository of the schema."""

_NPM_PACKAGE: Final = "@dra-infra/dra-infra"
_COMPILER: Final = (
    "-strict",
    "-skipLibCheck",
    "-target",
    "es2022",
    "-module",
    "nodenext",
    "-moduleResolution",
    "nodenext",
)
_GO_FLAGS: Final = (
    "-trimpath",
    "-mod=readonly",
    "-gcflags=all=-dwarf=false",
    "-tags",
    "osusergo,grpcnotrace",
    "-ldflags",
    "-s -w",
)
_MINUTES: Final = 10


def in_typescript() -> tuple[str, ...]:
    """Return the command that runs `main.ts`.

    Raises:
        ToolError: Node.js, npm or the generator is missing, or something does not compile.
    """
    folder = _built(
        "typescript", [SOURCES / "main.ts", *sorted(node_modules().parent.glob("*.json"))], _build_typescript
    )
    return (node(), str(folder / "main.js"))


def in_go() -> tuple[str, ...]:
    """Return the command that runs `main.go`.

    Raises:
        ToolError: Go or the generator is missing, or something does not compile.
    """
    generator = _generator().folder
    folder = _built("go", [SOURCES / "main.go", generator / "go.mod", generator / "go.sum"], _build_go)
    return (str(folder / "main"),)


def _built(language: str, sources: Sequence[Path], make: Callable[[Path], None]) -> Path:
    """Return the folder of a program, which is built where the cache has none of these sources."""
    name = f"program-{language}"
    parts = {"go version": build.go_version(), "generator": _generator().key(build.go_version())}
    parts |= {str(number): file.read_text() for number, file in enumerate((SCHEMA, Path(__file__), *sources))}
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    kept = cache.root() / f"{name}-{key}"
    if kept.is_dir():
        return kept
    with cache.locked(name, lambda: None):
        if not kept.is_dir():
            with tempfile.TemporaryDirectory(dir=cache.root(), prefix=f".unfinished-{name}-") as parent:
                folder = Path(parent) / name
                folder.mkdir()
                make(folder)
                folder.rename(kept)
    return kept


def _generator() -> toolsets.Toolset:
    (generator,) = [each for each in toolsets.load() if each.name == "sdk-generator"]
    return generator


def _generate(language: str, folder: Path) -> None:
    _run([str(build.binary("sdk-generator")), str(SCHEMA), language, str(folder)], folder.parent)


def _build_typescript(folder: Path) -> None:
    modules = folder / "node_modules"
    sdk = modules / _NPM_PACKAGE
    sdk.mkdir(parents=True)
    kept = node_modules()
    for name in ("@pulumi", "@types", "typescript"):
        # In the cache too, one folder above.
        modules.joinpath(name).symlink_to(Path("..", "..", kept.parent.name, kept.name, name))
    _generate("nodejs", sdk)
    compiler = [node(), str(kept / "typescript" / "bin" / "tsc")]
    folder.joinpath("package.json").write_text('{"private": true}\n')
    shutil.copy(SOURCES / "main.ts", folder)
    # While it is built, the folder lies one level deeper.
    beside = folder.parent / kept.parent.name
    beside.symlink_to(kept.parent)
    _run([*compiler, "-p", "."], sdk)
    # The SDK's own script does this after an installation.
    shutil.copy(sdk / "package.json", sdk / "bin")
    _run([*compiler, *_COMPILER, "main.ts"], folder)
    beside.unlink()


def _build_go(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as parent:
        _generate("go", Path(parent))
        # The generator puts the package into a folder of its name in Go.
        module = Path(parent) / "drainfra"
        generator = _generator().folder
        text = generator.joinpath("go.mod").read_text()
        module.joinpath("go.mod").write_text(f"module {_GO_PACKAGE}\n{text.partition(chr(10))[2]}")
        shutil.copy(generator / "go.sum", module)
        module.joinpath("main").mkdir()
        shutil.copy(SOURCES / "main.go", module / "main")
        _run(["go", "build", *_GO_FLAGS, "-o", str(folder / "main"), "./main"], module)


def _run(command: Sequence[str], folder: Path) -> None:
    environment = {**os.environ, **toolsets.build_environment()}
    try:
        done = subprocess.run(
            list(command),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60 * _MINUTES,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{Path(command[0]).name} did not end: {error}", hint="make tools") from error
    if done.returncode:
        raise ToolError(f"{Path(command[0]).name} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def main() -> int:
    """Build both programs; return the exit status."""
    try:
        for command in (in_typescript(), in_go()):
            print(" ".join(command))
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
