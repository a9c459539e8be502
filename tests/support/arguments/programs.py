"""Whole programs: as somebody would write them, and the same with mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from tests.support.arguments import values
from tests.support.arguments.calls import Call, Drawn, places, put
from tests.support.arguments.claims import MADE_CLASS, claims, classes
from tests.support.arguments.hardware import mig_partitions, nvlink_groups, shared_gpus
from tests.support.arguments.platforms import platforms
from tests.support.arguments.tenants import guardrails, monitoring, queues, roles, taints, tenants
from tests.support.components.family import FAMILY as ROWS

_DRAWN: Mapping[str, st.SearchStrategy[Call]] = {
    "classes": classes(),
    "claims": claims(),
    "mig": mig_partitions(),
    "nvlink": nvlink_groups(),
    "shared": shared_gpus(),
    "platforms": platforms(),
    "tenants": tenants(),
    "roles": roles(),
    "guardrails": guardrails(),
    "monitoring": monitoring(),
    "queues": queues(),
    "taints": taints(),
}
_KINDS: Final = frozenset(
    {
        *("GpuDeviceClass", "GpuClaim", "GpuClaimTemplate", "MigPartition", "NvlinkGroup", "SharedGpu"),
        *("DraDriver", "GpuOperator", "ExampleDriver", "NodePlugin", "GpuPlatform"),
        *("GpuTenant", "GpuRoles", "GpuGuardrails", "GpuMonitoring", "KueueQueue", "DeviceTaint"),
    }
)
"""Components that the strategies above draw."""

FAMILY: Mapping[str, st.SearchStrategy[Call]] = {
    **_DRAWN,
    **{
        row: st.just(Call(made.__name__, "it", arguments))
        for row, (made, arguments) in ROWS.items()
        if made.__name__ not in _KINDS
    },
}
"""Components by what they are about; those without a strategy have the arguments of their row, and are only broken."""


@st.composite
def sane(draw: st.DrawFn, family: str, minor: str | None = None) -> Drawn:
    """A program that somebody could mean: most of them compile, the rest asks for what cannot be.

    Args:
        family: One of `FAMILY`.
        minor: Kubernetes of the stack and of every component; None leaves it to chance.
    """
    call = draw(FAMILY[family])
    settings: dict[str, str] = {}
    if minor is not None:
        settings["kubernetes"] = minor
        call = Call(
            call.kind, call.name, {key: each for key, each in call.arguments.items() if key != "target"}
        )
    elif draw(st.booleans()):
        settings["kubernetes"] = draw(st.sampled_from(SUPPORTED_MINORS))
    if draw(st.booleans()):
        settings["driver"] = draw(values.lines)
    return Drawn((MADE_CLASS, call), settings)


@st.composite
def hostile(draw: st.DrawFn, family: str) -> Drawn:
    """The same with one to three mistakes: a value, however deep, an argument too many, or the name."""
    drawn = draw(sane(family))
    call = drawn.calls[-1]
    arguments: dict[str, Any] = dict(call.arguments)
    name = call.name
    for _ in range(draw(st.integers(1, 3))):
        mistake = draw(st.sampled_from(("value", "value", "value", "argument", "misspelt", "name")))
        bad = draw(values.hostile)
        inside = list(places(arguments))
        if mistake == "value" and inside:
            arguments = put(arguments, draw(st.sampled_from(inside)), bad)
        elif mistake == "misspelt":
            arguments[draw(st.sampled_from(("devce_class", "selector", "x", "gpu_gates")))] = bad
        elif mistake == "name":
            name = bad
        else:
            arguments[draw(st.sampled_from(_arguments_of(call)))] = bad
    return Drawn((*drawn.calls[:-1], Call(call.kind, name, arguments)), drawn.settings)


def _arguments_of(call: Call) -> list[str]:
    import inspect

    import dra_infra as dra

    parameters = inspect.signature(getattr(dra, call.kind).__init__).parameters
    return sorted(
        name
        for name, each in parameters.items()
        if each.kind is inspect.Parameter.KEYWORD_ONLY and name != "opts"
    )
