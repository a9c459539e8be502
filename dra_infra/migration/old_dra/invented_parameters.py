"""Fields that articles and tools before this one write into requests and parameters, and that no driver had.

What can have one meaning only is written as a selector or a class; of the rest a person has to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.catalog.gpus import capabilities, find_products
from dra_infra.catalog.vocabulary import mig_profiles
from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api import mapping, quantity_text
from dra_infra.migration.old_dra.objects import Remarks, text
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector

INVENTED: Final = frozenset(
    {
        "capabilities",
        "gpuModel",
        "memory",
        "memoryLimit",
        "memoryPerGpu",
        "migProfile",
        "minMemory",
        "mode",
        "model",
        "partitionRequest",
        "topology",
    }
)
"""The fields; `product` and `productName` of a selector are real ones."""

_OF_CONTAINERS: Final = frozenset(
    {"compute", "utility", "graphics", "video", "display", "compat32", "ngx", "all"}
)
"""Capabilities of the legacy container runtime, which CDI gives without being asked."""


class Invented(NamedTuple):
    """The meaning of invented fields.

    Args:
        selectors: CEL expressions.
        is_mig: Whether MIG devices are meant.
        is_undecided: Whether they leave open which devices are meant.
    """

    selectors: tuple[str, ...] = ()
    is_mig: bool = False
    is_undecided: bool = False


def read_invented(fields: Mapping[str, Any], at: Callable[[str], str], remarks: Remarks) -> Invented:
    """Reads *fields*, each of which is one of `INVENTED`.

    Args:
        fields: The fields.
        at: Gives the path of a field.
        remarks: Where it is taken down what they mean.
    """
    reader = _Reader(at, remarks)
    for name, value in fields.items():
        try:
            reader.read(name, value)
        except ProblemsError as error:
            reader.doubt(name, error.problems[0].message, "write a selector")
    try:
        selectors = tuple(each.expression() for each in reader.tests)
    except ProblemsError as error:
        reader.doubt("model", error.problems[0].message, "write a selector")
        selectors = ()
    return Invented(selectors, reader.is_mig, reader.is_undecided)


class _Reader:
    def __init__(self, at: Callable[[str], str], remarks: Remarks) -> None:
        self._at = at
        self._remarks = remarks
        self.tests: list[Selector] = []
        self.is_mig = self.is_undecided = False

    def read(self, name: str, value: Any) -> None:
        if name in ("memory", "memoryPerGpu", "minMemory"):
            self._memory(name, value)
        elif name in ("model", "gpuModel"):
            self._model(name, value)
        elif name == "migProfile":
            self._profile(name, value)
        elif name == "partitionRequest":
            inner = mapping(value)
            known = set(inner) <= {"profile", "migProfile"} and len(inner) == 1
            self._profile(name, next(iter(inner.values())) if known else value)
        elif name == "capabilities":
            self._capabilities(name, value)
        elif name == "mode" and value == "exclusive":
            self._told(name, "every claim has its devices for itself")
        elif name in ("mode", "memoryLimit"):
            message = "a GPU is not shared by a word: there are several ways, and each needs something of the driver"
            hint = "let the pods share one claim, with MPS and defaultPinnedDeviceMemoryLimit for a limit, or take MIG devices"
            self.doubt(name, message, hint)
        else:
            message = "no driver publishes how GPUs are joined"
            hint = "on a board with NVSwitch a count is enough; across nodes use a ComputeDomain"
            self.doubt(name, message, hint)

    def _memory(self, name: str, value: Any) -> None:
        # A bare number may be of any unit.
        amount = quantity_text(value) if isinstance(value, str) and not value.strip().isdigit() else None
        if amount is None:
            self._undecided(name, "the memory has no unit", 'write one, such as "40Gi"')
            return
        self.tests.append(gpu.memory >= amount)
        self._told(name, f"at least {amount} of memory is a selector now")

    def _model(self, name: str, value: Any) -> None:
        products = find_products(value) if isinstance(value, str) else ()
        if not products:
            message = "no GPU is known by that name"
            hint = 'write device.attributes["gpu.nvidia.com"].productName == "..."'
            self._undecided(name, message, hint)
            return
        self.tests.append(gpu.product.one_of(*products) if len(products) > 1 else gpu.product == products[0])
        self._told(name, f"the model is the product name of {' or '.join(products)}")

    def _profile(self, name: str, value: Any) -> None:
        # The device plugin's name of it begins with mig-.
        value = text(value).removeprefix("mig-")
        if value not in mig_profiles():
            self._undecided(name, "no GPU has a MIG profile of that name", "write one, such as 1g.10gb")
            return
        self.is_mig = True
        self.tests.append(gpu.profile == value)
        self._told(name, f"the profile {value} is a selector on devices of mig.nvidia.com now")

    def _capabilities(self, name: str, value: Any) -> None:
        for index, each in enumerate(value if isinstance(value, list) else [value]):
            at = f"{name}[{index}]" if isinstance(value, list) else name
            known = capabilities().get(text(each).lower())
            if known is not None:
                self.tests.append(gpu.compute_capability >= known.since)
                self._told(at, f"{each} is compute capability {known.since} and more")
            elif text(each).lower() in _OF_CONTAINERS:
                self._told(at, f"{each} was for the container runtime; the driver of today gives it unasked")
            else:
                message, hint = "no GPU has a capability of that name", "write a selector for what is meant"
                self._undecided(at, message, hint)

    def _told(self, name: str, message: str) -> None:
        self._remarks.changed(self._at(name), "parameter-rewritten", message)

    def _undecided(self, name: str, message: str, hint: str) -> None:
        self.is_undecided = True
        self.doubt(name, message, hint)

    def doubt(self, name: str, message: str, hint: str) -> None:
        self._remarks.decide(self._at(name), "parameter-not-known", message, hint)
