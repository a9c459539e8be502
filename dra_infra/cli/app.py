"""The `dra-infra` program. Commands import what they need when they run, so that `--help` is instant."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dra_infra.cli import completion
from dra_infra.errors import InvalidSpecError, ProblemsError

if TYPE_CHECKING:
    from dra_infra.planning.reviews import FailOn

EXIT_PROBLEMS = 1
EXIT_NO_ANSWER = 2

app = typer.Typer(
    name="dra-infra",
    help="GPU infrastructure for Kubernetes Dynamic Resource Allocation: know before merge that it is accepted, "
    "that it can be placed, and where.",
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Directory = Annotated[Path, typer.Argument(help="Folder of a Pulumi project in Python.", show_default="here")]
Stack = Annotated[
    str | None,
    typer.Option("--stack", "-s", help="Stack whose configuration is read; else the only one, else dev."),
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="KEY=VALUE", help="Setting over the stack file's."),
]
Timeout = Annotated[float, typer.Option("--timeout", min=0.1, help="Seconds that the program may run.")]
FleetName = Annotated[
    str | None,
    typer.Option(
        "--fleet",
        "-f",
        help="Hardware to place on: 'hgx-h100 x 4', 'a100-80gb x 2, example', or a file of Kubernetes objects. "
        "Else the stack's dra-infra:fleet.",
        autocompletion=completion.fleets,
    ),
]
Charts = Annotated[
    bool,
    typer.Option(
        "--charts", help="Also what Helm releases make, rendered by helm; it may fetch their charts."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SnapshotFile = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        help="The cluster, as `dra-infra snapshot` or kubectl get -o yaml writes it.",
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", metavar="FILE", help="Else KUBECONFIG, ~/.kube/config, or the pod's account."
    ),
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Of the kubeconfig; else its current one.")
]
Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Read this one only; may be repeated. Else all."),
]


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Options before the command."""
    if version:
        from dra_infra import __version__

        typer.echo(f"dra-infra {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit


@app.command(short_help="Lay out a project that works, with its CI.")
def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the new project.", show_default="here")
    ] = Path(),
    *,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the project; else that of the folder.")
    ] = None,
    fleet: Annotated[
        str,
        typer.Option(
            "--fleet",
            "-f",
            help="Hardware to place on, by name or a file, which is copied.",
            autocompletion=completion.fleets,
        ),
    ] = "hgx-h100 x 4",
    ci: Annotated[
        Literal["github", "gitlab", "none"], typer.Option("--ci", help="Whose CI reviews changes.")
    ] = "github",
    kubernetes: Annotated[
        str,
        typer.Option(
            "--kubernetes",
            "-k",
            metavar="MINOR",
            help="Kubernetes of the cluster, 1.34 to 1.37.",
            autocompletion=completion.minors,
        ),
    ] = "1.37",
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that are there with other content.")
    ] = False,
    json: Json = False,
) -> None:
    """Lay out a project that works: program, stack, test, CI and README.

    The program fits on the fleet. Files that are there with other content are refused by name, and nothing is written.

    \b
    Examples:
      dra-infra init infra
      dra-infra init infra --name ml-gpus --fleet "a100-80gb x 2" --kubernetes 1.36
      dra-infra init --ci gitlab --json
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.init import run

    _exit(
        run(
            directory,
            name=name,
            fleet=fleet,
            ci=ci,
            kubernetes=kubernetes,
            force=force,
            as_json=json,
        )
    )


@app.command(short_help="Print the objects of a program as YAML.")
def synth(
    directory: Directory = Path(),
    *,
    stack: Stack = None,
    config: Setting = None,
    timeout: Timeout = 60.0,
    charts: Charts = False,
    json: Json = False,
) -> None:
    """Run a program in process, without CLI, network or cluster, and print its objects as YAML.

    \b
    Examples:
      dra-infra synth
      dra-infra synth infra/ --stack prod > objects.yaml
      dra-infra synth --config dra-infra:kubernetes=1.36 --json
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.synth import run

    settings = _settings(config)
    _exit(run(directory, stack=stack, config=settings, timeout=timeout, as_json=json, charts=charts))


