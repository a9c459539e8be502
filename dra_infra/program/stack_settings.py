"""The settings of a stack, as the engine hands them to a program: of its file, of Pulumi.yaml, and of its environments.

Environments (Pulumi ESC) lie in Pulumi's service. A file of the project may stand in for one; else what it sets is not known.
Follows `mergeConfig` of Pulumi 3.276.0 (pkg/workspace/config.go) and its evaluation of environments (sdk/go/common/esc/eval).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final

from dra_infra.kubernetes.api import go_json, mapping
from dra_infra.program.project_files import invalid, read_yaml
from dra_infra.program.stand_ins import PULUMIS_SECRET, read_environments
from dra_infra.program_objects import NotSeen

UNDECRYPTABLE: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Stands for a value that is not known here, such as an encrypted one: the engine's own text for an unknown value."""

_PULUMIS_UNKNOWN: Final = "[unknown]"
_DOLLAR: Final = re.compile(r"\$\$")
"""How a text of an environment writes a dollar."""


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
    stack = read_yaml(file, is_pulumis=True) if file.is_file() else {}
    result = StackSettings()
    environment: dict[str, Any] = {}
    for values in _read_environments(stack.get("environment"), root, file, result.not_seen):
        environment = _merge(environment, values)
    _read_variables(environment, result)
    config = stack.get("config") or {}
    if not isinstance(config, Mapping):
        raise invalid(file, "config is not a mapping", "write config: {my-project:key: value}")
    # Pulumi reads a setting without a value as an empty text.
    written = {str(key): "" if value is None else value for key, value in config.items()}
    merged = _merge(
        _full_keys(project, environment.get("pulumiConfig"), file),
        _full_keys(project, _hide(written, _is_encrypted), file),
    )
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
    """Return *key* with its namespace: that of the project, unless it has one. The old form `aws:config:region` is `aws:region`."""
    # sdk/go/common/resource/config/key.go, ParseKey.
    parts = key.split(":")
    if len(parts) == 3 and parts[1] == "config":
        return f"{parts[0]}:{parts[2]}"
    return key if len(parts) > 1 else f"{project}:{key}"


class _Hidden(Enum):
    """In the place of a value that is not known here."""

    SECRET = auto()
    COMPUTED = auto()


def _is_encrypted(value: Any) -> _Hidden | None:
    """Recognize an encrypted value of a stack file."""
    is_secure = isinstance(value, Mapping) and set(value) == {"secure"} and isinstance(value["secure"], str)
    return _Hidden.SECRET if is_secure else None


def _is_masked(value: Any) -> _Hidden | None:
    """Recognize what `pulumi env get --value json` does not write: secrets, and what only opening the environment gives."""
    if value == _PULUMIS_UNKNOWN:
        return _Hidden.COMPUTED
    return _Hidden.SECRET if value == PULUMIS_SECRET else None


def _is_computed(value: Any) -> _Hidden | None:
    """Recognize what an environment that stands in a stack file does not say itself."""
    if isinstance(value, Mapping) and any(str(key).startswith("fn::") for key in value):
        return _Hidden.SECRET if "fn::secret" in value else _Hidden.COMPUTED
    is_reference = isinstance(value, str) and "${" in _DOLLAR.sub("", value)
    return _Hidden.COMPUTED if is_reference else None


def _unescape(value: Any) -> Any:
    """Return literal *value* of an environment, in which `$$` stands for `$` (esc/ast/interpolation.go, parseInterpolate)."""
    if isinstance(value, str):
        return value.replace("$$", "$")
    if isinstance(value, dict):
        return {_unescape(key): _unescape(item) for key, item in value.items()}
    return [_unescape(item) for item in value] if isinstance(value, list) else value


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
        return {key: _shown(value[key]) for key in sorted(value)}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def _to_text(value: Any) -> str:
    """Return *value* as the engine hands it to a program (resource/config/plaintext.go, marshalText)."""
    return value if isinstance(value, str) else go_json(value)


