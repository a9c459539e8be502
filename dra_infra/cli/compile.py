"""The `dra-infra compile` command: compiles one side of a review to a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dra_infra.answers.compiling import compile_side
from dra_infra.cli.printing import print_problems, progress, say, write_file
from dra_infra.cli.reports import check_place, inputs_of
from dra_infra.program.program_json import write_compiled


def run(
    path: Path,
    *,
    output: Path,
    source: str | None,
    values: Sequence[Path],
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    charts: bool,
    allow: Sequence[str],
) -> int:
    """Write the compiled head; 2 when it holds nothing but why there are no objects.

    Raises:
        ProblemsError: As `compile_side`, and when the file cannot be written.
    """
    check_place(output, inputs_of(path, *values))
    with progress() as tell:
        side = compile_side(
            path,
            source=source,
            values=values,
            stack=stack,
            config=config,
            timeout=timeout,
            charts=charts,
            allow=allow,
            output=output,
            tell=tell,
            warn=print_problems,
        )
    if side.confinement:
        say(side.confinement)
    write_file("output", output, write_compiled(side.compiled), [side.source.root])
    if side.compiled.failed:
        print_problems(side.compiled.failed)
    else:
        say(side.summary)
    return side.exit_code
