"""The modules of ours that a part of the product imports, read from the source: nothing is run.

Imports inside functions count, those under `TYPE_CHECKING` do not. A package that loads its names late shows type checkers where each name is:
`from dra_infra.kubernetes.api import Quantity` counts as the import of `dra_infra.kubernetes.api.quantity`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PACKAGE: Final = "dra_infra"


@dataclass(frozen=True, kw_only=True)
class _Module:
    """What a module imports.

    Args:
        imports: Modules, or names in modules: `dra_infra.errors.Problem`.
        late: Where names are that only type checkers import here, `dra_infra.errors.Problem` by `Problem`.
    """

    imports: frozenset[str]
    late: Mapping[str, str]


def find_closure(root: Path, parts: Iterable[str]) -> dict[str, Path]:
    """Return all modules of *parts* and those of ours that they import, with their files.

    Args:
        root: The folder in which our package is.
        parts: Packages of ours, `dra_infra.plugin`.
    """
    files = {_name(root, path): path for path in sorted((root / PACKAGE).rglob("*.py"))}
    modules: dict[str, _Module] = {}
    closure: set[str] = set()
    waiting = [name for name in files for part in parts if name == part or name.startswith(f"{part}.")]
    while waiting:
        name = waiting.pop()
        if name in closure:
            continue
        closure.add(name)
        # Python loads the packages around a module before it.
        waiting += [package for package in _packages_around(name) if package in files]
        for imported in _read(name, files, modules).imports:
            waiting += _resolve(imported, files, modules)
    return {name: files[name] for name in sorted(closure)}


def _resolve(imported: str, files: Mapping[str, Path], modules: dict[str, _Module]) -> Iterator[str]:
    """Yield the modules that the import of a module, or of a name in one, loads."""
    if imported in files:
        yield imported
        return
    package, _, name = imported.rpartition(".")
    if package not in files:
        return
    yield package
    late = _read(package, files, modules).late.get(name)
    if late is not None:
        yield from _resolve(late, files, modules)


def _read(name: str, files: Mapping[str, Path], modules: dict[str, _Module]) -> _Module:
    if name not in modules:
        tree = ast.parse(files[name].read_text(encoding="utf-8"))
        hidden = {id(node) for each in tree.body if _is_for_types(each) for node in ast.walk(each)}
        late: dict[str, str] = {}
        imports: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import) and id(node) not in hidden:
                imports |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
                if id(node) in hidden:
                    late |= names
                else:
                    imports |= set(names.values())
        modules[name] = _Module(imports=frozenset(imports), late=late)
    return modules[name]


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _packages_around(name: str) -> Iterator[str]:
    while name := name.rpartition(".")[0]:
        yield name


def _name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
