"""Parameter objects of classic drivers, each read as the request that it meant.

Sources: `api/nvidia.com/resource/gpu/v1alpha1` of NVIDIA/k8s-dra-driver at 77d3dd2a, `pkg/apis/gpu/v1alpha2` of
intel/intel-resource-drivers-for-kubernetes v0.3.0, `api/example.com/resource/gpu/v1alpha1` of kubernetes-sigs/
dra-example-driver at e56da36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.catalog.vocabulary import mig_profiles
from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api import mapping
from dra_infra.migration.old_dra.configs import sharing_config
from dra_infra.migration.old_dra.invented_parameters import INVENTED, Invented, read_invented
from dra_infra.migration.old_dra.objects import (
    DRIVERS,
    EXAMPLE,
    INTEL,
    NVIDIA,
    Item,
    Remarks,
    driver_of_today,
    is_whole,
    text,
)
from dra_infra.migration.old_dra.property_selectors import Device, PropertySelector
from dra_infra.selectors.any_attribute import attribute, capacity
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector

MIG_CLASS: Final = "mig.nvidia.com"
_IS_NO_FIELD: Final = "the kind has no "


class Meant(NamedTuple):
    """The request that a parameters object means.

    Args:
        device_class: The class of devices.
        number: How many of them.
        selectors: CEL expressions.
        config: Opaque parameters for the driver, if any.
        parent: Name of the entry of the pod whose card the MIG device is to be on; empty where it may be any.
        on_card: What its card has to be like, for a GPU that was asked for only to be cut into MIG devices; None for all
            else.
    """

    device_class: str
    number: int = 1
    selectors: tuple[str, ...] = ()
    config: Mapping[str, Any] | None = None
    parent: str = ""
    on_card: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """The name of the request."""
        return {MIG_CLASS: "mig", NVIDIA: "gpu", INTEL: "gpu", EXAMPLE: "gpu"}.get(
            self.device_class, "device"
        )

    def exactly(self) -> dict[str, Any]:
        """The request's `exactly`."""
        fields: dict[str, Any] = {"deviceClassName": self.device_class}
        if self.selectors:
            fields["selectors"] = [{"cel": {"expression": each}} for each in self.selectors]
        if self.number > 1:
            fields["count"] = self.number
        return fields


def is_parameters(item: Item) -> bool:
    """Checks that an object is one of a classic driver's own kinds, which no server of today needs."""
    group, kind, _ = item.key
    return (driver_of_today(group), kind) in _READERS


def is_class_parameters(item: Item) -> bool:
    """Checks that an object is NVIDIA's or Intel's parameters of a class, but for Intel's that ask for admin access.

    NVIDIA's GpuClassParameters are in talks and articles, and were in no release.
    """
    group, kind, _ = item.key
    monitors = mapping(item.manifest.get("spec")).get("monitor")
    of_class = (driver_of_today(group), kind)
    return of_class in ((NVIDIA, "DeviceClassParameters"), (NVIDIA, "GpuClassParameters")) or (
        of_class == (INTEL, "GpuClassParameters") and not monitors
    )


def read_class_parameters(item: Item) -> list[str] | None:
    """Returns the CEL that parameters of a class mean; None where nobody can say, and its remarks say why.

    What they say of sharing goes without saying today.
    """
    if not is_class_parameters(item):
        return None
    fields = dict(mapping(item.manifest.get("spec")))
    if not fields or item.key.kind == "DeviceClassParameters" or driver_of_today(item.key.group) == INTEL:
        return []
    selector, _ = fields.pop("selector", None), fields.pop("sharing", None)
    if isinstance(selector, list) and len(selector) == 1:
        selector = selector[0]
    if fields or isinstance(selector, list):
        many = "" if fields else f"these are {len(selector)} selectors, and not one"
        message = many or f"a class has no {next(iter(fields))}"
        item.remarks.decide("spec", "parameter-not-known", message, "write a DeviceClass with what is meant")
        return None
    return _read_selector(selector, "gpu", item.remarks)


