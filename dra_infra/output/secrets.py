"""Secrets are taken out where values come in: nothing behind it can show, compare or keep them.

Four things are secret: fields that hold secrets by their nature or their names (values of a Secret, `DB_PASS`), texts
that are known to be secret (of the environment and of the configuration), what is written like one (`secret_shapes`),
and what a detector finds. A secret that changes is marked as changed.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import UNKNOWN, is_placeholder, is_same_json, plain_text
from dra_infra.markers import CHANGED_SECRET, SECRET, Secret
from dra_infra.output.secret_names import (
    ITEM,
    can_hold_secret,
    inherited_name,
    is_secret_name,
    is_secret_value,
    names_secret,
)

if TYPE_CHECKING:
    from dra_infra.output.secret_tokens import Span

MIN_LENGTH: Final = 6
"""Characters that a text has at least to be looked for: shorter ones are parts of everything."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SECRET_FIELDS: Final[Sequence[str]] = ("data", "stringData")
_WORDS: Final = frozenset({"default", "disabled", "enabled", "optional", "required", "undefined"})
"""Values that name a choice: hiding them everywhere would hide names that are no secret."""
_LINE: Final = 16
"""Characters of a line of a longer text, such as a private key, that is looked for by itself."""
_KEPT: Final = 2**16
"""Texts whose secrets are remembered: objects repeat each other."""
_SHORT: Final = 2**12
"""Characters of a text that is remembered."""
_NAMES: Final = ("name", "key", "header")
"""Fields that name the `value` beside them: of variables, headers of probes, settings of custom resources."""
_IDENTITIES: Final = ("name", "key", "header", "user", "username", "id")
"""Fields by which an item of a list is known again, whatever stands before it."""
_SELECTORS: Final = frozenset({"key", "items", "valueFrom"})
"""Fields of what selects a part of a Secret, where no secret is."""
_OF_JWK: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Private members of a JSON Web Key (RFC 7518), which has a member `kty`."""
_PRIVATE_KEY: Final = "privateKey"
"""The name by which they are judged."""
_SEALED: Final = frozenset(
    {"ExternalSecret", "ClusterExternalSecret", "PushSecret", "SealedSecret", "SecretProviderClass"}
)
"""Kinds that say where secrets are, or hold them encrypted: their fields name secrets, and hold none."""

_MARKERS: Final = (SECRET, CHANGED_SECRET, UNKNOWN)
_LIKE_MARKERS: Final = frozenset(map(plain_text, _MARKERS))
"""Ordinary texts that show as a marker does: under the name of a secret they are as secret as any other text."""
_ANY_SECRET: Final = "hunter2x9"  # noqa: S105  (no password)
"""Judged in place of such a text, which would count as hidden."""
_MARKER: Final = re.compile(rf"{re.escape(SECRET)}(?: \(changed\))?")
_TOLD: Final = re.compile(r'"(?:[^"\\]|\\.){0,4096}"')
"""A value as messages quote it."""

_Rule = Callable[[str, str], bool]
"""Says of a name and a text whether the text is secret for its name."""

_MISSING: Final = object()


def secret_texts(named: Mapping[str, str]) -> tuple[str, ...]:
    """The values of environment variables or settings whose names say that they are secret."""
    found = [value for name, value in named.items() if is_secret_name(name)]
    found += _engine_config(named)
    return tuple(value for value in found if len(value) >= MIN_LENGTH and value.lower() not in _WORDS)


def secret_values(values: Any, name: str = "") -> Iterator[str]:
    """The texts under keys whose names say that they are secret, as in values of charts."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from secret_values(value, str(key))
    elif isinstance(values, list):
        for value in values:
            yield from secret_values(value, name)
    elif isinstance(values, str) and is_secret_name(name) and not is_placeholder(values):
        yield from secret_texts({"SECRET": values})


