"""Expressions with mistakes that people and programs make, and spellings that only a real lexer reads right."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from dra_infra.kubernetes.cel.declarations import Overload, declarations
from dra_infra.kubernetes.cel.environment import DEFAULT
from dra_infra.kubernetes.cel.tree import CelType

_DOMAIN: Final = 'device.attributes["gpu.example.com"]'
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("true", "device.allowMultipleAllocations", "1 < 2"),
    "int": ("1", "-3", "0x1F", "size(device.driver)"),
    "uint": ("1u", "0x2u"),
    "double": ("1.5", "-.5e3"),
    "string": ('"a"', "device.driver", "r'\\d'", '"""b"""', "'\\u00e9'"),
    "bytes": ('b"a"', "b'\\xff'", "br'\\'"),
    "duration": ('duration("1h")',),
    "timestamp": ('timestamp("2024-01-01T00:00:00Z")', "timestamp(0)"),
    "null_type": ("null",),
    "dyn": (f"{_DOMAIN}.model", "dyn(1)", f"{_DOMAIN}['index']"),
    "list": ("[1, 2]", '["a"]', "[]", "[[1]]", "lists.range(3)", "[dyn(1)]", "[?optional.of(1)]"),
    "map": ('{"a": 1}', "{}", "device.attributes", _DOMAIN, '{?"a": optional.of(1)}', "{1: 2}"),
    "optional_type": ("optional.of(1)", "optional.none()", f"{_DOMAIN}.?model", "device.?driver"),
    "kubernetes.Quantity": ('quantity("40Gi")', 'device.capacity["gpu.example.com"].memory'),
    "kubernetes.Semver": ('semver("1.2.3")',),
    "kubernetes.URL": ('url("https://a.b/c")',),
    "kubernetes.NamedFormat": ("format.uuid()",),
    "kubernetes.DRADevice": ("device", 'kubernetes.DRADevice{driver: "a"}'),
    "net.IP": ('ip("::1")',),
    "net.CIDR": ('cidr("10.0.0.0/8")',),
    "type": ("int", "type(1)", "net.IP", "google.protobuf.Timestamp", "timestamp", "list", "dyn"),
    "wrapper": (
        "google.protobuf.Int64Value{value: 1}",
        "google.protobuf.BoolValue{}",
        'google.protobuf.StringValue{value: "a"}',
        "google.protobuf.DoubleValue{value: 1.0}",
        "google.protobuf.Value{number_value: 1.0}",
        "google.protobuf.Struct{}",
        "google.protobuf.ListValue{values: [1]}",
        "google.protobuf.Duration{seconds: 1}",
        "google.protobuf.Empty{}",
    ),
}
_OPERATORS: Final = ("&&", "||", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "in")
_MACROS: Final = (
    *("{0}.all(x, {1})", "{0}.exists(x, x == {1})", "{0}.exists_one(x, {1})", "{0}.map(x, {1})"),
    *("{0}.filter(x, {1})", "{0}.map(x, {1}, x)", "{0}.all(k, v, {1})", "{0}.existsOne(k, v, v == {1})"),
    *("{0}.exists_one(k, v, {1})", "{0}.transformList(k, v, {1})", "{0}.transformMap(k, v, {1}, v)"),
    *("{0}.transformMapEntry(k, v, {{k: {1}}})", "{0}.optMap(x, {1})", "{0}.optFlatMap(x, {1})"),
    *("{0}.sortBy(x, {1})", "cel.bind(x, {0}, x == {1})", "has({0}.x) && {1}", "{0}.map(device, device)"),
    *("{0}.all(x.y, {1})", "{0}.exists(1, {1})", "{0}.map(x, y, {1}, 1)", "{0}.all(x, x, {1})"),
    *("{0}.all(__result__, {1})", "cel.bind(1, {0}, {1})", "{0}.sortBy(x.y, {1})", "has({0})", "has({0}())"),
    *("{0}.all(k, {0}.all(k, v, k == {1}))", "{0}.exists(device, device == {1})", "{0}.exists(x, .x == {1})"),
    *("[{0}, {1}]", "[?{0}, {1}]", '{{"a": {0}, "b": {1}}}', '{{?"a": {0}}}', "{{{0}: 1, {1}: 2}}"),
    *("true ? {0} : {1}", "{0} ? {1} : {1}", "{0}[{1}]", "{0}[?{1}]", "{0}.?x.orValue({1})", "{0}.x[{1}]"),
)
_FIELDS: Final = (
    *("device.drivr", "device.attribute", "device.?driver", "device.?nope", "device.capacity.x.y.z"),
    *(
        "device.driver.x",
        "device.attributes.x.y.z",
        "device.attributes[1]",
        'device["driver"]',
        "divice.driver",
    ),
    *(
        "device.?attributes['d'].?model.orValue('')",
        "[?device.?driver]",
        "nope(1)",
        "x.nope()",
        "device.nope()",
    ),
    *("cel.bind(a, device, a.driver)", "cel.bind(device, {'driver': 1}, device.driver)", ".device.driver"),
    *(
        "has(device.driver)",
        "has( device . nope )",
        "has((device.driver))",
        "has(device.?driver)",
        "net",
        "kubernetes",
    ),
    *("kubernetes.DRADevice{nope: 1}", "kubernetes.Quantity{}", "int{}", "list{}", "google.protobuf.Nope{}"),
    *(
        "google.protobuf.BoolValue{value: 1}",
        "google.protobuf.BoolValue{nope: true}",
        "net.IP{}",
        "timestamp{}",
    ),
    *(
        "google.protobuf.NullValue.NULL_VALUE",
        "device.attributes.all(x, x)",
        "cel.bind(x, 1)",
        "type(device)",
    ),
)
_SPELLINGS: Final = (
    *(
        "r'\\'",
        'r"""\\"""',
        "b'\\u00e9'",
        "'\\ud800'",
        "'\\U00110000'",
        "'\\400'",
        "'\\8'",
        '"a\\"',
        "'''a'''",
    ),
    *(
        "1.",
        ".5.5",
        "0xG",
        "1e",
        "1u2",
        "99999999999999999999",
        "-9223372036854775808",
        "18446744073709551616u",
    ),
    *(
        "device // comment\n.driver",
        "size( // (\n device.driver)",
        "device.\u00a0driver",
        "device\u00a0.driver",
    ),
    *(
        "has(device // )\n.driver)",
        "device\t.\tdriver",
        "device.\r\ndriver",
        "`a`",
        "device.`driver`",
        "x.`a-b`",
    ),
    *(
        "1 + ",
        "(1",
        "[1,",
        "{1:",
        "1 1",
        "a b",
        "a..b",
        "a.?",
        "!",
        "--1",
        "!!true",
        "- 1",
        "---x",
        "1 ? 2",
        "?",
    ),
    *(
        "as",
        "if",
        "for(1)",
        "a.in",
        "a.true",
        "in",
        "true.x",
        "[,]",
        "{,}",
        "[1,,]",
        "f(,)",
        "f(1,)",
        ".1",
        "..a",
    ),
    *(
        "{'a' : 1,}",
        "a{}",
        "a.b{c: 1}",
        ".a.b{}",
        "a{?b: 1}",
        "a{`b`: 1}",
        "é",
        "a && é",
        "'\n'",
        '"\'"',
        "#",
        "&",
    ),
    *(
        "1 = 1",
        "a and b",
        "not a",
        "a is b",
        "1 if a else 2",
        "a === b",
        "a <> b",
        "'a' 'b'",
        "\\",
        "a?.b",
        "@a",
    ),
)
_WRAPS: Final = (
    *(
        "{} == {}",
        "{}",
        "!({})",
        "({}) && true",
        "size({}) == 1",
        "[{}].size() == 1",
        "{} in [{}]",
        "true || {}",
    ),
    *(
        "dyn({}) == 1",
        "type({}) == int",
        "string({}) == ''",
        "cel.bind(v, {}, v == v)",
        "{}.x == 1",
        "{}\n  == {}",
    ),
)
_NOISE: Final = tuple("()[]{}.,?:&|=!<>+-*/%'\"`\\ \n\t#é1aru")
_ODD: Final = 0.15


class Mistakes:
    """Expressions of one seed, about half of them wrong in one place or another."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311  (a seeded choice of test cases)
        self._functions = sorted(declarations(DEFAULT).functions.items())

    def expressions(self, count: int) -> Iterator[str]:
        """As many expressions."""
        makers = (
            self._call,
            self._call,
            self._call,
            self._macro,
            self._operator,
            self._field,
            self._spelling,
        )
        for _ in range(count):
            text = self._random.choice(makers)()
            if self._random.random() < _ODD * 3:
                wrap = self._random.choice(_WRAPS)
                text = wrap.format(text, self._value()) if wrap.count("{}") > 1 else wrap.format(text)
            yield self._garbled(text) if self._random.random() < _ODD else text

    def _value(self, kind: CelType | None = None) -> str:
        """A value of a type, or of any."""
        name = kind.name if kind is not None and kind.name in VALUES else ""
        return self._random.choice(VALUES[name or self._random.choice(list(VALUES))])

    def _call(self) -> str:
        """A call of a known function: right, or with a wrong receiver, type, number of arguments or name."""
        name, overloads = self._random.choice(self._functions)
        overload: Overload = self._random.choice(overloads)
        arguments = [self._value(kind) for kind in overload.parameters]
        is_member = overload.is_member
        mistake = self._random.randrange(7)
        if mistake == 0 and arguments:
            arguments[self._random.randrange(len(arguments))] = self._value()
        elif mistake == 1:
            arguments.append(self._value())
        elif mistake == 2 and len(arguments) > 1:
            arguments.pop()
        elif mistake == 3:
            is_member = not is_member
        elif mistake == 4:
            name = f"{name}s" if self._random.random() < 0.5 else name[:-1]
        if not name.replace(".", "").replace("_", "").isalnum() or name.startswith("_"):
            return self._operator()
        if is_member and arguments:
            return f"{arguments[0]}.{name}({', '.join(arguments[1:])})"
        return f"{name}({', '.join(arguments)})"

    def _macro(self) -> str:
        return self._random.choice(_MACROS).format(self._value(), self._value())

    def _operator(self) -> str:
        return f"{self._value()} {self._random.choice(_OPERATORS)} {self._value()}"

    def _field(self) -> str:
        return self._random.choice(_FIELDS)

    def _spelling(self) -> str:
        return self._random.choice(_SPELLINGS)

    def _garbled(self, text: str) -> str:
        """The text with a character more, less or another."""
        place = self._random.randrange(len(text) + 1)
        noise = self._random.choice(("", *_NOISE))
        return text[:place] + noise + text[place + self._random.randrange(2) :]