def read_parameters(item: Item) -> Meant | None:
    """Returns the meaning of a parameters object; None where nobody can say, and its remarks say why."""
    group, kind, _ = item.key
    spec = item.manifest.get("spec")
    if spec is not None and not isinstance(spec, Mapping):
        item.remarks.decide("spec", "parameter-not-known", "the spec is no object", "write the claim anew")
        return None
    found = _READERS[driver_of_today(group), kind](mapping(spec), item.remarks)
    # Servers left out what a kind of theirs has not. Kinds of other groups are of articles, and may have meant it.
    return (
        None if group not in DRIVERS and any(_IS_NO_FIELD in each.message for each in item.remarks) else found
    )


def _count(spec: Mapping[str, Any], remarks: Remarks) -> int | None:
    count = spec.get("count")
    if count is None:
        return 1
    if not is_whole(count) or not 1 <= count <= 2**31:
        message, hint = "the count is no number from 1 on", "write the count of the request"
        remarks.decide("spec.count", "parameter-not-known", message, hint)
        return None
    return int(count)


def _read_gpu(spec: Mapping[str, Any], remarks: Remarks) -> Meant | None:
    count = _count(spec, remarks)
    rest = _Rest(spec, remarks, ("count", "selector", "sharing", "migEnabled"))
    if count is None or rest.is_undecided:
        return None
    # Up to March 2023, at a2075fd4, there was no selector, and this stood in its place.
    selector = spec.get("selector", {"migEnabled": True} if spec.get("migEnabled") is True else None)
    selectors: list[str] = []
    if selector is not None:
        if _asks_for_mig(selector):
            found = _read_selector(selector, "mig", remarks)
            if found is None:
                return None
            if "sharing" in spec:
                message = "a card is not shared as a whole while it is cut into MIG devices"
                hint = "write the sharing into the configs of the MIG devices"
                remarks.lost("spec.sharing", "parameter-lost", message, hint)
            return Meant(NVIDIA, count, on_card=tuple(found))
        found = _read_selector(selector, "gpu", remarks)
        if found is None:
            return None
        selectors += found
    config = sharing_config(spec.get("sharing"), "GpuConfig", "spec.sharing", remarks)
    if config is None and spec.get("sharing"):
        # No driver took it; articles write strategy: MIG.
        return None
    device_class = rest.device_class or NVIDIA
    if device_class == MIG_CLASS and (selectors or config):
        message = "a profile of MIG beside what is said of a whole GPU"
        hint = "write a request for mig.nvidia.com"
        remarks.decide("spec", "parameter-not-known", message, hint)
        return None
    return Meant(device_class, count, (*selectors, *rest.selectors), config)


def _asks_for_mig(selector: Any, level: int = 0) -> bool:
    """True where a selector asks for a card in MIG mode, which was done to cut it into MIG devices."""
    node = mapping(selector)
    if node.get("migEnabled") is True:
        return True
    inner = node.get("andExpression")
    return level < 4 and isinstance(inner, list) and any(_asks_for_mig(each, level + 1) for each in inner)


def _read_selector(selector: Any, device: Device, remarks: Remarks) -> list[str] | None:
    """The CEL of a selector; None where no device passes it, or nobody can say which do."""
    reader = PropertySelector(device, remarks)
    meaning = reader.read(selector, "spec.selector")
    if reader.is_undecided:
        return None
    if isinstance(meaning, Selector):
        try:
            return [meaning.expression()]
        except ProblemsError as error:
            message = str(error.problems[0].message)
            hint = "write the selector anew"
            remarks.decide("spec.selector", "parameter-not-known", message, hint)
            return None
    if meaning is False:
        message, hint = "no device of the class passes the selector", "write it anew"
        remarks.decide("spec.selector", "parameter-not-known", message, hint)
        return None
    return []


def _read_mig(spec: Mapping[str, Any], remarks: Remarks) -> Meant | None:
    rest = _Rest(spec, remarks, ("profile", "sharing", "gpuClaimName", "count"))
    profile = text(spec.get("profile"))
    count = _count(spec, remarks)
    if profile not in mig_profiles():
        message, hint = "no GPU has a MIG profile of that name", "write one, such as 1g.10gb"
        remarks.decide("spec.profile", "parameter-not-known", message, hint)
        return None
    if count is None or rest.is_undecided:
        return None
    config = sharing_config(spec.get("sharing"), "MigDeviceConfig", "spec.sharing", remarks)
    selectors = ((gpu.profile == profile).expression(), *rest.selectors)
    return Meant(MIG_CLASS, count, selectors, config, text(spec.get("gpuClaimName")))


