"""Every function, operator and macro with a place for arguments, and a value of every type to put there."""

from __future__ import annotations

from typing import Final

VALUES: Final = (
    *("true", "1", "1u", "1.5", '"a"', 'b"a"', 'duration("1h")', "timestamp(0)", "null", "int"),
    *('device.attributes["a"].b', 'quantity("1")', 'semver("1.0.0")', 'ip("::1")', 'cidr("10.0.0.0/8")'),
    *('url("http://a")', "format.uuid()", "optional.of(1)", "optional.none()", "device", "device.attributes"),
    *('device.capacity["a"]', "[1]", '["a"]', "[1.5]", "[true]", "[dyn(1)]", "[[1]]", "[]", "{}", '{"a": 1}'),
    *('[quantity("1")]', '[semver("1.0.0")]', "[timestamp(0)]"),
)

_FUNCTIONS: Final = (
    *(
        [
            "size",
            "bool",
            "int",
            "uint",
            "double",
            "string",
            "bytes",
            "duration",
            "timestamp",
            "dyn",
            "type",
            "quantity",
            "isQuantity",
            "sign",
            "semver",
        ]
    ),
    *(
        [
            "isSemver",
            "url",
            "isURL",
            "ip",
            "isIP",
            "ip.isCanonical",
            "cidr",
            "isCIDR",
            "format.named",
            "optional.of",
            "optional.unwrap",
        ]
    ),
    *(["optional.ofNonZeroValue", "lists.range", "strings.quote", "flatten", "unwrapOpt", "math.abs", "foo"]),
)
_METHODS: Final = (
    *(
        [
            "size",
            "lowerAscii",
            "upperAscii",
            "trim",
            "join",
            "isInteger",
            "asInteger",
            "asApproximateFloat",
            "sign",
            "major",
            "minor",
            "patch",
        ]
    ),
    *(
        [
            "getScheme",
            "getHost",
            "getHostname",
            "getPort",
            "getEscapedPath",
            "getQuery",
            "family",
            "isUnspecified",
            "isLoopback",
        ]
    ),
    *(
        [
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
            "ip",
            "prefixLength",
            "masked",
            "isSorted",
            "sum",
            "min",
            "max",
        ]
    ),
    *(
        [
            "reverse",
            "distinct",
            "sort",
            "flatten",
            "first",
            "last",
            "value",
            "hasValue",
            "unwrapOpt",
            "getFullYear",
            "getMonth",
            "getDayOfYear",
        ]
    ),
    *(
        [
            "getDayOfMonth",
            "getDate",
            "getDayOfWeek",
            "getHours",
            "getMinutes",
            "getSeconds",
            "getMilliseconds",
            "int",
            "allowed",
            "foo",
        ]
    ),
)
_METHODS_WITH_AN_ARGUMENT: Final = (
    *(
        [
            "contains",
            "startsWith",
            "endsWith",
            "matches",
            "charAt",
            "indexOf",
            "lastIndexOf",
            "replace",
            "split",
            "substring",
            "join",
            "find",
        ]
    ),
    *(
        [
            "findAll",
            "isGreaterThan",
            "isLessThan",
            "compareTo",
            "add",
            "sub",
            "includes",
            "containsIP",
            "containsCIDR",
            "validate",
            "or",
        ]
    ),
    *(
        [
            "orValue",
            "flatten",
            "getHours",
            "getFullYear",
            "getMilliseconds",
            "format",
            "slice",
            "sum",
            "group",
            "check",
        ]
    ),
)

CALLS_OF_ONE: Final = (
    *("!{0}", "-{0}", "{0}.foo", "{0}.?foo", "has({0}.foo)", "[?{0}]", '{{?"a": {0}}}', "{{{0}: 1}}"),
    *("{0}.exists(x, true)", "{0}.exists_one(x, true)", "{0}.map(x, x)", "{0}.filter(x, true)"),
    *("{0}.all(k, v, true)", "{0}.existsOne(k, v, true)", "{0}.exists_one(k, v, true)", "{0}.sortBy(x, x)"),
    *("{0}.transformList(k, v, v)", "{0}.transformMap(k, v, v)", '{0}.transformMapEntry(k, v, {{"a": v}})'),
    *("{0}.optMap(x, x)", "{0}.optFlatMap(x, optional.of(x))", "cel.bind(x, {0}, x)"),
    *(f"{name}({{0}})" for name in _FUNCTIONS),
    *(f"{{0}}.{name}()" for name in _METHODS),
)

CALLS_OF_TWO: Final = (
    *(f"{{0}} {sign} {{1}}" for sign in ["&&", "||", "==", "!=", "<", ">=", "+", "-", "*", "/", "%", "in"]),
    *("{0}[{1}]", "{0}[?{1}]", "true ? {0} : {1}", "{0} ? {1} : {1}", "[{0}, {1}]", "[?{0}, {1}]"),
    *('{{"a": {0}, "b": {1}}}', "{{{0}: 1, {1}: 2}}", "{0}.?foo == {1}", "matches({0}, {1})"),
    *("sets.contains({0}, {1})", "sets.equivalent({0}, {1})", "sets.intersects({0}, {1})"),
    *("semver({0}, {1})", "isSemver({0}, {1})", '{0}.replace({1}, "a")', "{0}.substring({1}, 1)"),
    *("{0}.slice({1}, 2)", "{0}.slice(1, {1})", '{0}.indexOf("a", {1})', '{0}.split("a", {1})'),
    *(
        '{0}.findAll("a", {1})',
        "{0}.format([{1}])",
        '"%s %d".format([{0}, {1}])',
        '"%x %e".format([{0}, {1}])',
    ),
    *("{0}.map(x, {1})", "{0}.map(x, {1}, x)", "{0}.filter(x, {1})", "{0}.all(x, {1})", "{0}.exists(x, {1})"),
    *("{0}.exists_one(x, {1})", "{0}.sortBy(x, {1})", "{0}.optMap(x, {1})", "{0}.optFlatMap(x, {1})"),
    *("{0}.all(k, v, {1})", "{0}.transformMapEntry(k, v, {1})"),
    *(f"{{0}}.{name}({{1}})" for name in _METHODS_WITH_AN_ARGUMENT),
)
