"""`gpu`: the attributes NVIDIA's driver publishes for GPUs and MIG devices, by Python names and with types.

Upstream: the GPU and MIG device builders of the NVIDIA DRA driver (kubernetes-sigs/dra-driver-nvidia-gpu), up to
release 0.5.

Some attributes are published by releases of a driver under different names: a selector reads each, behind its own
guard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from dra_infra.errors import SelectorError
from dra_infra.output.wording import nearest
from dra_infra.selectors.any_attribute import CapacityAmount, VersionAttribute
from dra_infra.selectors.attributes import COMPARISONS, BoolAttribute, IntAttribute, TextAttribute
from dra_infra.selectors.reference import Absence, Presence, Reference
from dra_infra.selectors.selector import Condition, Every, Selector, Some, condition_of, is_comparison


@dataclass(frozen=True, slots=True, repr=False)
class UnderAnyName(Selector):
    """One test under each name, of which a device has at most one.

    A device under the other name fails a test and its negation alike, so both are true where one of the names passes.
    Only for absence every name must be missing.
    """

    _tests: tuple[Selector, ...]

    def _clause(self, *, negated: bool) -> Condition:
        """The tests, or their negations."""
        parts = tuple(condition_of(test, negated=negated) for test in self._tests)
        means_absence = isinstance(self._tests[0], Presence if negated else Absence)
        return Every(parts) if means_absence else Some(parts)

    @property
    def _is_comparison(self) -> bool:
        """It is written with an operator."""
        return is_comparison(self._tests[0])

    def __repr__(self) -> str:
        return repr(self._tests[0])


class RenamedText(TextAttribute):
    """A text that has one name in newer releases and another in older ones; constraints use the newest name."""

    __slots__ = ("_names",)

    def __init__(self, newest: Reference, *older: Reference) -> None:
        super().__init__(newest)
        self._names = tuple(map(TextAttribute, (newest, *older)))

    def exists(self) -> Selector:
        """True for devices that have it under one of the names."""
        return UnderAnyName(tuple(name.exists() for name in self._names))

    def missing(self) -> Selector:
        """True for devices that have it under none of the names."""
        return UnderAnyName(tuple(name.missing() for name in self._names))

    def _compare(self, operator: str, other: object) -> Selector:
        """`==` and `!=` with a text."""
        return self._each(lambda name: COMPARISONS[operator](name, other))

    def _method(self, function: str, text: str) -> Selector:
        """`contains`, `startsWith`, `endsWith` and `matches`."""
        return self._each(lambda name: TextAttribute._method(name, function, text))  # noqa: SLF001  (of its base)

    def one_of(self, *values: str) -> Selector:
        """True when the value is one of these."""
        return self._each(lambda name: name.one_of(*values))

    def _each(self, test: Callable[[TextAttribute], Selector]) -> Selector:
        return UnderAnyName(tuple(map(test, self._names)))


DRIVER: Final = "gpu.nvidia.com"
STANDARD_DOMAIN: Final = "resource.kubernetes.io"
"""The domain of attributes that mean the same for every driver."""

_ELSEWHERE: Final = {
    "model": "product",
    "name": "product",
    "product_name": "product",
    "vram": "memory",
    "framebuffer": "memory",
    "cuda_compute_capability": "compute_capability",
    "pcie_bus_id": "pci_address",
    "mig_profile": "profile",
    "numa": "numa_node",
}
"""Names that people try, and the one that is meant."""

_ONLY_OLDEST: Final = 'only driver 25.3 publishes it: for that one write attribute("gpu.nvidia.com/{}")'
_INSTEAD: Final = {
    "capabilities": 'write with_capabilities("tensor-cores")',
    "capability": 'write with_capabilities("tensor-cores")',
    "index": _ONLY_OLDEST.format("index"),
    "minor": _ONLY_OLDEST.format("minor"),
    "parent_index": _ONLY_OLDEST.format("parentIndex"),
}
"""Names that people try, and what to write where no attribute is meant."""


class UnknownNameError(SelectorError, AttributeError):
    """A name that NVIDIA's driver does not publish."""


def _reference(label: str, identifier: str, domain: str = DRIVER) -> Reference:
    return Reference(section="attributes", domain=domain, identifier=identifier, label=f"gpu.{label}")


def _text(label: str, identifier: str, domain: str = DRIVER) -> TextAttribute:
    return TextAttribute(_reference(label, identifier, domain))


def _bool(label: str, identifier: str) -> BoolAttribute:
    return BoolAttribute(_reference(label, identifier))


def _int(label: str, identifier: str, domain: str = DRIVER) -> IntAttribute:
    return IntAttribute(_reference(label, identifier, domain))


def _version(label: str, identifier: str) -> VersionAttribute:
    return VersionAttribute(_reference(label, identifier))


def _capacity(label: str, identifier: str) -> CapacityAmount:
    return CapacityAmount(
        Reference(section="capacity", domain=DRIVER, identifier=identifier, label=f"gpu.{label}")
    )


