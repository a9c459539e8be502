"""One GPU for several: containers of a pod, pods of a node, or claims that each take a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from dra_infra.catalog.driver_gates import gate_states, gates_of
from dra_infra.catalog.drivers import Pins, drivers
from dra_infra.errors import Problem
from dra_infra.kubernetes.api.limits import MAX_RESERVED
from dra_infra.specs.arguments import wrong_type
from dra_infra.specs.claims import SHORTHAND_REQUEST, AskedDevices
from dra_infra.specs.device_classes import NVIDIA_DRIVER
from dra_infra.specs.device_configs import GpuConfig, Mps, TimeSlicing
from dra_infra.specs.requests import DeviceRequest
from dra_infra.target import ClusterTarget

Across = Literal["containers", "pods"]
"""Who shares a whole GPU: the containers of a pod, or pods on one node through one claim."""

_PARTS: Final = "ConsumableShares"
"""The gate of NVIDIA's driver that lets claims take parts of a GPU."""


def ask_for_shared_gpu(
    arguments: Mapping[str, Any], _target: ClusterTarget, pins: Pins | None
) -> AskedDevices:
    """Turn the arguments of `SharedGpu` into a request with its config.

    Problems are `wrong-type`, `sharing-conflict`, `too-many-consumers`, `config-needs-gate`. What is wrong with class, selector,
    memory and sharing themselves is told where the claim is compiled.

    Args:
        arguments: Those of the component.
        pins: The driver releases that are meant; None where they are not known, so that nothing is checked here.
    """
    across, sharing, memory, shares = (arguments[key] for key in ("across", "sharing", "memory", "shares"))
    parts = {"memory": memory, "shares": shares if shares is None else str(shares)}
    taken = {name: amount for name, amount in parts.items() if amount is not None}
    problems = list(_check(arguments, next(iter(taken), None), pins)) if pins else []
    is_right = pins is not None and not problems
    request = DeviceRequest(
        SHORTHAND_REQUEST,
        device_class=arguments["device_class"],
        select=arguments["select"],
        capacity=taken if is_right else {},
    )
    return AskedDevices(
        requests=[request],
        configs=(GpuConfig(sharing=sharing),) if is_right and sharing is not None else (),
        problems=problems,
        shorthand=True,
        shared=is_right and across == "pods",
        arguments={
            "capacity['memory']": "memory",
            "capacity['shares']": "shares",
            "capacity": "shares" if memory is None else "memory",
            "configs[0].sharing": "sharing",
            "configs[0]": "sharing",
        },
    )


def _check(arguments: Mapping[str, Any], part: str | None, pins: Pins) -> Iterator[Problem]:
    """Check who shares the GPU and how; *part* is the argument by which claims take parts of it."""
    across, sharing, shares = arguments["across"], arguments["sharing"], arguments["shares"]
    if not isinstance(across, str) or across not in ("containers", "pods"):
        yield wrong_type("across", across, '"containers" or "pods"')
        across = "containers"
    if sharing is not None and not isinstance(sharing, (TimeSlicing, Mps)):
        hint = 'write sharing=dra.TimeSlicing(interval="Long") or sharing=dra.Mps(...)'
        yield wrong_type("sharing", sharing, "a way to share", hint)
    if shares is not None and not _is_number(shares):
        yield wrong_type("shares", shares, "a number from 1 on")
    yield from _check_consumers(arguments["consumers"], across)
    if part is not None:
        yield from _check_parts(part, across, sharing, pins, arguments["driver_gates"])


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
