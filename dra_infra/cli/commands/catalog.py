"""Options and help of `dra-infra catalog`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from dra_infra.cli import options


@click.command()
@click.argument(
    "section",
    required=False,
    help="gpus, mig, drivers, fleets, charts or systems; else what there is.",
    shell_complete=options.offered(options.sections),
)
@click.argument(
    "name",
    metavar="[NAME]",
    nargs=-1,
    help="One of the section's names, as people write it; else all.",
)
@options.as_json
def catalog(section: str | None, name: Sequence[str], *, as_json: bool) -> int:
    """Print what is known of GPUs, MIG profiles, drivers, fleets, charts and systems, with the source of each fact.

    \b
    Examples:
      dra-infra catalog
      dra-infra catalog gpus H100
      dra-infra catalog mig A100-80GB
      dra-infra catalog drivers 0.5
      dra-infra catalog charts gpu-operator=26.7.0 --json
    \b
    Exits with 2 on a name that is not known.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.catalog import run
    from dra_infra.cli.catalog_sections import NameNotKnownError

    try:
        return run(section, " ".join(name) if name else None, as_json=as_json)
    except NameNotKnownError as error:
        raise click.BadParameter(str(error)) from error