@app.command(short_help="Say where the pods of a program fit.")
def simulate(
    directory: Directory = Path(),
    *,
    fleet: FleetName = None,
    snapshot: SnapshotFile = None,
    stack: Stack = None,
    config: Setting = None,
    timeout: Timeout = 60.0,
    json: Json = False,
) -> None:
    """Say where the pods of a program fit on a fleet, or on a cluster beside what runs: the nodes, and the devices on each.

    \b
    Examples:
      dra-infra simulate --fleet "hgx-h100 x 4"
      dra-infra simulate infra/ --fleet cluster.yaml --json
      dra-infra simulate infra/ --snapshot cluster.yaml
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.simulate import run

    if fleet is not None and snapshot is not None:
        raise typer.BadParameter("a snapshot is the fleet; leave --fleet out", param_hint="--snapshot")
    _exit(
        run(
            directory,
            fleet=fleet,
            snapshot=snapshot,
            stack=stack,
            config=_settings(config),
            timeout=timeout,
            as_json=json,
        )
    )


@app.command(short_help="Compare objects with what they were.")
def review(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A Pulumi project in Python, a folder or file of manifests, or the folder of a chart.",
            show_default="here",
        ),
    ] = Path(),
    *,
    base: Annotated[
        str | None,
        typer.Option(
            "--base", "-b", metavar="REV", help="Git revision to compare with.", show_default="HEAD"
        ),
    ] = None,
    base_path: Annotated[
        Path | None,
        typer.Option("--base-path", help="Folder or file to compare with, in place of a revision."),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--source", help="program, manifests or chart; else read off PATH.")
    ] = None,
    fleet: FleetName = None,
    snapshot: SnapshotFile = None,
    values: Annotated[
        list[Path] | None,
        typer.Option("--values", metavar="FILE", help="Values of a chart; may be repeated, the last wins."),
    ] = None,
    stack: Stack = None,
    config: Setting = None,
    timeout: Timeout = 60.0,
    charts: Charts = False,
    engine: Annotated[
        bool,
        typer.Option("--engine", help="Join the preview of the real engine; needs the stack's backend."),
    ] = False,
    policy_pack: Annotated[
        list[Path] | None,
        typer.Option(
            "--policy-pack", metavar="DIR", help="With --engine: run this policy pack; may be repeated."
        ),
    ] = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="With --engine: read the cluster first, so that drift shows.")
    ] = False,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            help="What ends with 1: problem, undecided, danger or change; each or what stands before it.",
            autocompletion=completion.levels,
        ),
    ] = "problem",
    output: Annotated[
        str,
        typer.Option(
            "--format",
            help="text, markdown, json, html, sarif or junit, on standard output.",
            autocompletion=completion.review_formats,
        ),
    ] = "text",
    html: Annotated[Path | None, typer.Option("--html", help="Also write the page to this file.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Also write Markdown to this file.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Also write JSON to this file.")] = None,
    sarif: Annotated[Path | None, typer.Option("--sarif", help="Also write SARIF to this file.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Also write JUnit XML to this file.")] = None,
) -> None:
    """Compare objects with what they were: what changes, whether it fits, and what breaks.

    The base is taken from git, the head is the working tree. Secrets are in no report; a changed one is marked.

    \b
    Examples:
      dra-infra review --base origin/main --fleet "hgx-h100 x 4"
      dra-infra review infra/ --base HEAD~1 --format markdown
      dra-infra review manifests/ --base origin/main --snapshot cluster.yaml
      dra-infra review charts/inference --values prod.yaml --base v1.4
      dra-infra review rendered/ --base-path rendered-main/
      dra-infra review --base origin/main --html review.html --fail-on danger
    \b
    Exits with 0 when the gate is open, 1 when it is closed (--fail-on), 2 when there is no answer.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.review import run
    from dra_infra.cli.review_engine import EngineAsked
    from dra_infra.cli.review_sides import Asked

    if (policy_pack or refresh) and not engine:
        option = "--policy-pack" if policy_pack else "--refresh"
        raise typer.BadParameter("needs --engine", param_hint=option)
    if base is not None and base_path is not None:
        raise typer.BadParameter("give --base or --base-path, not both", param_hint="--base-path")
    if fleet is not None and snapshot is not None:
        raise typer.BadParameter("a snapshot is the fleet; leave --fleet out", param_hint="--snapshot")
    gates: dict[str, FailOn] = {
        "problem": "problem",
        "undecided": "undecided",
        "danger": "danger",
        "change": "change",
    }
    if fail_on not in gates:
        raise typer.BadParameter(f"{fail_on!r} is none of {', '.join(gates)}", param_hint="--fail-on")
    if source not in (None, "program", "manifests", "chart"):
        raise typer.BadParameter(f"{source!r} is none of program, manifests, chart", param_hint="--source")
    _exit(
        run(
            path,
            asked=Asked(
                base="HEAD" if base is None and base_path is None else base,
                base_path=base_path,
                stack=stack,
                config=_settings(config),
                timeout=timeout,
                charts=charts,
                values=values or (),
            ),
            kind=source,
            fleet=fleet,
            snapshot=snapshot,
            fail_on=gates[fail_on],
            engine=EngineAsked(policy_packs=tuple(policy_pack or ()), refresh=refresh) if engine else None,
            output=output,
            files={"html": html, "markdown": markdown, "json": json, "sarif": sarif, "junit": junit},
        )
    )


