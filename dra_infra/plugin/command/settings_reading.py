"""Reads settings from file, environment and flags.

What is nearer to the command wins, and all mistakes are told at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dra_infra.errors import Place, PluginError, Problem
from dra_infra.plugin.command.settings import PREFIX, Setting, Settings, all_settings, shortened

if TYPE_CHECKING:
    import yaml

CONFIG_VARIABLE: Final = PREFIX + "CONFIG"

_LARGEST: Final = 1024 * 1024
_OF_SERVICES: Final = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9]+_.*)?)")
"""The kubelet sets such variables for the services of a namespace, of which one may be called dra-infra-plugin."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A text that somebody gave for a setting, and where."""

    text: str
    path: str
    place: Place | None = None


@dataclass(slots=True)
class _Found:
    """Texts that the sources gave, each over the earlier ones, and the problems with them."""

    given: dict[str, Given] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    is_whole: bool = True
    """False where a source could not be read, so that nobody knows what is missing."""


def read_settings(
    flags: Mapping[str, str], unknown: Sequence[str], environment: Mapping[str, str], file: Path | None
) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings, and what may be a slip.

    Raises:
        PluginError: `plugin-settings-unreadable`, `plugin-setting-unknown`, `plugin-setting-invalid`, `plugin-setting-missing`: all
            that is wrong in all three places, also with what another place overrules.
    """
    found = _Found()
    if file is not None:
        _from_file(file, found)
    _from_environment(environment, found)
    found.problems += _unknown_words(unknown)
    for setting in all_settings():
        if setting.name in flags:
            found.given[setting.name] = Given(text=flags[setting.name], path=setting.flag)
    values = _values(found)
    if any(each.severity == "error" for each in found.problems):
        raise PluginError(found.problems)
    return Settings(**values), tuple(found.problems)


def _from_environment(environment: Mapping[str, str], found: _Found) -> None:
    variables = {each.variable: each for each in all_settings()}
    known = [*variables, CONFIG_VARIABLE]
    for name in sorted(environment):
        # An empty one is none: manifests set variables from fields that need not be there.
        if name in variables and environment[name]:
            setting = variables[name]
            found.problems += _wrong(setting, given := Given(text=environment[name], path=name))
            found.given[setting.name] = given
        elif name.startswith(PREFIX) and name not in known and not _OF_SERVICES.fullmatch(name):
            # No error: an environment is not ours alone.
            found.problems.append(_unknown(name, known, severity="warning"))


def _unknown_words(words: Sequence[str]) -> Iterator[Problem]:
    flags = [*(each.flag for each in all_settings()), "--config", "--check", "--json", "--version", "--help"]
    for before, word in zip(["", *words], words, strict=False):
        if word.startswith("-"):
            yield _unknown(word.partition("=")[0], flags)
        # What follows an unknown flag is its value.
        elif not before.startswith("-"):
            flag = f"--{word}"
            hint = (
                _meant(flag)
                if flag in flags
                else "settings are flags, such as --back-end sim; --help has all"
            )
            yield Problem(
                path="command line",
                code="plugin-setting-unknown",
                message=f"{shortened(word)} is no flag",
                hint=hint,
            )


def _from_file(file: Path, found: _Found) -> None:
    import yaml

    try:
        with file.open("rb") as opened:
            # A file that is cut here is no YAML, or has keys that are no settings.
            node = yaml.compose(opened.read(_LARGEST), Loader=yaml.SafeLoader)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        found.problems.append(_unreadable(file, error))
        found.is_whole = False
        return
    if node is None:
        return
    if not isinstance(node, yaml.MappingNode):
        found.problems.append(_unreadable(file, ValueError("it is no mapping of settings")))
        found.is_whole = False
        return
    by_key = {each.key: each for each in all_settings()}
    seen: set[str] = set()
    for key, value in node.value:
        place = _place(file, key)
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
        if name not in by_key:
            found.problems.append(_unknown(name, list(by_key)).at(place))
        elif name in seen:
            hint = "keep one of the two"
            found.problems.append(_invalid(name, "is there twice", hint).at(place))
        elif not isinstance(value, yaml.ScalarNode):
            hint = by_key[name].about.kind.hint("")
            found.problems.append(_invalid(name, "is no single value", hint).at(place))
        elif text := _text(value):
            given = Given(text=text, path=name, place=_place(file, value))
            found.problems += _wrong(by_key[name], given)
            found.given[by_key[name].name] = given
        seen.add(name)


def _text(node: yaml.ScalarNode) -> str:
    """A value as it is written, but for YAML's own words: null is nothing, true and false are on and off."""
    tag = str(node.tag).rpartition(":")[2]
    if tag == "null":
        return ""
    if tag == "bool":
        return "on" if str(node.value).lower() in ("true", "yes", "on") else "off"
    return str(node.value)


