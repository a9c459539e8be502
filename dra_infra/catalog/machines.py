"""Machines of clouds as kinds of nodes, beside the fleets that have a name of their own.

A machine is called as in the label `node.kubernetes.io/instance-type`, and found by `node_kinds()` like any fleet.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Final, NamedTuple

from pydantic import Field

from dra_infra.catalog.records import (
    Entry,
    Fact,
    FleetKind,
    PublishedDevices,
    fleet_kinds,
    fleet_names,
)
from dra_infra.catalog.vocabulary import read_data
from dra_infra.kubernetes.api import MAX_INT64, Quantity, mapping, mappings, print_amount, value_at

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""The label that names the machine of a node."""

_GKE_ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
_KARPENTER: Final = "karpenter.k8s.aws/instance-"
_EC2_NAME: Final = re.compile(
    r"(?P<family>(?P<category>[a-z]+)(?P<generation>\d+)[a-z0-9-]*)\.(?P<size>[a-z0-9-]+)"
)
_AZURE: Final = "Standard_"  # Names of Azure begin with it, and people leave it out.
_PERCENT: Final = re.compile(r"\d{1,3}(\.\d{1,9})?%", re.ASCII)
_STORAGE: Final = "ephemeral-storage"
_MEBIBYTE: Final = 1024**2


class Machine(Entry):
    """A machine of a cloud.

    Args:
        like: The fleet whose GPU, driver and system it has, and what is invented there.
        gpus: GPUs of the machine.
        cpu: CPUs as the cloud documents them.
        memory: Memory, likewise.
        allocatable: What is left of both for pods, estimated.
        disks: GB of its local NVMe disks together, where they are known.
        accelerator: Value of GKE's label for the GPU.
        pci: Bus id, PCIe root and NUMA node of each GPU; those of `like` where it is empty.
        published: Network interfaces as DRANET published them, by driver.
    """

    like: str
    gpus: int = Field(gt=0)
    cpu: str
    memory: str
    allocatable: Mapping[str, str]
    disks: int = 0
    accelerator: str = ""
    pci: tuple[tuple[str, str, int], ...] = ()
    published: Mapping[str, PublishedDevices] = {}


class RefusedMachines(Entry):
    """Machines that are known and cannot be a fleet, with the reason and what to write instead."""

    machines: tuple[str, ...] = Field(min_length=1)
    because: str
    hint: str


class Cloud(Fact):
    """The machines of a cloud, and the labels that all of them have.

    Args:
        title: Its name.
        labels: Labels of all its machines.
        autoscaler: Labels of machines that its autoscaler made, by the fleet that they are like.
        attached: Products that are added to machines without a GPU, by their label of GKE.
        machines: The machines, by name.
        refused: Machines that cannot be a fleet.
    """

    title: str
    labels: Mapping[str, str] = {}
    autoscaler: Mapping[str, Mapping[str, str]] = {}
    attached: Mapping[str, str] = {}
    machines: Mapping[str, Machine]
    refused: tuple[RefusedMachines, ...] = ()


class CloudMachine(NamedTuple):
    """A machine with its cloud."""

    cloud: Cloud
    machine: Machine


@cache
def clouds() -> Mapping[str, Cloud]:
    """Every cloud whose machines are known."""
    return {name: Cloud.model_validate(entry) for name, entry in read_data("machines.yaml").items()}


@cache
def machines() -> Mapping[str, CloudMachine]:
    """Every machine that is known, by name."""
    return {
        name: CloudMachine(cloud, machine)
        for cloud in clouds().values()
        for name, machine in cloud.machines.items()
    }


def refusal_of(name: str) -> RefusedMachines | None:
    """Why a machine that is known is no fleet; None for any other name."""
    refused = (each for cloud in clouds().values() for each in cloud.refused)
    return next((each for each in refused if {name, f"{_AZURE}{name}"} & {*each.machines}), None)


