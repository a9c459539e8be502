"""Reads CEL as Python selectors, where these compile to the very same text.

Names of objects are made of that text, and a server compares it byte by byte: what comes out otherwise stays CEL.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from typing import Any, Final, NamedTuple

from dra_infra.errors import SelectorError
from dra_infra.program_writing.python_text import Call, Joined, Name
from dra_infra.selectors.any_attribute import AnyAttribute, CapacityAmount, VersionAttribute
from dra_infra.selectors.attributes import COMPARISONS, Attribute, BoolAttribute, IntAttribute, TextAttribute
from dra_infra.selectors.gpu_selectors import Gpu
from dra_infra.selectors.reference import Reference, parse_reference
from dra_infra.selectors.selector import AllOf, AnyOf, Not, Selector, cel, driver, is_comparison


class WrittenSelector(NamedTuple):
    """A selector, and the Python that makes it."""

    selector: Selector
    code: Name | Joined | Call


def read_selector(text: str) -> WrittenSelector:
    """The selector that compiles to *text*; `dra.cel(...)` where no other does."""
    try:
        found = _read(text, 0)
        if found is not None and found.expression() == text:
            return WrittenSelector(found, _code_of(found))
    except (SelectorError, SyntaxError, ValueError):
        # What cannot be said in Python is CEL, such as a line break that stands in a text as it is.
        pass
    return WrittenSelector(cel(text), Call("dra.cel", [text]))


def attribute_code(qualified_name: str) -> Name | str:
    """An attribute as constraints name it: `dra.gpu.product`, or its full name."""
    domain, _, identifier = qualified_name.partition("/")
    known = _known().get(("attributes", domain, identifier))
    return Name(repr(known)) if known is not None else qualified_name


_DEEPEST: Final = 20
_TEXT: Final = r'"(?:[^"\\\n]|\\[abfnrtv"\\])*"'
_READ: Final = r'device\.(?P<section>attributes|capacity)\["(?P<domain>[^"\\]+)"\]\.(?P<identifier>\w+)'
_ATOMS: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        "has": rf"(?P<not>!?)has\({_READ}\)",
        "driver": rf"device\.driver (?P<sign>[!=]=) (?P<value>{_TEXT})",
        "plain": rf"{_READ} (?P<sign>[!=<>]=|[<>]) (?P<value>{_TEXT}|-?[0-9]{{1,19}}|true|false)",
        "ordered": rf"{_READ}\.compareTo\((?P<type>quantity|semver)\((?P<value>{_TEXT})\)\) (?P<sign>[!=<>]=|[<>]) 0",
        "method": rf"(?P<not>!?){_READ}\.(?P<method>contains|startsWith|endsWith|matches)\((?P<value>{_TEXT})\)",
        "in": rf"{_READ} in (?P<value>\[{_TEXT}(?:, {_TEXT})*\]|\[-?[0-9]{{1,19}}(?:, -?[0-9]{{1,19}})*\])",
    }.items()
}


@cache
def _known() -> Mapping[tuple[str, str, str], Attribute]:
    """Attributes of NVIDIA's driver that have a name in Python, with their labels as a program writes them."""
    found: dict[tuple[str, str, str], Attribute] = {}
    for name, each in vars(Gpu).items():
        kind = type(each)
        if kind in (TextAttribute, IntAttribute, BoolAttribute, VersionAttribute, CapacityAmount):
            old = each._reference  # noqa: SLF001  (of the same product; its label is made anew)
            key = (old.section, old.domain, old.identifier)
            fields = dict(zip(("section", "domain", "identifier"), key, strict=True))
            found.setdefault(key, kind(Reference(**fields, label=f"dra.gpu.{name}")))
    return found


def _read(text: str, depth: int) -> Selector | None:
    """The selector of an expression; None where a part of it is none that is known here."""
    if depth > _DEEPEST:
        return None
    for operator, kind in ((" || ", AnyOf), (" && ", AllOf)):
        parts = _split(text, operator)
        if len(parts) > 1:
            tests = [
                _read(each, depth + 1)
                for index, each in enumerate(parts)
                if kind is AnyOf or not _is_guard(parts, index)
            ]
            known = [each for each in tests if each is not None]
            return reduce(kind, known) if len(known) == len(tests) and known else None
    if text.startswith("(") and text.endswith(")"):
        return _read(text[1:-1], depth + 1)
    return _atom(text)


def _is_guard(parts: list[str], index: int) -> bool:
    """True for a `has(...)` that a test of the same attribute follows, which brings its own."""
    guard = _ATOMS["has"].fullmatch(parts[index])
    if guard is None or guard["not"]:
        return False
    read = parts[index].removeprefix("has(").removesuffix(")")
    return any(read in each and not _ATOMS["has"].fullmatch(each) for each in parts[index + 1 :])


