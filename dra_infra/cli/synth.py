"""The `dra-infra synth` command: runs a program in process, and prints its objects as YAML or writes them to a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dra_infra.answers.object_folder import plan_folder
from dra_infra.answers.synthesizing import Synthesis, synthesize
from dra_infra.cli.object_folder import write_folder
from dra_infra.cli.printing import (
    plain_progress,
    print_not_seen,
    print_problems,
    problems_as_data,
    write_json,
    write_output,
)
from dra_infra.output.report_data import camel_case, make_report
from dra_infra.program.object_files import Controller, annotate
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
    output: Path | None = None,
    gitops: Controller | None = None,
) -> int:
    """Print the objects of a program, or write them to the folder *output*.

    Returns:
        1 when the program has errors, and then no YAML is written, or when the YAML lacks objects or has them as comments.

    Raises:
        ProgramError: `synth-file-kept`, `report-not-written`.
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
            as_yaml=form == "yaml" and output is None,
            warn=print_problems,
        )
    print_not_seen(made.program.not_seen)
    print_problems([*made.problems, *made.incomplete])
    if form == "json":
        write_json(_to_json(made))
    elif output is None and not made.is_refused:
        objects = made.program.objects
        write_output(
            write_objects(replace(each, manifest=annotate(each.manifest, gitops)) for each in objects)
        )
    if output is None or made.is_refused:
        return made.exit_code
    plan = plan_folder(made, output, gitops)
    write_folder(plan, output)
    print_problems(plan.problems)
    return 1 if plan.problems else 0


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
