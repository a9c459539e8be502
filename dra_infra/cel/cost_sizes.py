"""How large the parts of an expression get at most, as far as the API server follows them.

Upstream: the bookkeeping of cel-go's `checker/cost.go`: `computeSize`, `computeEntrySize`, `getPath` and its variables.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dra_infra.cel.paths import Path, Size, append, size_at
from dra_infra.cel.tree import (
    DYN,
    CelType,
    CheckedTree,
    Comprehension,
    Const,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
)

_ONE: Final[Size] = (1, 1)
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})

Entries: TypeAlias = tuple[bool, Size, Size]
"""Whether it is a list, sizes of keys, sizes of values."""
Variable: TypeAlias = tuple[Path, Size | None, Entries | None]


class SizeTracker:
    """Keeps by node id what is known so far: where values come from, their sizes and those of what they hold."""

    def __init__(self, tree: CheckedTree) -> None:
        self._types = tree.types
        self._variables: dict[str, Variable] = {}
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Size] = {}
        self._entries: dict[int, Entries] = {}

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            variable = self._variables.get(node.name)
            if variable is not None:
                return variable[0]
        return self._paths.get(node.id)

    def _size(self, node: Node) -> Size | None:
        identity = node.id
        size = self._sizes.get(identity)
        if size is not None:
            return size
        if isinstance(node, Const):
            value = node.value
            length = len(value) if isinstance(value, (str, bytes)) else 1
            return length, length
        if isinstance(node, ListLiteral):
            return len(node.elements), len(node.elements)
        if isinstance(node, MapLiteral) and not node.message:
            return len(node.entries), len(node.entries)
        path = self._path(node)
        if path is not None:
            size = size_at(path)
            if size is not None:
                self._sizes[identity] = size
                return size
        if _is_scalar(self._types.get(identity, DYN)):
            return _ONE
        if isinstance(node, Ident):
            variable = self._variables.get(node.name)
            return variable[1] if variable else None
        return None

    def _entry_sizes(self, node: Node) -> Entries | None:
        entries = self._entries.get(node.id)
        if entries is None and isinstance(node, Ident):
            variable = self._variables.get(node.name)
            return variable[2] if variable else None
        return entries

    def _copy_sizes(self, node: Node, source: Node) -> None:
        size, entries = self._size(source), self._entry_sizes(source)
        if size is not None:
            self._sizes[node.id] = size
        if entries is not None:
            self._entries[node.id] = entries

    def _join_entries(self, node: Node, left: Node, right: Node) -> None:
        first, second = self._entry_sizes(left), self._entry_sizes(right)
        if first is not None and second is not None:
            self._entries[node.id] = (first[0], union(first[1], second[1]), union(first[2], second[2]))

    def _variable(self, node: Node) -> Variable:
        return self._path(node), self._size(node), self._entry_sizes(node)

    def _bind_iteration(self, node: Comprehension) -> list[tuple[str, Variable | None]]:
        over = node.iter_range
        entries = self._entry_sizes(over)
        is_list = entries[0] if entries else self._types.get(over.id, DYN).name == "list"
        path = self._path(over)
        keys, values = (entries[1], entries[2]) if entries else (None, None)
        if not node.iter_var2:
            size, step = (values, "@items") if is_list else (keys, "@keys")
            return [(node.iter_var, self._bind(node.iter_var, (append(path, step), size, None)))]
        key, value = ("@indices", "@items") if is_list else ("@keys", "@values")
        return [
            (node.iter_var, self._bind(node.iter_var, (append(path, key), keys, None))),
            (node.iter_var2, self._bind(node.iter_var2, (append(path, value), values, None))),
        ]

    def _bind(self, name: str, variable: Variable) -> Variable | None:
        shadowed = self._variables.get(name)
        self._variables[name] = variable
        return shadowed

    def _restore(self, name: str, shadowed: Variable | None) -> None:
        if shadowed is None:
            del self._variables[name]
        else:
            self._variables[name] = shadowed


def union(left: Size, right: Size) -> Size:
    """The range of what has either size."""
    return min(left[0], right[0]), max(left[1], right[1])


def _is_scalar(kind: CelType) -> bool:
    return kind.name in _SCALARS or (kind.name == "optional_type" and _is_scalar(kind.parameters[0]))