def _full_keys(project: str, config: Any, file: Path) -> dict[str, Any]:
    keys = {}
    for key, value in config.items() if isinstance(config, Mapping) else ():
        name = full_key(project, str(key))
        if name.count(":") > 1:
            raise invalid(file, f"{str(key)[:80]!r} is not a key of settings", "write namespace:name")
        keys[name] = value
    return keys


def _defaults(project: str, config: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield key, value and whether it is secret, for each setting that Pulumi.yaml gives to all stacks."""
    for key, entry in config.items() if isinstance(config, Mapping) else ():
        value = entry
        if isinstance(entry, Mapping):
            value = entry.get("value") if entry.get("default") is None else entry["default"]
        if value is not None:
            is_secret = isinstance(entry, Mapping) and entry.get("secret") is True
            yield full_key(project, str(key)), value, is_secret


def _read_environments(
    written: Any, root: Path, file: Path, not_seen: list[NotSeen]
) -> Iterator[Mapping[str, Any]]:
    """Yield the values of each environment that a stack imports, in the order in which they are merged."""
    inline = written if isinstance(written, Mapping) else {}
    imports = _imports_of(written, file)
    stand_ins = read_environments(root) if imports else {}
    for name in imports:
        values, stand_in = stand_ins.get(name) or stand_ins.get(name.partition("@")[0]) or ({}, "")
        reason = f"{file.name} imports it, and its settings are not known here"
        if stand_in:
            reason = f"{stand_in} stands in for its values"
        not_seen.append(NotSeen(what="environment", name=name, reason=reason))
        yield _hide(values, _is_masked)
    yield _unescape(_hide(mapping(inline.get("values")), _is_computed))


def _imports_of(written: Any, file: Path) -> list[str]:
    """Return the environments whose values are merged into those of a stack.

    Follows `UnmarshalYAML` of `Environment` (workspace/project.go) and `ImportDecl` (esc/ast/environment.go).
    """
    is_inline = isinstance(written, Mapping)
    imports = written.get("imports") if is_inline else written
    if imports is None:
        return []
    if not isinstance(imports, list):
        where = "environment.imports" if is_inline else "environment"
        raise invalid(file, f"{where} is not a list of environments", f"write {where}: [acme/gpus]")
    names = []
    for entry in imports:
        if isinstance(entry, Mapping) and not is_inline:
            name = str(next(iter(entry), "acme/gpus"))[:80]
            hint = f"write environment: {{imports: [{{{name}: ...}}]}}"
            raise invalid(file, "environment is a list, in which an entry can have no options", hint)
        if not isinstance(entry, Mapping):
            names.append(str(entry))
        elif mapping(next(iter(entry.values()), None)).get("merge") is not False:
            names += [str(name) for name in entry]
    return names


def _read_variables(environment: Mapping[str, Any], result: StackSettings) -> None:
    """Read the variables that an environment sets (esc/environment.go, GetEnvironmentVariables and GetTemporaryFiles)."""
    for name, value in mapping(environment.get("environmentVariables")).items():
        if isinstance(value, _Hidden):
            reason = (
                "its environment sets it to a secret"
                if value is _Hidden.SECRET
                else "an environment computes it"
            )
            result.not_seen.append(NotSeen(what="environment variable", name=name, reason=reason))
        elif not isinstance(value, dict | list):
            result.variables[name] = "" if value is None else _to_text(value)
    for name in mapping(environment.get("files")):
        result.variables.pop(name, None)
        reason = "its environment sets it to the path of a temporary file, which is not written here"
        result.not_seen.append(NotSeen(what="environment variable", name=name, reason=reason))


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge *over* into *base*, objects key by key."""
    merged = dict(base)
    for key, value in over.items():
        former = merged.get(key)
        are_objects = isinstance(value, Mapping) and isinstance(former, Mapping)
        merged[key] = _merge(mapping(former), value) if are_objects else value
    return merged
