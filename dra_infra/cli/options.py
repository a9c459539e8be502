"""Options that several commands share, their kinds of values, and shell completion of these.

Behind an option the shell offers names that the catalogue knows. Nothing is loaded before the shell asks, for every
press of Tab is a process of its own (ADR 11); that is why the imports of completion stand inside functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from dra_infra.cli.failures import write_failure
from dra_infra.errors import ProblemsError

Respell = Callable[[Sequence[str]], list[str]]
"""Returns the words of a command line with today's spelling."""


class LateCommand(click.Command):
    """A command that imports the module of its work with the call: Help and Tab need its options alone (ADR 11).

    Args:
        work: `module:function`, which takes the value of each option by name and returns the exit code.
        spell_anew: Puts today's spelling of options in the place of an older one, and says so.
    """

    def __init__(self, *arguments: Any, work: str, spell_anew: Respell | None = None, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._work = work
        self._spell_anew = spell_anew

    def load_work(self) -> Callable[..., int]:
        """Import the function that does the work."""
        module, _, name = self._work.partition(":")
        work: Callable[..., int] = getattr(import_module(module), name)
        return work

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and refuse a second snapshot.

        Of other options the last one wins, as scripts that add one to a command expect. Of two snapshots both may be meant.

        Raises:
            click.BadParameter: For `--snapshot` that is given twice.
        """
        try:
            return self._parse(ctx, args)
        except click.UsageError as error:
            if not ctx.resilient_parsing:
                write_failure(ctx, error, is_asked=self._asks_for_json(args))
            raise

    def _asks_for_json(self, words: Sequence[str]) -> bool:
        """Return whether a command line that is wrong asks for a report in JSON."""
        names = {each.name for each in self.params}
        pairs = zip(words, [*words[1:], ""], strict=True)
        return "form" in names and any(
            word in ("--json", "-ojson", "-o=json", "--format=json")
            or (word in ("-o", "--format") and following == "json")
            for word, following in pairs
        )

    def _parse(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            args = self._join_fleets(self._spell_anew(args) if self._spell_anew else args)
            _, _, order = self.make_parser(ctx).parse_args(list(args))
            for each in order:
                if each.name == "snapshot" and order.count(each) > 1:
                    raise click.BadParameter(
                        "is given twice, and one cluster is read; leave one out", ctx=ctx, param=each
                    )
        return super().parse_args(ctx, args)

    def _join_fleets(self, words: Sequence[str]) -> list[str]:
        """Return a command line whose fleets are one word each, as people forget the quotes: `--fleet hgx-h100 x 4`."""
        spellings = {
            spelling
            for each in self.params
            for spelling in each.opts
            if isinstance(each, click.Option) and each.metavar == "FLEET"
        }
        joined: list[str] = []
        given = list(words)
        while given:
            word = given.pop(0)
            joined.append(word)
            if word in spellings and given:
                joined.append(given.pop(0))
            elif word.partition("=")[0] not in spellings:
                continue
            while len(given) > 1 and given[0] in ("x", "X", "×") and given[1].rstrip(",").isdecimal():  # noqa: RUF001  (people paste the sign)
                term = given[:2] if not given[1].endswith(",") else given[:3]
                joined[-1] = " ".join([joined[-1], *term])
                del given[: len(term)]
        return joined

    def invoke(self, ctx: click.Context) -> int:
        """Do the work; returns the exit code.

        Raises:
            click.BadParameter: When a fleet and a snapshot are given: a snapshot has its fleet in it. To a plan the fleet says
                what hardware is. When `--json` is given with another form.
        """
        try:
            return self._invoke(ctx)
        except (click.UsageError, ProblemsError, OSError) as error:
            is_asked = bool(ctx.meta.get(_AS_JSON)) or ctx.params.get("form") == "json"
            write_failure(ctx, error, is_asked=is_asked)
            raise

    def _invoke(self, ctx: click.Context) -> int:
        if ctx.meta.get(_AS_JSON):
            if (
                ctx.params["form"] != "json"
                and ctx.get_parameter_source("form") is not ParameterSource.DEFAULT
            ):
                refusal = f"prints JSON, and --format {ctx.params['form']} another form; leave one out"
                raise click.BadParameter(refusal, ctx=ctx, param_hint="--json")
            ctx.params["form"] = "json"
        both = ctx.params.get("fleet") is not None and ctx.params.get("snapshot") is not None
        if both and not ctx.params.get("plan"):
            refusal = "a snapshot is the fleet; leave --fleet out"
            raise click.BadParameter(refusal, ctx=ctx, param_hint="--snapshot")
        return ctx.invoke(self.load_work(), **ctx.params)


def command(work: str, *, spell_anew: Respell | None = None) -> Callable[[Callable[[], None]], LateCommand]:
    """Make a command of the options and the docstring of a function; the arguments are those of `LateCommand`."""
    return click.command(cls=LateCommand, work=work, spell_anew=spell_anew)


Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def completer(names: Callable[[str], list[str]]) -> Completer:
    """Make a `shell_complete` of click from a function of the typed text."""
    return lambda _context, _parameter, incomplete: names(incomplete)


def complete_fleets(incomplete: str) -> list[str]:
    """Complete the name of a fleet or a machine; of several terms the last is completed."""
    from dra_infra.catalog.machines import node_names

    before, comma, last = incomplete.rpartition(",")
    space = " " if comma else ""
    return [f"{before}{comma}{space}{name}" for name in _beginning(last.strip(), node_names())]


def complete_versions(incomplete: str) -> list[str]:
    """Complete a Kubernetes minor, and after it the patches that are known."""
    from dra_infra.kubernetes.api import KNOWN_PATCHES

    minors = _beginning(incomplete, KNOWN_PATCHES)
    return minors or _beginning(incomplete, [patch for known in KNOWN_PATCHES.values() for patch in known])


def complete_drivers(incomplete: str) -> list[str]:
    """Complete a release line of NVIDIA's driver, or `newest`."""
    from dra_infra.catalog.drivers import drivers
    from dra_infra.target import NEWEST_DRIVER

    return _beginning(incomplete, [*drivers()["gpu.nvidia.com"].by_line, NEWEST_DRIVER])


def complete_gate_values(incomplete: str) -> list[str]:
    """Complete a feature gate of DRA with its value."""
    from dra_infra.kubernetes.api import GATES

    return _beginning(incomplete, [f"{name}={value}" for name in GATES for value in ("true", "false")])


def complete_sections(incomplete: str) -> list[str]:
    """Complete a section of the catalogue."""
    from dra_infra.cli.catalog_sections import SECTIONS

    return _beginning(incomplete, SECTIONS)


def _beginning(text: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(text)]


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any] | click.Command)