class SecretMask:
    """Takes secrets out of texts, manifests and problems.

    Args:
        texts: What is secret wherever it appears; shorter ones than `MIN_LENGTH` are passed over.
        detect: Finds secrets that are known by their own form, beside those that are written as such.
    """

    def __init__(
        self, texts: Iterable[str] = (), *, detect: Callable[[str], Iterable[Span]] | None = None
    ) -> None:
        forms = {form for text in texts for form in _forms(text)}
        # The longest first, so that no part of it is left.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._detect = detect
        self._remembered = lru_cache(_KEPT)(self._find)

    def text(self, text: str) -> str:
        """*text* with the text of a marker in place of each secret, for reports: an ordinary text."""
        spans = self._spans(text)
        return _replaced(text, ((*span, SECRET) for span in spans)) if spans else text

    def problem(self, problem: Problem) -> Problem:
        """*problem* with a marker in place of each secret."""
        message = self.text(problem.message)
        if names_secret(problem.path.rpartition(".")[2]) or names_secret(_name_at(problem.path)):
            # What is wrong with a secret is told with its value.
            message = _TOLD.sub(f'"{SECRET}"', message)
        return replace(problem, path=self.text(problem.path), message=message, hint=self.text(problem.hint))

    def manifest(
        self, manifest: Mapping[str, Any], former: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """An object with markers in the place of its secrets; the same one where it has none.

        Args:
            manifest: Plain JSON data.
            former: The object as it was, with its secrets: those that differ from it are marked as changed.
        """
        kind = manifest.get("kind")
        rule = _no_name if isinstance(kind, str) and kind in _SEALED else is_secret_value
        plain: Mapping[str, Any] = self._value(manifest, former, "", rule)
        if is_secret(manifest):
            shown = without_secret_data(manifest, former)
            hidden = {name: shown[name] for name in _SECRET_FIELDS if name in shown}
            plain = {**plain, **hidden} if hidden else plain
        metadata = plain.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
        if (
            isinstance(metadata, Mapping)
            and isinstance(annotations, Mapping)
            and _LAST_APPLIED in annotations
        ):
            return {**plain, "metadata": {**metadata, "annotations": {**annotations, _LAST_APPLIED: SECRET}}}
        return plain

    def values(self, value: Any, former: Any = _MISSING, *, name: str = "", by_name: bool = False) -> Any:
        """Plain JSON data with markers in the place of secrets; the same where there are none.

        Args:
            value: What may hold secrets.
            former: The same as it was before: secrets that differ from it are marked as changed.
            name: The key that it is under.
            by_name: Whether all texts are secret under keys whose names say so in any way, as in values of charts.
        """
        return self._value(value, former, name, _any_name if by_name else is_secret_value)

    def _value(self, value: Any, former: Any, name: str, rule: _Rule) -> Any:
        if isinstance(value, str):
            return self._string(value, former, hidden=rule(name, _judged(value)))
        if isinstance(value, Mapping):
            return self._mapping(value, former, name, rule)
        if isinstance(value, list):
            return self._list(value, former, name, rule)
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and is_secret_value(name, str(value))
        ):
            return _marker(value, former)
        return value

    def _string(self, value: str, former: Any, *, hidden: bool = False) -> str:
        if value in _MARKERS:
            return value
        if hidden and value:
            return _marker(value, former)
        return self._marked(value, self._spans(value), former if isinstance(former, str) else None)

    def _marked(self, value: str, spans: Sequence[Span], former: str | None) -> str:
        """*value* without its secrets, and those marked that were others in *former*."""
        if not spans:
            return value
        old = [former[start:end] for start, end in self._spans(former)] if former is not None else []
        same_number, all_old = len(old) == len(spans), frozenset(old)

        def marker(index: int, secret: str) -> str:
            known = secret == old[index] if same_number else secret in all_old
            return SECRET if former is None or former == value or known else CHANGED_SECRET

        found = ((*span, marker(index, value[slice(*span)])) for index, span in enumerate(spans))
        return Secret(_replaced(value, found))

    def _spans(self, text: str) -> Sequence[Span]:
        return self._remembered(text) if len(text) <= _SHORT else self._find(text)

    def _find(self, text: str) -> Sequence[Span]:
        spans = [*_load_finder()(text)]
        if self._known is not None:
            spans += (match.span() for match in self._known.finditer(text))
        if self._detect is not None:
            spans += self._detect(text)
        merged: list[Span] = []
        for start, end in sorted(spans):
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            elif start < end:
                merged.append((start, end))
        return merged if SECRET not in text else [*_beside_markers(text, merged)]

    def _mapping(self, value: Mapping[str, Any], former: Any, name: str, rule: _Rule) -> Mapping[str, Any]:
        known = former if isinstance(former, Mapping) else {}
        around = name if "value" in value or _SELECTORS.isdisjoint(value) else ""
        is_jwk = "kty" in value
        changed = False
        masked: dict[str, Any] = {}
        for key, item in value.items():
            shown = self._marked(key, self._spans(key), None)
            own = _PRIVATE_KEY if is_jwk and key in _OF_JWK else inherited_name(around, str(key))
            plain = self._value(item, known.get(key, _MISSING), own, rule)
            changed = changed or plain is not item or shown is not key
            masked[shown] = plain
        plain = self._pair(value, masked, known, _any_name if name == "env" else rule)
        return plain if changed or plain is not masked else value

    def _pair(
        self, item: Mapping[str, Any], plain: dict[str, Any], former: Mapping[str, Any], rule: _Rule
    ) -> dict[str, Any]:
        """*plain*, where *item* has a name that says of the value beside it that it is secret."""
        value = item.get("value")
        for own in map(item.get, _NAMES) if value is not None and not isinstance(value, bool) else ():
            if not isinstance(own, str):
                continue
            before = former.get("value", _MISSING)
            if isinstance(value, Mapping | list):
                hidden = self._value(value, before, own, rule) if can_hold_secret(own) else value
                if hidden is not value:
                    return {**plain, "value": hidden}
            elif rule(own, _judged(str(value))):
                hidden = (
                    self._string(value, before, hidden=True)
                    if isinstance(value, str)
                    else _marker(value, before)
                )
                return {**plain, "value": hidden}
        return plain

    def _list(self, value: list[Any], former: Any, name: str, rule: _Rule) -> list[Any]:
        known = former if isinstance(former, list) else []
        if not any(isinstance(item, Mapping | list) or rule(name, _judged(str(item))) for item in value):
            return self._arguments(value, known)
        own = {identity: item for identity, item in zip(_identities(known), known, strict=True) if identity}
        masked = []
        for index, (identity, item) in enumerate(zip(_identities(value), value, strict=True)):
            old = own.get(identity, _MISSING) if identity is not None else _MISSING
            if old is _MISSING and not (isinstance(item, Mapping) and identity is not None):
                old = known[index] if index < len(known) else _MISSING
            # An item that holds its own secret says with its other fields whose it is.
            is_told = isinstance(item, Mapping) and any(can_hold_secret(str(key)) for key in item)
            masked.append(self._value(item, old, "" if is_told else name, rule))
        return masked if any(new is not old for new, old in zip(masked, value, strict=True)) else value

    def _arguments(self, value: list[Any], known: list[Any]) -> list[Any]:
        """A list of texts: an option may stand in one and its value in the next, so they are read as one text."""
        texts = [item if isinstance(item, str) else json.dumps(item) for item in value]
        spans = self._spans(ITEM.join(texts))
        if not spans:
            return value
        masked = []
        start = 0
        first = 0
        stayed = {item for item in known if isinstance(item, str)}
        for index, (item, text) in enumerate(zip(value, texts, strict=True)):
            end = start + len(text)
            while first < len(spans) and spans[first][1] <= start:
                first += 1
            last = first
            while last < len(spans) and spans[last][0] < end:
                last += 1
            own = [(max(begin - start, 0), min(stop, end) - start) for begin, stop in spans[first:last]]
            former = known[index] if index < len(known) else None
            if text in stayed:
                former = text
            shown = self._argument(text, own, former if isinstance(former, str) else None)
            masked.append(item if shown == text else shown)
            start = end + len(ITEM)
        return masked

    def _argument(self, item: str, spans: Sequence[Span], former: str | None) -> str:
        if spans == [(0, len(item))]:
            return self._string(item, _MISSING if former is None else former, hidden=True)
        return self._marked(item, spans, former)


