"""Quantities, versions, URLs and named formats (k8s.io/apiserver/pkg/cel/library).

The named formats are those of `format.validate`, with the server's texts. Upstream:
k8s.io/apiserver/pkg/cel/library/format.go, over k8s.io/apimachinery/pkg/util/validation and
k8s.io/kube-openapi/pkg/validation/strfmt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Final, TypeAlias

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.quantity import MAX_EXPONENT, MAX_LENGTH
from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.maps import Map
from dra_infra.kubernetes.cel.interpreter.numbers import Amount, of_integer, read_amount
from dra_infra.kubernetes.cel.interpreter.operators import order
from dra_infra.kubernetes.cel.interpreter.urls import URL, parse_query, parse_request_uri, parse_url
from dra_infra.kubernetes.cel.interpreter.values import (
    NONE,
    Err,
    Format,
    OptionalValue,
    Overloads,
    QuantityValue,
    UndecidedError,
    Value,
)

_QUANTITY: Final = "kubernetes.Quantity"
_SEMVER: Final = "kubernetes.Semver"
_URL: Final = "kubernetes.URL"
_FORMAT: Final = "kubernetes.NamedFormat"


def _quantity(text: str) -> Value:
    try:
        return QuantityValue(read_amount(text))
    except ValueError as error:
        if "is longer than" in str(error) or "is beyond" in str(error):
            limits = f"{MAX_LENGTH} characters or an exponent beyond {MAX_EXPONENT}"
            raise UndecidedError(f"a quantity of more than {limits}") from error
        return Err(str(error))


def _as_integer(value: QuantityValue) -> Value:
    result = value.amount.as_integer()
    return Err("cannot convert value to integer") if result is None else result


def _result(amount: Amount) -> QuantityValue:
    return QuantityValue(amount, is_pointer=True)


def _compare_quantities(left: QuantityValue, right: QuantityValue) -> int:
    return left.amount.compare(right.amount)


def _compare_versions(left: Semver, right: Semver) -> int:
    """Compares by the three numbers; by what is behind them only where those are equal."""
    if left.numbers == right.numbers:
        return order(left.precedence, right.precedence)
    return order(left.numbers, right.numbers)


def _version(text: str, normalize: bool = False) -> Value:  # noqa: FBT001, FBT002  (the second argument in CEL)
    try:
        return Semver.parse_normalized(text) if normalize else Semver.parse(text)
    except ValueError as error:
        return Err(str(error))


def _is_version(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002  (the second argument in CEL)
    return type(_version(text, normalize)) is Semver


def _number(place: int) -> Callable[[Semver], int]:
    def number(version: Semver) -> int:
        value = version.numbers[place]
        return value - 2**64 if value >= 2**63 else value

    return number


def _url(text: str, *, strict: bool = True) -> Value:
    try:
        parse_request_uri(text, strict=strict)
        return parse_url(text, strict=strict)
    except ValueError as error:
        return Err(f"URL parse error during conversion from string: {error}")


def _is_url(text: str, *, strict: bool = True) -> bool:
    try:
        parse_request_uri(text, strict=strict)
    except ValueError:
        return False
    return True


def _part(read: Callable[[URL], str]) -> Overloads:
    def part(url: URL) -> str:
        text = read(url)
        if any("\udc80" <= character <= "\udcff" for character in text):
            raise UndecidedError("a text that is not UTF-8")
        return text

    return (((_URL,), part),)


def _named(formats: Mapping[str, Format]) -> Callable[[str], OptionalValue]:
    return lambda name: OptionalValue(formats[name]) if name in formats else NONE


def _validate(named: Format, text: str) -> OptionalValue:
    problems = named.validate(text)
    return OptionalValue(list(problems)) if problems else NONE


OPAQUE: Final[dict[str, Overloads]] = {
    "quantity": ((("string",), _quantity),),
    "isQuantity": ((("string",), lambda text: type(_quantity(text)) is QuantityValue),),
    "sign": (((_QUANTITY,), lambda value: order(value.amount.digits, 0)),),
    "isInteger": (((_QUANTITY,), lambda value: value.amount.as_integer() is not None),),
    "asInteger": (((_QUANTITY,), _as_integer),),
    "asApproximateFloat": (((_QUANTITY,), lambda value: value.amount.as_float()),),
    "add": (
        ((_QUANTITY, _QUANTITY), lambda value, other: _result(value.amount.add(other.amount))),
        ((_QUANTITY, "int"), lambda value, other: _result(value.amount.add(of_integer(other)))),
    ),
    "sub": (
        ((_QUANTITY, _QUANTITY), lambda value, other: _result(value.amount.subtract(other.amount))),
        ((_QUANTITY, "int"), lambda value, other: _result(value.amount.subtract(of_integer(other)))),
    ),
    "isGreaterThan": (
        ((_QUANTITY, _QUANTITY), lambda left, right: _compare_quantities(left, right) == 1),
        ((_SEMVER, _SEMVER), lambda left, right: _compare_versions(left, right) == 1),
    ),
    "isLessThan": (
        ((_QUANTITY, _QUANTITY), lambda left, right: _compare_quantities(left, right) == -1),
        ((_SEMVER, _SEMVER), lambda left, right: _compare_versions(left, right) == -1),
    ),
    "compareTo": (((_QUANTITY, _QUANTITY), _compare_quantities), ((_SEMVER, _SEMVER), _compare_versions)),
    "semver": ((("string",), _version), (("string", "bool"), _version)),
    "isSemver": ((("string",), _is_version), (("string", "bool"), _is_version)),
    "major": (((_SEMVER,), _number(0)),),
    "minor": (((_SEMVER,), _number(1)),),
    "patch": (((_SEMVER,), _number(2)),),
    "url": ((("string",), _url),),
    "isURL": ((("string",), _is_url),),
    "getScheme": _part(lambda url: url.scheme),
    "getHost": _part(lambda url: url.host),
    "getHostname": _part(lambda url: url.split_host()[0]),
    "getPort": _part(lambda url: url.split_host()[1]),
    "getEscapedPath": _part(lambda url: url.escaped_path()),
    "getQuery": (((_URL,), lambda url: Map.of(parse_query(url.query).items())),),
    "validate": (((_FORMAT, "string"), _validate),),
}
"""Functions of Kubernetes' own types but for the named formats."""


