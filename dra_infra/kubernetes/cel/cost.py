"""Cost estimate of the API server: what evaluating an expression takes on the worst of all devices.

Upstream: `checker/cost.go` of cel-go and `dynamic-resource-allocation/cel/compile.go`, whose order of steps is kept,
because their results depend on it.

It includes how large the parts of an expression get at most, as far as the API server follows them. Upstream: the
bookkeeping of cel-go's `checker/cost.go`: `computeSize`, `computeEntrySize`, `getPath` and its variables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.cel.cost_functions import (
    LIMIT,
    NOMINAL,
    UNKNOWN,
    Estimator,
    Operands,
    estimators,
    scale,
)
from dra_infra.kubernetes.cel.environment import Environment
from dra_infra.kubernetes.cel.reads import ELSEWHERE, ROOTS, Path, Size, append, size_at
from dra_infra.kubernetes.cel.tree import (
    DYN,
    Call,
    CelType,
    CheckedTree,
    Comprehension,
    Const,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    is_bind,
)

_ONE: Final[Size] = (1, 1)
_KEYS: Final = frozenset({"@indices", "@keys"})
_SCALARS: Final = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_HOLDERS: Final = frozenset({"optional_type", "wrapper"})

Entries: TypeAlias = tuple[bool, Size, Size]
"""True for a list, sizes of keys, sizes of values."""
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
        size = self._size(source)
        entries = self._entry_sizes(source)
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
        if not node.iter_var2:
            is_list, entries = self._iterated(node.iter_range)
            return [self._bind_part(node, node.iter_var, "@items" if is_list else "@keys", entries)]
        is_list, entries = self._iterated(node.iter_range)
        first = self._bind_part(node, node.iter_var, "@indices" if is_list else "@keys", entries)
        # What is gone through may have the name that is bound by now, and the server looks at it again.
        is_list, entries = self._iterated(node.iter_range)
        return [first, self._bind_part(node, node.iter_var2, "@items" if is_list else "@values", entries)]

    def _iterated(self, over: Node) -> tuple[bool, Entries | None]:
        """True for a list, False for a map, and with it the sizes of what is gone through."""
        entries = self._entry_sizes(over)
        return entries[0] if entries else self._types.get(over.id, DYN).name == "list", entries

    def _bind_part(
        self, node: Comprehension, name: str, step: str, entries: Entries | None
    ) -> tuple[str, Variable | None]:
        size = None
        if entries is not None:
            size = entries[1] if step in _KEYS else entries[2]
        return name, self._bind(name, (append(self._path(node.iter_range), step), size, None))

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
    return kind.name in _SCALARS or (kind.name in _HOLDERS and _is_scalar(kind.parameters[0]))


_LIST: Final = 10
_MAP: Final = 30
_MESSAGE: Final = 40
_WITHOUT_FIELDS: Final = frozenset({"dyn", "any", "optional_type"})
_COMPARED_AT_ONCE: Final = frozenset(
    {
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "net.IP",
        "net.CIDR",
        *(
            f"kubernetes.authorization.{name}"
            for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
        ),
    }
)
_OWN_EQUALITY: Final = _COMPARED_AT_ONCE | {"kubernetes.NamedFormat", "kubernetes.URL"}
_FORMAT_LENGTH: Final = 64


def estimate_cost(tree: CheckedTree, environment: Environment) -> int:
    """The most that evaluating a checked expression may cost, at most 2**64 - 1.

    Args:
        tree: The checked tree.
        environment: Where it was checked.
    """
    return min(_Estimator(tree, environment.minor).cost(tree.root), LIMIT)


class _Estimator(SizeTracker):
    def __init__(self, tree: CheckedTree, minor: int) -> None:
        super().__init__(tree)
        self._references = tree.references
        self._minor = minor

    def cost(self, node: Node) -> int:
        return _BY_CLASS[node.__class__](self, node)

    def constant(self, _node: Const) -> int:
        return 0

    def ident(self, node: Ident) -> int:
        variable = self._variables.get(node.name)
        if variable is not None:
            self._paths[node.id] = variable[0]
            return 1
        self._paths[node.id] = ROOTS.get(node.name, ELSEWHERE)
        return 2 if node.name.startswith("device.") else 1

    def select(self, node: Select) -> int:
        operand = node.operand
        cost = self.cost(operand)
        if node.test_only:
            return cost
        if self._types.get(operand.id, DYN).name not in _WITHOUT_FIELDS:
            cost += 1
        self._paths[node.id] = append(self._path(operand), node.field)
        return cost

    def list_literal(self, node: ListLiteral) -> int:
        cost = _LIST
        smallest, largest = (LIMIT, 0) if node.elements else (0, 0)
        for element in node.elements:
            cost += self.cost(element)
            size = self._size(element) or UNKNOWN
            smallest = min(smallest, size[0])
            largest = max(largest, size[1])
        self._entries[node.id] = (True, _ONE, (smallest, largest))
        return cost

    def map_literal(self, node: MapLiteral) -> int:
        if node.message:
            return _MESSAGE + sum(self.cost(entry.value) for entry in node.entries)
        cost = _MAP
        keys, values = ((LIMIT, 0), (LIMIT, 0)) if node.entries else ((0, 0), (0, 0))
        for entry in node.entries:
            cost += self.cost(entry.key) + self.cost(entry.value)
            keys = union(keys, self._size(entry.key) or UNKNOWN)
            values = union(values, self._size(entry.value) or UNKNOWN)
        self._entries[node.id] = (False, keys, values)
        return cost

    def call(self, node: Call) -> int:
        special = _BY_FUNCTION.get(node.function)
        if special is not None:
            return special(self, node)
        overloads = self._references.get(node.id, ())
        chosen = estimators(node.function, overloads, self._minor)
        if chosen:
            return self.estimate(node, chosen)
        cost = sum(map(self.cost, node.args))
        if node.target is not None:
            cost += self.cost(node.target)
        return cost + 1 if overloads else 0

    def estimate(self, node: Call, chosen: tuple[Estimator | None, ...]) -> int:
        cost = 0
        sizes = []
        for argument in node.args:
            cost += self.cost(argument)
            sizes.append(self._size(argument) or UNKNOWN)
        target = None
        kind = DYN
        path = None
        if node.target is not None:
            cost += self.cost(node.target)
            target = self._size(node.target) or UNKNOWN
            kind = self._types.get(node.target.id, DYN)
            path = self._path(node.target)
        operands = Operands(node, target, sizes, kind, path)
        most, result = 0, None
        for estimator in chosen:
            own, size = (estimator and estimator(operands)) or NOMINAL
            most = max(most, own)
            if size is not None:
                result = size if result is None else union(result, size)
            elif result is None:
                result = self._size(node)
        if result is not None:
            self._sizes[node.id] = result
        if node.function == "_+_":
            self._join_entries(node, *node.args)
        return cost + most

    def both(self, node: Call) -> int:
        return self.cost(node.args[0]) + self.cost(node.args[1])

    def index(self, node: Call) -> int:
        container = node.args[0]
        cost = self.cost(container) + self.cost(node.args[1]) + 1
        result = None
        for overload in self._references.get(node.id, ()):
            entries = self._entry_sizes(container)
            result = entries[2] if entries else None
            step = "@items" if overload == "index_list" else "@values"
            self._paths[node.id] = append(self._path(container), step)
            if result is None:
                result = self._size(node)
        if result is not None:
            self._sizes[node.id] = result
        return cost

    def equal(self, node: Call) -> int:
        left, right = node.args
        cost = self.cost(left)
        left_size = self._size(left) or UNKNOWN
        cost += self.cost(right)
        right_size = self._size(right)
        kind = self._types.get(left.id, DYN)
        if kind.name in _OWN_EQUALITY and kind == self._types.get(right.id, DYN):
            return cost + _compare_values(kind, right_size)
        return cost + scale(min(left_size[1], (right_size or UNKNOWN)[1]), 0.1)

    def choose(self, node: Call) -> int:
        condition, first, second = node.args
        cost = self.cost(condition)
        first_cost = self.cost(first)
        first_size = self._size(first) or UNKNOWN
        second_cost = self.cost(second)
        self._sizes[node.id] = union(first_size, self._size(second) or UNKNOWN)
        self._join_entries(node, first, second)
        return cost + max(first_cost, second_cost)

    def to_dyn(self, node: Call) -> int:
        argument = node.args[0]
        cost = self.cost(argument) + 1
        self._copy_sizes(node, argument)
        return cost

    def comprehension(self, node: Comprehension) -> int:
        over, start = node.iter_range, node.accu_init
        cost = self.cost(over) + self.cost(start)
        if is_bind(node):
            outer = self._bind(node.accu_var, self._variable(start))
            cost += self.cost(node.result)
            self._restore(node.accu_var, outer)
            self._copy_sizes(node, node.result)
            return cost
        outer = self._bind(node.accu_var, self._variable(start))
        names = self._bind_iteration(node)
        loop = self.cost(node.condition) + self.cost(node.step)
        for name, shadowed in reversed(names):
            self._restore(name, shadowed)
        cost += self.cost(node.result)
        self._restore(node.accu_var, outer)
        count = self._size(over) or UNKNOWN
        if isinstance(start, Const):
            size = self._size(start)
            if size is not None:
                self._sizes[node.id] = size
        elif isinstance(start, ListLiteral) or (isinstance(start, MapLiteral) and not start.message):
            self._sizes[node.id] = count
            entries = self._entry_sizes(node.step)
            if entries is not None:
                self._entries[node.id] = entries
        return cost + min(count[1] * loop, LIMIT)


def _compare_values(kind: CelType, size: Size | None) -> int:
    if kind.name in _COMPARED_AT_ONCE:
        return 1
    if kind.name == "kubernetes.NamedFormat":
        return scale(_FORMAT_LENGTH, 0.1)
    return scale(size[1] if size else 1, 0.1)


_BY_CLASS: Final[dict[type, Callable[[_Estimator, Any], int]]] = {
    Const: _Estimator.constant,
    Ident: _Estimator.ident,
    Select: _Estimator.select,
    Call: _Estimator.call,
    ListLiteral: _Estimator.list_literal,
    MapLiteral: _Estimator.map_literal,
    Comprehension: _Estimator.comprehension,
}
_BY_FUNCTION: Final[dict[str, Callable[[_Estimator, Call], int]]] = {
    "_&&_": _Estimator.both,
    "_||_": _Estimator.both,
    "_[_]": _Estimator.index,
    "_==_": _Estimator.equal,
    "_?_:_": _Estimator.choose,
    "dyn": _Estimator.to_dyn,
}
