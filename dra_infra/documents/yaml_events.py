"""YAML as plain JSON data, built from the parser's events: bounded, and one document after the other.

libyaml's own composer recurses in C, so a text that is nested deep enough would end the process, and an alias can
unfold without end. Events come one by one, and are counted.

Plain values and numbers become what kubectl makes of them on the way to the API server. It converts YAML to JSON with
sigs.k8s.io/yaml, which reads YAML 1.1 with its own additions (resolve.go of go.yaml.in/yaml/v2), and writes numbers
as Go's encoding/json does: YAML 1.1 booleans, whole numbers written as `2.0` or `1e3` are 2 and 1000, dates are
texts. What comes out here is what the server reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

import yaml

_WORDS: Final[dict[str, bool | None]] = {
    **{word: True for each in ("yes", "true", "on") for word in (each, each.title(), each.upper())},
    **{word: False for each in ("no", "false", "off") for word in (each, each.title(), each.upper())},
    **dict.fromkeys(("y", "Y"), True),
    **dict.fromkeys(("n", "N"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NOT_FINITE: Final = frozenset(
    sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")
) | {".nan", ".NaN", ".NAN"}
_INTEGER: Final = re.compile(
    r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))\Z", re.ASCII
)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", re.ASCII)
_LOOSE_UNDERSCORE: Final = re.compile(r"(?<![0-9])_|_(?![0-9])", re.ASCII)
_NUMBER_STARTS: Final = frozenset("+-.0123456789")
_LONGEST_CACHED: Final = 80
_LONGEST_NUMBER: Final = 400
"""Digits; no float64 has more before its point, so longer texts are strings to Go or no JSON number of ours."""

Scalar = str | int | float | bool | None


class NotJsonError(ValueError):
    """A value that JSON cannot hold in its place."""


def resolve_plain(text: str) -> Scalar:
    """The value of *text* written without quotes and without a tag.

    Raises:
        NotJsonError: For `.inf` and `.nan`.
    """
    return _resolve_cached(text) if len(text) <= _LONGEST_CACHED else _resolve(text)


def spell_key(value: Scalar) -> str:
    """The JSON key that a plain scalar of a mapping becomes.

    Raises:
        NotJsonError: For null, which is no key.
    """
    if value is None:
        raise NotJsonError("null")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def number_as_sent(value: float) -> int | float:
    """*value* as the server reads it after Go's encoder, which writes whole numbers without a point."""
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return value
    value = float(value)
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value


def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if text in _NOT_FINITE:
        raise NotJsonError(text)
    plain = text.replace("_", "")
    if text[0] == "." and _LOOSE_UNDERSCORE.search(text):
        return text
    if len(plain) > _LONGEST_NUMBER:
        return text
    if integer := _INTEGER.match(plain):
        sign, *forms = integer.groups()
        for digits, base in zip(forms, (16, 2, 8, 10), strict=True):
            if digits is not None:
                return _integer(text, int(f"{sign}{digits}", base), is_decimal=base == 10)
    if _FLOAT.match(plain):
        value = float(plain)
        return text if value in (float("inf"), float("-inf")) else number_as_sent(value)
    return text


def _integer(text: str, value: int, *, is_decimal: bool) -> Scalar:
    if -(2**63) <= value < 2**64:
        return number_as_sent(value)
    if not is_decimal:
        return text
    # Too wide for Go's integers: a float, or a string when it is too wide for that.
    try:
        return number_as_sent(float(value))
    except OverflowError:
        return text


_resolve_cached = lru_cache(maxsize=8192)(_resolve)


MAX_DEPTH: Final = 64
"""Deepest nesting that is read; the API's own types stay below 20."""

MAX_NODES: Final = 4_000_000
"""Most values in a text, those of an alias counted each time it is used."""

_MERGE: Final = "<<"
_TAG: Final = "tag:yaml.org,2002:"
_TAGGED: Final[Mapping[str, Any]] = {
    f"{_TAG}null": type(None),
    f"{_TAG}bool": bool,
    f"{_TAG}int": int,
    f"{_TAG}float": (int, float),
}
_SHORT: Final = 40


class Document(NamedTuple):
    """One document of a text.

    Args:
        data: Plain JSON data.
        first_line: Counts from 0.
        offset: Characters in front of it, or in front of the last dash of `---`.
        begin: Characters in front of its directives.
    """

    data: Any
    first_line: int
    offset: int
    begin: int


