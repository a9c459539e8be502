"""Options and help of `dra-infra status`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dra_infra.cli import options


@click.command()
@options.kubeconfig
@options.cluster_context
@options.namespaces
@click.option("--graph", is_flag=True, help="Draw what hangs together: pod, claim, class, device.")
@click.option(
    "--format",
    "output",
    metavar="FORM",
    type=options.OneOf(["text", "json", "graph", "dot", "mermaid"]),
    default="text",
    help="text, json, graph, dot or mermaid.",
)
@click.option("--watch", "-w", is_flag=True, help="Again after each change, until Ctrl-C.")
@options.as_json
def status(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespaces: Sequence[str],
    graph: bool,
    output: str,
    watch: bool,
    as_json: bool,
) -> int:
    """Show the claims of a live cluster with their devices, nodes and consumers, and why some wait.

    \b
    Examples:
      dra-infra status
      dra-infra status --namespace ml --watch
      dra-infra status --graph
      dra-infra status --format mermaid > claims.mmd
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.status import run

    form = "json" if as_json else "graph" if graph else output
    return run(kubeconfig, context=context, namespaces=namespaces, form=form, watch=watch)
