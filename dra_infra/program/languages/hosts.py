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

_ORIGINS: Final[Mapping[str, str]] = {
    "yaml": "the Pulumi CLI has it: https://www.pulumi.com/docs/install/",
    "nodejs": "Node.js has it: https://nodejs.org/",
    "go": "Go has it: https://go.dev/doc/install",
}
"""Where to get what runs a language."""

_TOOLS: Final[Mapping[str, str]] = {"nodejs": "node", "go": "go"}
"""What runs a language without its host."""


def name_language(runtime: str) -> str:
    """Return the language of a runtime."""
    return _NAMES.get(runtime, runtime)


def check_language(runtime: str) -> None:
    """Check that programs in a language are run here.

    Raises:
        ProgramError: `language-not-run`.
    """
    if runtime not in _RUN:
        raise ProgramError.of(
            path="runtime",
            code="language-not-run",
            message=f"a program in {name_language(runtime)} is not run without an engine: pulumi-language-{runtime} is not started here",
            hint="`dra-infra review --engine` runs it by `pulumi preview`, and `pulumi preview` with the policy pack checks it",
        )


def find_host(runtime: str) -> Path:
    """Return the host of a runtime: of PATH, or of the folder of the Pulumi CLI.

    Raises:
        ProgramError: `language-host-missing`.
    """
    host = f"pulumi-language-{runtime}"
    program = _find_program(host)
    if program is None:
        raise tool_missing(host, runtime)
    return program


def tool_missing(name: str, runtime: str) -> ProgramError:
    """Return the problem of a program that runs a language, and that is not installed."""
    return ProgramError.of(
        path="runtime",
        code="language-host-missing",
        message=f"{name} runs programs in {name_language(runtime)}, and is not installed",
        hint=f"put it on PATH; {_ORIGINS[runtime]}",
    )


def without_loopback(runtime: str) -> ProgramError:
    """Return why a reviewed program cannot be run: its host needs a network, and the system gives it none of its own."""
    return ProgramError.of(
        path="runtime",
        code="language-not-confined",
        message=f"a program in {name_language(runtime)} needs a network of its own, and this system does not give it one",
        hint="run the review where user namespaces are allowed, or as root; --allow network gives it the network of the machine",
    )


def folders_of_language(runtime: str) -> Iterator[Path]:
    """Yield what a confined process reads to run a language, beside the system's own folders."""
    name = _TOOLS.get(runtime)
    if name is None:
        host = _find_program(f"pulumi-language-{runtime}") if runtime in _RUN else None
        yield from (host, host.resolve()) if host else ()
    elif program := shutil.which(name):
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
