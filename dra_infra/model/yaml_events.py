"""YAML as plain JSON data, built from the parser's events: bounded, and one document after the other.

libyaml's own composer recurses in C, so a text that is nested deep enough would end the process, and an alias can
unfold without end. Events come one by one, and are counted. What scalars mean is what kubectl makes of them
(sigs.k8s.io/yaml): YAML 1.1 booleans, whole numbers written as `2.0` or `1e3` are 2 and 1000, dates are texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import yaml

from dra_infra.model.yaml_scalars import NotJsonError, Scalar, resolve_plain, spell_key

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
        last_line: The line behind it.
    """

    data: Any
    first_line: int
    last_line: int


class RefusedYamlError(Exception):
    """A text that is not read; `line` and `column` count from 1, 0 means not known."""

    def __init__(self, code: str, message: str, hint: str = "", *, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.line, self.column = code, message, hint, line, column


def read_documents(text: str, *, budget: list[int] | None = None) -> Iterator[Document]:
    """Every document of *text*, empty ones as None.

    Args:
        text: YAML.
        budget: One number, how many values may still come; shared by texts that are parts of one.

    Raises:
        RefusedYamlError: `yaml-syntax`, `yaml-duplicate-key` or `yaml-too-large`; documents before have been given.
    """
    loader = yaml.CSafeLoader(text)
    builder = _Builder(loader, budget if budget is not None else [MAX_NODES])
    try:
        while True:
            event: Any = loader.get_event()
            kind = type(event)
            if kind is yaml.DocumentStartEvent:
                first = event.start_mark.line
                data = builder.build(loader.get_event(), 0)
                closing: Any = loader.get_event()
                end = closing.end_mark.line
                yield Document(data, first, max(end, first + 1))
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

    def __init__(self, loader: yaml.CSafeLoader, budget: list[int]) -> None:
        self._next = loader.get_event
        self._budget = budget
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
        event = self._next()
        while type(event) is not yaml.SequenceEndEvent:
            items.append(self.build(event, depth + 1))
            event = self._next()
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        event = self._next()
        while type(event) is not yaml.MappingEndEvent:
            if type(event) is not yaml.ScalarEvent:
                hint = "of a chart's templates ({{ .Values.x }}), review the chart: dra-infra review CHART"
                raise _refusal(event, "yaml-syntax", "a key is not a plain value", hint)
            key = key_of(event)
            value = self.build(self._next(), depth + 1)
            if key == _MERGE and event.implicit[0]:
                merged += _mergeable(event, value)
            elif key in mapping:
                raise _refusal(
                    event,
                    "yaml-duplicate-key",
                    f"key {key[:80]!r} is written twice in one mapping",
                    "keep one of the two",
                )
            else:
                mapping[key] = value
            event = self._next()
        for each in merged:
            for key, value in each.items():
                mapping.setdefault(key, value)
        return mapping


def key_of(event: Any) -> str:
    """The key that a scalar is: `yes` and `1.0` are spelled as JSON spells them."""
    text: str = event.value
    if not event.implicit[0] or text == _MERGE:
        return text
    try:
        return spell_key(resolve_plain(text))
    except NotJsonError as error:
        raise _not_data(event) from error


def _mergeable(event: Any, value: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in found):
        raise _refusal(event, "yaml-syntax", "not YAML: << needs a mapping, or a list of mappings")
    return found


def _scalar(event: Any) -> Scalar:
    tag, text = event.tag, event.value
    if tag in ("!", f"{_TAG}str") or (tag is None and not event.implicit[0]):
        return str(text)
    try:
        value = resolve_plain(text)
    except NotJsonError as error:
        raise _not_data(event) from error
    if tag is not None and not isinstance(value, _TAGGED.get(tag, ())):
        raise _not_data(event)
    return value


def _not_data(event: Any) -> RefusedYamlError:
    return _refusal(event, "yaml-syntax", f"not YAML: {event.value[:_SHORT]!r} is not JSON data")


def _refusal(event: Any, code: str, message: str, hint: str = "") -> RefusedYamlError:
    mark = event.start_mark
    return RefusedYamlError(code, message, hint, line=mark.line + 1, column=mark.column + 1)