class Gpu:
    """Attributes and capacities of the driver gpu.nvidia.com.

    What only MIG devices have is missing on whole GPUs, and a test on it is false there: `gpu.profile.missing()` are
    the whole GPUs.
    """

    product = _text("product", "productName")
    """As NVML says it, `NVIDIA H100 80GB HBM3`; the parent's on a MIG device."""
    architecture = _text("architecture", "architecture")
    """`Ampere`, `Ada Lovelace`, `Hopper`, `Blackwell` ..."""
    brand = _text("brand", "brand")
    """`Nvidia` on data-centre cards, `Tesla` on older drivers."""
    type = _text("type", "type")
    """`gpu`, `mig` or `vfio`."""
    uuid = _text("uuid", "uuid")
    """Absent on MIG devices that do not exist yet."""
    compute_capability = _version("compute_capability", "cudaComputeCapability")
    """`9.0.0` on Hopper."""
    driver_version = _version("driver_version", "driverVersion")
    """`580.126.20`; leading zeros vanish."""
    cuda_version = _version("cuda_version", "cudaDriverVersion")
    """`13.0.0`: the newest CUDA that the driver runs."""
    cuda_driver_version = _version("cuda_driver_version", "cudaDriverVersion")
    """The same, by the driver's own name."""
    addressing_mode = _text("addressing_mode", "addressingMode")
    """`HMM`, `ATS` or `None`."""
    profile = _text("profile", "profile")
    """`1g.10gb`; MIG devices only."""
    parent_uuid = _text("parent_uuid", "parentUUID")
    """The GPU of a MIG device."""
    pci_bus_id = _text("pci_bus_id", "pciBusID", STANDARD_DOMAIN)
    """`0000:65:00.0`; since driver 25.12."""
    pci_address = RenamedText(
        _reference("pci_address", "pciBusID", STANDARD_DOMAIN), _reference("pci_address", "pcieBusID")
    )
    """The same in every release: up to 25.8 the driver publishes it as `pcieBusID` of its own domain."""
    pcie_root = _text("pcie_root", "pcieRoot", STANDARD_DOMAIN)
    """`pci0000:64`."""
    numa_node = _int("numa_node", "numaNode", STANDARD_DOMAIN)
    """Since driver 0.5; absent where the machine does not say."""
    module_id = _int("module_id", "gpuModuleID")
    """Only with the driver's gate FabricManagerPartitioning, like the partitions."""
    partition1 = _int("partition1", "partition1")
    """The fabric partition of one GPU that this one is."""
    partition2 = _int("partition2", "partition2")
    """The fabric partition of two GPUs that this one belongs to."""
    partition4 = _int("partition4", "partition4")
    """The fabric partition of four GPUs that this one belongs to."""
    partition8 = _int("partition8", "partition8")
    """The fabric partition of eight GPUs that this one belongs to."""
    device_id = _text("device_id", "deviceID")
    """`0x20b0`; VFIO devices have it."""
    vendor_id = _text("vendor_id", "vendorID")
    """`0x10de`; VFIO devices have it."""
    iommu_fd_enabled = _bool("iommu_fd_enabled", "iommuFDEnabled")
    """Whether the host offers the file descriptors of iommufd; since driver 0.4. VFIO devices have it."""

    memory = _capacity("memory", "memory")
    """What NVML reports, a little below the nominal size: 79.6Gi on an 80 GB card."""
    multiprocessors = _capacity("multiprocessors", "multiprocessors")
    """Streaming multiprocessors of a MIG device."""
    copy_engines = _capacity("copy_engines", "copyEngines")
    """DMA engines of a MIG device."""
    decoders = _capacity("decoders", "decoders")
    """NVDEC engines of a MIG device."""
    encoders = _capacity("encoders", "encoders")
    """NVENC engines of a MIG device."""
    jpeg_engines = _capacity("jpeg_engines", "jpegEngines")
    """JPEG engines of a MIG device."""
    ofa_engines = _capacity("ofa_engines", "ofaEngines")
    """Optical flow engines of a MIG device."""
    shares = _capacity("shares", "shares")
    """Where several claims share a device: with the driver's gate ConsumableShares and a number of shares."""
    addressable_memory = _capacity("addressable_memory", "addressableMemory")
    """Memory that a VFIO device can address."""

    __slots__ = ()

    def _refuse_name(self, name: str) -> NoReturn:
        if name.startswith("__"):
            # Copying, pickling and the like ask for names that must simply not be there.
            raise AttributeError(name)
        known = [entry for entry in vars(type(self)) if not entry.startswith("_")]
        meant = _ELSEWHERE.get(name) or nearest(name, known)
        hint = (
            f"write gpu.{meant}"
            if meant
            else f'known are {", ".join(sorted(known))}; of others write attribute("domain/{name}")'
        )
        raise UnknownNameError(
            f"gpu.{name}: NVIDIA's driver publishes no such attribute or capacity",
            code="selector-invalid-value",
            hint=_INSTEAD.get(name, hint),
        )

    if not TYPE_CHECKING:
        # Type checkers would take any name for one that there is.
        __getattr__ = _refuse_name

    def __repr__(self) -> str:
        return "gpu"


gpu: Final = Gpu()
