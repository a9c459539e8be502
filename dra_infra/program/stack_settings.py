"""The settings of a stack, as the engine hands them to a program: of its file, of Pulumi.yaml, and of its environments.

Environments (Pulumi ESC) lie in Pulumi's service. A file of the project may stand in for one; else what it sets is not known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.program.project_files import invalid, read_yaml
from dra_infra.program.stand_ins import PULUMIS_SECRET, read_environments
from dra_infra.program_objects import NotSeen

UNDECRYPTABLE: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Stands for a value that is not known here, such as an encrypted one: the engine's own text for an unknown value."""


@dataclass(kw_only=True, slots=True)
class StackSettings:
    """Settings of one stack.

    Args:
        values: Configuration by full key, as text. What is not known in it stands as `UNDECRYPTABLE`.
        secrets: Keys of `values` that are secret.
        variables: Environment variables that environments set.
        not_seen: What is not known here.
    """

    values: dict[str, str] = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    not_seen: list[NotSeen] = field(default_factory=list)


def read_stack_settings(file: Path, project: str, settings: Mapping[str, Any], root: Path) -> StackSettings:
    """Read the settings of the stack whose file is *file*, if there is one.

    Args:
        file: The file of the stack.
        project: Name of the project, the namespace of keys without one.
        settings: What Pulumi.yaml holds.
        root: Folder of Pulumi.yaml.

    Raises:
        ProgramError: With codes `invalid-project` and `stand-in-unreadable`.
    """
    stack = read_yaml(file) if file.is_file() else {}
    result = StackSettings()
    merged: dict[str, Any] = {}
    for environment in _read_environments(stack.get("environment"), root, file.name, result.not_seen):
        merged = _merge(merged, _full_keys(project, environment.get("pulumiConfig")))
        variables = environment.get("environmentVariables")
        for name, value in variables.items() if isinstance(variables, Mapping) else ():
            if not isinstance(value, _Hidden):
                result.variables[name] = _to_text(value)
    config = stack.get("config") or {}
    if not isinstance(config, Mapping):
        raise invalid(file, "config is not a mapping", "write config: {my-project:key: value}")
    merged = _merge(merged, _full_keys(project, _hide(config, _is_encrypted)))
    for key, value, is_secret in _defaults(project, settings.get("config")):
        merged.setdefault(key, value)
        if is_secret:
            result.secrets.add(key)
    for key, value in merged.items():
        hidden = {*_hidden_in(value)}
        if _Hidden.SECRET in hidden:
            result.secrets.add(key)
            result.not_seen.append(
                NotSeen(what="secret configuration", name=key, reason="it cannot be decrypted here")
            )
        elif hidden:
            result.not_seen.append(
                NotSeen(what="configuration", name=key, reason="an environment computes it")
            )
        result.values[key] = _to_text(_shown(value))
    return result


def full_key(project: str, key: str) -> str:
    """Return *key* with its namespace: that of the project, unless it has one."""
    return key if ":" in key else f"{project}:{key}"


class _Hidden(Enum):
    """In the place of a value that is not known here."""

    SECRET = auto()
    COMPUTED = auto()


def _is_encrypted(value: Any) -> _Hidden | None:
    """Recognize an encrypted value of a stack file."""
    return _Hidden.SECRET if isinstance(value, Mapping) and set(value) == {"secure"} else None


def _is_masked(value: Any) -> _Hidden | None:
    """Recognize a secret in what `pulumi env get --value json` writes."""
    return _Hidden.SECRET if value == PULUMIS_SECRET else None


def _is_computed(value: Any) -> _Hidden | None:
    """Recognize what an environment that stands in a stack file does not say itself."""
    if isinstance(value, Mapping) and any(str(key).startswith("fn::") for key in value):
        return _Hidden.SECRET if "fn::secret" in value else _Hidden.COMPUTED
    return _Hidden.COMPUTED if isinstance(value, str) and "${" in value else None


def _hide(value: Any, recognize: Callable[[Any], _Hidden | None]) -> Any:
    """Return *value* with a marker for each part that is not known."""
    if hidden := recognize(value):
        return hidden
    if isinstance(value, Mapping):
        return {str(key): _hide(item, recognize) for key, item in value.items()}
    return [_hide(item, recognize) for item in value] if isinstance(value, list) else value


def _hidden_in(value: Any) -> Iterator[_Hidden]:
    if isinstance(value, _Hidden):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _hidden_in(item)


def _shown(value: Any) -> Any:
    if isinstance(value, _Hidden):
        return UNDECRYPTABLE
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _full_keys(project: str, config: Any) -> dict[str, Any]:
    if not isinstance(config, Mapping):
        return {}
    return {full_key(project, str(key)): value for key, value in config.items()}


def _defaults(project: str, config: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield key, value and whether it is secret, for each setting that Pulumi.yaml gives to all stacks."""
    for key, entry in config.items() if isinstance(config, Mapping) else ():
        value = entry.get("default", entry.get("value")) if isinstance(entry, Mapping) else entry
        if value is not None:
            is_secret = isinstance(entry, Mapping) and entry.get("secret") is True
            yield full_key(project, str(key)), value, is_secret


def _read_environments(
    written: Any, root: Path, file: str, not_seen: list[NotSeen]
) -> Iterator[Mapping[str, Any]]:
    """Yield the values of each environment that a stack imports, in the order in which they are merged."""
    inline = written if isinstance(written, Mapping) else {}
    imported = inline.get("imports") if inline else written
    stand_ins = read_environments(root) if imported else {}
    for entry in imported if isinstance(imported, list) else [imported] if imported else []:
        # With options an entry is a mapping: `acme/gpus: {merge: false}`.
        name = str(next(iter(entry), "")) if isinstance(entry, Mapping) else str(entry)
        values, stand_in = stand_ins.get(name) or stand_ins.get(name.partition("@")[0]) or ({}, "")
        reason = f"{file} imports it, and its settings are not known here"
        if stand_in:
            reason = f"{stand_in} stands in for its values"
        not_seen.append(NotSeen(what="environment", name=name, reason=reason))
        yield _hide(values, _is_masked)
    yield _hide(mapping(inline.get("values")), _is_computed)


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge *over* into *base*, objects key by key."""
    merged = dict(base)
    for key, value in over.items():
        former = merged.get(key)
        are_objects = isinstance(value, Mapping) and isinstance(former, Mapping)
        merged[key] = _merge(mapping(former), value) if are_objects else value
    return merged