def _forms(text: str) -> Iterator[str]:
    """How a text may be written: as it is, in JSON, in an address, as base64, by its lines."""
    if len(text) < MIN_LENGTH:
        return
    yield text
    yield json.dumps(text)[1:-1]
    yield repr(text)[1:-1]
    yield quote(text, safe="")
    yield base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
    lines = text.splitlines()
    if len(lines) > 1:
        yield from (
            line.strip() for line in lines if len(line.strip()) >= _LINE and not line.startswith("-----")
        )


def _engine_config(named: Mapping[str, str]) -> list[str]:
    """Secret settings that the engine hands to a program by the environment (sdk/python/lib/pulumi/runtime/config.py)."""
    try:
        values = json.loads(named.get("PULUMI_CONFIG") or "{}")
        keys = json.loads(named.get("PULUMI_CONFIG_SECRET_KEYS") or "[]")
    except ValueError:
        return []
    if not isinstance(values, dict) or not isinstance(keys, list):
        return []
    return [str(value) for key, value in values.items() if key in keys or is_secret_name(key)]


def _judged(value: str) -> str:
    """Return the text by which a rule judges *value*, which may only look like a marker."""
    return _ANY_SECRET if value in _LIKE_MARKERS else value


def _any_name(name: str, value: str) -> bool:
    return is_secret_name(name) or is_secret_value(name, value)


