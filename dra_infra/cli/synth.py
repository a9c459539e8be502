"""`dra-infra synth`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dra_infra.cli.printing import print_not_seen, print_problems, write_output
from dra_infra.cli.settings import load_checked
from dra_infra.engine.charts import with_charts
from dra_infra.engine.isolated import program_to_json
from dra_infra.engine.project import find_root
from dra_infra.engine.synth import synth
from dra_infra.model import yaml
from dra_infra.validation import check_program


def run(
    directory: Path,
    *,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    as_json: bool,
    charts: bool = False,
) -> int:
    """Print the objects of a program; 1 when it has problems, and then no objects."""
    load_checked(directory, stack, config)
    program = synth(directory, stack=stack, config=config, timeout=timeout)
    if charts:
        program = with_charts(program, find_root(directory))
    problems = [
        # Which classes a cluster has is not known here; `simulate` asks the fleet.
        problem
        for problem in check_program(program)
        if problem.code != "class-not-known"
    ]
    print_not_seen(program.not_seen)
    print_problems(problems)
    if any(problem.severity == "error" for problem in problems):
        return 1
    if as_json:
        write_output(json.dumps(program_to_json(program), indent=2, sort_keys=True))
    else:
        write_output(yaml.write_manifests(each.manifest for each in program.objects))
    return 0
