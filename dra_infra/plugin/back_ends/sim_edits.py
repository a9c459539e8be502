"""Container edits for simulated devices: the variables of Kubernetes' example driver, and a file.

Source: nvidia.md 11.4, the table of the example driver's variables; NVIDIA_VISIBLE_DEVICES and
CUDA_MPS_PIPE_DIRECTORY are those of NVIDIA's driver, which injects device files where we have only names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.kubernetes.api import Quantity
from dra_infra.plugin.back_ends.sim_node import NVIDIA, SimulatedNode
from dra_infra.plugin.claims import Claim, ClaimDevice, Edits, Mount
from dra_infra.plugin.configs import EffectiveConfig

MARKER: Final = "/var/run/dra-infra/{driver}/{uid}.json"
"""Path of a claim's file in a container."""

_MIB: Final = 2**20
_RATES: Final = {"ingressBandwidth": "INGRESS_RATE", "egressBandwidth": "EGRESS_RATE"}
_BURSTS: Final = {"ingressBurst": "INGRESS_BURST", "egressBurst": "EGRESS_BURST"}


def edits_of(
    node: SimulatedNode, claim: Claim, configs: Sequence[EffectiveConfig], marker: str
) -> tuple[Edits, ...]:
    """Variables and the mounted file, whose path on the node is *marker*, for each device of a claim.

    Variables are named after the driver, the device and, where a claim may have the device twice, the share: within a
    claim none has two values.
    """
    mount = Mount(host_path=marker, container_path=MARKER.format(driver=node.driver, uid=claim.uid))
    common = tuple(_common(node, claim))
    seen: set[str] = set()
    edits = []
    for device, config in zip(claim.devices, configs, strict=True):
        env = [*common, *_of_device(node, claim, device, config)]
        if device.device not in seen:
            # A second share of a device has these under its own name alone.
            env += _of_share(device, variable_of(node, device.device))
        if device.share_id:
            env += _of_share(
                device, f"{variable_of(node, device.device)}_SHARE_{device.share_id[:8].upper()}"
            )
        seen.add(device.device)
        edits.append(Edits(env=tuple(dict.fromkeys(env)), mounts=(mount,)))
    return tuple(edits)


def marker_of(node: SimulatedNode, claim: Claim, configs: Sequence[EffectiveConfig]) -> dict[str, Any]:
    """Content of the mounted file."""
    return {
        "driver": node.driver,
        "node": node.name,
        "claim": {"namespace": claim.namespace, "name": claim.name, "uid": claim.uid},
        "devices": [
            {
                "name": device.device,
                "request": device.request,
                "shareID": device.share_id,
                "adminAccess": device.admin_access,
                "consumedCapacity": dict(device.capacity),
                "config": {"kind": config.kind, **config.values} if config.kind else {},
                "uuid": uuid_of(node, device.device),
            }
            for device, config in zip(claim.devices, configs, strict=True)
        ],
    }


def uuid_of(node: SimulatedNode, device: str) -> str:
    """The UUID of a device; of a MIG device that is made on demand the one that it always gets; empty without one."""
    published = node.attribute(device, "uuid")
    return str(published or (node.made_uuid(device) if node.is_made(device) else ""))


def variable_of(node: SimulatedNode, device: str) -> str:
    """Prefix of a device's variables: GPU_DEVICE_0 of gpu-0, GPU_DEVICE_0_PARTITION_1 of gpu-0-partition-1."""
    class_ = _class(node)
    short = {"net": "nic", "cpu": "numa"}.get(class_.lower(), class_.lower())
    return f"{class_}_DEVICE_{_upper(device.removeprefix(f'{short}-'))}"


def _class(node: SimulatedNode) -> str:
    """The driver's first label: the example driver calls its devices after its profile, gpu, net or cpu."""
    return _upper(node.origin.partition(".")[0])


def _common(node: SimulatedNode, claim: Claim) -> Iterator[str]:
    yield f"KUBERNETES_NODE_NAME={node.name}"
    yield f"DRA_RESOURCE_DRIVER_NAME={node.driver}"
    admin = any(device.admin_access for device in claim.devices)
    yield f"DRA_ADMIN_ACCESS={'true' if admin else 'false'}"
    if node.origin == NVIDIA:
        # The legacy runtime hook would give the container all GPUs, or those that its image asks for.
        yield "NVIDIA_VISIBLE_DEVICES=void"


def _of_device(
    node: SimulatedNode, claim: Claim, device: ClaimDevice, config: EffectiveConfig
) -> Iterator[str]:
    name = variable_of(node, device.device)
    yield f"{_class(node)}_DEVICE_{_upper(device.device)}_RESOURCE_CLAIM={claim.uid}"
    if _class(node) != "NET":
        yield f"{name}={device.device}"
    yield from _of_config(name, config)
    if node.origin == NVIDIA:
        if uuid := uuid_of(node, device.device):
            yield f"{name}_UUID={uuid}"
        if node.type_of(device.device) == "mig":
            yield f"{name}_PROFILE={node.attribute(device.device, 'profile')}"
            yield f"{name}_PARENT_UUID={node.attribute(device.device, 'parentUUID')}"


def _of_config(name: str, config: EffectiveConfig) -> Iterator[str]:
    if config.strategy:
        yield f"{name}_SHARING_STRATEGY={config.strategy}"
    if config.strategy == "TimeSlicing" and config.interval:
        yield f"{name}_TIMESLICE_INTERVAL={config.interval}"
    if config.strategy == "SpacePartitioning":
        yield f"{name}_PARTITION_COUNT={config.partition_count}"
    if config.strategy == "MPS":
        yield "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps"  # in the container
        yield from _limits(name, config.mps)
    bursts = config.values.get("bwBurst") or {}
    for field, variable in _BURSTS.items():
        # Nothing of a burst of 0, as there.
        if bursts.get(field):
            yield f"{name}_{variable}={bursts[field]}"


def _of_share(device: ClaimDevice, name: str) -> Iterator[str]:
    """The claim's share of the device's capacity."""
    for qualified, amount in device.capacity:
        capacity = qualified.rpartition("/")[2]
        if name.startswith("CPU_") and capacity == "cpu":
            yield f"{name}_CONSUMED_CPU={amount}"
        elif name.startswith("NET_") and capacity in _RATES:
            # In plain digits (`AsDec` of its applyNetConfig), where other amounts are written as the API server prints them.
            yield f"{name}_{_RATES[capacity]}={_digits(amount)}"
        else:
            yield f"{name}_{_upper(capacity)}={amount}"


def _limits(name: str, mps: Mapping[str, Any]) -> Iterator[str]:
    percentage = mps.get("defaultActiveThreadPercentage")
    if percentage is not None:
        yield f"{name}_ACTIVE_THREAD_PERCENTAGE={percentage}"
    limit = mps.get("defaultPinnedDeviceMemoryLimit")
    if limit is not None:
        # Whole MiB, as the driver hands it on.
        whole = int(Quantity.parse(str(limit)).value // _MIB)
        yield f"{name}_PINNED_DEVICE_MEMORY_LIMIT={whole}M"


def _digits(amount: str) -> str:
    whole, fraction = divmod(Quantity.parse(amount).nanos, 10**9)
    return f"{whole}.{fraction:09}".rstrip("0") if fraction else f"{whole}"


def _upper(name: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in name).upper()
