"""Options and help of `dra-infra compile`."""

from __future__ import annotations

from pathlib import Path

import click

from dra_infra.cli import options


@options.command("dra_infra.cli.compile:run")
@options.reviewed_path
@click.option(
    "--output", "-o", metavar="FILE", type=options.FILE, default=Path("head.json"), help="File to write."
)
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
    \b
    Exits with 0 when the file holds the objects, 2 when it holds why there are none.
    """  # noqa: D301  (click reads the character)
