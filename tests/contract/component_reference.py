"""The generated parts of docs/components.md: what signatures and docstrings say of each public name.

A part stands between `<!-- NAME -->` and `<!-- end -->`; everything else in the file is written by hand. That of a component
begins with `<!-- NAME: what it is for -->`, which the table of components shows.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final, ForwardRef, NamedTuple

import dra_infra as dra
from dra_infra.components.arguments import ClaimArgs, InstallationArgs
from dra_infra.components.component import Component
from dra_infra.components.device_claims import DeviceClaimComponent
from dra_infra.components.platform_drivers import ChartInstallation

COMPONENTS: Final = tuple(
    name
    for name in dra.__all__
    # The arguments of a new component are public before `make golden` has written them.
    if not name.endswith("Args")
    and inspect.isclass(public := getattr(dra, name))
    and issubclass(public, Component)
)
CLAIMS: Final = tuple(name for name in COMPONENTS if issubclass(getattr(dra, name), DeviceClaimComponent))
CHARTS: Final = tuple(name for name in COMPONENTS if issubclass(getattr(dra, name), ChartInstallation))
RECORDS: Final = (
    *("DeviceRequest", "Alternative", "Toleration", "MatchAttribute", "DistinctAttribute"),
    *("PodSecurity", "CounterSource", "CapacitySource"),
)
CONFIGS: Final = (
    *("TimeSlicing", "Mps", "SpacePartitioning", "GpuConfig", "MigDeviceConfig", "VfioDeviceConfig"),
    *("ComputeDomainChannelConfig", "ExampleGpuConfig", "OpaqueConfig"),
)
FUNCTIONS: Final = ("class_ref", "pair", "with_capabilities")

_OF_ALL: Final = ("target", "opts")
_OF_CLAIMS: Final = tuple(name for name in ClaimArgs.__annotations__ if name not in _OF_ALL)
_OF_CHARTS: Final = tuple(name for name in InstallationArgs.__annotations__ if name != "version")
GROUPS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "every component": ("GpuDeviceClass", _OF_ALL),
    "every claim": ("GpuClaimTemplate", _OF_CLAIMS),
    "every chart": ("DraDriver", _OF_CHARTS),
}
"""Arguments that several components share: whose docstring tells them, and their names."""

_TELLERS: Final = {"GpuClaim": "GpuClaimTemplate", "GpuOperator": "DraDriver", "ExampleDriver": "DraDriver"}
"""Components whose docstring leaves arguments to that of another."""

_PART: Final = re.compile(
    r"<!-- (?P<name>[\w ]+)(?P<purpose>: [^\n]+?)? -->\n(?P<text>.*?)<!-- end -->", re.DOTALL
)
_SECTION: Final = re.compile(r"^(Args|Attributes|Raises|Returns|Example|Problems)\b.*:$", re.MULTILINE)
_ENTRY: Final = re.compile(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", re.MULTILINE)
_ALIASES: Final = {
    "Level": '"privileged" | "baseline" | "restricted"',
    "NamedClass": "GpuDeviceClass | ClassRef",
    "ClassArgument": "GpuDeviceClass | ClassRef | Input[str]",
    "Count": 'Input[int] | "all"',
    "Constraint": "MatchAttribute | DistinctAttribute",
    "Replace": '"delete-first"',
    "Across": '"containers" | "pods"',
    "Profiles": "Sequence[str] | Mapping[str, int] | Mapping[str, str]",
    "NodeLabels": "Mapping[str, Input[str]]",
    "PodTolerations": "Sequence[Mapping]",
    "PlatformName": '"aks" | "gke" | "eks" | "kubeadm" | "kind" | "openshift"',
    "DraDriverPart": "DraDriverArgs",
    "GpuOperatorPart": "GpuOperatorArgs",
    "ExampleDriverPart": "ExampleDriverArgs",
    "NodePluginPart": "NodePluginArgs",
    "PodSpec": "pod spec",
    "Template": "partial of a claim component",
}


class Argument(NamedTuple):
    """One argument: empty `default` where it must be given."""

    name: str
    type: str
    default: str
    meaning: str


def rendered(text: str, problems: Mapping[str, str]) -> str:
    """*text* of the guide with its generated parts as the code has them now.

    Args:
        text: The guide.
        problems: The table of problems of each component, and of what several share.
    """

    def render(part: re.Match[str]) -> str:
        name = part["name"]
        now = _index(text) if name == "components" else _render(name, problems)
        return f"<!-- {name}{part['purpose'] or ''} -->\n{now}<!-- end -->"

    return _PART.sub(render, text)


def parts_of(text: str) -> list[str]:
    """Names of the generated parts of *text*."""
    return [part["name"] for part in _PART.finditer(text)]


def _index(text: str) -> str:
    """The table of components by purpose; those with the same purpose share a row."""
    names: dict[str, list[str]] = {}
    for part in _PART.finditer(text):
        if part["purpose"]:
            names.setdefault(part["purpose"].removeprefix(": "), []).append(part["name"])
    rows = [
        f"| {purpose} | {', '.join(f'[{name}](#{name.lower()})' for name in listed)} |\n"
        for purpose, listed in names.items()
    ]
    return "".join(["| You want | Component |\n| --- | --- |\n", *rows])


def arguments_of(name: str) -> list[Argument]:
    """All arguments of a public name, in the order of its signature."""
    return [_argument(each, _meanings(_public(name))) for each in _parameters(_public(name))]


def annotations_of(name: str) -> dict[str, str]:
    """Return the type of each argument of a public name, as the source of its signature has it."""
    return {each.name: _source(each.annotation) for each in _parameters(_public(name))}


def outputs_of(name: str) -> list[tuple[str, str, str]]:
    """Return name, type as its source has it, and meaning of each output of a component."""
    return [(each, _source(type_), meaning) for each, type_, meaning in _typed_outputs(_public(name))]


def summary_of(name: str) -> str:
    """Return what the docstring of a public name says before its sections."""
    return _summary(_public(name))


def _render(name: str, problems: Mapping[str, str]) -> str:
    kind, _, group = name.partition(" of ")
    if kind == "arguments":
        teller, names = GROUPS[group]
        return _table([each for each in arguments_of(teller) if each.name in names])
    if kind == "problems":
        return problems[group]
    public = _public(name)
    shared = {
        each
        for group, (_, names) in GROUPS.items()
        if name in COMPONENTS
        for each in _shared(name, group, names)
    }
    lines = [f"{_summary(public)}\n"]
    if name in _TELLERS and "Args" not in _sections(public):
        return lines[0]
    own = [each for each in arguments_of(name) if each.name not in shared]
    if own:
        lines += ["\n", _table(own)]
    links = " and ".join(f"[{group}](#{group.replace(' ', '-')})" for group in _groups_of(name))
    if links:
        lines.append(f"\nThese stand beside the arguments of {links}.\n")
    if outputs := list(_outputs(public)):
        lines += ["\n| Output | Type | Meaning |\n| --- | --- | --- |\n"]
        lines += [f"| `{each.name}` | {each.type} | {each.meaning} |\n" for each in outputs]
    if name in problems:
        lines += ["\n", problems[name]]
    return "".join(lines)


def _groups_of(name: str) -> Iterator[str]:
    if name in CLAIMS:
        yield "every claim"
    if name in CHARTS:
        yield "every chart"
    if name in COMPONENTS:
        yield "every component"


def _shared(name: str, group: str, names: tuple[str, ...]) -> Iterator[str]:
    """Arguments that a component has of a group, with the group's meaning: said once for all."""
    if group not in _groups_of(name):
        return
    told = {each.name: each.meaning for each in arguments_of(GROUPS[group][0])}
    yield from (
        each.name
        for each in arguments_of(name)
        if each.name in names and (each.name in _OF_ALL or each.meaning == told[each.name])
    )