def _no_name(_name: str, _value: str) -> bool:
    return False


@cache
def _load_finder() -> Callable[[str], Iterator[Span]]:
    """Load the patterns of what is written as a secret, which a run that reports no text does without: they take 10 ms."""
    find_written: Callable[[str], Iterator[Span]] = import_module(
        "dra_infra.output.secret_shapes"
    ).find_written
    return find_written


def _beside_markers(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """*spans* without the markers that stand in *text*: what was masked stays as it is."""
    markers = [match.span() for match in _MARKER.finditer(text)]
    first = 0
    for begin, end in spans:
        start = begin
        while first < len(markers) and markers[first][1] <= start:
            first += 1
        while first < len(markers) and markers[first][0] < end:
            if start < markers[first][0]:
                yield start, markers[first][0]
            start = markers[first][1]
            first += 1
        if start < end:
            yield start, end


def _replaced(text: str, marked: Iterable[tuple[int, int, str]]) -> str:
    parts = []
    position = 0
    for start, end, marker in marked:
        parts += [text[position:start], marker]
        position = end
    return "".join((*parts, text[position:])) if position else text


def _name_at(path: str) -> str:
    """The name by which the value at *path* is judged."""
    name = ""
    for part in path.split("."):
        # The first one says which object it is.
        name = "" if " " in part else inherited_name(name, part.partition("[")[0])
    return name


def _identities(items: Sequence[Any]) -> list[tuple[str, Any] | None]:
    """The identity of each item of a list beside its place: a field, or for a scalar itself; None where that is not its own."""
    found = [_identity(item) for item in items]
    counted = Counter(found)
    return [each if counted[each] == 1 else None for each in found]


def _identity(item: Any) -> tuple[str, Any] | None:
    if isinstance(item, Mapping):
        fields = ((field, item.get(field)) for field in _IDENTITIES)
        return next((each for each in fields if isinstance(each[1], str | int)), None)
    return ("", item) if isinstance(item, str | int | float) else None


def is_secret(manifest: Mapping[str, Any]) -> bool:
    """True for a Secret of Kubernetes."""
    return manifest.get("kind") == "Secret" and str(manifest.get("apiVersion", "v1")) == "v1"


def without_secret_data(
    manifest: Mapping[str, Any], former: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A Secret with a marker in the place of each value; one that differs from that of *former* is marked as changed."""
    fields = {name: manifest[name] for name in _SECRET_FIELDS if manifest.get(name) is not None}
    return {
        **manifest,
        **{
            name: _secret_field(values, (former or {}).get(name, _MISSING)) for name, values in fields.items()
        },
    }


def _secret_field(values: Any, former: Any) -> Any:
    if not isinstance(values, Mapping):
        return _marker(values, former)
    known = former if isinstance(former, Mapping) else {}
    return {key: _marker(value, known.get(key, _MISSING)) for key, value in values.items()}


def _marker(value: Any, former: Any) -> str:
    return SECRET if former is _MISSING or is_same_json(former, value) else CHANGED_SECRET
