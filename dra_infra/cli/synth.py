"""The `dra-infra synth` command: runs a program in process and prints its objects as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dra_infra.advice.program import check_program
from dra_infra.catalog.drivers import read_pins
from dra_infra.cli.printing import print_not_seen, print_problems, problems_as_data, write_json, write_output
from dra_infra.cli.settings import load_checked
from dra_infra.documents import yaml
from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.metadata import ObjectMeta
from dra_infra.program.charts import with_charts
from dra_infra.program.program_json import program_to_json
from dra_infra.program.synth import synth_project


def run(
    directory: Path,
    *,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    as_json: bool,
    charts: bool = False,
) -> int:
    """Print the objects of a program; 1 when it has problems, and then no YAML."""
    project = load_checked(directory, stack, config)
    program = synth_project(project, timeout=timeout)
    if charts:
        program = with_charts(program, project.root)
    # Which classes a cluster has is not known here: one that another program makes is taken by `class_ref`.
    known = {*read_pins(program.driver).classes, *(each.metadata.name for each in program.stand_in_classes)}
    elsewhere = [
        DeviceClass(metadata=ObjectMeta(name=name)) for name in program.elsewhere if name not in known
    ]
    problems = check_program(program, classes=elsewhere)
    print_not_seen(program.not_seen)
    print_problems(problems)
    is_refused = any(problem.severity == "error" for problem in problems)
    if as_json:
        write_json({**program_to_json(program), "problems": problems_as_data(problems)})
    elif not is_refused:
        write_output(yaml.write_manifests(each.manifest for each in program.objects))
    return 1 if is_refused else 0