URLS_BEFORE_36: Final[dict[str, Overloads]] = {
    "url": ((("string",), partial(_url, strict=False)),),
    "isURL": ((("string",), partial(_is_url, strict=False)),),
}
"""Of Go's net/url before it counted the colons of a host."""


def named_formats(formats: Mapping[str, Format]) -> dict[str, Overloads]:
    """The functions that return a named format."""
    return {
        "format.named": ((("string",), _named(formats)),),
        **{f"format.{name}": (((), lambda named=named: named),) for name, named in formats.items()},
    }


Texts: TypeAlias = tuple[str, ...]

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.ASCII)
_UUID = re.compile(
    "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)
_BASE64 = re.compile(
    "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII
)


def _of_prefix(validate: Callable[[str], Texts]) -> Callable[[str], Texts]:
    """Makes the check of a prefix of a name, at whose end a dash may be (maskTrailingDash)."""
    return lambda text: validate(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _uri(text: str, *, strict: bool = True) -> Texts:
    try:
        parse_request_uri(text, strict=strict)
    except ValueError as error:
        return (str(error),)
    return ()


def is_date(text: str) -> bool:
    """Checks that Go reads *text* as a day."""
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    try:
        date(int(match[1]) or 400, int(match[2]), int(match[3]))
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text.encode()) < 4 or len(parts) < 2 or not is_date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _either(is_right: Callable[[str], object], told: str) -> Callable[[str], Texts]:
    return lambda text: () if is_right(text) else (told,)


FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", names.dns_label),
    "dns1123Subdomain": Format("DNS1123Subdomain", names.dns_subdomain),
    "dns1035Label": Format("DNS1035Label", names.dns_label_1035),
    "qualifiedName": Format("QualifiedName", names.label_key),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _of_prefix(names.dns_label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _of_prefix(names.dns_subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _of_prefix(names.dns_label_1035)),
    "labelValue": Format("LabelValue", names.label_value),
    "uri": Format("URI", _uri),
    "uuid": Format("uuid", _either(_UUID.fullmatch, "does not match the UUID format")),
    "byte": Format("byte", _either(_BASE64.fullmatch, "invalid base64")),
    "date": Format("date", _either(is_date, "invalid date")),
    "datetime": Format("datetime", _either(_is_datetime, "invalid datetime")),
}
"""By the name in CEL."""


FORMATS_OF_35: Final = {**FORMATS, "uri": Format("URI", lambda text: _uri(text, strict=False))}
FORMATS_OF_34: Final = {
    **FORMATS_OF_35,
    "qualifiedName": Format(
        "QualifiedName", partial(names.label_key, noun="a qualified name", unit="characters")
    ),
    "labelValue": Format("LabelValue", partial(names.label_value, unit="characters")),
}
"""The same in 1.34, in whose texts two differ."""