@app.command(short_help="Post a review on a pull request.")
def comment(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `dra-infra review --markdown FILE` wrote.")
    ],
    *,
    repository: Annotated[
        str | None,
        typer.Option(
            "--repository", "-r", metavar="OWNER/NAME", help="Else the CI's own; on GitLab also a number."
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--number", "-n", min=1, help="Pull or merge request; else the one that the CI runs for."
        ),
    ] = None,
    forge: Annotated[
        str | None, typer.Option("--forge", help="github or gitlab; else the one whose CI this is.")
    ] = None,
    api: Annotated[
        str | None,
        typer.Option(
            "--api", metavar="URL", help="Address of the API; else the CI's own, else the public one."
        ),
    ] = None,
    token_variable: Annotated[
        str | None,
        typer.Option(
            "--token-variable",
            metavar="NAME",
            help="Variable with the token; else GITHUB_TOKEN or GITLAB_TOKEN.",
        ),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(
            "--account", metavar="LOGIN", help="Whose comments are ours; else the token's own account."
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=1, help="Seconds for everything, waiting for rate limits included."),
    ] = 300.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Post a review on a pull request, as one comment that later runs bring up to date.

    The comment is found again by a hidden marker, among those of the same account. It is written whole or not at all,
    and not at all when it says the same. The token is read from the environment and never printed.

    \b
    Examples:
      dra-infra comment review.md
      dra-infra comment review.md --repository team/infra --number 42 --dry-run
      dra-infra comment review.md --forge gitlab --api https://git.example.com/api/v4 -r team/infra -n 7
    \b
    Exits with 0 when the comment is there, 2 when it is not.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.comment import run

    _exit(
        run(
            file,
            forge=forge,
            api=api,
            repository=repository,
            number=number,
            token_variable=token_variable,
            account=account,
            timeout=timeout,
            dry_run=dry_run,
            as_json=json,
        )
    )


@app.command(short_help="Check manifests as the API server does.")
def validate(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, folders, or - for standard input.")
    ],
    *,
    kubernetes: Annotated[
        str | None,
        typer.Option(
            "--kubernetes",
            "-k",
            metavar="MINOR",
            help="1.34 to 1.37; else the oldest and the newest.",
            autocompletion=completion.minors,
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            "-g",
            metavar="NAME=true|false",
            help="A feature gate that the cluster sets itself.",
            autocompletion=completion.gates,
        ),
    ] = None,
    serves: Annotated[
        list[str] | None,
        typer.Option(
            "--serves", metavar="VERSION", help="v1beta1 or v1beta2, when the API server has it on."
        ),
    ] = None,
    driver: Annotated[
        str,
        typer.Option(
            "--driver",
            metavar="RELEASE",
            help="NVIDIA's driver: 25.3, 25.8, 25.12, 0.4, 0.5 or newest.",
            autocompletion=completion.drivers,
        ),
    ] = "newest",
    strict: Annotated[bool, typer.Option("--strict", help="Fail on advice too.")] = False,
    output: Annotated[
        str,
        typer.Option(
            "--format",
            help="text (on standard error), json, sarif, junit or github.",
            autocompletion=completion.validation_formats,
        ),
    ] = "text",
    json: Json = False,
) -> None:
    """Check manifests as the API server does, before it does, with what it should have warned about.

    Every kind of resource.k8s.io and the claims of pods are checked; other objects pass and are counted.

    \b
    Examples:
      dra-infra validate manifests/
      dra-infra validate claim.yaml --kubernetes 1.34 --strict
      helm template chart | dra-infra validate - --gate DRAConsumableCapacity=true
      dra-infra validate . --format sarif > findings.sarif
    \b
    Exits with 0 when all is clean, 1 on problems, 2 on wrong usage or when there is no object.
    """  # noqa: D301  (click reads the character)
    # Looking for plugins of pydantic takes a tenth of the time; no code of a user, who may want them, runs here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")
    from dra_infra.cli.validate import run, stream_of_bytes

    formats = ("text", "json", "sarif", "junit", "github")
    output = "json" if json else output
    if output not in formats:
        raise typer.BadParameter(f"{output!r} is none of {', '.join(formats)}", param_hint="--format")
    stream_of_bytes()
    try:
        code = run(
            paths,
            kubernetes=kubernetes,
            gates=_gates(gate),
            serves=serves or [],
            driver=driver,
            strict=strict,
            output=output,
        )
    except InvalidSpecError as error:
        raise typer.BadParameter("\n".join(map(str, error.problems))) from error
    _exit(code)