def _split(text: str, operator: str) -> list[str]:
    """The parts of *text* between operators that are in no parentheses and no string."""
    parts = []
    start = 0
    depth = 0
    quoted = False
    index = 0
    while index < len(text):
        letter = text[index]
        if quoted and letter == "\\":
            index += 1
        elif letter == '"':
            quoted = not quoted
        elif not quoted and letter in "()[]":
            depth += 1 if letter in "([" else -1
        elif not quoted and not depth and text.startswith(operator, index):
            parts.append(text[start:index])
            index += len(operator)
            start = index
            continue
        index += 1
    return [*parts, text[start:]]


def _atom(text: str) -> Selector | None:
    for name, pattern in _ATOMS.items():
        if found := pattern.fullmatch(text):
            return _READERS[name](found)
    return None


def _reference(found: re.Match[str], function: str) -> Reference:
    section: Any = found["section"]
    return parse_reference(f"{found['domain']}/{found['identifier']}", section, f"dra.{function}")


def _attribute(found: re.Match[str], kind: Callable[[Reference], Attribute], function: str) -> Attribute:
    key = (found["section"], found["domain"], found["identifier"])
    known = _known().get(key)
    return kind(_reference(found, function)) if known is None else known


def _any(found: re.Match[str]) -> Any:
    if found["section"] == "capacity":
        return _attribute(found, CapacityAmount, "capacity")
    return _attribute(found, AnyAttribute, "attribute")


def _value(text: str) -> Any:
    # Escapes of CEL that the pattern lets through mean the same in Python.
    return {"true": True, "false": False}[text] if text in ("true", "false") else ast.literal_eval(text)


def _presence(found: re.Match[str]) -> Selector:
    attribute = _any(found)
    result: Selector = attribute.missing() if found["not"] else attribute.exists()
    return result


def _driver(found: re.Match[str]) -> Selector:
    name = _value(found["value"])
    test = driver(name)  # Refuses what cannot be the name of a driver.
    return test if found["sign"] == "==" else ~test


def _plain(found: re.Match[str]) -> Selector:
    return COMPARISONS[found["sign"]](_any(found), _value(found["value"]))


def _ordered(found: re.Match[str]) -> Selector:
    if found["type"] == "quantity":
        attribute = _attribute(found, CapacityAmount, "capacity")
    else:
        attribute = _attribute(found, VersionAttribute, "version")
    return COMPARISONS[found["sign"]](attribute, _value(found["value"]))


def _method(found: re.Match[str]) -> Selector:
    attribute = _any(found)
    if not isinstance(attribute, TextAttribute | AnyAttribute):
        raise ValueError(found["method"])  # noqa: TRY004  (of the text, not of an argument)
    test: Selector = getattr(attribute, found["method"].lower())(_value(found["value"]))
    return ~test if found["not"] else test


def _one_of(found: re.Match[str]) -> Selector:
    attribute = _any(found)
    if not isinstance(attribute, TextAttribute | IntAttribute | AnyAttribute):
        raise ValueError("in")  # noqa: TRY004  (of the text, not of an argument)
    return attribute.one_of(*_value(found["value"]))


_READERS: Final[Mapping[str, Callable[[re.Match[str]], Selector]]] = {
    "has": _presence,
    "driver": _driver,
    "plain": _plain,
    "ordered": _ordered,
    "method": _method,
    "in": _one_of,
}


def _code_of(selector: Selector) -> Name | Joined:
    for kind, operator in ((AllOf, "&"), (AnyOf, "|")):
        if isinstance(selector, kind):
            return Joined(operator, tuple(map(_term, _flat(selector, kind))))
    return Name(_written(selector))


def _flat(selector: Selector, kind: type) -> Iterator[Selector]:
    if isinstance(selector, kind):
        yield from _flat(selector._left, kind)  # type: ignore[attr-defined]  # noqa: SLF001
        yield from _flat(selector._right, kind)  # type: ignore[attr-defined]  # noqa: SLF001
    else:
        yield selector


def _term(selector: Selector) -> str:
    is_loose = isinstance(selector, AllOf | AnyOf) or is_comparison(selector)
    return f"({_written(selector)})" if is_loose else _written(selector)


def _written(selector: Selector) -> str:
    """The selector as the user writes it; attributes were made with the package in front, and the test of a driver was not."""
    if isinstance(selector, Not):
        return f"~{_term(selector._operand)}"  # noqa: SLF001
    for kind, operator in ((AllOf, " & "), (AnyOf, " | ")):
        if isinstance(selector, kind):
            return operator.join(map(_term, _flat(selector, kind)))
    return re.sub(r"\Adriver\(", "dra.driver(", repr(selector))
