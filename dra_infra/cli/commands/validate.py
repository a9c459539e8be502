"""Options and help of `dra-infra validate`."""

from __future__ import annotations

import click

from dra_infra.cli import options


@options.command("dra_infra.cli.validate:run")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, help="Files, folders, or - for standard input."
)
@options.kubernetes("Kubernetes minor or patch, 1.34 to 1.37 (default: the oldest and the newest).")
@options.gates
@click.option(
    "--serves",
    metavar="VERSION",
    multiple=True,
    help="API version that the server has on besides v1: v1beta1 or v1beta2; may be repeated.",
)
@click.option(
    "--driver",
    metavar="RELEASE",
    help="NVIDIA's driver: 25.3, 25.8, 25.12, 0.4, 0.5 or newest (default).",
    shell_complete=options.completer(options.complete_drivers),
)
@click.option(
    "--policies",
    metavar="PATH",
    multiple=True,
    help="Ask the admission policies of a file or folder, and those of the input; - for the latter alone; may be repeated.",
)
@click.option("--as", "user", metavar="USER", help="Who creates the objects, for policies that ask.")
@click.option(
    "--as-group", "groups", metavar="GROUP", multiple=True, help="A group of that user; may be repeated."
)
@click.option("--strict", is_flag=True, help="Fail on advice too.")
@options.report_form(
    "text",
    "json",
    "sarif",
    "junit",
    "github",
    text="text (on standard error), json, sarif, junit or github.",
)
@options.report_files(".json, .sarif, .xml (JUnit) or .txt")
def validate() -> None:
    """Check manifests as the API server does, before it does, with what it should have warned about.

    Every kind of resource.k8s.io and the claims of pods are checked; other objects pass and are counted.

    \b
    Examples:
      dra-infra validate manifests/
      dra-infra validate claim.yaml --kubernetes 1.34 --strict
      dra-infra validate manifests/ --policies guardrails.yaml --as alice --as-group platform
      helm template chart | dra-infra validate - --gate DRAConsumableCapacity=true
      dra-infra validate . --output findings.sarif

    Exits with 0 when all is clean, 1 on problems, 2 on wrong usage or where there is no answer.
    """  # noqa: D301  (click reads the character)