def _read_compute_instance(_: Mapping[str, Any], remarks: Remarks) -> Meant | None:
    message = "a part of a MIG device, a compute instance, is given out by no driver of today"
    hint = "write a claim for a MIG device of its own, with a profile such as 1g.10gb"
    remarks.lost("spec", "parameter-lost", message, hint)
    return None


def _read_intel(spec: Mapping[str, Any], remarks: Remarks) -> Meant | None:
    count = _count(spec, remarks)
    rest = _Rest(spec, remarks, ("count", "type", "memory", "millicores"))
    if count is None or rest.is_undecided:
        return None
    tests: list[Selector] = []
    kind = spec.get("type")
    if kind in ("gpu", "vf"):
        tests.append(attribute(f"{INTEL}/type", "string") == kind)
    elif kind not in (None, "", "any"):
        remarks.decide("spec.type", "parameter-not-known", "there are gpu, vf and any", "write the test anew")
    memory = spec.get("memory")
    if isinstance(memory, int) and is_whole(memory) and memory > 0:
        tests.append(capacity(f"{INTEL}/memory") >= f"{memory}Mi")
        # Values 36 and 91 of charts/intel-gpu-resource-driver, and doc/gpu/USAGE.md, at 1da939fa.
        message = "Intel's driver publishes a memory of 0 as its chart installs it, so that no device is large enough"
        hint = "deploy xpumd, or install the driver with kubeletPlugin.privileged: true; or leave memory out"
        remarks.lost("spec.memory", "controller-setting-needed", message, hint)
    elif memory:
        message, hint = "the memory is no number of MiB", "write the test anew"
        remarks.decide("spec.memory", "parameter-not-known", message, hint)
    shared = [name for name in ("memory", "millicores") if spec.get(name)]
    if shared:
        message = "claims shared a card by memory and millicores, and each gets a card of its own now"
        hint = "let pods share one claim, or ask for a part with capacity where the driver and the cluster have it"
        remarks.lost(f"spec.{shared[0]}", "parameter-lost", message, hint)
    return Meant(INTEL, count, tuple(each.expression() for each in tests))


def _read_example(spec: Mapping[str, Any], remarks: Remarks) -> Meant | None:
    count = _count(spec, remarks)
    rest = _Rest(spec, remarks, ("count",))
    return None if count is None or rest.is_undecided else Meant(EXAMPLE, count)


_READERS: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any], Remarks], Meant | None]]] = {
    (NVIDIA, "GpuClaimParameters"): _read_gpu,
    (NVIDIA, "MigDeviceClaimParameters"): _read_mig,
    (NVIDIA, "ComputeInstanceClaimParameters"): _read_compute_instance,
    (INTEL, "GpuClaimParameters"): _read_intel,
    (EXAMPLE, "GpuClaimParameters"): _read_example,
}


class _Rest:
    """Finds the fields of a spec beside the fields that its kind has: the forms of articles, and what nobody knows.

    Args:
        spec: The spec.
        remarks: Where doubts are taken down.
        known: The fields of the kind.
    """

    def __init__(self, spec: Mapping[str, Any], remarks: Remarks, known: tuple[str, ...]) -> None:
        found = read_invented(
            {name: value for name, value in spec.items() if name not in known and name in INVENTED},
            lambda name: f"spec.{name}",
            remarks,
        )
        for name in spec:
            if name not in known and name not in INVENTED:
                message = f"{_IS_NO_FIELD}{name}"
                hint = "leave it out, or write what it was to do"
                remarks.decide(f"spec.{name}", "parameter-not-known", message, hint)
        self._found: Invented = found

    @property
    def selectors(self) -> tuple[str, ...]:
        """The selector that devices have to pass."""
        return self._found.selectors

    @property
    def device_class(self) -> str:
        """The class, where these fields decide it."""
        return MIG_CLASS if self._found.is_mig else ""

    @property
    def is_undecided(self) -> bool:
        """True where they leave open which devices are meant."""
        return self._found.is_undecided