def _table(arguments: list[Argument]) -> str:
    rows = [
        f"| `{each.name}` | {each.type} | {each.default or 'must be given'} | {each.meaning} |\n"
        for each in arguments
    ]
    return "".join(["| Argument | Type | Default | Meaning |\n| --- | --- | --- | --- |\n", *rows])


def _public(name: str) -> Any:
    owner, dot, method = name.partition(" ")
    return getattr(getattr(dra, owner), method) if dot else getattr(dra, owner)


def _parameters(public: Any) -> list[inspect.Parameter]:
    call = public.__init__ if inspect.isclass(public) else public
    return [
        each
        for each in inspect.signature(call).parameters.values()
        if each.name not in ("self", "_") and each.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def _argument(parameter: inspect.Parameter, meanings: Mapping[str, str]) -> Argument:
    default = parameter.default
    shown = f"`{_literal(default)}`"
    if default is inspect.Parameter.empty:
        shown = "any number" if parameter.kind is inspect.Parameter.VAR_POSITIONAL else ""
    return Argument(
        parameter.name, _type(parameter.annotation, optional=default is None), shown, meanings[parameter.name]
    )


def _literal(default: object) -> str:
    # A dataclass shows no default of its own where a factory makes it: all of ours make empty mappings.
    if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
        return "{}"
    return f'"{default}"' if isinstance(default, str) else repr(default)


def _source(annotation: object) -> str:
    return annotation.__forward_arg__ if isinstance(annotation, ForwardRef) else str(annotation)


def _type(annotation: object, *, optional: bool) -> str:
    text = _source(annotation)
    text = re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(", ", " | "), text)
    text = text.replace("pulumi.", "").replace("'", '"')
    for alias, meant in _ALIASES.items():
        text = re.sub(rf"\b{alias}\b", lambda _, meant=meant: meant, text)
    parts = [part.strip() for part in _split(text)]
    return " or ".join(f"`{part}`" for part in parts if not (optional and part == "None")).replace("|", "\\|")


