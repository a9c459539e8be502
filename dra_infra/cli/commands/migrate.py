"""Options and help of `dra-infra migrate`."""

from __future__ import annotations

from functools import partial
from typing import Final

import click

from dra_infra.cli import options
from dra_infra.cli.older_spellings import short_output

_FORMS: Final = ("text", "markdown", "json", "html")
"""Forms of the report."""


@options.command("dra_infra.cli.migrate:run", spell_anew=partial(short_output, forms=_FORMS))
@click.argument(
    "paths",
    metavar="[PATH...]",
    nargs=-1,
    help="Files, folders, Pulumi programs, kustomizations, or - for standard input; without any, what lives in the cluster of --context.",
)
@options.kubeconfig
@options.cluster_context
@options.request_timeout
@options.namespaces
@options.kinds
@click.option(
    "--whole-gpus",
    is_flag=True,
    help="NVIDIA's device plugin shares no GPU and hides no MIG device behind nvidia.com/gpu.",
)
@click.option(
    "--plugin-config",
    metavar="FILE",
    type=options.FILE,
    help="Configuration of NVIDIA's device plugin, or the ConfigMap or chart values with it.",
)
@click.option(
    "--mig-profile",
    metavar="PROFILE",
    help="What nvidia.com/gpu is with the plugin's strategy single: 1g.10gb.",
)
@click.option(
    "--mps-memory",
    metavar="AMOUNT",
    help="Memory of a GPU that is shared under MPS: pods of a workload then share one, by a claim, on one node.",
)
@options.snapshot
@click.option(
    "--fleet",
    "-f",
    metavar="FLEET",
    help="Hardware to place the result on, all workloads together: 'hgx-h100 x 4'.",
    shell_complete=options.completer(options.complete_fleets),
)
@click.option(
    "--to",
    metavar="FORM",
    type=options.OneOf(["claims", "yaml", "components", "bridge"]),
    default="claims",
    help="claims, or yaml, which is the same; components: a Pulumi program of them; or bridge: classes that serve the resources of pods as they are.",
)
@click.option(
    "--plan",
    is_flag=True,
    help="Plan the cut-over of the nodes of --snapshot or --fleet, phase by phase, with a verdict for each.",
)
@options.kubernetes("Kubernetes minor or patch, 1.34 to 1.37 (default: the oldest and the newest).")
@options.gates
@options.driver
@options.source_kind
@options.stack
@options.config
@options.timeout
@click.option(
    "--write", is_flag=True, help="Change the files; each is kept beside it with .orig behind its name."
)
@click.option(
    "--output",
    metavar="FOLDER",
    type=options.FILE,
    help="Write the changed files, or the program, to this folder.",
)
@click.option("--diff", is_flag=True, help="Print what would change, as a diff.")
@click.option("--check", is_flag=True, help="Fail where anything is left to migrate.")
@options.report_form(*_FORMS, text="Of the report: text (on standard error), markdown, json or html.")
def migrate() -> None:
    """Turn requests to device plugins and old DRA into claims, with every loss in writing.

    Nothing is written without --write or --output. Lines that need no change stay as they are, comments too.

    \b
    Examples:
      dra-infra migrate manifests/ --whole-gpus --diff
      dra-infra migrate manifests/ --plugin-config plugin.yaml --write
      dra-infra migrate manifests/ --snapshot cluster.yaml --to bridge --output bridge/
      dra-infra migrate manifests/ --whole-gpus --to components --output program/
      dra-infra migrate --context prod --namespace ml
      dra-infra migrate manifests/ --whole-gpus --fleet "hgx-h100 x 4" --plan
      dra-infra migrate infra/ --whole-gpus --output migrated/
      helm template chart | dra-infra migrate - --whole-gpus > claims.yaml
      dra-infra migrate manifests/ --whole-gpus --check --format markdown

    Exits with 0 when all is migrated, 1 when somebody has to decide, a server would refuse it, it does not fit on the
    fleet or a phase of the plan cannot work, and with --check when anything is left to migrate, 2 on wrong usage or
    where something could not be read.
    """  # noqa: D301  (click reads the character)
