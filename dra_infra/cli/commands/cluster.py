"""Options and help of the commands on a live cluster: snapshot, status, doctor and drain."""

from __future__ import annotations

import click

from dra_infra.cli import options
from dra_infra.cli.older_spellings import short_output


@options.command("dra_infra.cli.cluster:snapshot", spell_anew=short_output)
@options.kubeconfig
@options.cluster_context
@options.request_timeout
@options.namespaces
@click.option(
    "--output",
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
      dra-infra snapshot --context prod --output prod.yaml
      dra-infra snapshot --namespace ml --namespace serving --output - > part.yaml

    Exits with 0 when the file is there, 2 when it is not.
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.cluster:status")
@options.kubeconfig
@options.cluster_context
@options.request_timeout
@options.namespaces
@options.snapshot
@click.option("--by-team", is_flag=True, help="Show what each namespace has, and what is free.")
@click.option(
    "--team-label",
    metavar="KEY",
    default="",
    show_default="the namespace",
    help="Label of namespaces whose value is the team; means --by-team.",
)
@click.option(
    "--fragmentation",
    is_flag=True,
    help="Show how large a claim of each class still fits, and what is in the way of larger ones.",
)
@click.option("--graph", is_flag=True, help="Draw how pods, claims, classes and devices are connected.")
@click.option("--watch", "-w", is_flag=True, help="Print again after each change, until Ctrl-C.")
@options.report_form(
    "text",
    "json",
    "graph",
    "dot",
    "mermaid",
    "prometheus",
    text="text, json, graph, dot or mermaid; of teams text, json or prometheus.",
)
def status() -> None:
    """Show the claims of a live cluster with their devices, nodes and consumers, and why some wait; or what each team has.

    \b
    Examples:
      dra-infra status
      dra-infra status --namespace ml --watch
      dra-infra status --graph
      dra-infra status --format mermaid > claims.mmd
      dra-infra status --by-team
      dra-infra status --team-label team --format prometheus
      dra-infra status --by-team --snapshot cluster.yaml --json
      dra-infra status --fragmentation --snapshot cluster.yaml
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.cluster:doctor")
@options.kubeconfig
@options.cluster_context
@options.request_timeout
@click.option(
    "--driver",
    metavar="NAME",
    default="",
    show_default="all",
    help="Look at this DRA driver only, as gpu.nvidia.com.",
)
@options.report_form("text", "json")
def doctor() -> None:
    """Look for what is wrong with devices in a live cluster: API, gates, driver, classes, pools, nodes and claims.

    \b
    Examples:
      dra-infra doctor
      dra-infra doctor --context prod --driver gpu.nvidia.com --json

    Exits with 0 when nothing is broken, 1 on errors, 2 when there is no answer.
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.drain:drain")
@click.argument("target", help="A node, a pool, POOL/DEVICE or the UUID of a device.")
@options.kubeconfig
@options.cluster_context
@options.request_timeout
@click.option(
    "--driver",
    metavar="NAME",
    show_default="all",
    help="Drain devices of this DRA driver only, as gpu.nvidia.com.",
)
@click.option("--yes", is_flag=True, help="Write the rules and evict; else nothing is written.")
@click.option(
    "--undo", is_flag=True, help="Delete the rules of a drain, so that the devices are given out again."
)
@click.option("--reason", metavar="TEXT", default="", help="What whoever finds the rules is told.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=options.Seconds(1),
    default=600.0,
    help="How long the pods may take to be gone.",
)
@options.report_form("text", "json")
def drain() -> None:
    """Empty devices for service: show whose pods would be evicted, then evict them and keep others away.

    TARGET is a node, a pool, POOL/DEVICE or the UUID of a device; a GPU takes its MIG devices along. With --yes a
    DeviceTaintRule is written with the effect None first, and NoExecute when the eviction controller counts the same pods.
    PodDisruptionBudgets do not count. Kubernetes 1.35 and newer, where DRADeviceTaintRules is on.

    \b
    Examples:
      dra-infra drain node-7/gpu-3
      dra-infra drain node-7/gpu-3 --yes --reason INC-1234
      dra-infra drain GPU-4d8b2f0e-1a2b-3c4d-5e6f-708192a3b4c5 --yes
      dra-infra drain node-7/gpu-3 --undo

    Exits with 0 when it is shown, drained or given back, 1 when pods are left or the cluster counts others, 2 when there
    is no answer.
    """  # noqa: D301  (click reads the character)
