"""Options and help of `dra-infra simulate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click

from dra_infra.cli import options


def _numbers(
    context: click.Context,  # noqa: ARG001  (click's signature)
    parameter: click.Parameter,  # noqa: ARG001
    pairs: Iterable[str],
) -> dict[str, int]:
    found = options.by_key(pairs, form="KIND/NAME=PODS")
    for name, value in found.items():
        if not value.removeprefix("-").isdecimal():
            raise click.BadParameter(f"{options.shortened(f'{name}={value}')} is not KIND/NAME=PODS.")
    return {name: int(value) for name, value in found.items()}


@click.command()
@click.argument(
    "path",
    type=options.FILE,
    default=Path(),
    help="Folder of a Pulumi project in Python, or manifests; else this folder.",
)
@options.fleet
@options.snapshot
@options.kubernetes("Whose server and scheduler, 1.34 to 1.37; else the stack's, else the newest.")
@options.gates
@click.option(
    "--driver",
    metavar="RELEASE",
    help="NVIDIA's driver, for the program and for fleets by name: 25.3, 25.8, 25.12, 0.4 or 0.5.",
    shell_complete=options.offered(options.drivers),
)
@click.option(
    "--add",
    metavar="FLEET",
    multiple=True,
    help="What if this hardware were there too? May be repeated.",
    shell_complete=options.offered(options.fleets),
)
@click.option(
    "--remove",
    metavar="NODE",
    multiple=True,
    help="What if this node were gone? A name or pattern; may be repeated.",
)
@click.option(
    "--drain",
    metavar="NODE",
    multiple=True,
    help="What if this node took no more pods? A name or pattern; may be repeated.",
)
@click.option(
    "--fail",
    metavar="NODE/DEVICE",
    multiple=True,
    help="What if this device failed? Names or patterns; may be repeated.",
)
@click.option(
    "--scale",
    metavar="KIND/NAME=PODS",
    multiple=True,
    callback=_numbers,
    help="What if this workload had so many pods? May be repeated.",
)
@options.stack
@options.config
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=60.0,
    help="How long the program may run, and then the search; what is not found by then is said so.",
)
@options.as_json
def simulate(
    path: Path,
    *,
    fleet: str | None,
    snapshot: Path | None,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    driver: str | None,
    add: Sequence[str],
    remove: Sequence[str],
    drain: Sequence[str],
    fail: Sequence[str],
    scale: Mapping[str, int],
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    as_json: bool,
) -> int:
    """Say where the pods of a program fit on a fleet, or on a cluster beside what runs: the nodes, and the devices on each.

    Devices are those that the scheduler's own allocator would choose. What is left is told per device class and MIG profile.

    \b
    Examples:
      dra-infra simulate --fleet "hgx-h100 x 4"
      dra-infra simulate manifests/ --fleet cluster.yaml --json
      dra-infra simulate infra/ --snapshot cluster.yaml --drain "*-0"
      dra-infra simulate --fleet "hgx-h100 x 4" --scale deployment/inference=40 --add "hgx-h100 x 2"
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.simulate import Asked, run

    options.refuse_both(fleet, snapshot)
    return run(
        path,
        fleet=fleet,
        snapshot=snapshot,
        stack=stack,
        config=config,
        timeout=timeout,
        as_json=as_json,
        asked=Asked(
            kubernetes=kubernetes,
            gates=gates,
            driver=driver,
            add=add,
            remove=remove,
            drain=drain,
            fail=fail,
            scale=scale,
        ),
    )
