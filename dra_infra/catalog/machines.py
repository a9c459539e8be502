"""Machines of clouds as kinds of nodes, beside the fleets that have a name of their own.

A machine is called as in the label `node.kubernetes.io/instance-type`, and found by `node_kinds()` like any fleet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

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
from dra_infra.kubernetes.api.quantity import Quantity

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
"""The label that names the machine of a node."""

_GKE_ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
_KARPENTER: Final = "karpenter.k8s.aws/instance-"
_EC2_NAME: Final = re.compile(
    r"(?P<family>(?P<category>[a-z]+)(?P<generation>\d+)[a-z0-9-]*)\.(?P<size>[a-z0-9-]+)"
)


class Machine(Entry):
    """A machine of a cloud.

    Args:
        like: The fleet whose GPU, driver and system it has, and what is invented there.
        gpus: GPUs of the machine.
        cpu: CPUs as the cloud documents them.
        memory: Memory, likewise.
        allocatable: What is left of both for pods, estimated.
        accelerator: Value of GKE's label for the GPU.
        pci: Bus id, PCIe root and NUMA node of each GPU; those of `like` where it is empty.
        published: Network interfaces as DRANET published them, by driver.
    """

    like: str
    gpus: int = Field(gt=0)
    cpu: str
    memory: str
    allocatable: Mapping[str, str]
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
        machines: The machines, by name.
        refused: Machines that cannot be a fleet.
    """

    title: str
    labels: Mapping[str, str] = {}
    autoscaler: Mapping[str, Mapping[str, str]] = {}
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
    return next((each for each in refused if name in each.machines), None)


@cache
def node_kinds() -> Mapping[str, FleetKind]:
    """Fleets and machines by name, each as the kind of its nodes; other names of fleets are not among them."""
    return {**fleet_kinds(), **{name: _kind(name, *machine) for name, machine in machines().items()}}


@cache
def node_names() -> Mapping[str, str]:
    """Every name that a fleet or a machine can be asked for by, with the one that it has."""
    return {**fleet_names(), **{name: name for name in machines()}}


@cache
def products_by_label() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """GPU products by the labels of clouds that tell them apart, and the values of these; for MiB, as the cloud counts them."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for cloud, machine in machines().values():
        product = fleet_kinds()[machine.like].gpu
        for key, value in {**_gpu_label(machine), **cloud.autoscaler.get(machine.like, {})}.items():
            values = found.setdefault(key, {})
            values[value] = tuple(dict.fromkeys((*values.get(value, ()), product)))
    return found


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
        }
        named = {**(parts.groupdict() if parts else {}), **counted}
        found[name] = {
            INSTANCE_TYPE: name,
            **{f"{_KARPENTER}{key}": value for key, value in named.items()},
            **cloud.autoscaler.get(machine.like, {}),
        }
    return found


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
