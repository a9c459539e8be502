"""Evaluates selectors and derived attributes on devices, behind one small interface.

The search asks an `Evaluator` about one expression and one device at a time. A faster one may answer from what it
knows of an equal device, as long as it gives the same answers.

`KindEvaluator` evaluates each expression once per kind of device. Two devices are of one kind for an expression when
they agree in everything that it reads. A fleet has thousands of devices and few kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from dra_infra.kubernetes.api.device_class import DeviceSelector
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.api.resource_slice import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.check import check_derived, check_expression
from dra_infra.kubernetes.cel.dependencies import Dependencies, find_dependencies
from dra_infra.kubernetes.cel.device_view import DeviceView
from dra_infra.kubernetes.cel.environment import Environment
from dra_infra.kubernetes.cel.evaluate import Failed as CelFailed
from dra_infra.kubernetes.cel.evaluate import Match, NoMatch, Program, compile_expression, derive_attribute
from dra_infra.kubernetes.problems import ProblemsError
from dra_infra.kubernetes.scheduler.allocator.identity import AllocationError, Failed, Published
from dra_infra.kubernetes.scheduler.allocator.refusals import Check, Refusal, Tracer
from dra_infra.kubernetes.scheduler.allocator.variants import Variant


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why an expression has no value on a device.

    Args:
        text: The reason in the words of the CEL package.
        compiles: Whether the expression compiles.
        decided: Whether the engine here knows what the scheduler's would say.
    """

    text: str
    compiles: bool = True
    decided: bool = True


class Evaluator(Protocol):
    """Values of expressions on devices."""

    def test(self, expression: str, published: Published) -> bool | Trouble:
        """Tests a device by a selector."""

    def derive(self, expression: str, published: Published) -> DeviceAttribute | Trouble:
        """The value of a derived attribute."""


class CelEvaluator:
    """Evaluates every expression on every device as it is asked, as upstream does."""

    def __init__(self, variant: Variant) -> None:
        self._environment = Environment(
            minor=variant.number,
            stored=True,
            list_attributes="DRAListTypeAttributes" in variant.gates,
            consumable_capacity="DRAConsumableCapacity" in variant.gates,
        )
        self._tells_shareable = variant.is_extended
        # With its gate off, 1.36 reads no device that has a list; later minors read it whatever the gate says.
        self._reads_lists = variant.number > 36 or "DRAListTypeAttributes" in variant.gates
        self._programs: dict[str, Program | Trouble] = {}
        self._views: dict[Published, DeviceView] = {}

    def test(self, expression: str, published: Published) -> bool | Trouble:
        """Tests a device by a selector."""
        program = self._programs.get(expression)
        if program is None:
            try:
                program = compile_expression(expression, self._environment)
            except ProblemsError as error:
                checked = check_expression(expression, environment=self._environment)
                program = Trouble(checked.detail or error.problems[0].message, compiles=False)
            self._programs[expression] = program
        if isinstance(program, Trouble):
            return program
        verdict = program.evaluate(self._view(published))
        if isinstance(verdict, (Match, NoMatch)):
            return isinstance(verdict, Match)
        return Trouble(verdict.text, decided=verdict.decided)

    def derive(self, expression: str, published: Published) -> DeviceAttribute | Trouble:
        """The value of a derived attribute."""
        try:
            value = derive_attribute(expression, self._view(published))
        except ProblemsError as error:
            detail = check_derived(expression).detail
            return Trouble(detail or error.problems[0].message, compiles=False)
        if isinstance(value, CelFailed):
            return Trouble(value.text, decided=value.decided)
        return DeviceAttribute.from_manifest(value)

    def _view(self, published: Published) -> DeviceView:
        view = self._views.get(published)
        if view is None:
            view = self._views[published] = DeviceView(
                published.id.driver,
                published.device.attributes or {},
                published.device.capacity or {},
                self._tells_shareable and published.shareable,
                reads_lists=self._reads_lists,
            )
        return view


