"""Selectors of NVIDIA's GpuClaimParameters: properties joined by `andExpression` and `orExpression`, as selectors of today.

Sources: `api/utils/selector/selector.go` and `gpuselector.go` of NVIDIA/k8s-dra-driver at 642116c3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api import Semver, quantity_text
from dra_infra.migration.old_dra.objects import Remarks, text
from dra_infra.selectors.any_attribute import OrderedAttribute
from dra_infra.selectors.attributes import TextAttribute
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector

Device = Literal["gpu", "mig"]
"""The type of device that a selector is for: parents of MIG devices give them nearly all of their attributes."""

Meaning = Selector | bool | None
"""A selector, what is true or false of every device, or None where the meaning is lost."""

_MOST_LEVELS: Final = 8
"""The CRD had three; what is deeper was never stored."""

_OPERATORS: Final[Mapping[str, Callable[[OrderedAttribute, str], Selector]]] = {
    "Equals": lambda attribute, value: attribute == value,
    "LessThan": lambda attribute, value: attribute < value,
    "LessThanOrEqualTo": lambda attribute, value: attribute <= value,
    "GreaterThan": lambda attribute, value: attribute > value,
    "GreaterThanOrEqualTo": lambda attribute, value: attribute >= value,
}
_GLOBS: Final[Mapping[str, TextAttribute]] = {
    "productName": gpu.product,
    "brand": gpu.brand,
    "architecture": gpu.architecture,
}
_VERSIONS: Final[Mapping[str, OrderedAttribute]] = {
    "cudaComputeCapability": gpu.compute_capability,
    "driverVersion": gpu.driver_version,
    "cudaDriverVersion": gpu.cuda_version,
}


class PropertySelector:
    """A reader of one selector.

    Args:
        device: The type of device that it is for.
        remarks: Where losses and doubts are taken down.

    Attributes:
        is_undecided: Whether something in the selector has no meaning, so that nobody can say which devices pass it.
    """

    def __init__(self, device: Device, remarks: Remarks) -> None:
        self._device = device
        self._remarks = remarks
        self.is_undecided = False

    def read(self, node: Any, path: str, level: int = 0) -> Meaning:
        """Translates the selector at *path*; an empty one, and one that is lost as a whole, is None."""
        if not isinstance(node, Mapping) or not node or level > _MOST_LEVELS:
            return self._unknown(path, "an empty or malformed selector matched no GPU", "leave it out")
        if len(node) > 1:
            self._unknown(
                path, "a selector with several properties was never stored", "see that all of them are meant"
            )
        return _every([self._read_property(name, value, path, level) for name, value in node.items()])

    def _read_property(self, name: str, value: Any, path: str, level: int) -> Meaning:
        at = f"{path}.{name}"
        if name in ("andExpression", "orExpression"):
            if not isinstance(value, list) or not value:
                return self._unknown(at, "an empty list matched no GPU", "leave it out")
            parts = [self.read(each, f"{at}[{index}]", level + 1) for index, each in enumerate(value)]
            return _every(parts) if name == "andExpression" else _some(parts)
        try:
            return self._test(name, value, at)
        except ProblemsError as error:
            said = error.problems[0]
            return self._unknown(
                at, f"the value has no meaning: {said.message}", said.hint or "write the test anew"
            )

    def _test(self, name: str, value: Any, path: str) -> Meaning:
        if name == "index":
            message, hint = "GPUs are not numbered any more", "select by uuid, or leave it out"
            self._remarks.lost(path, "parameter-lost", message, hint)
            return None
        if name == "migEnabled" and isinstance(value, bool):
            return value == (self._device == "mig")
        if name == "uuid" and isinstance(value, str):
            return (gpu.uuid if self._device == "gpu" else gpu.parent_uuid) == value
        if name in _GLOBS and isinstance(value, str):
            return _GLOBS[name].matches(_pattern(value))
        if isinstance(value, Mapping):
            compare = _OPERATORS.get(text(value.get("operator")))
            if compare is None and (name == "memory" or name in _VERSIONS):
                return self._unknown(
                    path, "a comparison without an operator matched no GPU", "write the test anew"
                )
            if name == "memory" and compare is not None:
                return self._memory(compare, value.get("value"), path)
            if name in _VERSIONS and compare is not None:
                return compare(_VERSIONS[name], _padded(value.get("value")))
        return self._unknown(path, f"nobody knows a property {name} with such a value", "write the test anew")

    def _memory(self, compare: Callable[[OrderedAttribute, str], Selector], value: Any, path: str) -> Meaning:
        if self._device == "mig":
            message = "this was the memory of the whole card, which its MIG devices do not publish"
            hint = "select the card's productName, or leave it out"
            self._remarks.lost(path, "parameter-lost", message, hint)
            return None
        amount = quantity_text(value)
        if amount is None:
            return self._unknown(path, "the memory is no quantity", 'write one such as "16Gi"')
        return compare(gpu.memory, amount)

    def _unknown(self, path: str, message: str, hint: str) -> Meaning:
        self.is_undecided = True
        self._remarks.decide(path, "parameter-not-known", message, hint)
        return None


def _every(parts: list[Meaning]) -> Meaning:
    """All of them, without those that are lost."""
    if any(each is False for each in parts):
        return False
    tests = [each for each in parts if isinstance(each, Selector)]
    if not tests:
        return True if any(each is True for each in parts) else None
    joined = tests[0]
    for each in tests[1:]:
        joined = joined & each
    return joined


def _some(parts: list[Meaning]) -> Meaning:
    """One of them; one that is lost takes all with it, for nobody can say what it let pass."""
    if any(each is True for each in parts):
        return True
    if any(each is None for each in parts):
        return None
    tests = [each for each in parts if isinstance(each, Selector)]
    if not tests:
        return False
    joined = tests[0]
    for each in tests[1:]:
        joined = joined | each
    return joined


def _pattern(glob: str) -> str:
    """The pattern of a glob, which matches anywhere and in any case of letters (wildCardToRegexp)."""
    return "(?i)" + ".*".join(re.sub(r"([\\.+?()|\[\]{}^$])", r"\\\1", part) for part in glob.split("*"))


def _padded(value: Any) -> str:
    """A version with three parts, `7.5.0` for `7.5`: attributes have no others."""
    written = str(value).strip().removeprefix("v")
    try:
        return str(Semver.parse_normalized(written))
    except ValueError:
        return written
