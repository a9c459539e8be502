"""What a claim asks for that needs a feature gate: a server whose gate is off clears the field without a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dra_infra.errors import Problem
from dra_infra.model.gates import GATES
from dra_infra.model.target import SUPPORTED_MINORS, ClusterTarget
from dra_infra.specs.arguments import is_list
from dra_infra.specs.requests import Alternative, DeviceRequest, DistinctAttribute

_ARGUMENTS: Final = {
    "first_available": "DRAPrioritizedList",
    "tolerations": "DRADeviceTaints",
    "capacity": "DRAConsumableCapacity",
    "admin_access": "DRAAdminAccess",
}


def check_gates(
    requests: Sequence[object], constraints: object, target: ClusterTarget, *, shorthand: bool
) -> Iterator[Problem]:
    """Arguments whose gate is off on a target that names its minor: `needs-newer-kubernetes`.

    Without a minor nothing is said here: the verdict on the object tells what the oldest one clears.
    """
    if target.kubernetes is None:
        return
    for index, request in enumerate(requests):
        prefix = "" if shorthand else f"requests[{index}]."
        if isinstance(request, DeviceRequest):
            yield from _check(request, prefix, target)
            alternatives: object = request.first_available
            for place, each in enumerate(alternatives if is_list(alternatives) else ()):  # type: ignore[arg-type, var-annotated]  # a list, as asked
                yield from _check(each, f"{prefix}first_available[{place}].", target)
    for index, constraint in enumerate(constraints if isinstance(constraints, Sequence) else ()):
        if isinstance(constraint, DistinctAttribute):
            yield from check_gate(
                f"constraints[{index}]", "distinctAttribute", "DRAConsumableCapacity", target
            )


def _check(asked: DeviceRequest | Alternative, prefix: str, target: ClusterTarget) -> Iterator[Problem]:
    for argument, gate in _ARGUMENTS.items():
        # Whatever is neither a list, a mapping nor True is told where it is compiled.
        value = getattr(asked, argument, None)
        if value is True or (isinstance(value, (Mapping, Sequence)) and len(value)):
            yield from check_gate(f"{prefix}{argument}", argument, gate, target)


def check_gate(path: str, what: str, gate: str, target: ClusterTarget) -> Iterator[Problem]:
    """Whether a target that names its minor has a gate on: `needs-newer-kubernetes`.

    Args:
        path: The argument that needs it.
        what: What a server without the gate clears.
        gate: Name of the gate.
        target: The cluster; nothing is said of one without a minor.
    """
    release = target.releases[0]
    if target.kubernetes is None or release.enabled(gate):
        return
    newer = next(
        (
            minor
            for minor in SUPPORTED_MINORS
            if minor > release.minor and (state := GATES[gate].get(minor)) and state.default
        ),
        "",
    )
    on = f"gates={{{gate!r}: True}} where the cluster has it on"
    yield Problem(
        path=path,
        code="needs-newer-kubernetes",
        message=f"{what} is cleared without a word by Kubernetes {release.minor}: the gate {gate} is off",
        hint=f'set target=dra.ClusterTarget(kubernetes="{newer}") or newer, {on}, or leave it out'
        if newer
        else f"set {on}, or leave it out",
    )
