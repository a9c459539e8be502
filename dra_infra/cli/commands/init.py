"""Options and help of `dra-infra init`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dra_infra.cli import options

if TYPE_CHECKING:
    from dra_infra.cli.init import CI


@click.command()
@click.argument(
    "directory",
    metavar="[DIR]",
    type=options.FILE,
    default=Path(),
    help="Folder of the new project; else this one.",
)
@click.option("--name", metavar="NAME", help="Name of the project; else that of the folder.")
@click.option(
    "--fleet",
    "-f",
    metavar="FLEET",
    default="hgx-h100 x 4",
    help="Hardware to place on, by name or a file, which is copied.",
    shell_complete=options.offered(options.fleets),
)
@click.option(
    "--ci",
    type=options.OneOf(["github", "gitlab", "none"]),
    default="github",
    help="Whose CI reviews changes.",
)
@click.option(
    "--kubernetes",
    "-k",
    metavar="MINOR",
    default="1.37",
    help="Kubernetes of the cluster, 1.34 to 1.37.",
    shell_complete=options.offered(options.minors),
)
@click.option("--force", is_flag=True, help="Replace files that are there with other content.")
@options.as_json
def init(
    directory: Path, *, name: str | None, fleet: str, ci: CI, kubernetes: str, force: bool, as_json: bool
) -> int:
    """Lay out a project that works: program, stack, test, CI and README.

    The program fits on the fleet. Files that are there with other content are refused by name, and nothing is written.

    \b
    Examples:
      dra-infra init infra
      dra-infra init infra --name ml-gpus --fleet "a100-80gb x 2" --kubernetes 1.36
      dra-infra init --ci gitlab --json
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.init import run

    return run(directory, name=name, fleet=fleet, ci=ci, kubernetes=kubernetes, force=force, as_json=as_json)
