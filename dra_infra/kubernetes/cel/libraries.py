"""Functions that Kubernetes adds to CEL, by library, as lines `overload id: signature -> result`.

`Environment` says which release has which library. Overload ids are cel-go's, so that later passes can go by them.

Upstream: `k8s.io/apiserver/pkg/cel/library`.
"""

from __future__ import annotations

from typing import Final

QUANTITY: Final = "kubernetes.Quantity"
SEMVER: Final = "kubernetes.Semver"

_COMPARABLE: Final = (
    ("bool", "bool"),
    ("int", "int"),
    ("int", "double"),
    ("int", "uint"),
    ("uint", "uint"),
    ("uint", "double"),
    ("uint", "int"),
    ("double", "double"),
    ("double", "int"),
    ("double", "uint"),
    ("string", "string"),
    ("bytes", "bytes"),
    ("timestamp", "timestamp"),
    ("duration", "duration"),
)
_OPERATORS: Final = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
_TAGS: Final = {"int": "int64", "uint": "uint64"}


def _comparison() -> tuple[str, ...]:
    lines = []
    for operator, stem in _OPERATORS.items():
        name = operator.replace("<", r"\<").replace(">", r"\>")
        for left, right in _COMPARABLE:
            kinds = [left] if left == right else [left, right]
            tag = "_".join(_TAGS.get(kind, kind) for kind in kinds)
            lines.append(f"{stem}_{tag}: {name}({left},{right}) -> bool")
    return tuple(lines)


COMPARISON: Final = _comparison()
CONVERSION: Final = (
    "string_to_string: string(string) -> string",
    "bool_to_string: string(bool) -> string",
    "bytes_to_string: string(bytes) -> string",
    "double_to_string: string(double) -> string",
    "duration_to_string: string(duration) -> string",
    "int64_to_string: string(int) -> string",
    "timestamp_to_string: string(timestamp) -> string",
    "uint64_to_string: string(uint) -> string",
    "ip_to_string: string(net.IP) -> string",
    "cidr_to_string: string(net.CIDR) -> string",
    "duration_to_duration: duration(duration) -> duration",
    "string_to_duration: duration(string) -> duration",
)

STRINGS: Final = (
    "string_char_at_int: string.charAt(int) -> string",
    "string_index_of_string: string.indexOf(string) -> int",
    "string_index_of_string_int: string.indexOf(string,int) -> int",
    "string_last_index_of_string: string.lastIndexOf(string) -> int",
    "string_last_index_of_string_int: string.lastIndexOf(string,int) -> int",
    "string_lower_ascii: string.lowerAscii() -> string",
    "string_upper_ascii: string.upperAscii() -> string",
    "string_replace_string_string: string.replace(string,string) -> string",
    "string_replace_string_string_int: string.replace(string,string,int) -> string",
    "string_split_string: string.split(string) -> list<string>",
    "string_split_string_int: string.split(string,int) -> list<string>",
    "string_substring_int: string.substring(int) -> string",
    "string_substring_int_int: string.substring(int,int) -> string",
    "string_trim: string.trim() -> string",
    "string_format: string.format(list<dyn>) -> string",
    r"strings_quote: strings\.quote(string) -> string",
    "list_join: list<string>.join() -> string",
    "list_join_string: list<string>.join(string) -> string",
)

REGEX: Final = (
    "string_find_string: string.find(string) -> string",
    "string_find_all_string: string.findAll(string) -> list<string>",
    "string_find_all_string_int: string.findAll(string,int) -> list<string>",
)

QUANTITIES: Final = (
    f"string_to_quantity: quantity(string) -> {QUANTITY}",
    "is_quantity_string: isQuantity(string) -> bool",
    f"quantity_sign: sign({QUANTITY}) -> int",
    f"quantity_is_greater_than: {QUANTITY}.isGreaterThan({QUANTITY}) -> bool",
    f"quantity_is_less_than: {QUANTITY}.isLessThan({QUANTITY}) -> bool",
    f"quantity_compare_to: {QUANTITY}.compareTo({QUANTITY}) -> int",
    f"quantity_get_float: {QUANTITY}.asApproximateFloat() -> double",
    f"quantity_get_int: {QUANTITY}.asInteger() -> int",
    f"quantity_is_integer: {QUANTITY}.isInteger() -> bool",
    f"quantity_add: {QUANTITY}.add({QUANTITY}) -> {QUANTITY}",
    f"quantity_add_int: {QUANTITY}.add(int) -> {QUANTITY}",
    f"quantity_sub: {QUANTITY}.sub({QUANTITY}) -> {QUANTITY}",
    f"quantity_sub_int: {QUANTITY}.sub(int) -> {QUANTITY}",
)

SEMVERS: Final = (
    f"string_to_semver: semver(string) -> {SEMVER}",
    f"string_bool_to_semver: semver(string,bool) -> {SEMVER}",
    "is_semver_string: isSemver(string) -> bool",
    "is_semver_string_bool: isSemver(string,bool) -> bool",
    f"semver_is_greater_than: {SEMVER}.isGreaterThan({SEMVER}) -> bool",
    f"semver_is_less_than: {SEMVER}.isLessThan({SEMVER}) -> bool",
    f"semver_compare_to: {SEMVER}.compareTo({SEMVER}) -> int",
    f"semver_major: {SEMVER}.major() -> int",
    f"semver_minor: {SEMVER}.minor() -> int",
    f"semver_patch: {SEMVER}.patch() -> int",
)

_SORTABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")
LISTS: Final = (
    *(f"list_{kind}_is_sorted_bool: list<{kind}>.isSorted() -> bool" for kind in _SORTABLE),
    *(f"list_{kind}_max_{kind}: list<{kind}>.max() -> {kind}" for kind in _SORTABLE),
    *(f"list_{kind}_min_{kind}: list<{kind}>.min() -> {kind}" for kind in _SORTABLE),
    *(f"list_{kind}_sum_{kind}: list<{kind}>.sum() -> {kind}" for kind in _SUMMABLE),
    "list_a_index_of_int: list<~A>.indexOf(~A) -> int",
    "list_a_last_index_of_int: list<~A>.lastIndexOf(~A) -> int",
)

URL: Final = (
    "string_to_url: url(string) -> kubernetes.URL",
    "is_url_string: isURL(string) -> bool",
    "url_get_scheme: kubernetes.URL.getScheme() -> string",
    "url_get_host: kubernetes.URL.getHost() -> string",
    "url_get_hostname: kubernetes.URL.getHostname() -> string",
    "url_get_port: kubernetes.URL.getPort() -> string",
    "url_get_escaped_path: kubernetes.URL.getEscapedPath() -> string",
    "url_get_query: kubernetes.URL.getQuery() -> map<string,list<string>>",
)

NETWORK: Final = (
    "string_to_ip: ip(string) -> net.IP",
    "is_ip: isIP(string) -> bool",
    r"ip_is_canonical: ip\.isCanonical(string) -> bool",
    "ip_family: net.IP.family() -> int",
    "ip_is_unspecified: net.IP.isUnspecified() -> bool",
    "ip_is_loopback: net.IP.isLoopback() -> bool",
    "ip_is_link_local_multicast: net.IP.isLinkLocalMulticast() -> bool",
    "ip_is_link_local_unicast: net.IP.isLinkLocalUnicast() -> bool",
    "ip_is_global_unicast: net.IP.isGlobalUnicast() -> bool",
    "string_to_cidr: cidr(string) -> net.CIDR",
    "is_cidr: isCIDR(string) -> bool",
    "cidr_contains_ip_string: net.CIDR.containsIP(string) -> bool",
    "cidr_contains_ip_ip: net.CIDR.containsIP(net.IP) -> bool",
    "cidr_contains_cidr_string: net.CIDR.containsCIDR(string) -> bool",
    "cidr_contains_cidr: net.CIDR.containsCIDR(net.CIDR) -> bool",
    "cidr_ip: net.CIDR.ip() -> net.IP",
    "cidr_prefix_length: net.CIDR.prefixLength() -> int",
    "cidr_masked: net.CIDR.masked() -> net.CIDR",
)

_FORMATS: Final = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
FORMAT: Final = (
    r"format-named: format\.named(string) -> optional_type<kubernetes.NamedFormat>",
    "format-validate: kubernetes.NamedFormat.validate(string) -> optional_type<list<string>>",
    *(rf"format.{name}: format\.{name}() -> kubernetes.NamedFormat" for name in _FORMATS),
)

_AUTHORIZATION: Final = "kubernetes.authorization"
AUTHORIZATION: Final = tuple(
    line.replace("$", f"{_AUTHORIZATION}.")
    for line in (
        "authorizer_path: $Authorizer.path(string) -> $PathCheck",
        "authorizer_group: $Authorizer.group(string) -> $GroupCheck",
        "authorizer_serviceaccount: $Authorizer.serviceAccount(string,string) -> $Authorizer",
        "groupcheck_resource: $GroupCheck.resource(string) -> $ResourceCheck",
        "resourcecheck_subresource: $ResourceCheck.subresource(string) -> $ResourceCheck",
        "resourcecheck_namespace: $ResourceCheck.namespace(string) -> $ResourceCheck",
        "resourcecheck_name: $ResourceCheck.name(string) -> $ResourceCheck",
        "pathcheck_check: $PathCheck.check(string) -> $Decision",
        "resourcecheck_check: $ResourceCheck.check(string) -> $Decision",
        "decision_errored: $Decision.errored() -> bool",
        "decision_error: $Decision.error() -> string",
        "decision_allowed: $Decision.allowed() -> bool",
        "decision_reason: $Decision.reason() -> string",
        "authorizer_fieldselector: $ResourceCheck.fieldSelector(string) -> $ResourceCheck",
        "authorizer_labelselector: $ResourceCheck.labelSelector(string) -> $ResourceCheck",
    )
)
"""No expression gets hold of an authorizer, but what only a device knows may be called as if it were one."""

OPTIONALS: Final = (
    r"optional_unwrap: optional\.unwrap(list<optional_type<~V>>) -> list<~V>",
    "optional_unwrapOpt: list<optional_type<~V>>.unwrapOpt() -> list<~V>",
)
"""Declarations of optional values that Kubernetes makes before cel-go's extension does."""
