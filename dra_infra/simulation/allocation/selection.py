"""Selectors and derived attributes on devices, behind one small interface.

The search asks an `Evaluator` about one expression and one device at a time. A faster one may answer from what it knows
of an equal device, as long as it gives the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dra_infra.cel import DeviceView, Match, NoMatch, check_expression, compile_expression
from dra_infra.cel import Failed as CelFailed
from dra_infra.cel.check import check_derived
from dra_infra.cel.derive import derive_attribute
from dra_infra.cel.evaluate import Program
from dra_infra.cel.release import Environment
from dra_infra.errors import ProblemsError
from dra_infra.model.device import DeviceAttribute
from dra_infra.model.device_class import DeviceSelector
from dra_infra.simulation.allocation.identity import Published
from dra_infra.simulation.allocation.outcomes import AllocationError, Failed
from dra_infra.simulation.allocation.variants import Variant


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
        """Whether a device passes a selector."""

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
        self._refuses_lists = variant.number == 36 and "DRAListTypeAttributes" not in variant.gates
        self._programs: dict[str, Program | Trouble] = {}
        self._views: dict[Published, DeviceView] = {}

    def test(self, expression: str, published: Published) -> bool | Trouble:
        """Whether a device passes a selector."""
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
        if self._refuses_lists and (unread := _list_attribute(published)):
            return Trouble(f"attribute {unread}: unsupported attribute value")
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
            )
        return view


def _list_attribute(published: Published) -> str:
    """The first attribute by name that is a list."""
    for name, attribute in sorted((published.device.attributes or {}).items()):
        if attribute.ints or attribute.bools or attribute.strings or attribute.versions:
            return name
    return ""


def passes(
    selectors: Sequence[DeviceSelector],
    owner: str,
    published: Published,
    evaluator: Evaluator,
    variant: Variant,
) -> bool:
    """selectorsMatch: whether a device passes all selectors of a class or a claim.

    Args:
        selectors: In order; the first that the device does not pass is the last that is evaluated.
        owner: `class NAME` or `claim NAMESPACE/NAME`.
        published: The device.
        evaluator: What evaluates.
        variant: The minor decides about the wording.

    Raises:
        AllocationError: When an expression has no value on the device, which ends the attempt for the pod.
    """
    for number, selector in enumerate(selectors):
        verdict = evaluator.test(selector.cel.expression if selector.cel is not None else "", published)
        if verdict is True:
            continue
        if verdict is False:
            return False
        where = f"{owner}: selector #{number}"
        if not verdict.compiles:
            raise AllocationError(Failed(f"{where}: CEL compile error: {verdict.text}"))
        text = verdict.text
        if variant.number >= 37:
            where, text = f"{where} on device {published.id}", _enhance(text)
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
