"""Secrets are taken out where values come in: nothing behind it can show, compare or keep them.

Three things are secret: fields that hold secrets by their nature (values of a Secret, environment variables and values
of charts whose names say so), texts that are known to be secret (of the environment and of the configuration), and what
is written like one (`https://user:password@host`, `--token=...`). A secret that changes is marked as changed.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from dra_infra.errors import Problem
from dra_infra.model.markers import SECRET, UNKNOWN

CHANGED_SECRET: Final = f"{SECRET} (changed)"
"""Stands for the new value where a secret changes."""

MIN_LENGTH: Final = 6
"""Characters that a text has at least to be looked for: shorter ones are parts of everything."""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SECRET_FIELDS: Final = ("data", "stringData")
_NAME: Final = re.compile(
    r"TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|(?:^|[_.-])(?:KEY|PWD)S?(?:$|[_.-])|KEY$"
)
_FOLDERS: Final = ("PWD", "OLDPWD")
"""Variables of every shell for the working folder (POSIX, cd): by their end they look like a password."""
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS: Final = frozenset({"default", "disabled", "enabled", "optional", "required", "undefined"})
"""Values that name a choice: hiding them everywhere would hide names that are no secret."""
_LINE: Final = 16
"""Characters of a line of a longer text, such as a private key, that is looked for by itself."""
# Bounded, for a text without an end would be searched from each of its words again.
_WRITTEN: Final = re.compile(
    r"(?P<url>(?<=://)[^\s/:@]{0,256}:[^\s/@]{1,1024}(?=@))"
    r"|(?P<option>(?<![\w-])--?[\w-]{0,64}?(?:password|passwd|passphrase|token|secret|credential|api-?key)"
    r"[\w-]{0,64}=)[^\s\"']+",
    re.IGNORECASE,
)
_Missing: Final = object()


def says_secret(name: str) -> bool:
    """Whether a variable, setting or value of that name holds a secret: `API_TOKEN`, `db-password`, `sshKey`."""
    return name not in _FOLDERS and _NAME.search(_CAMEL.sub("_", name).upper()) is not None


def secret_texts(named: Mapping[str, str]) -> tuple[str, ...]:
    """The values of environment variables or settings whose names say that they are secret."""
    found = [value for name, value in named.items() if says_secret(name)]
    found += _engine_config(named)
    return tuple(value for value in found if len(value) >= MIN_LENGTH and value.lower() not in _WORDS)


def secret_values(values: Any, name: str = "") -> Iterator[str]:
    """Texts below keys whose names say so, as in values of charts."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from secret_values(value, str(key))
    elif isinstance(values, list):
        for value in values:
            yield from secret_values(value, name)
    elif isinstance(values, str) and says_secret(name) and values not in (SECRET, UNKNOWN):
        yield from secret_texts({"SECRET": values})


def holds_secret(value: Any) -> bool:
    """Whether the marker of a secret is somewhere in plain JSON data."""
    if isinstance(value, Mapping):
        return any(map(holds_secret, value.values()))
    if isinstance(value, list):
        return any(map(holds_secret, value))
    return isinstance(value, str) and SECRET in value


