"""Options and help of the commands for whoever writes a program: init, synth, simulate, explain and catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from dra_infra.cli import options


@options.command("dra_infra.cli.init:run")
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
    shell_complete=options.completer(options.complete_fleets),
)
@click.option(
    "--ci",
    type=options.OneOf(["github", "gitlab", "none"]),
    default="github",
    help="CI that reviews changes.",
)
@click.option(
    "--kubernetes",
    "-k",
    metavar="VERSION",
    default="1.37",
    callback=options.version_of,
    help="Kubernetes of the cluster, 1.34 to 1.37.",
    shell_complete=options.completer(options.complete_versions),
)
@click.option("--force", is_flag=True, help="Replace files that are there with other content.")
@options.report_form("text", "json")
def init() -> None:
    """Lay out a project that works: program, stack, test, CI and README.

    The program fits on the fleet. Files that are there with other content are refused by name, and nothing is written.

    \b
    Examples:
      dra-infra init infra
      dra-infra init infra --name ml-gpus --fleet "a100-80gb x 2" --kubernetes 1.36
      dra-infra init --ci gitlab --json
    """  # noqa: D301  (click reads the character)


def _folder(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    if value is None:
        return None
    folder = Path(value)
    if not value or (not value.endswith("/") and not folder.is_dir()):
        shown = options.shortened(value)
        raise click.BadParameter(
            f"{shown} is no folder. For a new one write {value}/; for one file, dra-infra synth > FILE.",
            ctx=context,
            param=parameter,
        )
    return folder


@options.command("dra_infra.cli.synth:run")
@options.directory
@options.stack
@options.config
@options.timeout
@options.charts
@click.option(
    "--output",
    metavar="FOLDER/",
    callback=_folder,
    help="Write a file for each object, and kustomization.yaml, to this folder; a new one ends in /.",
)
@click.option(
    "--gitops",
    type=options.OneOf(["argocd", "flux"]),
    help="The controller that applies the YAML: annotate claims so that it does not prune them too early.",
)
@options.report_form("yaml", "json")
def synth() -> None:
    """Run a program in process, without CLI, network or cluster, and print its objects as YAML or write them to a folder.

    An object with values that are secret or only known after `pulumi up` is printed as comments, and the exit code is 1.
    --json prints all objects, and names such values under markers.
    A folder has no file for such an object. Files of objects that are no more are removed, all others stay; a file that
    was edited is not replaced, and then nothing is written.

    \b
    Examples:
      dra-infra synth
      dra-infra synth infra/ --stack prod > objects.yaml
      dra-infra synth --config dra-infra:kubernetes=1.36 --json
      dra-infra synth infra/ --output deploy/ --gitops argocd
    """  # noqa: D301  (click reads the character)


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


@options.command("dra_infra.cli.simulate:run")
@click.argument(
    "path",
    type=options.FILE,
    default=Path(),
    help="Folder of a Pulumi project, or manifests; else this folder.",
)
@options.fleet
@options.prices
@options.snapshot
@options.kubernetes(
    "Kubernetes minor or patch of the server and scheduler, 1.34 to 1.37 (default: the stack's, else the newest)."
)
@options.gates
@options.driver
@click.option(
    "--add",
    metavar="FLEET",
    multiple=True,
    help="What if this hardware were there too? May be repeated.",
    shell_complete=options.completer(options.complete_fleets),
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
    help="What if this node were drained? A name or pattern, or 1 for one node of each kind in turn; may be repeated.",
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
@options.provider
@options.seconds(
    60.0, "How long the program may run, and then the search; what is not found by then is said so."
)
@options.kinds
@click.option(
    "--brief", is_flag=True, help="Text with what does not fit and the verdict on all at once alone."
)
@options.report_form("text", "json")
@options.report_files(".json or .txt")
def simulate() -> None:
    """Say where the pods of a program fit on a fleet, or on a cluster beside what runs: the nodes, and the devices on each.

    Devices are those that the scheduler's own allocator would choose. What is left is told per device class and MIG profile.
    Of a fleet file with node pools it says by how much these have to grow, and what that costs.

    Exits with 0 when all pods fit, 1 when some do not, that is not decided or an object has an error, 2 when something could not be read.

    \b
    Examples:
      dra-infra simulate --fleet "hgx-h100 x 4"
      dra-infra simulate manifests/ --fleet cluster.yaml --brief
      dra-infra simulate infra/ --snapshot cluster.yaml --drain "*-0"
      dra-infra simulate infra/ --fleet "hgx-h100 x 4" --drain 1
      dra-infra simulate --fleet "hgx-h100 x 4" --scale deployment/inference=40 --add "hgx-h100 x 2"
      dra-infra simulate --fleet pools.yaml --prices prices.json
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.upgrade:run")
@click.argument(
    "path",
    type=options.FILE,
    required=False,
    help="Folder of a Pulumi project in Python, or manifests; else the snapshot alone, or this folder.",
)
@click.option(
    "--from", "older", metavar="RELEASE", required=True, help="The release that the cluster has: 1.34."
)
@click.option("--to", "newer", metavar="RELEASE", required=True, help="The release that it gets: 1.37.")
@options.fleet
@options.prices
@options.snapshot
@options.gates
@options.driver
@options.stack
@options.config
@options.provider
@options.seconds(60.0, "How long the program may run for each release, and then each search.")
@options.kinds
@click.option(
    "--fail-on",
    metavar="LEVEL",
    type=options.OneOf(["breaks", "changes", "note", "never"]),
    default="breaks",
    help="Least difference that ends with 1, in this order: breaks, changes or note; or never.",
)
@options.report_form("text", "markdown", "json", "html")
@options.report_files(".html, .md, .json or .txt")
def upgrade() -> None:
    """Say what changes for your objects, pods and devices when the cluster gets another release of Kubernetes.

    The same objects are checked, placed and evicted by the rules of both releases, and the answers are compared, the worst first.
    It ends with the steps before and after the upgrade, with what was compared, and with what was not.

    Exits with 0 when nothing breaks, 1 when something does (--fail-on), 2 when there is no answer.

    \b
    Examples:
      dra-infra upgrade --from 1.34 --to 1.37
      dra-infra upgrade manifests/ --from 1.36 --to 1.37 --fleet "hgx-h100 x 4"
      dra-infra upgrade --from 1.36 --to 1.37 --snapshot cluster.yaml --output upgrade.html
      dra-infra upgrade infra/ --from 1.35 --to 1.37 --gate DRADeviceTaints=true --fail-on changes
    """  # noqa: D301  (click reads the character)


