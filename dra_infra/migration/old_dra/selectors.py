"""CEL selectors that read names of older drivers, or names that no driver publishes: the certain ones are written anew.

A name is certain where the test on it leaves no doubt of what is meant: `memory` read as an attribute and compared with a
quantity is the capacity of that name. What is no more than likely stays as it is, and is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

from dra_infra.catalog.drivers import Section, drivers
from dra_infra.catalog.vocabulary import mig_profiles, misnomers, product_names
from dra_infra.kubernetes.api.names import is_driver_name
from dra_infra.kubernetes.cel import SyntaxRefusedError, Token, check_expression, read_literal, tokenize
from dra_infra.migration.old_dra.objects import NVIDIA, Remarks, driver_of_today
from dra_infra.selectors.selector import quote

_COMPARING: Final = ("compareTo", "isGreaterThan", "isLessThan")
_SIGNS: Final = (">=", ">", "<=", "<", "==", "!=")
_SECTIONS: Final[dict[str, Section]] = {"attributes": "attribute", "capacity": "capacity"}
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")


class _Read(NamedTuple):
    """A read of `device.attributes["domain"].name`, as the tokens of an expression have it.

    Args:
        section: Attributes or capacity.
        domain: Its domain.
        name: Its name.
        start: Where `attributes` begins in the text.
        end: Where the read ends in the text.
        after: The tokens behind it.
        asks: Whether it only asks if there is one.
    """

    section: Section
    domain: str
    name: str
    start: int
    end: int
    after: tuple[Token, ...]
    asks: bool

    @property
    def key(self) -> tuple[str, str, str]:
        """The name that is read, wherever it is."""
        return self.section, self.domain, self.name


class _Meant(NamedTuple):
    """The name that a read is to have instead; an empty name where nobody can say, and then a hint."""

    section: Section
    domain: str
    name: str
    hint: str = ""


_Edit = tuple[int, int, str]
"""Start and end in the text, and what stands there instead."""


def migrate_selector(text: str, path: str, remarks: Remarks, *, nvidia: bool = False) -> str:
    """*text* with every name written anew; the very text where one is not certain, or all are right.

    Half of the names would let devices reach a test that fails on them, and the scheduler gives up the pod. With *nvidia* all devices are of that driver, so that `device.attributes["type"].string` can mean one thing only.
    """
    try:
        tokens = tokenize(text)
    except SyntaxRefusedError:
        return text
    edits: list[_Edit] = list(_drivers(tokens))
    reads: dict[tuple[str, str, str], list[_Read]] = {}
    for read in _reads(tokens):
        reads.setdefault(read.key, []).append(read)
    is_certain = True
    for same in reads.values():
        meant = _of_all(same, nvidia=nvidia)
        if meant is None:
            continue
        if meant.name:
            edits += [edit for read in same for edit in _rewrite(read, meant)]
            continue
        is_certain = False
        message = f"no driver publishes {_written(same[0])} today"
        remarks.decide(path, "selector-not-rewritten", message, meant.hint)
    changed = apply(text, edits)
    if changed == text or not is_certain:
        return text
    if not _compiles(changed):
        message, hint = "the selector reads names of an older driver, and is not understood", "write it anew"
        remarks.decide(path, "selector-not-rewritten", message, hint)
        return text
    remarks.changed(path, "selector-rewritten", f"the selector reads names of today: {changed.strip()}")
    return changed


def migrate_attribute_name(name: str, path: str, remarks: Remarks) -> str:
    """The name of an attribute that devices have to share, such as `gpu.nvidia.com/parentIndex`, as it is today."""
    domain, slash, own = name.partition("/")
    if not slash or _canonical(domain) != NVIDIA:
        return name
    # On one node, and a claim is on one, the number of the parent says the same as its UUID.
    new = {"parentIndex": f"{NVIDIA}/parentUUID"}.get(own, "")
    if not new:
        misnomer = _misnomer(own) if own not in _published("attribute") else None
        if misnomer and not misnomer[0]:
            remarks.decide(path, "selector-not-rewritten", f"no driver publishes {name} today", misnomer[1])
            return name
        found = misnomer[0] if misnomer else own
        new = found if "/" in found else f"{NVIDIA}/{found}"
    if new != name:
        remarks.changed(path, "selector-rewritten", f"{name} is {new} now")
    return new


def from_named_resources(text: str, driver: str) -> str | None:
    """A selector of v1alpha2, which reads `attributes.string["model"]`, as one of today; None where it is not understood.

    Names had hyphens then, `product-name`, and are written with capitals now. What NVIDIA's driver publishes no more is
    not understood.

    Args:
        text: The expression; upstream pkg/apis/resource/v1alpha2 of 1.30.
        driver: The driver as it is called now.
    """
    try:
        tokens = tokenize(text)
    except SyntaxRefusedError:
        return None
    if not is_driver_name(driver.lower()):
        return None
    edits: list[_Edit] = []
    for index in range(len(tokens) - 5):
        word, dot, kind, opening, key, closing = tokens[index : index + 6]
        before = tokens[index - 1].text if index else ""
        shape = (word.text, dot.text, opening.text, closing.text)
        if shape != ("attributes", ".", "[", "]") or before == ".":
            continue
        name = _camel(_string(key))
        known = _published("attribute") | _published("capacity")
        if not _IDENTIFIER.fullmatch(name) or (driver == NVIDIA and name not in known):
            return None
        section = "capacity" if kind.text == "quantity" else "attributes"
        edits.append((word.start, closing.start + 1, f"device.{section}[{quote(driver)}].{name}"))
    changed = apply(text, edits)
    return changed if _compiles(changed) else None


def _compiles(text: str) -> bool:
    return all(each.severity != "error" for each in check_expression(text).problems)


def apply(text: str, edits: Sequence[_Edit]) -> str:
    """*text* with each edit done."""
    for start, end, new in sorted(edits, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(each.capitalize() for each in rest)


def _string(token: Token) -> str:
    if token.kind != "string":
        return ""
    _, value = read_literal(token)
    return value if isinstance(value, str) else ""


def _drivers(tokens: Sequence[Token]) -> Iterator[_Edit]:
    """Tests of `device.driver` on a driver that is called otherwise today."""
    for index in range(len(tokens) - 4):
        window = tokens[index : index + 5]
        texts = [each.text for each in window]
        if texts[:4] in (["device", ".", "driver", "=="], ["device", ".", "driver", "!="]):
            literal = window[4]
        elif texts[1:] in (["==", "device", ".", "driver"], ["!=", "device", ".", "driver"]):
            literal = window[0]
        else:
            continue
        name = _string(literal)
        if driver_of_today(name) != name:
            yield literal.start, literal.start + len(literal.text), quote(driver_of_today(name))


def _reads(tokens: Sequence[Token]) -> Iterator[_Read]:
    for index in range(len(tokens) - 7):
        texts = [each.text for each in tokens[index : index + 6]]
        if texts[:2] != ["device", "."] or texts[2] not in _SECTIONS or texts[3] != "[" or texts[5] != "]":
            continue
        section = _SECTIONS[texts[2]]
        domain = _string(tokens[index + 4])
        first, second, third = tokens[index + 6], tokens[index + 7], tokens[min(index + 8, len(tokens) - 1)]
        start = tokens[index + 2].start
        before = [each.text for each in tokens[max(index - 2, 0) : index]]
        if first.text == "." and second.kind == "name":
            behind = tuple(tokens[index + 8 : index + 14])
            asks = before == ["has", "("]
            yield _Read(section, domain, second.text, start, second.start + len(second.text), behind, asks)
        elif first.text == "[" and second.kind == "string" and third.text == "]":
            behind = tuple(tokens[index + 9 : index + 15])
            yield _Read(section, domain, _string(second), start, third.start + 1, behind, asks=False)
        elif index >= 2 and tokens[index - 1].text == "in" and tokens[index - 2].kind == "string":
            end = tokens[index + 5].start + 1
            name = _string(tokens[index - 2])
            yield _Read(section, domain, name, tokens[index - 2].start, end, (), asks=True)


def _rewrite(read: _Read, meant: _Meant) -> Iterator[_Edit]:
    section = "attributes" if meant.section == "attribute" else "capacity"
    place = f"{section}[{quote(meant.domain)}]"
    if not read.after:
        yield read.start, read.end, f"{quote(meant.name)} in device.{place}"
    else:
        yield read.start, read.end, f"{place}.{meant.name}"


def _written(read: _Read) -> str:
    return f"the {read.section} {read.domain}/{read.name}"


_TYPES: Final = ("string", "int", "bool", "version", "quantity", "value")
"""Fields of an attribute or capacity in a slice, which articles write in CEL behind its name."""


def _of_all(reads: Sequence[_Read], *, nvidia: bool) -> _Meant | None:
    """Returns what all reads of one name are to be; None where the name is right."""
    tests = [read for read in reads if not read.asks] or list(reads)
    found: set[_Meant | None] = set(map(_meant, tests))
    own = reads[0].domain
    is_name = own in _published("attribute") | _published("capacity") or _misnomer(own) is not None
    if nvidia and is_name and reads[0].name in _TYPES:
        named = [read._replace(domain=NVIDIA, name=own) for read in tests]
        found = {_meant(read) or _Meant(read.section, NVIDIA, own) for read in named}
    if found == {None}:
        return None
    if len(found) == 1:
        return found.pop()
    hint = next((each.hint for each in found if each is not None and each.hint), "write the test anew")
    return _Meant(reads[0].section, reads[0].domain, "", hint)


def _meant(read: _Read) -> _Meant | None:
    domain = _canonical(read.domain)
    if domain != NVIDIA:
        return None
    renamed = _Meant(read.section, domain, read.name)
    if read.name in _published(read.section):
        return renamed if domain != read.domain else None
    other: Section = "capacity" if read.section == "attribute" else "attribute"
    if read.name in _published(other):
        certain = read.asks or (other == "attribute") != _compares_with(read, "quantity")
        return _Meant(other, domain, read.name) if certain else _Meant(other, domain, "", _hint(read, other))
    if read.name in _no_more():
        hint = "select by uuid, parentUUID or what the device can do, or leave it out"
        return _Meant(read.section, domain, "", hint)
    for name in _published(read.section):
        if name.lower() == read.name.lower():
            return renamed._replace(name=name)
    misnomer = _misnomer(read.name)
    if misnomer is None:
        return renamed if domain != read.domain and read.domain in _OLD_DOMAINS else None
    attribute, hint = misnomer
    if not attribute and _compares_with(read, "quantity") and "memory.compareTo" in hint:
        return _Meant("capacity", domain, "memory")
    if not _is_certain(read, attribute):
        return _Meant(read.section, domain, "", hint)
    standard, slash, own = attribute.partition("/")
    return _Meant("attribute", standard, own) if slash else _Meant("attribute", domain, attribute)


def _hint(read: _Read, section: Section) -> str:
    """The read as one of *section*; a number that it is compared with has a unit that only its writer knows."""
    if section == "attribute":
        return f'write device.attributes["{NVIDIA}"].{read.name}'
    sign, number = [*(each.text for each in read.after[:2]), "", ""][:2]
    if sign not in _SIGNS or not number.isdigit():
        sign, number = ">=", "40"
    unit = ""
    if read.name == "memory":
        unit = "Gi" if len(number) < 4 else "Mi"
    test = f'{read.name}.compareTo(quantity("{number}{unit}")) {sign} 0'
    return f'write device.capacity["{NVIDIA}"].{test}, in the unit that is meant'


_OLD_DOMAINS: Final = ("gpu.resource.nvidia.com",)


def _is_certain(read: _Read, attribute: str) -> bool:
    """True where the test on a name that nobody publishes says by itself that it is about *attribute*."""
    compared = _compared(read)
    if attribute == "cudaComputeCapability":
        return _compares_with(read, "semver")
    if attribute == "profile":
        return bool(compared) and all(each in mig_profiles() for each in compared)
    if attribute == "productName":
        if compared:
            return all(each in product_names() for each in compared)
        part = _argument(read, "contains")
        return bool(part) and any(part in name for name in product_names())
    return attribute.endswith("/numaNode") and [each.text for each in read.after[:1]] in (["=="], ["!="])


def _compares_with(read: _Read, function: str) -> bool:
    texts = [each.text for each in read.after[:5]]
    return (
        len(texts) == 5 and texts[0] == "." and texts[1] in _COMPARING and texts[2:] == ["(", function, "("]
    )


def _compared(read: _Read) -> list[str]:
    """The text that the read is compared with."""
    if len(read.after) > 1 and read.after[0].text in ("==", "!="):
        found = _string(read.after[1])
        return [found] if found else []
    return []


def _argument(read: _Read, method: str) -> str:
    texts = [each.text for each in read.after[:3]]
    return _string(read.after[3]) if texts == [".", method, "("] and len(read.after) > 3 else ""


@cache
def _canonical(domain: str) -> str:
    for each in misnomers("domains"):
        if re.fullmatch(each.pattern, domain, re.IGNORECASE):
            return each.use
    return domain


@cache
def _published(section: Section) -> frozenset[str]:
    """Names without a domain that the newest release of NVIDIA's driver publishes for any of its devices."""
    newest = drivers()[NVIDIA].releases[-1]
    names = (
        name
        for device in newest.devices.values()
        for name in (device.attributes if section == "attribute" else device.capacity)
    )
    return frozenset(name.partition("/")[2] for name in names if name.startswith(f"{NVIDIA}/"))


@cache
def _no_more() -> frozenset[str]:
    """Attributes that old releases published, and that nothing stands for now."""
    found = set()
    for release in drivers()[NVIDIA].releases:
        for device in release.devices.values():
            for name, entry in device.attributes.items():
                if not entry.instead and name.startswith(f"{NVIDIA}/"):
                    found.add(name.partition("/")[2])
    return frozenset(found - _published("attribute"))


def _misnomer(name: str) -> tuple[str, str] | None:
    """The attribute that a name stands for, if it is one, and a hint; None for a name that nobody has seen."""
    for each in misnomers("attributes"):
        if each.domain == NVIDIA and re.fullmatch(each.pattern, name, re.IGNORECASE):
            return each.attribute, f"write {each.use}" if each.attribute else each.use
    return None
