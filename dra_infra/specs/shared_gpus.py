"""One GPU for several: containers of a pod, pods of a node, or claims that each take a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from dra_infra.catalog.driver_gates import gate_states, gates_of
from dra_infra.catalog.drivers import Pins, drivers, newest
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api.limits import MAX_RESERVED
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import wrong_type
from dra_infra.specs.claims import SHORTHAND_REQUEST
from dra_infra.specs.device_classes import NVIDIA_DRIVER
from dra_infra.specs.device_configs import DeviceConfig, GpuConfig, Mps, TimeSlicing
from dra_infra.specs.requests import DeviceRequest, NamedClass

Across = Literal["containers", "pods"]
"""Who shares a whole GPU: the containers of a pod, or pods on one node through one claim."""

_PARTS: Final = "ConsumableShares"
"""The gate of NVIDIA's driver that lets claims take parts of a GPU."""


@dataclass(frozen=True, kw_only=True)
class SharedGpuClaim:
    """The request and configs of a shared GPU.

    Args:
        request: The one request.
        configs: How the driver sets the GPU up.
        shared: Whether pods share one ResourceClaim.
    """

    request: DeviceRequest
    configs: tuple[DeviceConfig, ...]
    shared: bool


def compile_shared_gpu(
    *,
    device_class: NamedClass | str = NVIDIA_DRIVER,
    select: Selector | None = None,
    across: Across = "containers",
    consumers: int | None = None,
    sharing: TimeSlicing | Mps | None = None,
    memory: str | None = None,
    shares: int | None = None,
    pins: Pins | None = None,
    gates: Mapping[str, bool] | None = None,
) -> SharedGpuClaim:
    """Turn a way of sharing into a request with its config.

    Args:
        device_class: The class of the GPU.
        select: What the GPU must pass beyond the class.
        across: Who shares it.
        consumers: Pods that will use it, under `across="pods"`.
        sharing: How processes take turns; None leaves it to the GPU.
        memory: Part of the GPU's memory that each claim takes, `"20Gi"`.
        shares: Part of the GPU in shares that each claim takes, of those that the driver is set to make of it.
        pins: The driver releases that are meant; the newest when left out.
        gates: Feature gates that the NVIDIA driver is given; None where they are not known.

    Raises:
        InvalidSpecError: `wrong-type`, `sharing-conflict`, `too-many-consumers`, `config-needs-gate`. What is wrong with
            class, selector, memory and sharing themselves is told where the claim is compiled.
    """
    problems: list[Problem] = []
    way: object = across
    if not isinstance(way, str) or way not in ("containers", "pods"):
        problems.append(wrong_type("across", across, '"containers" or "pods"'))
        across = "containers"
    if sharing is not None and not isinstance(sharing, (TimeSlicing, Mps)):
        hint = 'write sharing=dra.TimeSlicing(interval="Long") or sharing=dra.Mps(...)'
        problems.append(wrong_type("sharing", sharing, "a way to share", hint))
    if shares is not None and not _is_number(shares):
        problems.append(wrong_type("shares", shares, "a number from 1 on"))
    problems += _check_consumers(consumers, across)
    parts = {"memory": memory, "shares": shares if shares is None else str(shares)}
    taken = {name: amount for name, amount in parts.items() if amount is not None}
    if taken:
        problems += _check_parts(next(iter(taken)), across, sharing, (pins or newest()), gates)
    if problems:
        raise InvalidSpecError(problems)
    return SharedGpuClaim(
        request=DeviceRequest(SHORTHAND_REQUEST, device_class=device_class, select=select, capacity=taken),
        configs=() if sharing is None else (GpuConfig(sharing=sharing),),
        shared=across == "pods",
    )


def _check_consumers(consumers: int | None, across: str) -> Iterator[Problem]:
    if consumers is None:
        return
    if not _is_number(consumers):
        yield wrong_type("consumers", consumers, "a number of pods from 1 on")
    elif across != "pods":
        message = "pods are counted, and each pod gets a GPU of its own"
        hint = 'write across="pods", or leave consumers out'
        yield Problem(path="consumers", code="sharing-conflict", message=message, hint=hint)
    elif consumers > MAX_RESERVED:
        message = f"{consumers} pods, a claim serves at most {MAX_RESERVED} at a time"
        hint = "make several SharedGpu components, or let each pod take a part: memory= or shares="
        yield Problem(path="consumers", code="too-many-consumers", message=message, hint=hint)


def _check_parts(
    argument: str, across: str, sharing: object, pins: Pins, gates: Mapping[str, bool] | None
) -> Iterator[Problem]:
    if across == "pods":
        message = (
            f'each pod takes a part of the GPU by {argument}=, and across="pods" gives all of them one part'
        )
        hint = f"leave across out, or {argument}"
        yield Problem(path="across", code="sharing-conflict", message=message, hint=hint)
    if isinstance(sharing, Mps):
        message = (
            "the driver refuses MPS where claims take parts of a GPU: one control daemon serves one claim"
        )
        hint = f"leave sharing out, or {argument}"
        yield Problem(path="sharing", code="sharing-conflict", message=message, hint=hint)
    line = pins.releases[NVIDIA_DRIVER].line
    if _PARTS not in gates_of(line):
        first = next(each.line for each in drivers()[NVIDIA_DRIVER].releases if _PARTS in gates_of(each.line))
        message = f"release {line} of the driver gives a GPU to one claim only"
        hint = f'write driver_release="{first}" where that is installed, with its gate {_PARTS} and the chart value '
        hint += "consumableShares"
        yield Problem(path=argument, code="config-needs-gate", message=message, hint=hint)
    elif gates is not None and not gate_states(line, gates)[_PARTS]:
        message = f"the driver's gate {_PARTS} is off, so a GPU belongs to one claim"
        hint = f"turn {_PARTS} on and set the chart value consumableShares"
        yield Problem(path=argument, code="config-needs-gate", message=message, hint=hint)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