@cache
def node_kinds() -> Mapping[str, FleetKind]:
    """Fleets and machines by name, each as the kind of its nodes; other names of fleets are not among them."""
    return {**fleet_kinds(), **{name: _kind(name, *machine) for name, machine in machines().items()}}


@cache
def node_names() -> Mapping[str, str]:
    """Every name that a fleet or a machine can be asked for by, with the one that it has."""
    short = {name.removeprefix(_AZURE): name for name in machines()}
    return {**fleet_names(), **short, **{name: name for name in machines()}}


@cache
def products_by_label() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """GPU products by the labels of clouds that tell them apart, and the values of these; for MiB, as the cloud counts them."""
    attached = (each for cloud in clouds().values() for each in cloud.attached.items())
    found: dict[str, dict[str, tuple[str, ...]]] = {
        _GKE_ACCELERATOR: {name: (product,) for name, product in attached}
    }
    for cloud, machine in machines().values():
        product = fleet_kinds()[machine.like].gpu
        for key, value in {**_gpu_label(machine), **cloud.autoscaler.get(machine.like, {})}.items():
            values = found.setdefault(key, {})
            values[value] = tuple(dict.fromkeys((*values.get(value, ()), product)))
    # EKS Auto Mode has Karpenter's labels under its own name (create-node-pool in the user guide of EKS).
    return found | {
        key.replace(_KARPENTER, "eks.amazonaws.com/instance-"): values for key, values in found.items()
    }