def _split(text: str) -> Iterator[str]:
    """The members of a union, as far as they are not inside brackets."""
    depth, start = 0, 0
    for index, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "|" and not depth:
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _outputs(public: Any) -> Iterator[Argument]:
    if inspect.isclass(public) and public.__name__ in COMPONENTS:
        for name, type_, meaning in _typed_outputs(public):
            yield Argument(name, _type(type_, optional=False), "", meaning)


def _typed_outputs(public: Any) -> Iterator[tuple[str, object, str]]:
    types = {
        name: type_
        for class_ in reversed(public.__mro__)
        for name, type_ in vars(class_).get("__annotations__", {}).items()
    }
    for name, meaning in _meanings(public, "Attributes").items():
        yield name, types[name], meaning


def _meanings(public: Any, section: str = "Args") -> dict[str, str]:
    """Argument or attribute to its text: of the class itself, else of a base, else of whoever lists it for all."""
    sources = [public]
    if inspect.isclass(public):
        teller = _TELLERS.get(public.__name__)
        sources = [*public.__mro__[:-1], *([getattr(dra, teller)] if teller else [])]
    found: dict[str, str] = {}
    for source in sources:
        text = _sections(source).get(section, "")
        for name, meaning in _ENTRY.findall(text):
            found.setdefault(name, " ".join(meaning.split()))
    return found


def _sections(source: Any) -> dict[str, str]:
    text = inspect.cleandoc(source.__doc__ or "")
    places = list(_SECTION.finditer(text))
    ends = [place.start() for place in places[1:]]
    return {place[1]: text[place.end() : end] for place, end in zip_longest(places, ends)}


def _summary(public: Any) -> str:
    text = inspect.cleandoc(public.__doc__ or "")
    return _SECTION.split(text)[0].strip()