@options.command("dra_infra.cli.make_room:make_room")
@click.argument(
    "workload",
    help="deployment/x, job/x, pod/x, claim/x; or a shape: '8 x h100 on one node', 'a rack of gb200', '2 x 3g.40gb'.",
)
@click.argument(
    "path",
    type=options.FILE,
    required=False,
    help="A Pulumi project in Python, or a folder or file of manifests, that has the workload; else the snapshot has it.",
)
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    help="Namespace of the workload (default: that of the only one of the name).",
)
@options.snapshot
@options.kubernetes(
    "Kubernetes minor of the server and scheduler, 1.34 to 1.37 (default: the stack's, else the newest)."
)
@options.gates
@options.driver
@options.stack
@options.config
@options.provider
@options.seconds(60.0, "How long the program may run, and then the search; the best plan by then is printed.")
@options.kinds
@click.option(
    "--bare-pods", is_flag=True, help="Also evict pods without a controller, which nothing replaces."
)
@click.option(
    "--above-priority", is_flag=True, help="Also move pods with a higher priority than the workload's."
)
@click.option(
    "--run-times",
    metavar="FILE",
    type=options.FILE,
    help='JSON with hours of work that a restart loses, {"ml/job/train": 12.5}; the fewest GPU-hours count first then.',
)
@options.report_form("text", "json", "markdown", "html")
@options.report_files(".html, .json, .md or .txt")
def make_room() -> None:
    """Say which running pods to move, and in which order, so that a workload fits: the cheapest moves, each proven with the
    scheduler's own allocator, and the kubectl commands with a check behind each. Nothing is done to a cluster.

    A pod moves when it is deleted, and its controller creates it again on another node. PodDisruptionBudgets, priorities and Jobs that lose
    work count; pods without a controller stay unless --bare-pods is given.

    Exits with 0 when the workload fits, now or after the moves, 1 when it never fits or no moves are found, 2 when there is no answer.

    \b
    Examples:
      dra-infra make-room job/train manifests/ --snapshot cluster.yaml
      dra-infra make-room "8 x h100 on one node" --snapshot cluster.yaml --format markdown
    """  # noqa: D205, D301  (help in one paragraph; click reads the character)


