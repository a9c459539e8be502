"""Options and help of `dra-infra doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from dra_infra.cli import options


@click.command()
@options.kubeconfig
@options.cluster_context
@click.option(
    "--driver",
    metavar="NAME",
    default="",
    show_default="all",
    help="Look at this DRA driver only, as gpu.nvidia.com.",
)
@options.as_json
def doctor(*, kubeconfig: Path | None, context: str | None, driver: str, as_json: bool) -> int:
    """Look for what is wrong with devices in a live cluster: API, gates, driver, classes, pools, nodes and claims.

    \b
    Examples:
      dra-infra doctor
      dra-infra doctor --context prod --driver gpu.nvidia.com --json
    \b
    Exits with 0 when nothing is broken, 1 on errors, 2 when there is no answer.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.doctor import run

    return run(kubeconfig, context=context, driver=driver, as_json=as_json)