@app.command(short_help="Print what is known of GPUs, drivers and fleets.")
def catalog(
    section: Annotated[
        str | None,
        typer.Argument(
            help="gpus, mig, drivers, fleets, charts or systems.",
            show_default="what there is",
            autocompletion=completion.sections,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="One of the section's names, as people write it.", show_default="all"
        ),
    ] = None,
    *,
    json: Json = False,
) -> None:
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
        _exit(run(section, " ".join(name) if name else None, as_json=json))
    except NameNotKnownError as error:
        raise typer.BadParameter(str(error)) from error


@app.command(short_help="Read a live cluster into one file.")
def snapshot(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespaces = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - is standard output.")
    ] = "cluster.yaml",
) -> None:
    """Read a live cluster once into one file, for `--snapshot`: nodes, devices, claims, and what runs.

    It only lists, and works with the right to list alone. Secrets, ConfigMaps, environments and annotations are not in
    the file, which only you may read. What may not be listed is said, with the rule to grant.

    \b
    Examples:
      dra-infra snapshot
      dra-infra snapshot --context prod -o prod.yaml
      dra-infra snapshot --namespace ml --namespace serving -o - > part.yaml
    \b
    Exits with 0 when the file is there, 2 when it is not.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.snapshot import run

    _exit(run(kubeconfig, context=context, namespaces=namespace or (), output=output))


@app.command(short_help="Show the claims of a live cluster.")
def status(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespaces = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="Draw what hangs together: pod, claim, class, device.")
    ] = False,
    output: Annotated[
        str,
        typer.Option(
            "--format", help="text, json, graph, dot or mermaid.", autocompletion=completion.status_formats
        ),
    ] = "text",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Again after each change, until Ctrl-C.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the claims of a live cluster with their devices, nodes and consumers, and why some wait.

    \b
    Examples:
      dra-infra status
      dra-infra status --namespace ml --watch
      dra-infra status --graph
      dra-infra status --format mermaid > claims.mmd
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.status import FORMS, run

    output = "json" if json else "graph" if graph else output
    if output not in FORMS:
        raise typer.BadParameter(f"{output!r} is none of {', '.join(FORMS)}", param_hint="--format")
    _exit(run(kubeconfig, context=context, namespaces=namespace or (), form=output, watch=watch))


@app.command(short_help="Look for what is wrong with devices in a cluster.")
def doctor(
    *,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    driver: Annotated[
        str,
        typer.Option(
            "--driver",
            metavar="NAME",
            help="Look at this DRA driver only, as gpu.nvidia.com.",
            show_default="all",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Look for what is wrong with devices in a live cluster: API, gates, driver, classes, pools, nodes and claims.

    \b
    Examples:
      dra-infra doctor
      dra-infra doctor --context prod --driver gpu.nvidia.com --json
    \b
    Exits with 0 when nothing is broken, 1 on errors, 2 when there is no answer.
    """  # noqa: D301  (click reads the character)
    from dra_infra.cli.doctor import run

    _exit(run(kubeconfig, context=context, driver=driver, as_json=json))


def _gates(pairs: list[str] | None) -> dict[str, bool]:
    gates = {}
    for name, value in _settings(pairs, option="--gate").items():
        if value.lower() not in ("true", "false"):
            raise typer.BadParameter(f"{name}={value} is neither true nor false", param_hint="--gate")
        gates[name] = value.lower() == "true"
    return gates


def _settings(pairs: list[str] | None, *, option: str = "--config") -> dict[str, str]:
    settings = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            form = "NAME=true or NAME=false" if option == "--gate" else "KEY=VALUE"
            raise typer.BadParameter(f"{pair!r} is not {form}", param_hint=option)
        settings[key] = value
    return settings


def _exit(code: int) -> None:
    if code:
        raise typer.Exit(code)


def main() -> None:
    """Run the program; problems are printed, never a traceback of ours."""
    try:
        app(prog_name="dra-infra")
    except ProblemsError as error:
        from dra_infra.cli.printing import print_problems

        print_problems(error.problems)
        sys.exit(EXIT_NO_ANSWER)
    except BrokenPipeError:
        # The reader (head, less) has enough; Python would complain again when it flushes at exit.
        sys.stderr.close()
        sys.exit(EXIT_PROBLEMS)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