@cache
def labels_of_karpenter() -> Mapping[str, Mapping[str, str]]:
    """The labels by which Karpenter tells machines of EC2 apart, by machine.

    What they count is in its reference of instance types; categories and generations are read from names as
    instanceTypeScheme does it (pkg/providers/instancetype/types.go of aws/karpenter-provider-aws).
    """
    found = {}
    cloud = clouds()["aws"]
    for name, machine in cloud.machines.items():
        parts = _EC2_NAME.fullmatch(name)
        counted = {
            "cpu": machine.cpu,
            "memory": str(Quantity.parse(machine.memory).nanos // 10**9 // 1024**2),
            "gpu-count": str(machine.gpus),
            "gpu-manufacturer": fleet_kinds()[machine.like].driver.partition(".")[2].partition(".")[0],
            **({"local-nvme": str(machine.disks)} if machine.disks else {}),
        }
        named = {**(parts.groupdict() if parts else {}), **counted}
        found[name] = {
            INSTANCE_TYPE: name,
            **{f"{_KARPENTER}{key}": value for key, value in named.items()},
            **cloud.autoscaler.get(machine.like, {}),
        }
    return found


def amounts_of_karpenter(name: str, node_class: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Computes the amounts of a node that Karpenter makes of an EC2 machine: in all, and for pods, as an EC2NodeClass sets them.

    NewInstanceType computes them so (pkg/providers/instancetype/types.go of aws/karpenter-provider-aws), and the amounts of the
    catalogue are its results without a class. CEL expressions in place of amounts are passed over, as without the gate NodeClassCEL.
    """
    machine = clouds()["aws"].machines[name]
    spec = mapping(node_class.get("spec"))
    kubelet = mapping(spec.get("kubelet"))
    alias = next((each["alias"] for each in mappings(spec.get("amiSelectorTerms")) if each.get("alias")), "")
    images = str(spec.get("amiFamily") or str(alias).partition("@")[0] or "custom").lower()
    plain, numbers = _amounts(machine.allocatable), _amounts(kubelet)
    pods = numbers.get("maxPods", plain["pods"])
    # Bottlerocket does not know podsPerCore, and reserves memory for the pods that there may be; the others for addresses.
    if numbers.get("podsPerCore") and images != "bottlerocket":
        pods = min(pods, numbers["podsPerCore"] * int(machine.cpu))
    whole = {
        "cpu": Fraction(machine.cpu),
        "memory": plain["memory"] + (11 * plain["pods"] + 255 + 100) * _MEBIBYTE,
        _STORAGE: _storage(machine, spec, images),
    }
    reserved = {
        "cpu": whole["cpu"] - plain["cpu"],
        "memory": (11 * (pods if images == "bottlerocket" else plain["pods"]) + 255) * _MEBIBYTE,
        _STORAGE: Fraction(1024 * _MEBIBYTE),
        **_amounts(kubelet.get("kubeReserved")),
    }
    system = _amounts(kubelet.get("systemReserved"))
    hard = mapping(kubelet.get("evictionHard"))
    evicting = {
        "memory": _threshold(hard.get("memory.available", "100Mi"), whole["memory"]),
        _STORAGE: _threshold(hard.get("nodefs.available", "10%"), whole[_STORAGE]),
    }
    held = {key: sum(each.get(key, Fraction()) for each in (reserved, system, evicting)) for key in whole}
    left = {key: max(amount - held[key], Fraction()) for key, amount in whole.items()}
    return _written({**whole, "pods": pods}), _written({**left, "pods": pods})


def _storage(machine: Machine, spec: Mapping[str, Any], images: str) -> Fraction:
    """Bytes of the file system that pods write to (ephemeralStorage of the same file)."""
    if spec.get("instanceStorePolicy") == "RAID0" and machine.disks:
        return Fraction(machine.disks * 10**9)
    volumes = mappings(spec.get("blockDeviceMappings"))
    device = "/dev/xvdb" if images == "bottlerocket" else "/dev/xvda"
    of_pods = [each for each in volumes if each.get("deviceName") == device]
    chosen = [each for each in volumes if each.get("rootVolume") is True][:1]
    chosen += volumes[-1:] if images == "custom" else of_pods[:1]
    sizes = (_amount(value_at(each, "ebs", "volumeSize")) for each in chosen)
    return next((each for each in sizes if each is not None), Fraction(20 * 1024 * _MEBIBYTE))


def _threshold(written: Any, whole: Fraction) -> Fraction:
    """Reads the amount below which the kubelet evicts pods; 100 percent switch that off."""
    if _PERCENT.fullmatch(str(written)):
        return Fraction(math.ceil(whole * (Fraction(str(written)[:-1]) % 100) / 100))
    return _amount(written) or Fraction()


def _amounts(written: Any) -> dict[str, Fraction]:
    read = {str(key): _amount(each) for key, each in mapping(written).items()}
    return {key: amount for key, amount in read.items() if amount is not None}


def _amount(written: Any) -> Fraction | None:
    """The amount that is written; None for what is none, or more than Kubernetes counts."""
    try:
        amount = Quantity.parse(str(written)).value
    except ValueError:
        return None
    return amount if 0 <= amount <= MAX_INT64 else None


def _written(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    return {
        key: print_amount(amount, base=10 if key in ("cpu", "pods") else 2, scientific=False)
        for key, amount in amounts.items()
    }


def _gpu_label(machine: Machine) -> Mapping[str, str]:
    return {_GKE_ACCELERATOR: machine.accelerator} if machine.accelerator else {}


def _kind(name: str, cloud: Cloud, machine: Machine) -> FleetKind:
    like = fleet_kinds()[machine.like]
    invented = like.invented.model_copy(
        update={
            "node": {**like.invented.node, **machine.allocatable},
            "pci": machine.pci or like.invented.pci[: machine.gpus],
            # Whether Fabric Manager partitions a board is decided on its host, which a machine of a cloud does not see.
            "fabric": (),
        }
    )
    return like.model_copy(
        update={
            "title": f"{cloud.title}: {machine.gpus} {like.gpu}, {machine.cpu} CPUs and {machine.memory} of memory",
            "also": (),
            "source": cloud.source,
            "count": machine.gpus,
            "published": machine.published,
            "labels": {**cloud.labels, **_gpu_label(machine), INSTANCE_TYPE: name},
            "invented": invented,
        }
    )