def _values(found: _Found) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for setting in all_settings():
        given = found.given.get(setting.name)
        if given is None:
            continue
        wrong = list(_wrong(setting, given))
        if given.path == setting.flag:
            found.problems += wrong
        if not wrong:
            values[setting.name] = setting.about.kind.read(given.text)
    back_end = values.get("back_end", "")
    # What was meant by a name that there is not is told there, and not missing besides.
    meant = {each.hint for each in found.problems if each.code == "plugin-setting-unknown"}
    for setting in all_settings():
        given = found.given.get(setting.name)
        only_for = setting.about.back_end
        if given is None and (not setting.default or (setting.name == "fleet" and back_end == "sim")):
            if found.is_whole and not meant & {_meant(setting.flag), _meant(setting.key)}:
                found.problems.append(_missing(setting))
        elif given is not None and given.path == setting.about.variable:
            # A variable that others read too, NVIDIA_DRIVER_ROOT, says nothing of us.
            continue
        elif given is not None and only_for and back_end and only_for != back_end:
            hint = f"leave it out, or choose the back end {only_for}"
            message = f"is nothing that the back end {back_end} knows"
            found.problems.append(_invalid(given.path, message, hint).at(given.place))
    return values


def _wrong(setting: Setting, given: Given) -> Iterator[Problem]:
    message = "" if given.text else "has no value; was a variable empty?"
    try:
        setting.about.kind.read(given.text)
    except ValueError as error:
        message = message or str(error)
    if message:
        yield _invalid(given.path, message, setting.about.kind.hint(given.text)).at(given.place)


def _unknown(name: str, known: Sequence[str], severity: Any = "error") -> Problem:
    near = get_close_matches(name[:80], known, n=1)
    return Problem(
        path=name[:80],
        code="plugin-setting-unknown",
        message="there is no such setting",
        hint=_meant(near[0]) if near else "--help has all settings",
        severity=severity,
    )


def _meant(name: str) -> str:
    return f"did you mean {name}?"


def _invalid(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="plugin-setting-invalid", message=message, hint=hint)


def _missing(setting: Setting) -> Problem:
    hint = f"give {setting.flag}, the variable {setting.variable}, or {setting.key} in the file"
    if setting.name == "fleet":
        hint += ", such as hgx-h100"
    if setting.about.kind.choices:
        hint += f": {' or '.join(setting.about.kind.choices)}"
    return Problem(path=setting.flag, code="plugin-setting-missing", message="is not given", hint=hint)


def _unreadable(file: Path, error: Exception) -> Problem:
    mark = getattr(error, "problem_mark", None)
    told = getattr(error, "strerror", None) or getattr(error, "problem", None) or str(error)
    # YAML's own text may have lines.
    text = " ".join(str(told).split())
    problem = Problem(
        path=str(file),
        code="plugin-settings-unreadable",
        message=f"cannot be read: {text}",
        hint="a YAML mapping, such as `backEnd: sim`",
    )
    return problem.at(Place(file=str(file), line=mark.line + 1, column=mark.column + 1)) if mark else problem


def _place(file: Path, node: yaml.Node) -> Place:
    return Place(file=str(file), line=node.start_mark.line + 1, column=node.start_mark.column + 1)
