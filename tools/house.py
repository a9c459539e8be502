"""Print the figures of the package's structure, and fail where imports go in a circle or hide in functions: `make house`.

Every import of our own modules counts, inside functions and under `TYPE_CHECKING` too: a reader follows them all.
Sizes are printed and have no limit. A module is one idea that a reader looks for by name, and its length follows from the idea.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = "dra_infra"

MOST_IN_FUNCTIONS: Final = 40
"""Imports of our own modules inside functions, each where a measured start-up needs it."""


@dataclass(frozen=True, kw_only=True)
class House:
    """The modules of a package.

    Args:
        lines: Of each module.
        imports: Which of them each one imports.
        late: Modules with the number of their imports inside functions.
        folders: Folders with the number of modules in them.
    """

    lines: Mapping[str, int]
    imports: Mapping[str, frozenset[str]]
    late: Mapping[str, int]
    folders: Mapping[str, int]

    @property
    def median(self) -> float:
        """Median of the lines of a module; a package's own module counts like any other."""
        return statistics.median(self.lines.values())

    @property
    def circle(self) -> tuple[str, ...]:
        """The modules of one circle of imports, in order; empty when there is none."""
        try:
            TopologicalSorter(self.imports).prepare()
        except CycleError as error:
            found: list[str] = error.args[1]
            return tuple(found)
        return ()


def measure(root: Path, package: str = PACKAGE) -> House:
    """Read all modules of *package* in *root*; generated protocol messages are no modules that anybody reads."""
    files = {_name(root, file): file for file in sorted((root / package).rglob("*.py"))}
    lines = {}
    imports = {}
    late = Counter[str]()
    for name, file in files.items():
        text = file.read_text(encoding="utf-8")
        found: set[str] = set()
        for imported, inside in _imports(ast.parse(text)):
            target = imported if imported in files else imported.rpartition(".")[0]
            if target in files and target != name:
                found.add(target)
                late[name] += inside
        lines[name] = text.count("\n")
        imports[name] = frozenset(found)
    return House(
        lines=lines,
        imports=imports,
        late={name: count for name, count in late.items() if count},
        folders=Counter(
            str(file.parent.relative_to(root)) for file in files.values() if "_pb2" not in file.name
        ),
    )


def find_faults(house: House) -> Iterator[str]:
    """Yield a line for a circle of imports, and one for too many imports inside functions."""
    if house.circle:
        yield f"imports go in a circle: {' → '.join(house.circle)}"
    if (late := sum(house.late.values())) > MOST_IN_FUNCTIONS:
        yield f"{late} imports inside functions, and {MOST_IN_FUNCTIONS} at most"


def main() -> int:
    """Print the figures; return 1 when `find_faults` has a line."""
    house = measure(ROOT)
    print(
        f"{len(house.lines)} modules, {sum(house.lines.values()):,} lines, median {house.median:.0f},"
        f" longest {max(house.lines.values())}, largest folder {max(house.folders.values())},"
        f" {sum(house.late.values())} imports inside functions"
    )
    faults = list(find_faults(house))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _name(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield each name that is imported, and whether a function does it."""
    left: list[tuple[ast.AST, bool]] = [(tree, False)]
    while left:
        node, inside = left.pop()
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", inside) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, inside) for alias in node.names)
        inside = inside or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        left.extend((child, inside) for child in ast.iter_child_nodes(node))


if __name__ == "__main__":
    sys.exit(main())
