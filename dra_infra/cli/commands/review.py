"""Options and help of `dra-infra review`, and of `dra-infra compile`, which makes its head elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from dra_infra.cli import options
from dra_infra.cli.older_spellings import file_of_json, short_output


@options.command("dra_infra.cli.review:run", spell_anew=file_of_json)
@options.reviewed_path
@click.option("--base", "-b", metavar="REV", show_default="HEAD", help="Git revision to compare with.")
@click.option(
    "--base-path",
    metavar="PATH",
    type=options.FILE,
    help="Folder or file to compare with, in place of a revision.",
)
@click.option(
    "--head",
    metavar="FILE",
    type=options.FILE,
    help="The head as `dra-infra compile` wrote it; nothing of it is run. Else the working tree.",
)
@click.option(
    "--head-commit", metavar="COMMIT", help="With --head: refuse one that was compiled of another commit."
)
@options.source_kind
@options.fleet
@options.prices
@options.snapshot
@options.kubernetes(
    "Kubernetes minor or patch, 1.34 to 1.37 (default: that of the program's stack, or the oldest and the newest)."
)
@options.gates
@options.driver
@options.values
@options.stack
@options.config
@options.provider
@options.timeout
@options.charts
@options.allow
@click.option(
    "--engine", is_flag=True, help="Join the preview of the real engine; needs the stack's backend."
)
@click.option(
    "--policy-pack",
    "policy_packs",
    metavar="DIR",
    type=options.FILE,
    multiple=True,
    help="With --engine: run this policy pack; may be repeated.",
)
@options.kinds
@click.option("--refresh", is_flag=True, help="With --engine: read the cluster first, so that drift shows.")
@click.option(
    "--fail-on",
    metavar="LEVEL",
    type=options.OneOf(["problem", "undecided", "danger", "change"]),
    default="problem",
    help="Least finding that ends with 1, in this order: problem, undecided, danger or change.",
)
@click.option(
    "--assume-empty-base",
    is_flag=True,
    help="Count a base whose program fails as empty. Else nothing is decided, and the gate is closed.",
)
@click.option(
    "--brief",
    is_flag=True,
    help="Text and Markdown with the verdict, dangers, problems and what changes alone.",
)
@options.report_form("text", "markdown", "json", "html", "sarif", "junit")
@options.report_files(".html, .md, .json, .sarif, .xml (JUnit) or .txt")
@options.older_report_file("html")
@options.older_report_file("markdown")
@options.older_report_file("sarif")
@options.older_report_file("junit")
def review() -> None:
    """Compare objects with what they were: what changes, whether it fits, and what breaks.

    The base is taken from git, the head is the working tree. Programs run confined: they get environment variables by name,
    read their repository, and have no network, as far as the kernel can hold that. What a field, a name, its form or the
    environment tells to be a secret is hidden in every report; a changed one is marked.

    \b
    Examples:
      dra-infra review --base origin/main --fleet "hgx-h100 x 4"
      dra-infra review infra/ --base HEAD~1 --brief --format markdown
      dra-infra review manifests/ --base origin/main --snapshot cluster.yaml
      dra-infra review charts/inference --values prod.yaml --base v1.4
      dra-infra review rendered/ --base-path rendered-main/
      dra-infra review --base origin/main --output review.html --fail-on danger
      dra-infra review infra/ --base origin/main --head head.json

    Exits with 0 when the gate is open, 1 when it is closed (--fail-on), 2 when there is no answer.
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.compile:run", spell_anew=short_output)
@options.reviewed_path
@click.option("--output", metavar="FILE", type=options.FILE, default=Path("head.json"), help="File to write.")
@options.source_kind
@options.values
@options.stack
@options.config
@options.timeout
@options.charts
@options.allow
def compile() -> None:  # noqa: A001  (the name of the command)
    """Compile one side of a review to a file, for `dra-infra review --head`, which runs nothing of it.

    A job that runs the program of a pull request should have no token that may write; the job that has one should run nothing of
    the pull request. This is the first, `dra-infra review --head` and `dra-infra comment` are the second.

    \b
    Examples:
      dra-infra compile infra/ --output head.json
      dra-infra compile manifests/
      dra-infra compile charts/inference --values prod.yaml

    Exits with 0 when the file holds the objects, 2 when it holds why there are none.
    """  # noqa: D301  (click reads the character)