FILE: Final = click.Path(path_type=Path)
"""A file or a folder; whether it can be read is the business of who reads it."""


class OneOf(click.Choice[str]):
    """One of a few words; another is told with the nearest."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Message about *value*, with the word that may be meant."""
        import difflib

        near = difflib.get_close_matches(str(value)[:80].lower(), self.choices, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        return f"{shortened(value)} is none of {', '.join(self.choices)}.{meant}"


class Seconds(click.ParamType[float]):
    """A time as seconds, `90`, or with units as Kubernetes writes it, `90s` or `1m30s`.

    Args:
        least: The shortest time, in seconds.
    """

    name = "seconds"

    def __init__(self, least: float) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of *value*."""
        text = str(value).strip()
        match = _TIME.fullmatch(text)
        if match is None or not text:
            self.fail(f"{shortened(value)} is no time. Write seconds, or 90s, 5m or 1m30s.", param, ctx)
        seconds = sum(float(match[unit] or 0) * length for unit, length in _UNITS.items())
        if seconds < self._least:
            self.fail(f"{shortened(value)} is less than {self._least:g} s.", param, ctx)
        return seconds


_UNITS: Final = {"hours": 3600, "minutes": 60, "seconds": 1}

_TIME: Final = re.compile(
    r"(?:(?P<hours>\d{1,6})h)?(?:(?P<minutes>\d{1,6})m)?(?:(?P<seconds>\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})s?)?"
)


def version_of(
    context: click.Context,  # noqa: ARG001  (click's signature)
    parameter: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> str | None:
    """Return a version as clusters show it in one spelling: `1.36.2` of `v1.36.2-gke.1234`, and `1.36` of `v1.36`."""
    from dra_infra.kubernetes.api import shorten_version

    return shorten_version(value) if value else value


def settings(
    context: click.Context,  # noqa: ARG001  (click's signature)
    parameter: click.Parameter,
    pairs: Iterable[str],
) -> dict[str, str]:
    """Parse KEY=VALUE pairs; the last of a key wins."""
    return by_key(pairs, form=parameter.metavar or "KEY=VALUE")


def by_key(pairs: Iterable[str], *, form: str) -> dict[str, str]:
    """Parse pairs of a key and a value; *form* says how one is written.

    Raises:
        click.BadParameter: When there is none of the two halves.
    """
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{shortened(pair)} is not {form}.")
        found[key] = value
    return found


def by_gate(
    context: click.Context,  # noqa: ARG001  (click's signature)
    parameter: click.Parameter,  # noqa: ARG001
    pairs: Iterable[str],
) -> dict[str, bool]:
    """Parse NAME=true and NAME=false pairs."""
    found = by_key(pairs, form="NAME=true or NAME=false")
    for name, value in found.items():
        if value.lower() not in ("true", "false"):
            raise click.BadParameter(f"{shortened(f'{name}={value}')} is neither true nor false.")
    return {name: value.lower() == "true" for name, value in found.items()}


def shortened(value: object) -> str:
    """A value as an error quotes it."""
    text = str(value)
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


directory = click.argument(
    "directory", type=FILE, default=Path(), help="Folder of a Pulumi project; else this one."
)
stack = click.option(
    "--stack", "-s", metavar="NAME", help="Stack whose configuration is read; else the only one, else dev."
)
config = click.option(
    "--config",
    "-c",
    metavar="KEY=VALUE",
    multiple=True,
    callback=settings,
    help="Setting over the stack file's; may be repeated.",
)
provider = click.option(
    "--provider",
    metavar="NAME",
    help="Only what this provider of the program deploys: one of its clusters; default for what names none.",
)


def seconds(default: float, text: str, *, least: float = 0.1) -> Callable[[FunctionT], FunctionT]:
    """The time limit `--timeout` of a command; *text* says for what."""
    type_ = Seconds(least)
    return click.option("--timeout", metavar="SECONDS", type=type_, default=default, help=text)


timeout = seconds(60.0, "How long the program may run.")


def kubernetes(text: str) -> Callable[[FunctionT], FunctionT]:
    """The minor or patch of the cluster; *text* says what is taken where none is named."""
    return click.option(
        "--kubernetes",
        "-k",
        metavar="VERSION",
        callback=version_of,
        help=text,
        shell_complete=completer(complete_versions),
    )


gates = click.option(
    "--gate",
    "-g",
    "gates",
    metavar="NAME=true|false",
    multiple=True,
    callback=by_gate,
    help="A feature gate that the cluster sets itself; may be repeated.",
    shell_complete=completer(complete_gate_values),
)
driver = click.option(
    "--driver",
    metavar="RELEASE",
    help="NVIDIA's driver, for the program and for fleets by name: 25.3, 25.8, 25.12, 0.4 or 0.5.",
    shell_complete=completer(complete_drivers),
)
fleet = click.option(
    "--fleet",
    "-f",
    metavar="FLEET",
    help="Hardware to place on: 'hgx-h100 x 4', 'a100-80gb x 2, example', or a file of Kubernetes objects. "
    "Else the stack's dra-infra:fleet.",
    shell_complete=completer(complete_fleets),
)
kinds = click.option(
    "--kinds",
    metavar="FILE",
    type=FILE,
    help="Kinds of your own that make pods, with the paths of their pod templates.",
)
prices = click.option(
    "--prices",
    metavar="FILE",
    type=FILE,
    help='JSON with prices of node pools, {"a3-h100": 98.32}, by pool or machine; - reads standard input.',
)
snapshot = click.option(
    "--snapshot",
    metavar="FILE",
    type=FILE,
    help="The cluster, as `dra-infra snapshot` or kubectl get -o yaml writes it.",
)
reviewed_path = click.argument(
    "path",
    type=FILE,
    default=Path(),
    help="A Pulumi project, a folder or file of manifests, or the folder of a chart or kustomization; else this folder.",
)
source_kind = click.option(
    "--source",
    metavar="KIND",
    type=OneOf(["program", "manifests", "chart", "kustomization"]),
    help="program, manifests, chart or kustomization; else read off PATH.",
)
values = click.option(
    "--values",
    metavar="FILE",
    type=FILE,
    multiple=True,
    help="Values of a chart; may be repeated, the last wins.",
)
charts = click.option(
    "--charts",
    is_flag=True,
    help="Also what Helm releases make, rendered by helm; it may fetch their charts.",
)
allow = click.option(
    "--allow",
    metavar="WHAT",
    multiple=True,
    help="Also let the program use: env:NAME, read:PATH, write:PATH, network or all; may be repeated.",
)


_AS_JSON: Final = f"{__name__}.as_json"


def _note_json(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001  (click's)
    context.meta[_AS_JSON] = value


def report_form(*forms: str, text: str | None = None) -> Callable[[FunctionT], FunctionT]:
    """The form of a report on standard output: `--format`, `-o`, and `--json` (ADR 24).

    Args:
        forms: Names of the forms; the first is the default.
        text: What the help says of them; None lists them.
    """
    listed = f"{', '.join(forms[:-1])} or {forms[-1]}, on standard output."
    form = click.option(
        "--format", "-o", "form", metavar="FORM", type=OneOf(forms), default=forms[0], help=text or listed
    )
    as_json = click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_note_json,
        help="The same as --format json.",
    )
    return lambda function: form(as_json(function))


def report_files(endings: str) -> Callable[[FunctionT], FunctionT]:
    """Files that a report is written to as well, which `--output` names; *endings* are those of names, by which the form is chosen."""
    text = f"Also write the report to this file, in the form of its name: {endings}; may be repeated."
    return click.option("--output", "files", metavar="FILE", type=FILE, multiple=True, help=text)


def older_report_file(form: str) -> Callable[[FunctionT], FunctionT]:
    """The older spelling of `--output`, one option for each form."""
    text = "The older spelling of --output FILE."
    return click.option(f"--{form}", metavar="FILE", type=FILE, hidden=True, help=text)


kubeconfig = click.option(
    "--kubeconfig",
    metavar="FILE",
    type=FILE,
    help="Kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the pod's account).",
)
cluster_context = click.option(
    "--context", metavar="NAME", help="Context of the kubeconfig (default: its current one)."
)
request_timeout = click.option(
    "--request-timeout",
    metavar="SECONDS",
    type=Seconds(0.1),
    default=60.0,
    help="How long an API server may be silent before a request is given up.",
)
namespaces = click.option(
    "--namespace",
    "-n",
    "namespaces",
    metavar="NAME",
    multiple=True,
    help="Namespace to read; may be repeated (default: all).",
)
