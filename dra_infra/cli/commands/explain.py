"""Options and help of `dra-infra explain`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from dra_infra.cli import options


@click.command()
@click.argument(
    "name",
    metavar="NAME",
    help="pod/x, deployment/x, claim/x, template/x, or x alone; or the code of a problem.",
)
@click.argument(
    "path",
    type=options.FILE,
    required=False,
    help="A Pulumi project in Python, or a folder or file of manifests.",
)
@click.option("--namespace", "-n", metavar="NAME", help="Its namespace; else that of the only one.")
@options.fleet
@options.snapshot
@options.kubeconfig
@options.cluster_context
@options.kubernetes("1.34 to 1.37; else the program's, the cluster's, or the newest.")
@options.gates
@options.stack
@options.config
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=20.0,
    help="How long to search; then what is known is told.",
)
@click.option("--deep", "is_deep", is_flag=True, help="Try two changes at once where one is not enough.")
@options.as_json
def explain(
    name: str,
    path: Path | None,
    *,
    namespace: str | None,
    fleet: str | None,
    snapshot: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    is_deep: bool,
    as_json: bool,
) -> int:
    """Say why a pod or claim gets no devices: what keeps each device away, counted, and the smallest changes that fit.
    Or say what the code of a problem means, and what to do.

    With a path, a fleet or a snapshot nothing but files is read; else the cluster of the kubeconfig is, and only read. A
    name alone that is a code is taken for the code, and nothing is read; an object of that name is called pod/NAME.

    \b
    Examples:
      dra-infra explain job/train infra/ --fleet "hgx-h100 x 4"
      dra-infra explain deployment/inference manifests/ --snapshot cluster.yaml -n ml
      dra-infra explain job/train manifests/ --fleet fleet.yaml --kubernetes 1.36 --deep --json
      dra-infra explain count-below-one
    \b
    Of a live cluster: dra-infra explain pod/train-0 -n ml --context prod
    \b
    Exits with 0 when it fits or a code is told, 1 when it does not fit, 2 when there is no answer.
    """  # noqa: D205, D301  (help in one paragraph; click reads the character)
    from dra_infra.cli.explain import run, tell_code
    from dra_infra.codes import CODES

    options.refuse_both(fleet, snapshot)
    if name in CODES and not (path or fleet or snapshot or kubeconfig or context or namespace):
        return tell_code(name, as_json=as_json)
    if (kubeconfig or context) and (path or fleet or snapshot):
        raise click.BadParameter("files are read or a cluster, not both", param_hint="--kubeconfig")
    return run(
        name,
        path,
        namespace=namespace,
        fleet=fleet,
        snapshot=snapshot,
        kubeconfig=kubeconfig,
        context=context,
        kubernetes=kubernetes,
        gates=gates,
        stack=stack,
        config=config,
        timeout=timeout,
        is_deep=is_deep,
        as_json=as_json,
    )
