"""Options and help of `dra-infra snapshot`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dra_infra.cli import options


@click.command()
@options.kubeconfig
@options.cluster_context
@options.namespaces
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    default="cluster.yaml",
    help="Where to; - is standard output.",
)
def snapshot(*, kubeconfig: Path | None, context: str | None, namespaces: Sequence[str], output: str) -> int:
    """Read a live cluster once into one file, for `--snapshot`: nodes, devices, claims, and what runs.

    It only lists, and works with the right to list alone. Secrets, ConfigMaps, environments and annotations are not in
    the file, which only you may read. What may not be listed is said, with the rule to grant.

    \b
    Examples:
      dra-infra snapshot
      dra-infra snapshot --context prod -o prod.yaml
      dra-infra snapshot --namespace ml --namespace serving -o - > part.yaml
    \b
    Exits with 0 when the file is there, 2 when it is not.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.snapshot import run

    return run(kubeconfig, context=context, namespaces=namespaces, output=output)
