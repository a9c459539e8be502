"""Devices that containers of a pod ask device plugins for, each with what it means or why that cannot be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.kubernetes.api import Quantity, WorkloadKinds, mapping, value_at
from dra_infra.migration.controllers import NO_CONTROLLERS, Controllers
from dra_infra.migration.device_plugin import (
    OTHERS,
    DevicePlugin,
    Replicas,
    RequestedDevices,
    find_other_form,
    is_device,
    read_resource,
    tell_other_form,
)
from dra_infra.migration.outcomes import Remark

SAY_PLUGIN: Final = (
    "add --whole-gpus, --plugin-config FILE, --snapshot FILE, or --context NAME, which asks the cluster"
)
_MOST_DEVICES: Final = 2**31
_MOST_MPS: Final = 48
"""Processes that MPS serves on one GPU (cmd/mps-control-daemon/mps of NVIDIA/k8s-device-plugin)."""

_COUNTED_BY_RAY: Final = re.compile(r".*gpu$|nvidia\.com/mig-\d+g\.\d+gb$")
_OF_GPUS: Final = ("nvidia.com/gpu", "nvidia.com/mig-", "alpha.kubernetes.io/nvidia-gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Facts that a migration knows of the cluster.

    Args:
        plugin: How NVIDIA's plugin serves the cluster; None where nobody said.
        say_plugin: What to do where nobody said it.
        no_shares: Why claims cannot take shares of a GPU there; empty where they can.
        mps_memory: MiB of a GPU that pods of a workload share by a claim under MPS; 0 where they are not to.
        pods: How many pods would share it; 0 where that is not known.
        intel_shares: How many containers Intel's plugin lets share a GPU.
        per_node: Whether a workload has a pod on each node that it chooses, as a DaemonSet.
        kinds: Kinds of objects that make pods.
        controllers: Releases of controllers of other projects, as the input has them.
        serving_mode: The mode in which KServe serves by default; empty where it is not known.
        mapped_classes: Classes that Kueue's configuration in the input maps.
    """

    plugin: DevicePlugin | None = None
    say_plugin: str = SAY_PLUGIN
    no_shares: str = ""
    mps_memory: int = 0
    pods: int = 0
    intel_shares: int = 1
    per_node: bool = False
    kinds: WorkloadKinds = field(default_factory=workload_kinds, repr=False)
    controllers: Controllers = NO_CONTROLLERS
    serving_mode: str = ""
    mapped_classes: frozenset[str] = frozenset()


class Need(NamedTuple):
    """Devices that a container asks for by one resource.

    Args:
        requested: What the resource means.
        number: How many, from 1 on.
        path: Where it stands, below the pod spec.
    """

    requested: RequestedDevices
    number: int
    path: str


@dataclass(slots=True)
class ContainerNeeds:
    """The devices that one container asks device plugins for.

    Args:
        path: The container, below the pod spec.
        container: As it is written.
        needs: Devices that a claim can give.
        gone: Names of resources that the container asks for no longer.
        remarks: What becomes of each resource.
        is_blocked: Whether somebody has to decide before the pod can be migrated.
    """

    path: str
    container: Mapping[str, Any]
    needs: list[Need] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    remarks: list[Remark] = field(default_factory=list)
    is_blocked: bool = False

    @property
    def ends(self) -> bool:
        """True for an init container that is no sidecar: it ends before the others start."""
        return self.path.startswith("initContainers") and self.container.get("restartPolicy") != "Always"

    @property
    def shape(self) -> list[tuple[RequestedDevices, int]]:
        """The devices, wherever they are written."""
        return [(need.requested, need.number) for need in self.needs]

    @property
    def is_nvidia(self) -> bool:
        """True where one of the devices is of NVIDIA's driver."""
        return any(need.requested.class_name.endswith(".nvidia.com") for need in self.needs)


