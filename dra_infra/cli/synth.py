"""The `dra-infra synth` command: runs a program in process and prints its objects as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dra_infra.answers.synthesizing import Synthesis, synthesize
from dra_infra.cli.printing import (
    plain_progress,
    print_not_seen,
    print_problems,
    problems_as_data,
    write_json,
    write_output,
)
from dra_infra.output.report_data import camel_case, make_report
from dra_infra.program.program_json import program_to_json
from dra_infra.program.program_yaml import write_objects


def run(
    directory: Path,
    *,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    form: str,
    charts: bool = False,
) -> int:
    """Print the objects of a program.

    Returns:
        1 when the program has errors, and then no YAML is printed, or when the YAML has objects as comments.
    """
    # No line of a terminal that is replaced: the program itself may print.
    with plain_progress() as tell:
        tell("running the program")
        made = synthesize(
            directory,
            stack=stack,
            config=config,
            timeout=timeout,
            charts=charts,
            as_yaml=form == "yaml",
            warn=print_problems,
        )
    print_not_seen(made.program.not_seen)
    print_problems([*made.problems, *made.incomplete])
    if form == "json":
        write_json(_to_json(made))
    elif not made.is_refused:
        write_output(write_objects(made.program.objects))
    return made.exit_code


def _to_json(made: Synthesis) -> dict[str, Any]:
    """Return the program with our own keys in camel case; those of manifests and values stay."""
    data = {camel_case(key): value for key, value in program_to_json(made.program).items()}
    data["options"] = {
        urn: {camel_case(key): value for key, value in each.items()} for urn, each in data["options"].items()
    }
    for each in data["options"].values():
        each["aliases"] = [
            {camel_case(key): value for key, value in alias.items()} for alias in each["aliases"]
        ]
    data["releases"] = [{camel_case(key): value for key, value in each.items()} for each in data["releases"]]
    # As other reports name a component, which programs that are handed on have as data.
    for each, item in zip(data["objects"], made.program.objects, strict=True):
        each["component"] = str(item.component or "")
    for each, release in zip(data["releases"], made.program.releases, strict=True):
        each["component"] = str(release.component or "")
    data["notKnown"] = data.pop("notSeen")
    return make_report("synth", {**data, "problems": problems_as_data(made.problems)})
