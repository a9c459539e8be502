"""Options and help of `dra-infra synth`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from dra_infra.cli import options


@click.command()
@options.directory
@options.stack
@options.config
@options.timeout
@options.charts
@options.as_json
def synth(
    directory: Path,
    *,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    charts: bool,
    as_json: bool,
) -> int:
    """Run a program in process, without CLI, network or cluster, and print its objects as YAML.

    \b
    Examples:
      dra-infra synth
      dra-infra synth infra/ --stack prod > objects.yaml
      dra-infra synth --config dra-infra:kubernetes=1.36 --json
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.synth import run

    return run(directory, stack=stack, config=config, timeout=timeout, as_json=as_json, charts=charts)
