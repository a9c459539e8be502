"""Which devices exclude each other on simulated hardware: the last line of defence behind the scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_ends.sim_hardware import Hardware, Use
from dra_infra.plugin.back_ends.sim_node import NVIDIA, SimulatedNode
from dra_infra.plugin.claims import Claim
from dra_infra.plugin.configs import EffectiveConfig

_MODULE: Final = "gpuModuleID"

Wanted = Mapping[str, EffectiveConfig]
"""Devices that a claim is to have, with what counts for each."""


def refuse_unknown(node: SimulatedNode, claim: Claim, gone: frozenset[str]) -> None:
    """Whether the node has the devices at all.

    Raises:
        PluginError: `device-not-allocatable`, for each that it has not.
    """
    problems = [
        Problem(
            path=f"{claim}: device {each.device}",
            code="device-not-allocatable",
            message="requested device is not allocatable: the node does not have it, or has it no more",
            hint="delete the pod: a new one is allocated what there is now",
        )
        for each in claim.devices
        if each.device not in node.devices or each.device in gone
    ]
    if problems:
        raise PluginError(problems)


def refuse_conflicts(node: SimulatedNode, hardware: Hardware, claim: Claim, wanted: Wanted) -> None:
    """Whether hardware can give a claim its devices beside what others have.

    A device that claims share has one config; a whole GPU excludes its MIG devices, and they those that they overlap with,
    by the counters of the GPU; a GPU that is passed through excludes itself.

    Raises:
        PluginError: `device-held`, `config-conflict`; all at once.
    """
    # One holder of each device stands for all: they have the same config.
    there = hardware.holders(but=claim.uid)
    problems: list[Problem] = []
    for device, config in wanted.items():
        path = f"{claim}: device {device}"
        if node.origin == NVIDIA and device in there:
            problems += _configured_otherwise(hardware, path, config, Use(device, there[device]))
        problems += _passed_through(node, path, device, there)
    problems += _crowded(node, claim, wanted, there)
    if problems:
        raise PluginError(problems)


def refuse_partial_partitions(node: SimulatedNode, claim: Claim, wanted: Wanted) -> None:
    """Whether the whole GPUs of a claim are one partition of the Fabric Manager, which is activated for them alone.

    Holds on nodes whose GPUs have attributes of partitions (NVIDIA driver 0.5, gate FabricManagerPartitioning): for every
    claim with whole GPUs, whatever it asked for.

    Raises:
        PluginError: `fabric-partition-mismatch`.
    """
    gpus = [device for device in wanted if node.attribute(device, _MODULE) is not None]
    partitions = {node.attribute(each, f"partition{len(gpus)}") for each in gpus}
    if not gpus or (len(partitions) == 1 and None not in partitions):
        return
    modules = ", ".join(str(node.attribute(each, _MODULE)) for each in gpus)
    problem = Problem(
        path=str(claim),
        code="fabric-partition-mismatch",
        message=f"GPU module set [{modules}] does not match any FM partition",
        hint="ask for 1, 2, 4 or 8 GPUs, with a constraint on gpu.nvidia.com/partition2 for 2 of them",
    )
    raise PluginError([problem])


def config_text(config: EffectiveConfig) -> str:
    """A config as it is compared: two texts of one meaning are one config."""
    return json.dumps([config.kind, config.values], sort_keys=True)


def _configured_otherwise(
    hardware: Hardware, path: str, config: EffectiveConfig, use: Use
) -> Iterator[Problem]:
    if hardware.config_of(use) != config_text(config):
        yield Problem(
            path=path,
            code="config-conflict",
            message=f"requested device {use.device} has conflicting configuration with already prepared claim {use.uid}",
            hint="give all claims that share a device the same config",
        )


def _passed_through(
    node: SimulatedNode, path: str, device: str, there: Mapping[str, str]
) -> Iterator[Problem]:
    if not node.passes_through:
        return
    for other, uid in there.items():
        types = {node.type_of(device), node.type_of(other)}
        if node.gpu_of(other) == node.gpu_of(device) and other != device and "vfio" in types:
            yield _held(path, f"its GPU is in use as {other} for the claim with the UID {uid}")


def _crowded(
    node: SimulatedNode, claim: Claim, wanted: Wanted, there: Mapping[str, str]
) -> Iterator[Problem]:
    for name in dict.fromkeys(name for device in wanted for name in node.consumed(device)):
        of_set = [device for device in {**wanted, **there} if name in node.consumed(device)]
        mine = [device for device in of_set if device in wanted]
        rivals = [device for device in of_set if device not in wanted]
        over = [
            counter
            for counter, amount in node.totals(name).items()
            if sum(node.consumed(device)[name].get(counter, 0) for device in of_set) > amount
        ]
        if rivals and over:
            held = ", ".join(f"{each} for the claim with the UID {there[each]}" for each in rivals)
            yield _held(f"{claim}: device {mine[0]}", f"its GPU has no room for it beside {held}: {over[-1]}")


def _held(path: str, message: str) -> Problem:
    hint = "the kubelet asks again when that claim's pods are gone; if it stays so, look for them"
    return Problem(path=path, code="device-held", message=message, hint=hint)