def passes_selectors(
    selectors: Sequence[DeviceSelector],
    owner: str,
    published: Published,
    evaluator: Evaluator,
    variant: Variant,
    tracer: Tracer | None = None,
) -> bool:
    """selectorsMatch: whether a device passes all selectors of a class or a claim.

    Args:
        selectors: In order; the first that the device does not pass is the last that is evaluated.
        owner: `class NAME` or `claim NAMESPACE/NAME`.
        published: The device.
        evaluator: What evaluates.
        variant: The minor decides about the wording.
        tracer: Who receives refusals.

    Raises:
        AllocationError: When an expression has no value on the device, which ends the attempt for the pod.
    """
    for number, selector in enumerate(selectors):
        verdict = evaluator.test(selector.expression, published)
        if verdict is True:
            continue
        if tracer is not None:
            error = verdict.text if isinstance(verdict, Trouble) else ""
            tracer(Refusal(published.id, Check.SELECTOR, owner, number, error))
            continue
        if verdict is False:
            return False
        where = f"{owner}: selector #{number}"
        if not verdict.compiles:
            raise AllocationError(Failed(f"{where}: CEL compile error: {verdict.text}"))
        text = verdict.text
        if variant.number >= 37:
            where = f"{where} on device {published.id}"
            text = _enhance(text)
        raise AllocationError(Failed(f"{where}: CEL runtime error: {text}", decided=verdict.decided))
    return True


def _enhance(text: str) -> str:
    """The hint on the most common error: EnhanceRuntimeError in dynamic-resource-allocation/cel, from 1.37 on."""
    if "no such key:" not in text:
        return text
    return (
        f"{text}. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
        "for optional fields"
    )


Value = TypeVar("Value")

_VERSIONS = ("version", "versions")
_INT64 = range(-(2**63), 2**63)


