"""The `dra-infra` program. Commands import what they need when they run, so that `--help` is instant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dra_infra.errors import ProblemsError

EXIT_PROBLEMS = 1

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
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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


@app.command()
def synth(
    directory: Directory = Path(),
    *,
    stack: Stack = None,
    config: Setting = None,
    timeout: Timeout = 60.0,
    json: Json = False,
) -> None:
    r"""Run a program in process, without CLI, network or cluster, and print its objects as YAML.

    \b
    Examples:
      dra-infra synth
      dra-infra synth infra/ --stack prod > objects.yaml
      dra-infra synth --config dra-infra:kubernetes=1.36 --json
    """
    from dra_infra.cli.synth import run

    _exit(run(directory, stack=stack, config=_settings(config), timeout=timeout, as_json=json))


@app.command()
def simulate(
    directory: Directory = Path(),
    *,
    fleet: FleetName = None,
    stack: Stack = None,
    config: Setting = None,
    timeout: Timeout = 60.0,
    json: Json = False,
) -> None:
    r"""Say where the pods of a program fit on a fleet: the nodes, and the devices on each.

    \b
    Examples:
      dra-infra simulate --fleet "hgx-h100 x 4"
      dra-infra simulate infra/ --fleet cluster.yaml --json
    """
    from dra_infra.cli.simulate import run

    _exit(run(directory, fleet=fleet, stack=stack, config=_settings(config), timeout=timeout, as_json=json))


@app.command()
def review(
    directory: Directory = Path(),
    *,
    base: Annotated[
        str, typer.Option("--base", "-b", metavar="REV", help="Git revision to compare with.")
    ] = "HEAD",
    fleet: FleetName = None,
    stack: Stack = None,
    config: Setting = None,
    timeout: Timeout = 60.0,
    output: Annotated[
        str, typer.Option("--format", help="text, markdown, json or html, on standard output.")
    ] = "text",
    html: Annotated[Path | None, typer.Option("--html", help="Also write the page to this file.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Also write Markdown to this file.")
    ] = None,
) -> None:
    r"""Compare a program with its state at a revision: what changes, whether it fits, and what breaks.

    \b
    Examples:
      dra-infra review --base origin/main --fleet "hgx-h100 x 4"
      dra-infra review infra/ --base HEAD~1 --format markdown
      dra-infra review --base origin/main --html review.html
    """
    from dra_infra.cli.review import run

    _exit(
        run(
            directory,
            base=base,
            fleet=fleet,
            stack=stack,
            config=_settings(config),
            timeout=timeout,
            output=output,
            files={"html": html, "markdown": markdown},
        )
    )


def _settings(pairs: list[str] | None) -> dict[str, str]:
    settings = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="--config")
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
        sys.exit(EXIT_PROBLEMS)
    except BrokenPipeError:
        # The reader (head, less) has enough; Python would complain again when it flushes at exit.
        sys.stderr.close()
        sys.exit(EXIT_PROBLEMS)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