@options.command("dra_infra.cli.explain:run")
@click.argument(
    "name",
    metavar="NAME",
    help="pod/x, deployment/x, jobset/x/part, claim/x, template/x, or x alone; or the code of a problem.",
)
@click.argument(
    "path",
    type=options.FILE,
    required=False,
    help="A Pulumi project, or a folder or file of manifests.",
)
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    help="Namespace of the object (default: that of the only one of the name).",
)
@options.fleet
@options.prices
@options.snapshot
@options.kubeconfig
@options.cluster_context
@options.request_timeout
@options.kubernetes(
    "Kubernetes minor or patch, 1.34 to 1.37 (default: the program's, the cluster's, or the newest)."
)
@options.gates
@options.driver
@options.stack
@options.config
@options.provider
@options.seconds(20.0, "How long to search; what is known by then is printed.")
@options.kinds
@click.option("--deep", "is_deep", is_flag=True, help="Try two changes at once where one is not enough.")
@options.report_form("text", "json")
@options.report_files(".json or .txt")
def explain() -> None:
    """Say why a pod or claim gets no devices: what keeps each device away, counted, and the smallest changes that fit.
    Or say what the code of a problem means, and what to do.

    With a path, a fleet or a snapshot nothing but files is read, and with none of them in the folder of a project that names its
    fleet; else the cluster of the kubeconfig is, and only read. A name alone that is a code is taken for the code, and nothing
    is read; an object of that name is called pod/NAME.

    \b
    Examples:
      dra-infra explain job/train infra/ --fleet "hgx-h100 x 4"
      dra-infra explain deployment/inference manifests/ --snapshot cluster.yaml -n ml
      dra-infra explain job/train manifests/ --fleet fleet.yaml --kubernetes 1.36 --deep --json
      dra-infra explain count-below-one

    \b
    Of a live cluster: dra-infra explain pod/train-0 -n ml --context prod

    Exits with 0 when it fits, or all do when node pools grow, or a code is told, 1 when it does not fit, 2 when there is no answer.
    """  # noqa: D205, D301  (help in one paragraph; click reads the character)


def _joined(
    context: click.Context,  # noqa: ARG001  (click's signature)
    parameter: click.Parameter,  # noqa: ARG001
    words: Sequence[str],
) -> str | None:
    return " ".join(words) or None


@options.command("dra_infra.cli.catalog:run")
@click.argument(
    "section",
    required=False,
    help="gpus, mig, drivers, fleets, machines, charts or systems (default: the list of these).",
    shell_complete=options.completer(options.complete_sections),
)
@click.argument(
    "name",
    metavar="[NAME]",
    nargs=-1,
    callback=_joined,
    help="Name of an entry, as people write it (default: all).",
)
@options.report_form("text", "json")
def catalog() -> None:
    """Print what is known of GPUs, MIG profiles, drivers, fleets, machines, charts and systems, each fact with its source.

    \b
    Examples:
      dra-infra catalog
      dra-infra catalog gpus H100
      dra-infra catalog mig A100-80GB
      dra-infra catalog drivers 0.5
      dra-infra catalog machines p5.48xlarge
      dra-infra catalog charts gpu-operator=26.7.0 --json

    Exits with 2 on a name that is not known.
    """  # noqa: D301  (click reads the character)
