"""YAML as plain JSON data, built from the parser's events: bounded, and one document after the other.

libyaml's own composer recurses in C, so a text that is nested deep enough would end the process, and an alias can
unfold without end. Events come one by one, and are counted. What scalars mean is what kubectl makes of them
(sigs.k8s.io/yaml): YAML 1.1 booleans, whole numbers written as `2.0` or `1e3` are 2 and 1000, dates are texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 64
"""Deepest nesting that is read; the API's own types stay below 20."""

MAX_NODES: Final = 4_000_000
"""Most values in a text, those of an alias counted each time it is used."""

_STRING: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_SHORT: Final = 40


class Loader(yaml.CSafeLoader):
    """Resolves plain scalars as kubectl does: dates stay texts, exponents need no point."""

    yaml_implicit_resolvers = {  # noqa: RUF012  (the base class fixes the type)
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+\Z"), list("-+0123456789")
)


Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?0[oO][0-7_]+\Z"), list("-+0"))


@dataclass(frozen=True, slots=True)
class Document:
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
    loader = Loader(text)
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

    def __init__(self, loader: Loader, budget: list[int]) -> None:
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
        value = self._mapping(depth) if kind is yaml.MappingStartEvent else self._sequence(depth)
        if event.anchor:
            self.anchors[event.anchor] = (value, before - budget[0] + 1)
        return value

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
                raise _refusal(event, "yaml-syntax", "a key is not a plain value")
            key = key_of(event)
            value = self.build(self._next(), depth + 1)
            if key == "<<" and event.implicit[0]:
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
    if not event.implicit[0] or not text or text[0] not in _NOT_TEXT:
        return text
    value = _scalar(event)
    if isinstance(value, bool):
        return "true" if value else "false"
    return text if value is None or isinstance(value, str) else str(value)


_NOT_TEXT: Final = frozenset("-+.0123456789yYnNtTfFoO")
"""First characters of plain scalars that may be something else than a text."""


def _mergeable(event: Any, value: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in found):
        raise _refusal(event, "yaml-syntax", "not YAML: << needs a mapping, or a list of mappings")
    return found


def _scalar(event: Any) -> Any:
    tag, text = event.tag, event.value
    if tag is None:
        if not event.implicit[0]:
            return text
        value = _plain(text) if len(text) <= _SHORT else _resolved(text)
    elif tag in ("!", _STRING):
        return text
    else:
        value = _tagged(tag, text)
    if value is _NOT_A_VALUE:
        raise _refusal(event, "yaml-syntax", f"not YAML: {text[:_SHORT]!r} is not JSON data")
    return value


_NOT_A_VALUE: Final = object()


@lru_cache(maxsize=16384)
def _plain(text: str) -> Any:
    return _resolved(text)


def _resolved(text: str) -> Any:
    tag = _resolver().resolve(yaml.ScalarNode, text, (True, False))
    return text if tag in (_STRING, _MERGE) else _tagged(tag, text)


def _tagged(tag: str, text: str) -> Any:
    kind = tag.removeprefix("tag:yaml.org,2002:")
    constructor = _resolver()
    node = yaml.ScalarNode(tag, text)
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return constructor.construct_yaml_bool(node)
        # `1:30` is a number of base 60 in YAML 1.1, and a text for kubectl.
        if ":" in text and kind in ("int", "float"):
            return text
        if kind == "int":
            has_letter = "o" in text or "O" in text
            return int(text.replace("_", ""), 8) if has_letter else constructor.construct_yaml_int(node)
        if kind == "float":
            return _number(constructor.construct_yaml_float(node))
    except (ValueError, KeyError, OverflowError):
        return _NOT_A_VALUE
    return _NOT_A_VALUE


def _number(value: float) -> Any:
    if not math.isfinite(value):
        return _NOT_A_VALUE
    # Go writes a float without exponent and point where it can, and the server reads the text.
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


@lru_cache(maxsize=1)
def _resolver() -> Any:
    return Loader("")


def _refusal(event: Any, code: str, message: str, hint: str = "") -> RefusedYamlError:
    mark = event.start_mark
    return RefusedYamlError(code, message, hint, line=mark.line + 1, column=mark.column + 1)
