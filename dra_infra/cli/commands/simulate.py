"""Options and help of `dra-infra simulate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from dra_infra.cli import options


@click.command(short_help="Say where the pods of a program fit.")
@options.directory
@options.fleet
@options.snapshot
@options.stack
@options.config
@options.timeout
@options.as_json
def simulate(
    directory: Path,
    *,
    fleet: str | None,
    snapshot: Path | None,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    as_json: bool,
) -> int:
    """Say where the pods of a program fit on a fleet, or on a cluster beside what runs: the nodes, and the devices on each.

    \b
    Examples:
      dra-infra simulate --fleet "hgx-h100 x 4"
      dra-infra simulate infra/ --fleet cluster.yaml --json
      dra-infra simulate infra/ --snapshot cluster.yaml
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.simulate import run

    options.refuse_both(fleet, snapshot)
    return run(
        directory,
        fleet=fleet,
        snapshot=snapshot,
        stack=stack,
        config=config,
        timeout=timeout,
        as_json=as_json,
    )