class RefusedYamlError(Exception):
    """A text that is not read; `line` and `column` count from 1, 0 means not known."""

    def __init__(self, code: str, message: str, hint: str = "", *, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.line = line
        self.column = column


def read_documents(
    text: str, *, budget: list[int] | None = None, repeated: list[RefusedYamlError] | None = None
) -> Iterator[Document]:
    """Every document of *text*, empty ones as None.

    Args:
        text: YAML.
        budget: One number, how many values may still come; shared by texts that are parts of one.
        repeated: Gets a refusal for each key that stands twice, of which the last one counts, as for kubectl; None refuses
            the document.

    Raises:
        RefusedYamlError: `yaml-syntax`, `yaml-duplicate-key` or `yaml-too-large`; documents before have been given.
    """
    loader = yaml.CSafeLoader(text)
    builder = _Builder(loader, budget if budget is not None else [MAX_NODES], repeated)
    try:
        while True:
            event: Any = loader.get_event()
            kind = type(event)
            if kind is yaml.DocumentStartEvent:
                start = event.start_mark
                # Directives may stand behind what ends the document before.
                offset = event.end_mark.index - 1 if event.explicit else start.index
                data = builder.build(loader.get_event(), 0)
                loader.get_event()
                yield Document(data, start.line, offset, start.index)
                builder.anchors.clear()
            elif kind is yaml.StreamEndEvent:
                return
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        told = getattr(error, "problem", None) or str(error).splitlines()[0]
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise RefusedYamlError("yaml-syntax", f"not YAML: {told}", line=line, column=column) from error
    finally:
        loader.dispose()


class _Builder:
    """Data from events; recursion ends at `MAX_DEPTH`."""

    def __init__(
        self, loader: yaml.CSafeLoader, budget: list[int], repeated: list[RefusedYamlError] | None
    ) -> None:
        self._next = loader.get_event
        self._budget = budget
        self._repeated = repeated
        self.anchors: dict[str, tuple[Any, int]] = {}

    def build(self, event: Any, depth: int) -> Any:
        budget = self._budget
        budget[0] -= 1
        if budget[0] < 0:
            raise _refusal(
                event,
                "yaml-too-large",
                f"more than {MAX_NODES:,} values",
                "write aliases out, or split the file",
            )
        kind = type(event)
        if kind is yaml.ScalarEvent:
            value = _scalar(event)
            if event.anchor:
                self.anchors[event.anchor] = (value, 1)
            return value
        if kind is yaml.AliasEvent:
            return self._alias(event)
        if depth >= MAX_DEPTH:
            raise _refusal(
                event,
                "yaml-too-large",
                f"values are nested more than {MAX_DEPTH} deep",
                "no Kubernetes object is",
            )
        before = budget[0]
        held: Any = self._mapping(depth) if kind is yaml.MappingStartEvent else self._sequence(depth)
        if event.anchor:
            self.anchors[event.anchor] = (held, before - budget[0] + 1)
        return held

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            raise _refusal(
                event, "yaml-syntax", f"not YAML: there is no anchor {event.anchor[:_SHORT]!r} before"
            )
        value, size = self.anchors[event.anchor]
        self._budget[0] -= size
        return value

    def _sequence(self, depth: int) -> list[Any]:
        items: list[Any] = []
        next_event = self._next
        event = next_event()
        while type(event) is not yaml.SequenceEndEvent:
            items.append(self.build(event, depth + 1))
            event = next_event()
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        next_event, budget = self._next, self._budget
        scalar, end = yaml.ScalarEvent, yaml.MappingEndEvent
        event = next_event()
        while type(event) is not end:
            if type(event) is not scalar:
                hint = "of a chart's templates ({{ .Values.x }}), review the chart: dra-infra review CHART"
                raise _refusal(event, "yaml-syntax", "a key is not a plain value", hint)
            key = key_of(event)
            below = next_event()
            # Nearly all that a text holds: a call for each would take a third of the time.
            if type(below) is scalar and below.tag is None and not below.anchor and budget[0] > 0:
                budget[0] -= 1
                value = _plain(below) if below.implicit[0] else below.value
            else:
                value = self.build(below, depth + 1)
            if key == _MERGE and event.implicit[0]:
                merged += _mergeable(event, value)
            else:
                if key in mapping:
                    self._repeat(event, key)
                mapping[key] = value
            event = next_event()
        for each in merged:
            for key, value in each.items():
                mapping.setdefault(key, value)
        return mapping

    def _repeat(self, event: Any, key: str) -> None:
        """Refuses a key that stands twice, or takes it down."""
        message = f"key {key[:80]!r} is written twice in one mapping"
        refusal = _refusal(event, "yaml-duplicate-key", message, "keep one of the two")
        if self._repeated is None:
            raise refusal
        self._repeated.append(refusal)


def key_of(event: Any) -> str:
    """The key that a scalar is: `yes` and `1.0` are spelled as JSON spells them."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    try:
        return _plain_key(text) if len(text) <= _LONGEST_CACHED else spell_key(resolve_plain(text))
    except NotJsonError as error:
        raise _not_data(event) from error


@lru_cache(maxsize=8192)
def _plain_key(text: str) -> str:
    return text if text == _MERGE else spell_key(resolve_plain(text))


def _mergeable(event: Any, value: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in found):
        raise _refusal(event, "yaml-syntax", "not YAML: << needs a mapping, or a list of mappings")
    return found


def _scalar(event: Any) -> Scalar:
    tag, text = event.tag, event.value
    if tag in ("!", f"{_TAG}str") or (tag is None and not event.implicit[0]):
        return str(text)
    value = _plain(event)
    if tag is not None and not isinstance(value, _TAGGED.get(tag, ())):
        raise _not_data(event)
    return value


def _plain(event: Any) -> Scalar:
    text = event.value
    try:
        return _resolve_cached(text) if len(text) <= _LONGEST_CACHED else _resolve(text)
    except NotJsonError as error:
        raise _not_data(event) from error


def _not_data(event: Any) -> RefusedYamlError:
    return _refusal(event, "yaml-syntax", f"not YAML: {event.value[:_SHORT]!r} is not JSON data")


def _refusal(event: Any, code: str, message: str, hint: str = "") -> RefusedYamlError:
    mark = event.start_mark
    return RefusedYamlError(code, message, hint, line=mark.line + 1, column=mark.column + 1)