class SecretMask:
    """Takes secrets out of texts, manifests and problems.

    Args:
        texts: What is secret wherever it appears; shorter ones than `MIN_LENGTH` are passed over.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        forms = {form for text in texts for form in _forms(text)}
        # The longest first, so that no part of it is left.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """*text* with a marker in place of each secret."""
        if self._known is not None:
            text = self._known.sub(SECRET, text)
        if "=" in text or "://" in text:
            text = _WRITTEN.sub(_mark, text)
        return text

    def problem(self, problem: Problem) -> Problem:
        """*problem* with a marker in place of each secret."""
        return replace(
            problem,
            path=self.text(problem.path),
            message=self.text(problem.message),
            hint=self.text(problem.hint),
        )

    def manifest(
        self, manifest: Mapping[str, Any], former: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        """An object without its secrets; the same one where it has none.

        Args:
            manifest: Plain JSON data.
            former: The object as it was, with its secrets: those that differ from it are marked as changed.
        """
        plain = self.values(manifest, former)
        hidden: dict[str, Any] = {}
        if _is_secret(manifest):
            for name in _SECRET_FIELDS:
                if manifest.get(name) is not None:
                    hidden[name] = _secret_field(manifest[name], _below(former, name))
        metadata = plain.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
        if isinstance(annotations, Mapping) and _LAST_APPLIED in annotations:
            hidden["metadata"] = {**metadata, "annotations": {**annotations, _LAST_APPLIED: SECRET}}
        return {**plain, **hidden} if hidden else plain

    def values(self, value: Any, former: Any = _Missing, *, name: str = "", by_name: bool = False) -> Any:
        """Plain JSON data without secrets; the same where there are none.

        Args:
            value: Any of it.
            former: What it was.
            name: The key that it is under.
            by_name: Whether texts under keys whose names say so are secret, as in values of charts.
        """
        if isinstance(value, str):
            return self._string(value, former, hidden=by_name and says_secret(name))
        if isinstance(value, Mapping):
            return self._mapping(value, former, by_name=by_name)
        if isinstance(value, list):
            return self._list(value, former, name=name, by_name=by_name)
        return value

    def _string(self, value: str, former: Any, *, hidden: bool = False) -> str:
        if hidden and value and value != UNKNOWN:
            return CHANGED_SECRET if isinstance(former, str) and former != value else SECRET
        masked = self.text(value)
        if masked != value and isinstance(former, str) and former != value and self.text(former) == masked:
            return masked.replace(SECRET, CHANGED_SECRET)
        return masked

    def _mapping(self, value: Mapping[str, Any], former: Any, *, by_name: bool) -> Mapping[str, Any]:
        known = former if isinstance(former, Mapping) else {}
        changed = False
        masked: dict[str, Any] = {}
        for key, item in value.items():
            shown = self.text(key)
            plain = self.values(item, known.get(key, _Missing), name=str(key), by_name=by_name)
            changed = changed or plain is not item or shown is not key
            masked[shown] = plain
        return masked if changed else value

    def _list(self, value: list[Any], former: Any, *, name: str, by_name: bool) -> list[Any]:
        known = former if isinstance(former, list) else []
        named = {
            item["name"]: item
            for item in known
            if isinstance(item, Mapping) and isinstance(item.get("name"), str)
        }
        masked = []
        for index, item in enumerate(value):
            own = item.get("name") if isinstance(item, Mapping) else None
            old = (
                named.get(own, _Missing)
                if isinstance(own, str)
                else known[index]
                if index < len(known)
                else _Missing
            )
            plain = self.values(item, old, name=name, by_name=by_name)
            if (
                name == "env"
                and isinstance(own, str)
                and says_secret(own)
                and isinstance(item.get("value"), str)
            ):
                before = old.get("value") if isinstance(old, Mapping) else _Missing
                plain = {**plain, "value": self._string(item["value"], before, hidden=True)}
            masked.append(plain)
        return masked if any(new is not old for new, old in zip(masked, value, strict=True)) else value


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
    return [str(value) for key, value in values.items() if key in keys or says_secret(key)]


def _mark(match: re.Match[str]) -> str:
    return f"{match['option'] or ''}{SECRET}"


def _is_secret(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("kind") == "Secret" and str(manifest.get("apiVersion", "v1")) == "v1"


def _secret_field(values: Any, former: Any) -> Any:
    if not isinstance(values, Mapping):
        return CHANGED_SECRET if former is not _Missing and former != values else SECRET
    known = former if isinstance(former, Mapping) else {}
    return {
        key: CHANGED_SECRET if known.get(key, value) != value else SECRET for key, value in values.items()
    }


def _below(manifest: Mapping[str, Any] | None, name: str) -> Any:
    return (manifest or {}).get(name, _Missing)
