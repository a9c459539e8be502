"""Options and help of the commands that read a live cluster: snapshot, status and doctor."""

from __future__ import annotations

import click

from dra_infra.cli import options


@options.command("dra_infra.cli.cluster:snapshot")
@options.kubeconfig
@options.cluster_context
@options.namespaces
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    default="cluster.yaml",
    help="File to write; - is standard output.",
)
def snapshot() -> None:
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


@options.command("dra_infra.cli.cluster:status")
@options.kubeconfig
@options.cluster_context
@options.namespaces
@click.option("--graph", is_flag=True, help="Draw how pods, claims, classes and devices are connected.")
@click.option(
    "--format",
    "output",
    metavar="FORM",
    type=options.OneOf(["text", "json", "graph", "dot", "mermaid"]),
    default="text",
    help="text, json, graph, dot or mermaid.",
)
@click.option("--watch", "-w", is_flag=True, help="Print again after each change, until Ctrl-C.")
@options.as_json
def status() -> None:
    """Show the claims of a live cluster with their devices, nodes and consumers, and why some wait.

    \b
    Examples:
      dra-infra status
      dra-infra status --namespace ml --watch
      dra-infra status --graph
      dra-infra status --format mermaid > claims.mmd
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.cluster:doctor")
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
def doctor() -> None:
    """Look for what is wrong with devices in a live cluster: API, gates, driver, classes, pools, nodes and claims.

    \b
    Examples:
      dra-infra doctor
      dra-infra doctor --context prod --driver gpu.nvidia.com --json
    \b
    Exits with 0 when nothing is broken, 1 on errors, 2 when there is no answer.
    """  # noqa: D301  (click reads the character)
