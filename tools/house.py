"""Print the figures of the package's structure, and fail where imports go in a circle or hide in functions: `make house`.

Every import of our own modules counts, inside functions and under `TYPE_CHECKING` too: a reader follows them all.
Sizes are printed and have no limit. A module is one idea that a reader looks for by name, and its length follows from the idea.
Functions of more than 70 lines are printed by name, and so are those with more than 12 parameters that are no constructors.
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


LONG: Final = 70
"""Lines of a function that a reader still has on one screen, with its docstring."""

MANY: Final = 12
"""Parameters of a function that a reader still keeps apart."""


@dataclass(frozen=True, kw_only=True)
class House:
    """The modules of a package.

    Args:
        lines: Of each module.
        imports: Which of them each one imports.
        late: Modules with the number of their imports inside functions.
        folders: Folders with the number of modules in them.
        large: What is large, in words, of each function that is long or takes many parameters.
    """

    lines: Mapping[str, int]
    imports: Mapping[str, frozenset[str]]
    late: Mapping[str, int]
    folders: Mapping[str, int]
    large: Mapping[str, str]

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
    large: dict[str, str] = {}
    for name, file in files.items():
        text = file.read_text(encoding="utf-8")
        found: set[str] = set()
        tree = ast.parse(text)
        large |= {f"{name}.{function}": words for function, words in _large_functions(tree)}
        for imported, inside in _imports(tree):
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
        large=large,
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
    for function, words in sorted(house.large.items()):
        print(f"{function}: {words}")
    faults = list(find_faults(house))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _name(root: Path, file: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _large_functions(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        parameters = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        sizes = [f"{lines} lines"] if lines > LONG else []
        if parameters > MANY and node.name != "__init__":
            sizes.append(f"{parameters} parameters")
        if sizes:
            yield node.name, ", ".join(sizes)


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
