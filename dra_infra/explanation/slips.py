"""Slips of selectors that show only beside the devices: an attribute's domain or name, and a comparison with another type.

Names and types are those that the cluster's own devices have, whatever their driver.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from dra_infra.errors import Problem
from dra_infra.explanation.question import Question, read_requests
from dra_infra.kubernetes.api import expressions_of
from dra_infra.kubernetes.scheduler.allocator import AllocationError, Published, scalar_value
from dra_infra.output.wording import nearest
from dra_infra.selectors.selector import quote

_READ: Final = re.compile(
    r"device\.(?P<source>attributes|capacity)\[(?P<domain>\"[^\"\\]*\"|'[^'\\]*')\]\.(?P<name>\w+)"
)
_COMPARISON: Final = re.compile(
    rf"(?P<read>{_READ.pattern})\s*(?P<operator>[=!<>]=|[<>])\s*"
    r"(?P<value>(?:quantity\()?(?:\"[^\"\\]*\"|'[^'\\]*'|-?\d+(?![\w.])|true\b|false\b)\)?)"
)
_TYPES: Final = {"int_": "a number", "bool_": "true or false", "string": "a text", "version": "a version"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Slip:
    """Returns what is most likely meant in place of an expression.

    Args:
        kind: Of the edit: `other-domain`, `other-name` or `other-comparison`.
        code: Of the problem.
        message: What is wrong.
        hint: What is meant.
        expression: With that.
    """

    kind: str
    code: str
    message: str
    hint: str
    expression: str


@dataclass(slots=True)
class Names:
    """Names of attributes and capacities that devices have, with the types of their values."""

    types: dict[tuple[str, str, str], set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, devices: Iterable[Published]) -> Names:
        """The names of all of some devices."""
        names = cls()
        for each in devices:
            for written, attribute in (each.device.attributes or {}).items():
                value = scalar_value(attribute)
                names._add(each, "attributes", written, value[0] if value else "list")
            for written in each.device.capacity or ():
                names._add(each, "capacity", written, "quantity")
        return names

    def _add(self, published: Published, source: str, written: str, kind: str) -> None:
        domain, _, name = written.rpartition("/")
        self.types[source, domain or published.id.driver, name].add(kind)

    def domains(self, source: str, name: str = "") -> set[str]:
        """Domains in which there is something, or something of this name."""
        return {each[1] for each in self.types if each[0] == source and name in ("", each[2])}


def find_slips(expression: str, names: Names) -> Iterator[Slip]:
    """Slips of one selector, each corrected by itself."""
    seen = set()
    for read in _READ.finditer(expression):
        source = read["source"]
        domain = read["domain"][1:-1]
        if domain not in names.domains(source) and (source, domain) not in seen:
            seen.add((source, domain))
            yield from _of_domain(expression, read, names)
        elif domain in names.domains(source) and (source, domain, read["name"]) not in names.types:
            yield from _of_name(expression, read, names)
    for comparison in _COMPARISON.finditer(expression):
        yield from _of_type(expression, comparison, names)


def _of_domain(expression: str, read: re.Match[str], names: Names) -> Iterator[Slip]:
    source, written = read["source"], read["domain"]
    known = names.domains(source, read["name"]) or names.domains(source)
    longer = sorted(each for each in known if each.endswith(f".{written[1:-1]}"))
    near = longer[0] if longer else nearest(written[1:-1], sorted(known))
    if near:
        yield Slip(
            kind="other-domain",
            code="attribute-wrong-domain",
            message=f"no device here has {source} in the domain {written[1:-1]}",
            hint=f"did you mean {near}?",
            expression=expression.replace(f"device.{source}[{written}]", f"device.{source}[{quote(near)}]"),
        )


def _of_name(expression: str, read: re.Match[str], names: Names) -> Iterator[Slip]:
    source = read["source"]
    domain = read["domain"][1:-1]
    name = read["name"]
    near = nearest(name, sorted(each[2] for each in names.types if each[:2] == (source, domain)), cutoff=0.75)
    # What is tested first is written for drivers that may not publish it.
    if near and f"has({read[0]})" not in expression:
        yield Slip(
            kind="other-name",
            code="attribute-not-known",
            message=f"no device here has {name} among the {source} of {domain}",
            hint=f"did you mean {near}?",
            expression=re.sub(rf"{re.escape(read[0])}\b", f"{read[0][: -len(name)]}{near}", expression),
        )


def _of_type(expression: str, comparison: re.Match[str], names: Names) -> Iterator[Slip]:
    source, name, value = comparison["source"], comparison["name"], comparison["value"]
    types = names.types.get((source, comparison["domain"][1:-1], name), set())
    if len(types) != 1:
        return
    (kind,) = types
    corrected = _corrected(comparison["read"], comparison["operator"], value, kind)
    if corrected:
        is_amount = kind == "quantity"
        what = (
            "an amount, which operators do not compare"
            if is_amount
            else f"{_TYPES[kind]}, and {value} is none"
        )
        yield Slip(
            kind="other-comparison",
            code="cel-type" if is_amount else "cel-value-type",
            message=f"{name} is {what}",
            hint=f"write {corrected}",
            expression=f"{expression[: comparison.start()]}{corrected}{expression[comparison.end() :]}",
        )


def _corrected(read: str, operator: str, value: str, kind: str) -> str:
    """The comparison with a value of a type; empty where the value is of it, or cannot be made one."""
    is_text = value[0] in "\"'"
    content = value[1:-1] if is_text else value
    if kind == "quantity":
        amount = value if value.startswith("quantity(") else f"quantity({quote(content)})"
        return f"{read}.compareTo({amount}) {operator} 0"
    if kind == "version" and is_text:
        return f"{read}.compareTo(semver({value})) {operator} 0"
    if kind == "int_" and is_text and re.fullmatch(r"-?\d+", content):
        return f"{read} {operator} {content}"
    if kind == "bool_" and is_text and content in ("true", "false"):
        return f"{read} {operator} {content}"
    if kind == "string" and re.fullmatch(r"-?\d+|true|false", value):
        return f"{read} {operator} {quote(value)}"
    return ""


def find_slip_problems(question: Question) -> Iterator[Problem]:
    """The slips of all selectors; codes `attribute-wrong-domain`, `attribute-not-known`, `cel-value-type`, `cel-type`."""
    question = question.with_stand_ins()
    index = question.cluster.index
    names = Names.of(device for slice_ in question.slices for device in index.devices(slice_))
    try:
        requests = read_requests(question.cluster, question.asked, question.names)
    except AllocationError:
        # What is wrong then is told by its own name.
        return
    for leaf in (leaf for entries in requests for leaf in entries):
        asked = question.claims[leaf.key.claim]
        name = leaf.wanted.device_class.metadata.name
        for where, selectors in (
            (f"DeviceClass {name}: spec", leaf.wanted.device_class.spec.selectors),
            (f"{asked.name}: {asked.path}.{leaf.path}", leaf.wanted.leaf.selectors),
        ):
            for number, expression in enumerate(expressions_of(selectors)):
                for slip in find_slips(expression, names):
                    yield Problem(
                        path=f"{where}.selectors[{number}].cel.expression",
                        code=slip.code,
                        message=slip.message,
                        hint=slip.hint,
                        severity="warning",
                    )
