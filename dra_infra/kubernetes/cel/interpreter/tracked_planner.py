"""Plans a tree so that its evaluation counts what it costs the server.

Selections and indexes in a row are one attribute upstream, which resolves its root and then qualifies it step by step;
each step, and the attribute as a whole, costs 1. A branch of `c ? a : b` is resolved and not evaluated, and costs 1 less.

Upstream: interpreter/planner.go, attributes.go and the observers in interpretable.go of cel-go; Observe in
runtimecost.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

from dra_infra.kubernetes.cel.interpreter.call_costs import CEL_GO_29, Cost, call_cost
from dra_infra.kubernetes.cel.interpreter.closures import look_up, missing
from dra_infra.kubernetes.cel.interpreter.messages import reread
from dra_infra.kubernetes.cel.interpreter.planner import INDEXES, LOGICAL, Planner, terms
from dra_infra.kubernetes.cel.interpreter.scopes import Scope, Step
from dra_infra.kubernetes.cel.interpreter.values import (
    NO_SUCH_OVERLOAD,
    NONE,
    Err,
    OptionalValue,
    Value,
)
from dra_infra.kubernetes.cel.tree import (
    Call,
    Comprehension,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    children,
)

_LIST: Final = 10
_MAP: Final = 30
_MESSAGE: Final = 40
_BY_RESULT: Final = frozenset({"join", "slice", "reverse", "lists.range"})
"""Functions whose cost depends on the result."""
_DEVICE: Final = "device."


@dataclass(slots=True)
class Qualifier:
    """One step of an attribute.

    Args:
        identity: Id of its node.
        key: Gives the key.
        is_computed: Whether the key is neither a constant nor an attribute.
        optional: Whether a missing key gives no value instead of an error.
        test_only: Whether it asks if there is such a key.
    """

    identity: int
    key: Step
    is_computed: bool = False
    optional: bool = False
    test_only: bool = False


@dataclass(slots=True)
class Attribute:
    """A root, which is a variable or the value of another node, and the steps from there.

    Args:
        own_identity: Id of the root.
        root: Gives its value.
        rereads: Whether what is in an optional root is made again of what Go holds of it.
        qualifiers: The steps.
    """

    own_identity: int
    root: Step
    rereads: bool
    qualifiers: list[Qualifier] = field(default_factory=list)

    @property
    def identity(self) -> int:
        """The id under which the value is kept."""
        return self.qualifiers[-1].identity if self.qualifiers else self.own_identity

    @property
    def dropped(self) -> tuple[int, ...]:
        """Ids of the values that are of no use behind this one."""
        return (self.identity,)

    @property
    def cost(self) -> int:
        """The cost besides that of the steps; none of has()."""
        return int(not any(qualifier.test_only for qualifier in self.qualifiers))

    def add(self, qualifier: Qualifier) -> None:
        """Go one step further."""
        self.qualifiers.append(qualifier)

    def resolve(self, scope: Scope) -> Value:
        """The value, which may be an error (applyQualifiers)."""
        value = self.root(scope)
        is_optional = False
        if type(value) is OptionalValue and value is not NONE and self.rereads:
            value = OptionalValue(reread(value.value))
        if type(value) is Err or not self.qualifiers:
            return value
        if type(value) is OptionalValue:
            if value is NONE:
                return NONE
            value = value.value
            is_optional = True
            if type(value) is Err:
                return value
        for qualifier in self.qualifiers:
            is_optional = is_optional or qualifier.optional
            value = _qualify(qualifier, value, scope, is_optional=is_optional)
            if type(value) is Err or value is _MISSING:
                break
        if value is _MISSING:
            return NONE
        return OptionalValue(value) if is_optional and type(value) is not Err else value


class _Missing:
    __slots__ = ()


_MISSING: Final = _Missing()


def _qualify(qualifier: Qualifier, target: Value, scope: Scope, *, is_optional: bool) -> Value:
    """The value one step further, an error, or that it is missing; each step but a missing optional one costs 1."""
    key = qualifier.key(scope)
    found = (key,) if type(key) is Err else look_up(target, key)
    failure = found[0] if found is not None and type(found[0]) is Err else None
    if is_optional and (found is None or failure is not None):
        return _MISSING if failure is None else failure
    if failure is not None:
        value: Value = failure
    elif qualifier.test_only and not is_optional:
        value = found is not None
    else:
        value = Err(missing(target, key)) if found is None else found[0]
    tracker = scope.root.tracker
    if qualifier.is_computed:
        tracker.drop((qualifier.identity,))
    tracker.cost += 1
    tracker.push(qualifier.identity, value)
    return value


@dataclass(slots=True)
class Choice:
    """`condition ? then : otherwise`, which steps behind it go into both branches of."""

    own_identity: int
    condition: Step
    condition_identity: int
    then: Attribute | Choice
    otherwise: Attribute | Choice

    cost: ClassVar = 0

    @property
    def identity(self) -> int:
        """The id under which the value is kept."""
        return self.then.identity if self.then.identity == self.otherwise.identity else self.own_identity

    @property
    def dropped(self) -> tuple[int, ...]:
        """Ids of the values that are of no use behind this one."""
        return (self.otherwise.identity, self.then.identity, self.condition_identity)

    def add(self, qualifier: Qualifier) -> None:
        """Go one step further."""
        self.then.add(qualifier)
        self.otherwise.add(qualifier)

    def resolve(self, scope: Scope) -> Value:
        """The value of the branch that the condition chooses."""
        value = self.condition(scope)
        if type(value) is bool:
            return (self.then if value else self.otherwise).resolve(scope)
        return value if type(value) is Err else Err(NO_SUCH_OVERLOAD)


class TrackedPlanner(Planner):
    """Plans one tree with the cost of each node."""

    def plan(self, node: Node) -> Step:
        """The closure that evaluates a node and counts its cost.

        Raises:
            UndecidedError: When it holds something that is not known here.
        """
        planned = self._plan_node(node)
        return _observe_attribute(planned) if isinstance(planned, (Attribute, Choice)) else planned

    def _plan_node(self, node: Node) -> Step | Attribute | Choice:
        if self._is_constant(node):
            return _observe(super().plan(node), node.id)
        match node:
            case Ident(name=name):
                return self._variable(name, node.id)
            case Select(operand=operand, field=key, test_only=test_only):
                attribute = self._attribute(operand)
                attribute.add(Qualifier(node.id, lambda _scope: key, test_only=test_only))
                return attribute
            case Call(function=function) if function in INDEXES:
                return self._index(node, *children(node))
            case Call(function="_?_:_"):
                condition, then, otherwise = children(node)
                return Choice(
                    node.id,
                    self.plan(condition),
                    condition.id,
                    self._attribute(then),
                    self._attribute(otherwise),
                )
        return self._watch(node)

    def _attribute(self, node: Node) -> Attribute | Choice:
        """The node as an attribute to go on from, or to be resolved in a branch."""
        planned = self._plan_node(node)
        return planned if isinstance(planned, (Attribute, Choice)) else self._root(node.id, planned)

    def _root(self, identity: int, root: Step) -> Attribute:
        return Attribute(identity, root, self._minor < CEL_GO_29)

    def _variable(self, name: str, identity: int) -> Attribute:
        root, dot, key = name.partition(".") if name.startswith(_DEVICE) else (name, "", "")
        attribute = self._root(identity, lambda scope: scope.resolve(root))
        if dot:
            attribute.add(Qualifier(identity, lambda _scope: key))
        return attribute

    def _index(self, node: Call, target: Node, index: Node) -> Attribute | Choice:
        attribute = self._attribute(target)
        optional = INDEXES[node.function]
        if self._is_constant(index):
            qualifier = Qualifier(node.id, super().plan(index), optional=optional)
        else:
            planned = self._plan_node(index)
            is_attribute = isinstance(planned, (Attribute, Choice))
            key = planned.resolve if isinstance(planned, (Attribute, Choice)) else planned
            qualifier = Qualifier(node.id, key, is_computed=not is_attribute, optional=optional)
        attribute.add(qualifier)
        return attribute

    def _watch(self, node: Node) -> Step:
        step = self._plan(node)
        parts = children(node)
        if isinstance(node, ListLiteral):
            return _observe(step, node.id, taken=parts, cost=_LIST)
        if isinstance(node, MapLiteral):
            if node.message:
                return _observe(step, node.id, taken=parts[1::2], cost=_MESSAGE)
            return _observe(step, node.id, taken=parts, cost=_MAP)
        if isinstance(node, Comprehension):
            return _observe(step, node.id, dropped=(node.iter_range,))
        if not isinstance(node, Call):
            return _observe(step, node.id)
        if node.function in LOGICAL:
            return _observe(step, node.id, dropped=tuple(terms(node)))
        is_set = node.function == "@in" and self._set_of(parts[1]) is not None
        if node.function in ("or", "orValue") or is_set:
            return _observe(step, node.id)
        return self._observe_call(step, node)

    def _cost_of(self, node: Call) -> Cost:
        overloads = self._tree.references.get(node.id, ())
        overload = {"_==_": "equals", "_!=_": "not_equals"}.get(
            node.function, overloads[0] if len(overloads) == 1 else ""
        )
        return call_cost(node.function, overload, self._minor)

    def _foreseen_cost(self, call: Call) -> Cost | None:
        """The cost of a call that only its arguments tell."""
        return None if call.function in _BY_RESULT else self._cost_of(call)

    def _observe_call(self, step: Step, node: Call) -> Step:
        cost = self._cost_of(node)
        identity, arguments = node.id, tuple(part.id for part in children(node))

        def evaluate(scope: Scope) -> Value:
            value = step(scope)
            tracker = scope.root.tracker
            found = tracker.take(arguments)
            if found is not None:
                tracker.cost += cost(found, value)
            tracker.push(identity, value)
            return value

        return evaluate


def _observe_attribute(attribute: Attribute | Choice) -> Step:
    """The closure of an attribute to which no steps are added any more."""
    identity, dropped, cost = attribute.identity, attribute.dropped, attribute.cost
    is_simple = isinstance(attribute, Attribute) and not attribute.qualifiers and not attribute.rereads
    is_test = isinstance(attribute, Attribute) and not cost
    resolve = attribute.root if isinstance(attribute, Attribute) and is_simple else attribute.resolve

    def evaluate(scope: Scope) -> Value:
        value = resolve(scope)
        if is_test and type(value) is OptionalValue:
            value = value is not NONE
        tracker = scope.root.tracker
        tracker.drop(dropped)
        tracker.cost += cost
        tracker.push(identity, value)
        return value

    return evaluate


def _observe(
    step: Step, identity: int, *, taken: tuple[Node, ...] = (), dropped: tuple[Node, ...] = (), cost: int = 0
) -> Step:
    taken_ids = [node.id for node in taken]
    dropped_ids = [node.id for node in dropped]

    def evaluate(scope: Scope) -> Value:
        value = step(scope)
        tracker = scope.root.tracker
        if taken_ids:
            tracker.take(taken_ids)
        if dropped_ids:
            tracker.drop(dropped_ids)
        tracker.cost += cost
        tracker.push(identity, value)
        return value

    return evaluate