def containers_of(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The containers of a pod spec with their paths, init containers first."""
    for kind in ("initContainers", "containers"):
        items = spec.get(kind)
        for index, each in enumerate(items if isinstance(items, list) else ()):
            if isinstance(each, Mapping):
                yield f"{kind}[{index}]", each


def asks_devices(spec: Mapping[str, Any]) -> bool:
    """True where a container of a pod spec asks a device plugin for something, zero included."""
    return any(
        is_device(name)
        for _, container in containers_of(spec)
        for part in ("limits", "requests")
        for name in mapping(value_at(container, "resources", part))
    )


def counted_by_ray(needs: Iterable[Need]) -> int:
    """The GPUs that KubeRay tells Ray of: the number of the first resource, by name, that it takes for GPUs; 0 for none.

    Source: addWellKnownAcceleratorResources in ray-operator/controllers/ray/common/pod.go of KubeRay 1.6.
    """
    numbers = sorted((need.requested.resource, need.number) for need in needs)
    return next((number for name, number in numbers if is_gpu_of_ray(name)), 0)


def is_gpu_of_ray(resource: str) -> bool:
    """True for a name that KubeRay takes for GPUs, in limits or in the resources of a group."""
    return bool(_COUNTED_BY_RAY.match(resource.lower()))


def read_needs(path: str, container: Mapping[str, Any], settings: Settings) -> ContainerNeeds:
    """Reads what a container asks device plugins for."""
    found = ContainerNeeds(path, container)
    resources = mapping(container.get("resources"))
    limits, requests = mapping(resources.get("limits")), mapping(resources.get("requests"))
    for name in dict.fromkeys((*limits, *requests)):
        if not is_device(name):
            continue
        part = "limits" if name in limits else "requests"
        at = f"{path}.resources.{part}[{name}]"
        count = _read_count(resources[part][name])
        form = find_other_form(name)
        if count == 0 and not (form and form.even_none):
            found.gone.add(name)
            message = f"{name}: 0 asks for nothing, and is left out"
            found.remarks.append(Remark(at, "changed", "no-devices", message))
            continue
        requested = read_resource(name, settings.plugin)
        if settings.no_shares and not isinstance(requested, str):
            requested = requested._replace(others=frozenset())
        refusal: Remark | None
        if count is None and form is None:
            refusal = _not_a_number(at, name, resources[part][name])
        elif isinstance(requested, str):
            refusal = _not_clear(at, name, requested, settings)
        elif is_share(name, settings):
            refusal = _share_of_intel(at, requested, settings)
        else:
            refusal = _refuse_replicas(at, requested, count or 0, settings)
        if refusal is not None:
            found.remarks.append(refusal)
            found.is_blocked |= refusal.outcome == "decide"
        elif count is not None and not isinstance(requested, str):
            found.gone.add(name)
            found.needs.append(Need(requested, count, at))
    return found


def _read_count(written: Any) -> int | None:
    if isinstance(written, bool) or not isinstance(written, (int, float, str)):
        return None
    try:
        amount = Quantity.parse(str(written)).value
    except ValueError:
        return None
    return amount.numerator if amount.denominator == 1 and 0 <= amount < _MOST_DEVICES else None


def _not_a_number(at: str, name: str, written: Any) -> Remark:
    hint = "migrate what a template or a chart makes of it: helm template CHART | dra-infra migrate -"
    message = f"{name}: {str(written)[:60]!r} is no number of devices, so it stays as it is"
    return Remark(at, "decide", "quantity-not-a-number", message, hint)


def is_share(name: str, settings: Settings) -> bool:
    """True for a resource of Intel's plugin where several containers share each of its GPUs."""
    return settings.intel_shares > 1 and name in OTHERS and OTHERS[name].class_name == "gpu.intel.com"


def _share_of_intel(at: str, requested: RequestedDevices, settings: Settings) -> Remark:
    message = f"{requested.resource} is a share of a GPU, which Intel's plugin gives up to {settings.intel_shares} containers; its driver gives it to one claim"
    hint = "make a ResourceClaim for gpu.intel.com, and name it by resourceClaimName in all pods that are to share a GPU; with shared-dev-num 1 each gets its own"
    return Remark(at, "decide", "other-device-form", message, hint)


def _not_clear(at: str, name: str, reason: str, settings: Settings) -> Remark:
    if form := tell_other_form(at, name):
        return form
    if not name.startswith(_OF_GPUS):
        return Remark(at, "kept", "resource-not-served", f"{name} stays as it is: {reason}")
    if settings.plugin is None:
        may_be = "a MIG device or a replica" if "/mig-" in name else "a whole GPU, a MIG device or a replica"
        message = f"{name} is {may_be} of one, and nobody said which"
        return Remark(at, "decide", "plugin-not-known", message, settings.say_plugin)
    hint = "say it by --plugin-config FILE, by --snapshot FILE or --context NAME, by --mig-profile PROFILE where its strategy is single, or by labels in nodeSelector: of GKE, of nodes that are alike, or of a configuration"
    return Remark(at, "decide", "resource-not-clear", f"{name}: {reason}", hint)


def _refuse_replicas(at: str, requested: RequestedDevices, count: int, settings: Settings) -> Remark | None:
    """Why a replica cannot become a share of a device; None where it can, and for whole devices."""
    replicas = requested.replicas
    if replicas is None:
        return None
    if requested.is_under_mps:
        if settings.mps_memory and not (why := _why_no_mps(requested, count, replicas.number, settings)):
            return None
        why = why if settings.mps_memory else "claims that take shares of a GPU have no MPS"
        message = f"{requested.resource}: {count} is a replica under MPS; {why}"
        option = (
            ""
            if settings.mps_memory or requested.profile
            else "add --mps-memory for pods of one workload; or "
        )
        hint = f"{option}{_other_sharing(requested, replicas)}"
        return Remark(at, "decide", "mps-replicas", message, hint)
    if count > 1:
        why = (
            "and the plugin gives a container no more than one"
            if replicas.one_each
            else "perhaps of one GPU: more of them is no more of a GPU"
        )
        message = f"{requested.resource}: {count} is {count} replicas, {why}"
        return Remark(at, "decide", "several-replicas", message, "ask for one, or for whole GPUs")
    if requested.profile:
        # Only its memory has a requestPolicy (consumable_shares.go in cmd/gpu-kubelet-plugin of the driver 0.5), and of what has none
        # a claim takes all (consumable_capacity.go in k8s.io/dynamic-resource-allocation).
        message = f"{requested.resource}: {count} is one of {replicas.number} replicas of a MIG device by time slicing; a claim takes all of its multiprocessors, and leaves none for others"
        return Remark(at, "decide", "no-shares", message, _other_sharing(requested, replicas))
    if settings.no_shares:
        message = f"{requested.resource}: {count} is one of {replicas.number} replicas by time slicing: {settings.no_shares}"
        hint = f"use Kubernetes 1.36 with driver 0.5; or {_other_sharing(requested, replicas)}"
        return Remark(at, "decide", "no-shares", message, hint)
    return None


def _why_no_mps(requested: RequestedDevices, count: int, number: int, settings: Settings) -> str:
    """Why the pods of a workload cannot share a GPU by one claim; empty where they can, each with what it had."""
    if requested.profile:
        return "it is one of a MIG device, and the claim would have MPS for a whole GPU"
    if count > 1:
        return "the plugin gives a container no more than one"
    if number > _MOST_MPS:
        return f"MPS serves at most {_MOST_MPS} on one GPU, and these are {number}"
    if number > settings.mps_memory:
        return f"--mps-memory leaves less than 1Mi for each of {number}"
    if not settings.pods:
        return "how many pods would share a claim is not fixed"
    if settings.pods > number:
        return f"{settings.pods} pods are more than share a GPU, and one claim has one for all of them"
    return ""


def _other_sharing(requested: RequestedDevices, replicas: Replicas) -> str:
    """Ways to share a device without shares of a claim, with the limits that the plugin's MPS daemon sets for as many replicas."""
    if requested.profile:
        return "use smaller MIG devices, by dra.MigPartition"
    mig = f"use MIG, by dra.MigPartition with 1/{replicas.number} of the memory"
    if replicas.number > _MOST_MPS:
        return mig
    return (
        'share a claim by dra.SharedGpu(across="pods", sharing=dra.Mps('
        f"active_thread_percentage={100 // replicas.number}, pinned_device_memory_limit=...)), 1/{replicas.number} of "
        f"the memory, whose pods run on one node and which needs the driver's gate MPSSupport; or {mig}"
    )
