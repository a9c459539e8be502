"""What a program in YAML says of itself: where its resources stand, and which types of which packages it uses.

The host checks a program against the schemas of its packages. The schema of a package that is not ours is in its provider, which is not
run here. So the host gets a schema with the types, properties and functions that the program itself uses, each of which takes any value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from dra_infra.errors import Place, ProgramError
from dra_infra.kubernetes.api import mapping
from dra_infra.program.project_files import read_yaml

_FILES: Final = ("Main.yaml", "Main.json", "Pulumi.yaml", "Pulumi.yml", "Pulumi.json")
"""Files in which the host looks for a program, in its order (pkg/pulumiyaml/run.go, LoadDir)."""

_USED: Final = re.compile(
    r"\$\{(?P<name>[A-Za-z_][\w-]*)(?:\.(?P<dotted>[A-Za-z_]\w*)|\[\"(?P<quoted>[^\"]+)\"\])"
)
_ANY: Final = {"$ref": "pulumi.json#/Any"}
_VERSION: Final = "0.0.0"
_OF_PULUMI: Final = {
    "name": "pulumi",
    "version": _VERSION,
    "resources": {
        "pulumi:pulumi:StackReference": {
            "inputProperties": {"name": {"type": "string"}},
            "properties": dict.fromkeys(("name", "outputs", "secretOutputNames"), _ANY),
        }
    },
}
"""The resource of the engine itself that programs use."""
_DEEPEST: Final = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlProgram:
    """A program.

    Args:
        places: Where each resource stands, by its name in Pulumi.
        types: Properties that resources are given and asked for, by their types.
        functions: Arguments and results of functions, by their tokens.
    """

    places: Mapping[str, Place] = field(default_factory=dict)
    types: Mapping[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)
    functions: Mapping[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)

    @property
    def packages(self) -> frozenset[str]:
        """The packages that it uses."""
        return frozenset(map(_package_of, (*self.types, *self.functions))) - {"pulumi", ""}

    def schema(self, package: str) -> bytes:
        """Return the schema of *package* that the program itself implies."""
        if package == "pulumi":
            return json.dumps(_OF_PULUMI).encode()
        provider = self.types.get(f"pulumi:providers:{package}", (frozenset(), frozenset()))
        resources = {
            token: {"inputProperties": _properties(given), "properties": _properties(given | used)}
            for token, (given, used) in sorted(self.types.items())
            if _package_of(token) == package and not token.startswith("pulumi:")
        }
        functions = {
            token: {
                "inputs": {"properties": _properties(given)},
                "outputs": {"properties": _properties(used)},
            }
            for token, (given, used) in sorted(self.functions.items())
            if _package_of(token) == package
        }
        made = {
            "name": package,
            "version": _VERSION,
            "provider": {"inputProperties": _properties(provider[0])},
            "resources": resources,
            "functions": functions,
        }
        return json.dumps(made).encode()


def read_program(folder: Path, root: Path) -> YamlProgram:
    """Read the program in *folder*, of the project in *root*; an empty one where the host will say what is wrong with it."""
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if file is None:
        return YamlProgram()
    try:
        content = read_yaml(file, is_pulumis=True)
    except ProgramError:
        return YamlProgram()
    shown = str(file.relative_to(root)) if file.is_relative_to(root) else file.name
    written = {str(key): value for key, value in mapping(content.get("resources")).items()}
    used = _read_uses(content)
    types: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for key, value in written.items():
        resource = mapping(value)
        given = frozenset(map(str, mapping(resource.get("properties"))))
        read = frozenset(map(str, mapping(mapping(resource.get("get")).get("state"))))
        type_ = str(resource.get("type"))
        former = types.get(type_, (frozenset(), frozenset()))
        types[type_] = (former[0] | given | read, former[1] | used.get(key, frozenset()))
    lines = _lines_of_resources(file)
    names = {key: str(mapping(value).get("name") or key) for key, value in written.items()}
    return YamlProgram(
        places={names[key]: Place(file=shown, line=lines[key]) for key in written if key in lines},
        types=types,
        functions=_read_functions(content, used),
    )


def _package_of(token: str) -> str:
    parts = token.split(":")
    return parts[2] if token.startswith("pulumi:providers:") and len(parts) == 3 else parts[0]


def _properties(names: frozenset[str]) -> dict[str, Any]:
    return dict.fromkeys(sorted(names), _ANY)


def _read_uses(content: Any) -> dict[str, frozenset[str]]:
    """Return the properties that are asked for, by the key of the resource."""
    used: dict[str, set[str]] = {}
    for text in _texts(content, 0):
        for match in _USED.finditer(text):
            used.setdefault(match["name"], set()).add(match["dotted"] or match["quoted"])
    return {name: frozenset(properties) for name, properties in used.items()}


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list) and depth < _DEEPEST:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item, depth + 1)


def _read_functions(
    content: Mapping[str, Any], used: Mapping[str, frozenset[str]]
) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Return the arguments of each function of a provider, and what is asked of its result."""
    of_variables = {
        id(value): used.get(str(name), frozenset())
        for name, value in mapping(content.get("variables")).items()
    }
    functions: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
    for holder, token, given, returned in _calls(content, 0):
        former = functions.get(token, (frozenset(), frozenset()))
        requested = returned | of_variables.get(holder, frozenset())
        functions[token] = (former[0] | given, former[1] | requested)
    return functions


def _calls(value: Any, depth: int) -> Iterator[tuple[int, str, frozenset[str], frozenset[str]]]:
    """Yield calls of functions of providers: the identity of their mapping, token, arguments, and the property that is taken.

    They are written as `fn::invoke`, or in the short form `fn::PACKAGE:MODULE:NAME`.
    """
    items = value.items() if isinstance(value, Mapping) else ()
    for key, item in items:
        call = mapping(item)
        if key == "fn::invoke":
            returned = frozenset([str(call["return"])] if "return" in call else [])
            given = frozenset(map(str, mapping(call.get("arguments"))))
            yield id(value), str(call.get("function")), given, returned
        elif str(key).startswith("fn::") and ":" in str(key)[4:]:
            yield id(value), str(key)[4:], frozenset(map(str, call)), frozenset()
    below = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for item in below if depth < _DEEPEST else ():
        yield from _calls(item, depth + 1)


def _lines_of_resources(file: Path) -> dict[str, int]:
    """Return the line of the key of each resource, from 1."""
    try:
        root = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return {}
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value == "resources" and isinstance(value, yaml.MappingNode):
            return {str(name.value): name.start_mark.line + 1 for name, _ in value.value}
    return {}
