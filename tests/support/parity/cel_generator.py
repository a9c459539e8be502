"""Random CEL expressions: nested, of every type and library, most of them right, some with a type or a sign wrong."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Final

Scope = tuple[tuple[str, str], ...]
"""Names of variables with their types, the innermost last."""

_HOLE = re.compile(r"\{([a-z]\w*(?:<[^{}]*>)?)\}")
_SCALARS: Final = ("bool", "int", "uint", "double", "string", "bytes", "duration", "timestamp")
_ELEMENTS: Final = (
    "int",
    "string",
    "bool",
    "double",
    "quantity",
    "semver",
    "dyn",
    "uint",
    "duration",
    "list<int>",
)

_LEAVES: Final[dict[str, tuple[str, ...]]] = {
    "bool": (
        "true",
        "false",
        "device.allowMultipleAllocations",
        'isQuantity("1Gi")',
        'isSemver("1.2")',
        'isIP("::1")',
    ),
    "int": ("0", "1", "-1", "7", "9223372036854775807", "-9223372036854775808", "0x1f", "64"),
    "uint": ("0u", "1u", "18446744073709551615u", "0xffu"),
    "double": ("0.0", "1.5", "-2.5e3", ".5", "1e308"),
    "string": (
        "device.driver",
        '"a"',
        "'b'",
        '""',
        '"gpu.example.com"',
        'r"\\d+"',
        '"\\u00e9\\n"',
        '"1.2.3"',
        '"10Gi"',
        '"10.0.0.0/8"',
        '"é"',
        '"""a\nb"""',
    ),
    "bytes": ('b"ab"', "b''", 'b"\\xff"'),
    "duration": ('duration("1h")', 'duration("-1.5s")'),
    "timestamp": ('timestamp("2024-01-01T00:00:00Z")', "timestamp(0)"),
    "quantity": (
        'quantity("1Gi")',
        'quantity("500m")',
        'device.capacity["a.b"].memory',
        'device.capacity["a.b"]["q"]',
    ),
    "semver": ('semver("1.2.3")', 'semver("v1.2", true)', 'semver("1.0.0-rc.1+b")'),
    "dyn": (
        'device.attributes["a.b"].s',
        'device.attributes["a.b"].i',
        'device.attributes["a.b"]["ss"]',
        "device.attributes.x.y",
        'device.attributes["a.b"].v',
    ),
    "attributes": ('device.attributes["a.b"]', "device.attributes.x", "device.attributes[device.driver]"),
    "capacities": ('device.capacity["a.b"]', "device.capacity.x", "device.capacity[device.driver]"),
    "ip": ('ip("::1")', 'ip("10.0.0.1")'),
    "cidr": ('cidr("10.0.0.0/8")',),
    "url": ('url("https://a.b:80/c?d=e")',),
    "format": ("format.dns1123Label()", "format.uuid()", "format.date()"),
    "null": ("null",),
    "type": (
        *("int", "type(1)", "string", "list", "null_type"),
        *("google.protobuf.Int64Value", "google.protobuf.Any", "google.protobuf.Duration"),
    ),
}

_PRODUCTIONS: Final[dict[str, tuple[str, ...]]] = {
    "bool": (
        "{bool} && {bool}",
        "{bool} || {bool}",
        "!{bool}",
        "({bool})",
        "{bool} ? {bool} : {bool}",
        "{int} < {int}",
        "{int} >= {double}",
        "{uint} <= {int}",
        "{double} > {uint}",
        "{string} < {string}",
        "{bool} == {bool}",
        "{int} == {int}",
        "{string} != {string}",
        "{double} == {double}",
        "{bytes} == {bytes}",
        "{duration} < {duration}",
        "{timestamp} >= {timestamp}",
        "{dyn} == {int}",
        "{dyn} == {string}",
        "{dyn} != {dyn}",
        "{dyn} < {int}",
        "{dyn} > {semver}",
        "{dyn} == {semver}",
        "{dyn}",
        "{dyn}.includes({int})",
        "{dyn}.includes({string})",
        "{list<int>}.includes({int})",
        "{string}.includes({string})",
        "{int} in {dyn}",
        "{string} in {attributes}",
        "{string} in device.attributes",
        "{string} in device.capacity",
        "{int} in {list<int>}",
        "{string} in {list<string>}",
        "{dyn} in {list<string>}",
        "has({attributes}.s)",
        "has({capacities}.q)",
        "has(device.attributes.x)",
        "has(device.attributes)",
        "has(device.driver)",
        "{string}.startsWith({string})",
        "{string}.endsWith({string})",
        "{string}.contains({string})",
        "{dyn}.startsWith({string})",
        "{string}.matches({string})",
        "{string}.matches('a+b')",
        "matches({string}, 'a|b')",
        "{quantity} == {quantity}",
        "{quantity}.isGreaterThan({quantity})",
        "{quantity}.isLessThan({quantity})",
        "{quantity}.isInteger()",
        "{quantity}.compareTo({quantity}) >= 0",
        "isQuantity({string})",
        "{semver} == {semver}",
        "{semver}.isGreaterThan({semver})",
        "{semver}.isLessThan({semver})",
        "{dyn}.isGreaterThan({semver})",
        "isSemver({string})",
        "isSemver({string}, {bool})",
        "{ip}.isLoopback()",
        "{ip}.isGlobalUnicast()",
        "{ip}.isUnspecified()",
        "{ip}.isLinkLocalUnicast()",
        "{ip}.isLinkLocalMulticast()",
        "{ip} == {ip}",
        "isIP({string})",
        "ip.isCanonical({string})",
        "{cidr}.containsIP({string})",
        "{cidr}.containsIP({ip})",
        "{cidr}.containsCIDR({string})",
        "{cidr}.containsCIDR({cidr})",
        "isCIDR({string})",
        "isURL({string})",
        "{url} == {url}",
        "{list<int>} == {list<int>}",
        "{list<int>}.isSorted()",
        "{list<string>}.isSorted()",
        "sets.contains({list<int>}, {list<int>})",
        "sets.equivalent({list<string>}, {list<string>})",
        "sets.intersects({list<int>}, {list<int>})",
        "{optional<int>}.hasValue()",
        "{optional<dyn>}.hasValue()",
        "{optional<bool>}.orValue({bool})",
        "{optional<dyn>}.orValue({bool})",
        "{optional<int>} == optional.none()",
        "{type} == {type}",
        "type({dyn}) == {type}",
        "bool({string})",
        "bool({bool})",
        "{format}.validate({string}).hasValue()",
        "format.named({string}).hasValue()",
        "{map<string,int>} == {map<string,int>}",
        "{string} in {map<string,int>}",
        "{timestamp}.getFullYear() == {int}",
        "{null} == {dyn}",
        "dyn({bool})",
    ),
    "int": (
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "-{int}",
        "({int})",
        "{bool} ? {int} : {int}",
        "int({string})",
        "int({double})",
        "int({uint})",
        "int({timestamp})",
        "size({string})",
        "{string}.size()",
        "size({list<int>})",
        "{list<string>}.size()",
        "size({map<string,int>})",
        "{bytes}.size()",
        "size({dyn})",
        "{attributes}.size()",
        "device.attributes.size()",
        "{string}.indexOf({string})",
        "{string}.indexOf({string}, {int})",
        "{string}.lastIndexOf({string})",
        "{string}.lastIndexOf({string}, {int})",
        "{list<int>}.indexOf({int})",
        "{list<string>}.lastIndexOf({string})",
        "{dyn}.indexOf({string})",
        "{list<int>}.sum()",
        "{list<int>}.max()",
        "{list<int>}.min()",
        "{list<int>}[{int}]",
        "{map<string,int>}[{string}]",
        "{quantity}.asInteger()",
        "{quantity}.compareTo({quantity})",
        "sign({quantity})",
        "{semver}.major()",
        "{semver}.minor()",
        "{semver}.patch()",
        "{semver}.compareTo({semver})",
        "{cidr}.prefixLength()",
        "{ip}.family()",
        "{optional<int>}.orValue({int})",
        "{optional<int>}.value()",
        "{optional<dyn>}.orValue({int})",
        "{timestamp}.getHours()",
        "{timestamp}.getDayOfWeek('UTC')",
        "{duration}.getMinutes()",
        "dyn({int})",
        "{dyn} + {int}",
    ),
    "uint": ("{uint} + {uint}", "{uint} * {uint}", "uint({int})", "uint({string})", "{uint} % {uint}"),
    "double": (
        "{double} + {double}",
        "{double} / {double}",
        "-{double}",
        "double({int})",
        "double({string})",
        "{quantity}.asApproximateFloat()",
        "{list<double>}.sum()",
        "{list<double>}.max()",
    ),
    "string": (
        "{string} + {string}",
        "string({int})",
        "string({double})",
        "string({bool})",
        "string({bytes})",
        "string({duration})",
        "string({timestamp})",
        "string({ip})",
        "string({cidr})",
        "{string}.substring({int})",
        "{string}.substring({int}, {int})",
        "{string}.charAt({int})",
        "{string}.lowerAscii()",
        "{string}.upperAscii()",
        "{string}.trim()",
        "{string}.replace({string}, {string})",
        "{string}.replace({string}, {string}, {int})",
        "{list<string>}.join()",
        "{list<string>}.join({string})",
        "strings.quote({string})",
        "{string}.find({string})",
        "{string}.find('[a-z]+')",
        "{list<string>}[{int}]",
        "{list<string>}.max()",
        "{url}.getHost()",
        "{url}.getHostname()",
        "{url}.getPort()",
        "{url}.getScheme()",
        "{url}.getEscapedPath()",
        "{optional<string>}.orValue({string})",
        "{optional<dyn>}.orValue({string})",
        "{bool} ? {string} : {string}",
        "{dyn} + {string}",
        "dyn({string})",
    ),
    "bytes": ("bytes({string})", "{bytes} + {bytes}"),
    "duration": (
        "{duration} + {duration}",
        "{timestamp} - {timestamp}",
        "duration({string})",
        "duration({int})",
        "duration('10m')",
    ),
    "timestamp": (
        "{timestamp} + {duration}",
        "{timestamp} - {duration}",
        "timestamp({string})",
        "timestamp({int})",
    ),
    "quantity": (
        "quantity({string})",
        "{quantity}.add({quantity})",
        "{quantity}.add({int})",
        "{quantity}.sub({quantity})",
        "{quantity}.sub({int})",
        "{capacities}.q",
        "{capacities}[{string}]",
        "{optional<quantity>}.orValue({quantity})",
    ),
    "semver": ("semver({string})", "semver({string}, {bool})", "{optional<dyn>}.orValue({semver})"),
    "dyn": (
        "{attributes}.s",
        "{attributes}[{string}]",
        "{dyn}[{int}]",
        "{dyn}.field",
        "dyn({int})",
        "{optional<dyn>}.value()",
        "[{dyn}, {dyn}][0]",
    ),
    "attributes": ("device.attributes[{string}]", "{bool} ? {attributes} : {attributes}"),
    "capacities": ("device.capacity[{string}]",),
    "ip": ("ip({string})", "{cidr}.ip()"),
    "cidr": ("cidr({string})", "{cidr}.masked()"),
    "url": ("url({string})",),
    "type": ("type({int})", "type({dyn})", "type({string})", "type({list<int>})"),
    "list<int>": (
        "[{int}]",
        "[{int}, {int}, {int}]",
        "[]",
        "[?{optional<int>}, {int}]",
        "{list<int>} + {list<int>}",
        "{list<int>}.reverse()",
        "{list<int>}.distinct()",
        "{list<int>}.sort()",
        "{list<int>}.slice({int}, {int})",
        "{list<list<int>>}.flatten()",
        "lists.range({int})",
        "{bool} ? {list<int>} : {list<int>}",
    ),
    "list<string>": (
        "[{string}]",
        "[{string}, {string}]",
        "{string}.split({string})",
        "{string}.split({string}, {int})",
        "{string}.findAll({string})",
        "{string}.findAll('[0-9]', {int})",
        "{list<string>} + {list<string>}",
        "{list<string>}.sort()",
        "{url}.getQuery()[{string}]",
        "{format}.validate({string}).value()",
    ),
    "list<bool>": ("[{bool}]", "[{bool}, {bool}]"),
    "list<double>": ("[{double}]", "[{double}, {double}]"),
    "list<uint>": ("[{uint}, {uint}]",),
    "list<duration>": ("[{duration}]",),
    "list<quantity>": ("[{quantity}]", "[{quantity}, {quantity}]"),
    "list<semver>": ("[{semver}, {semver}]",),
    "list<dyn>": ("[{dyn}]", "[{dyn}, {dyn}]", "[dyn({int}), dyn({string})]", "dyn({list<int>})"),
    "list<list<int>>": ("[{list<int>}]", "[{list<int>}, {list<int>}]", "[[]]"),
    "map<string,int>": (
        "{{{string}: {int}}}",
        "{{{string}: {int}, {string}: {int}}}",
        "{{}}",
        "{{?{string}: {optional<int>}}}",
    ),
    "optional<int>": (
        "optional.of({int})",
        "optional.none()",
        "optional.ofNonZeroValue({int})",
        "{list<int>}[?{int}]",
        "{map<string,int>}[?{string}]",
        "{list<int>}.first()",
        "{list<int>}.last()",
        "{optional<int>}.or({optional<int>})",
    ),
    "optional<dyn>": (
        "{attributes}.?s",
        "{attributes}[?{string}]",
        "device.attributes.?x.?s",
        "device.attributes[?{string}].?i",
        "optional.of({dyn})",
        "{dyn}.?field",
        "{optional<dyn>}.or({optional<dyn>})",
    ),
    "optional<bool>": ("optional.of({bool})",),
    "optional<string>": ("optional.of({string})", "{list<string>}.first()", "{list<string>}[?{int}]"),
    "optional<quantity>": ("{capacities}.?q", "{capacities}[?{string}]", "optional.of({quantity})"),
}

_NAMES: Final = ("x", "y", "k", "v", "item", "_a", "e1")
_SIGNS: Final = (
    "(",
    ")",
    ".",
    "&&",
    "||",
    "=",
    "==",
    "!",
    '"',
    "'",
    ",",
    "?",
    ":",
    "[",
    "]",
    "{",
    "}",
    "+",
    "1",
    "x",
    "\\",
    "`",
    "#",
    " in ",
    "@",
    "$",
    "//",
    ";",
    "é",
    "\n",
    "\t",
    "as",
    "package",
    "u",
    ".?",
)


class ExpressionGenerator:
    """Makes expressions; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  (a seeded generator of test cases)
        self._slips = 0.0

    def expressions(self, count: int) -> Iterator[str]:
        """*count* expressions."""
        for _ in range(count):
            yield self.expression()

    def expression(self) -> str:
        """One expression, as a rule of bool."""
        chance = self._random.random()
        self._slips = 0.0 if chance < 0.55 else 0.04 if chance < 0.8 else 0.15
        kind = "bool" if self._random.random() < 0.9 else self._random.choice(tuple(_PRODUCTIONS))
        text = self._make(kind, self._random.randint(1, 5), ())
        if self._random.random() < 0.06:
            text = self._garble(text)
        return text

    def _make(self, kind: str, depth: int, scope: Scope) -> str:
        if self._random.random() < self._slips:
            kind = self._random.choice(tuple(_PRODUCTIONS))
        fitting = [name for name, found in scope if found == kind]
        if fitting and self._random.random() < 0.5:
            return self._random.choice(fitting)
        leaves = _LEAVES.get(kind)
        if leaves and (depth <= 0 or self._random.random() < 0.15):
            return self._random.choice(leaves)
        if depth > 0 and self._random.random() < 0.25:
            looped = self._loop(kind, depth - 1, scope)
            if looped:
                return looped
        productions = _PRODUCTIONS.get(kind)
        if not productions:
            return self._random.choice(_LEAVES.get(kind, ("1",)))
        if depth <= 0:
            productions = tuple(sorted((each for each in productions if "{" in each), key=len)[:2])
        return self._fill(self._random.choice(productions), depth, scope)

    def _fill(self, template: str, depth: int, scope: Scope) -> str:
        text = _HOLE.sub(lambda hole: self._operand(hole[1], depth - 1, scope), template)
        return text.replace("{{", "{").replace("}}", "}") if "{{" in template else text

    def _operand(self, kind: str, depth: int, scope: Scope) -> str:
        text = self._make(kind, depth, scope)
        return f"({text})" if re.search(r"[-+*/%<>=!?&|\s]", text) and self._random.random() < 0.9 else text

    def _loop(self, kind: str, depth: int, scope: Scope) -> str:
        name, other = self._random.sample(_NAMES, 2)
        element = self._random.choice(_ELEMENTS)
        made = f"list<{element}>"
        if made not in _PRODUCTIONS or self._random.random() < 0.2:
            element, made = "dyn", "dyn"
        inner = (*scope, (name, element))
        both = (*inner[:-1], (name, "int"), (other, element))
        pairs = (*scope, (name, "string"), (other, "dyn"))

        def part(wanted: str, names: Scope) -> str:
            return self._make(wanted, depth - 1, names)

        forms = [f"cel.bind({name}, {part(element, scope)}, {part(kind, inner)})"]
        if kind == "bool":
            sought = self._random.choice(("all", "exists", "exists_one", "existsOne"))
            forms += [
                f"{self._operand(made, depth, scope)}.{sought}({name}, {part('bool', inner)})",
                f"{self._operand(made, depth, scope)}.{sought}({name}, {other}, {part('bool', both)})",
                f"{part('attributes', scope)}.{sought}({name}, {other}, {part('bool', pairs)})",
                f"{part('attributes', scope)}.{sought}({name}, {part('bool', (*scope, (name, 'string')))})",
                f"{part('optional<int>', scope)}.optMap({name}, {part('bool', (*scope, (name, 'int')))}).orValue(false)",
            ]
        elif kind == "list<int>":
            forms += [
                f"{self._operand(made, depth, scope)}.map({name}, {part('int', inner)})",
                f"{self._operand(made, depth, scope)}.map({name}, {part('bool', inner)}, {part('int', inner)})",
                f"{part('list<int>', scope)}.filter({name}, {part('bool', (*scope, (name, 'int')))})",
                f"{part('list<int>', scope)}.sortBy({name}, {part('int', (*scope, (name, 'int')))})",
                f"{self._operand(made, depth, scope)}.transformList({name}, {other}, {part('int', both)})",
            ]
        elif kind == "map<string,int>":
            forms += [
                f"{part('attributes', scope)}.transformMap({name}, {other}, {part('int', pairs)})",
                f"{part('list<string>', scope)}.transformMapEntry({name}, {other}, {{{other}: {name}}})",
            ]
        elif kind == "optional<int>":
            forms.append(
                f"{part('optional<dyn>', scope)}.optFlatMap({name}, {part('optional<int>', (*scope, (name, 'dyn')))})"
            )
        return self._random.choice(forms)

    def _garble(self, text: str) -> str:
        place = self._random.randrange(len(text) + 1)
        what = self._random.randrange(3)
        if what == 0:
            return text[:place] + text[place + self._random.randint(1, 3) :]
        if what == 1:
            return text[:place] + self._random.choice(_SIGNS) + text[place:]
        return text[:place] + self._random.choice(_SIGNS) + text[place + 1 :]