class DeviceKinds:
    """Numbers devices: equal numbers for those that no expression with these reads can tell apart.

    The numbers of a device are kept for good, so one of these serves all allocators that look at the same slices.
    """

    def __init__(self, variant: Variant) -> None:
        self._by_reads: dict[Dependencies, dict[Published, int]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._plain = _PlainValues(variant)
        self._are_plain: dict[Published, bool] = {}

    def among(self, reads: Dependencies) -> dict[Published, int]:
        """Kinds of devices that are numbered already; `number` adds to them."""
        return self._by_reads.setdefault(reads, {})

    def number(self, reads: Dependencies, published: Published) -> int:
        """The kind of a device.

        Args:
            reads: What is read, as `find_dependencies` says it; None for everything.
            published: The device.
        """
        known = self.among(reads)
        number = known.get(published)
        if number is None:
            content = self._describe(reads, published)
            number = known[published] = self._numbers.setdefault(content, len(self._numbers))
        return number

    def _describe(self, reads: Dependencies, published: Published) -> Hashable:
        attributes = published.device.attributes or {}
        capacity = published.device.capacity or {}
        driver = published.id.driver
        is_plain = self._are_plain.get(published)
        if is_plain is None:
            is_plain = self._are_plain[published] = self._plain.are_all(driver, attributes, capacity)
        if reads is None or not is_plain:
            # A value that cannot be read at all is an error of every expression, and names itself.
            return (
                driver,
                published.shareable,
                None,
                frozenset((name, _content(value)) for name, value in attributes.items()),
                frozenset((name, value.value) for name, value in capacity.items()),
            )
        found: list[Hashable] = [driver, published.shareable, reads]
        for source, domain, identifier in reads:
            named = attributes if source == "attributes" else capacity
            if not identifier:
                found.append(any((name.rpartition("/")[0] or driver) == domain for name in named))
                continue
            value = named.get(identifier) if domain == driver else None
            if value is None:
                value = named.get(f"{domain}/{identifier}")
            if value is None:
                found.append(None)
            else:
                found.append(value.value if isinstance(value, DeviceCapacity) else _value(value))
        return tuple(found)


@dataclass(slots=True)
class _Known(Generic[Value]):
    """Results of an expression, by kind of device."""

    reads: Dependencies
    kinds: dict[Published, int]
    values: dict[int, Value | Trouble] = field(default_factory=dict)


class KindEvaluator:
    """Evaluates each expression once per kind of device; may be shared by all allocators of a variant.

    Args:
        variant: Whose CEL.
        evaluator: What evaluates on one device of a kind; the default is `CelEvaluator`.
        kinds: Kinds that are known, when others of this class look at the same slices.
    """

    def __init__(
        self, variant: Variant, evaluator: Evaluator | None = None, kinds: DeviceKinds | None = None
    ) -> None:
        self._evaluator = CelEvaluator(variant) if evaluator is None else evaluator
        self.kinds = DeviceKinds(variant) if kinds is None else kinds
        self._tests: dict[str, _Known[bool]] = {}
        self._derived: dict[str, _Known[DeviceAttribute]] = {}

    def test(self, expression: str, published: Published) -> bool | Trouble:
        """Tests a device by a selector."""
        known = self._tests.get(expression)
        if known is None:
            reads = find_dependencies(expression)
            known = self._tests[expression] = _Known(reads, self.kinds.among(reads))
        kind = known.kinds.get(published)
        if kind is None:
            kind = self.kinds.number(known.reads, published)
        value = known.values.get(kind)
        if value is None:
            value = known.values[kind] = self._evaluator.test(expression, published)
        return value

    def derive(self, expression: str, published: Published) -> DeviceAttribute | Trouble:
        """The value of a derived attribute."""
        known = self._derived.get(expression)
        if known is None:
            reads = find_dependencies(expression)
            known = self._derived[expression] = _Known(reads, self.kinds.among(reads))
        kind = self.kinds.number(known.reads, published)
        value = known.values.get(kind)
        if value is None:
            value = known.values[kind] = self._evaluator.derive(expression, published)
        return value


class _PlainValues:
    """Knows of values that every expression can read: what it does not read of a device cannot matter then.

    Source: the failures of `DeviceView`, and of 1.36, which reads no device with a list where the gate for them is off.
    Others than texts are known by identity: devices of a built-in fleet share them.
    """

    def __init__(self, variant: Variant) -> None:
        self._reads_lists = variant.number != 36 or "DRAListTypeAttributes" in variant.gates
        self._attributes: dict[int, DeviceAttribute] = {}
        self._versions: set[str] = set()
        self._numbers: set[int] = set()
        self._amounts: set[str] = set()
        self._names: dict[tuple[str, tuple[str, ...]], bool] = {}

    def are_all(
        self, driver: str, attributes: dict[str, DeviceAttribute], capacity: dict[str, DeviceCapacity]
    ) -> bool:
        """Checks that all attributes and capacities of a device are plain."""
        return (
            self._are_attributes_plain(attributes.values())
            and all(
                each.value in self._amounts or self._is_amount_plain(each.value) for each in capacity.values()
            )
            and self._are_names_plain(driver, tuple(attributes))
            and self._are_names_plain(driver, tuple(capacity))
        )

    def _are_attributes_plain(self, attributes: Iterable[DeviceAttribute]) -> bool:
        known, versions, numbers = self._attributes, self._versions, self._numbers
        for attribute in attributes:
            if len(attribute.model_fields_set) == 1:
                # Nearly all: one text, version or number.
                text = attribute.string
                if text is not None:
                    if _is_plain_text(text):
                        continue
                elif attribute.version in versions or attribute.int_ in numbers:
                    continue
            if id(attribute) not in known:
                if not _is_plain_attribute(attribute, reads_lists=self._reads_lists):
                    return False
                known[id(attribute)] = attribute
                if attribute.version is not None:
                    versions.add(attribute.version)
                if attribute.int_ is not None:
                    numbers.add(attribute.int_)
        return True

    def _is_amount_plain(self, text: str) -> bool:
        if not _is_parsed(Quantity.parse, text):
            return False
        self._amounts.add(text)
        return True

    def _are_names_plain(self, driver: str, names: tuple[str, ...]) -> bool:
        """Checks that no name is there twice, with the driver's domain and without."""
        known = self._names.get((driver, names))
        if known is None:
            full = [name if "/" in name else f"{driver}/{name}" for name in names]
            known = len(set(full)) == len(full) and all(map(_is_plain_text, full))
            self._names[driver, names] = known
        return known


def _is_plain_text(text: str) -> bool:
    return text.isascii() and "\0" not in text


def _is_plain_attribute(attribute: DeviceAttribute, *, reads_lists: bool) -> bool:
    fields = [(name, value) for name, value in attribute.__dict__.items() if value is not None]
    if len(fields) != 1:
        return False
    ((name, value),) = fields
    if isinstance(value, list):
        return reads_lists and all(_is_plain_value(name, each) for each in value)
    return _is_plain_value(name, value)


def _is_plain_value(name: str, value: object) -> bool:
    if not isinstance(value, str):
        return value in _INT64
    return _is_parsed(Semver.parse, value) if name in _VERSIONS else _is_plain_text(value)


def _is_parsed(parse: Callable[[str], object], text: str) -> bool:
    if not _is_plain_text(text):
        return False
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _value(attribute: DeviceAttribute) -> Hashable:
    """The value of an attribute that has one field."""
    text = attribute.string
    if text is not None:
        return "string", text
    return _content(attribute)


def _content(attribute: DeviceAttribute) -> Hashable:
    return tuple(
        (name, tuple(value) if isinstance(value, list) else value)
        for name, value in attribute.__dict__.items()
        if value is not None
    )
