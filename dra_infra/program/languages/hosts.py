"""The hosts of languages: which program of Pulumi runs a language, and where it is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dra_infra.errors import ProgramError

_NAMES: Final[Mapping[str, str]] = {
    "yaml": "YAML",
    "nodejs": "TypeScript and JavaScript",
    "go": "Go",
    "dotnet": "C#, F# and Visual Basic",
    "java": "Java",
}
"""Languages of Pulumi by their runtime."""

_RUN: Final = ("yaml", "nodejs", "go")
"""Runtimes whose hosts run here."""

_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {"nodejs": ("node",), "go": ("go",)}
"""Programs that a host starts."""


def name_language(runtime: str) -> str:
    """Return the language of a runtime."""
    return _NAMES.get(runtime, runtime)


def find_host(runtime: str) -> Path:
    """Return the host of a runtime: of PATH, or of the folder of the Pulumi CLI.

    Raises:
        ProgramError: `language-not-run` for a language that is not run here, `language-host-missing`.
    """
    host = f"pulumi-language-{runtime}"
    if runtime not in _RUN:
        raise ProgramError.of(
            path="runtime",
            code="language-not-run",
            message=f"a program in {name_language(runtime)} is not run without an engine: {host} is not started here",
            hint="`dra-infra review --engine` runs it by `pulumi preview`, and `pulumi preview` with the policy pack checks it",
        )
    found = _find_program(host)
    if found is None:
        raise ProgramError.of(
            path="runtime",
            code="language-host-missing",
            message=f"{host} runs programs in {name_language(runtime)}, and is not installed",
            hint="install the Pulumi CLI, which has it, or put it on PATH; https://www.pulumi.com/docs/install/",
        )
    return found


def without_loopback(runtime: str) -> ProgramError:
    """Return why a reviewed program cannot be run: its host needs a network, and the system gives it none of its own."""
    return ProgramError.of(
        path="runtime",
        code="language-not-confined",
        message=f"a program in {name_language(runtime)} needs a network of its own, and this system does not give it one",
        hint="run the review where user namespaces are allowed, or as root; --allow network gives it the network of the machine",
    )


def folders_of_host(runtime: str) -> Iterator[Path]:
    """Yield what a confined process reads to run the host, beside the system's own folders."""
    host = _find_program(f"pulumi-language-{runtime}") if runtime in _RUN else None
    if host is not None:
        yield host
        # The host of Node.js has scripts beside it.
        yield from sorted(host.parent.glob(f"{host.name}-*"))
        yield host.resolve()
    for name in _BESIDE.get(runtime, ()):
        if program := shutil.which(name):
            real = Path(program).resolve()
            # What is installed by itself has its library beside `bin`.
            yield real.parent.parent if real.parent.name == "bin" else real


def _find_program(name: str) -> Path | None:
    if found := shutil.which(name):
        return Path(found).absolute()
    cli = shutil.which("pulumi")
    for folder in (Path(cli).absolute().parent, Path(cli).resolve().parent) if cli else ():
        if found := shutil.which(name, path=str(folder)):
            return Path(found)
    return None
