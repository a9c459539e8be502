"""The spec of claims and claim templates from what people ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dra_infra.cel import Attribute, Selector
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.model import names
from dra_infra.model.device_class import CELDeviceSelector, DeviceSelector
from dra_infra.model.program import UNKNOWN
from dra_infra.model.resource_claim import (
    DeviceClaim,
    DeviceConstraint,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from dra_infra.model.resource_claim import DeviceRequest as RequestRecord
from dra_infra.model.target import SUPPORTED_MINORS, ClusterTarget
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.requests import (
    ClassRef,
    Constraint,
    DeviceRequest,
    DistinctAttribute,
    MatchAttribute,
    NamedClass,
)

SHORTHAND_REQUEST = "gpu"
"""Name of the one request of a claim that was asked for by `device_class=`, `count=`, `select=`."""

MAX_LIST = 32
"""Most requests and most constraints of a claim, and most devices it can hold (resource/v1 types.go)."""

_DISTINCT_SINCE = "1.36"


def compile_claim(
    requests: Sequence[DeviceRequest],
    constraints: Sequence[Constraint] = (),
    *,
    target: ClusterTarget | None = None,
    shorthand: bool = False,
) -> ResourceClaimSpec:
    """Turn requests and constraints into the spec of a claim.

    Args:
        requests: At least one; a class whose name is not a plain string stands as `UNKNOWN` in the result.
        constraints: What the devices share or must not share.
        target: The minors on which the claim must work.
        shorthand: Name problems of the only request without `requests[0]`, as the user wrote it.

    Raises:
        InvalidSpecError: With every problem; codes `count-below-one`, `too-many-devices`, `wrong-type`,
            `duplicate-request`, `unknown-request`, `invalid-name`, `missing-argument`, `too-many-items`,
            `needs-newer-kubernetes`, and those of the selectors.
    """
    problems: list[Problem] = []
    records: list[RequestRecord] = []
    given: object = constraints
    if not isinstance(given, Sequence) or isinstance(given, str):
        hint = "constraints decide the structure: give a plain list"
        problems.append(_wrong_type("constraints", constraints, "a list of constraints", hint))
        constraints = ()
    if len(requests) > MAX_LIST:
        problems.append(_too_many("requests", len(requests)))
    for index, request in enumerate(requests):
        prefix = "" if shorthand else f"requests[{index}]"
        if not isinstance(request, DeviceRequest):
            problems.append(
                _wrong_type(
                    prefix, request, "a DeviceRequest", 'write dra.DeviceRequest("name", device_class=...)'
                )
            )
            continue
        found, record = _compile_request(request)
        problems += [problem.below(prefix) if prefix else problem for problem in found]
        if record is not None:
            records.append(record)
    problems += _check_request_names(requests)
    problems += _check_total(records, shorthand=shorthand)
    found, compiled = _compile_constraints(constraints, requests, target or ClusterTarget())
    problems += found
    if problems:
        raise InvalidSpecError(problems)
    return ResourceClaimSpec(devices=DeviceClaim(requests=records, constraints=compiled or None))


def compile_selectors(select: object, *, path: str = "select") -> tuple[list[Problem], list[DeviceSelector]]:
    """The selector list for one `select=` argument, and what is wrong with it."""
    if select is None:
        return [], []
    if not isinstance(select, Selector):
        hint = "write a test such as dra.gpu.memory >= '40Gi'"
        if isinstance(select, str):
            hint = f"wrap CEL text: dra.cel({select!r})"
        elif isinstance(select, Attribute):
            hint = "an attribute alone is no test: compare it, or use .exists()"
        return [_wrong_type(path, select, "a selector", hint)], []
    problems = [problem for problem in select.problems(path) if problem.severity == "error"]
    if problems:
        return problems, []
    return [], [DeviceSelector(cel=CELDeviceSelector(expression=select.expression()))]


def class_name_of(device_class: object) -> Any:
    """The name behind `device_class=`: a string, or a Pulumi Output of one."""
    return device_class.object_name if isinstance(device_class, NamedClass) else device_class


def _compile_request(request: DeviceRequest) -> tuple[list[Problem], RequestRecord | None]:
    problems: list[Problem] = []
    if not isinstance(request.name, str):
        problems.append(_wrong_type("name", request.name, "a string", ""))
    elif not names.is_dns_label(request.name):
        problems.append(
            Problem(
                path="name",
                code="invalid-name",
                message=f"{request.name!r} is not a DNS label",
                hint="use lower-case letters, digits and '-', at most 63",
            )
        )
    problems += _check_class(request.device_class)
    problems += _check_count(request.count)
    found, selectors = compile_selectors(request.select)
    problems += found
    if problems:
        return problems, None
    class_name = class_name_of(request.device_class)
    # ExactCount is the server's default; writing it would only make diffs longer.
    count: dict[str, Any] = (
        {"allocation_mode": "All"}
        if request.count == "all"
        else {"count": request.count}
        if request.count
        else {}
    )
    exactly = ExactDeviceRequest(
        device_class_name=class_name if isinstance(class_name, str) else UNKNOWN,
        selectors=selectors or None,
        **count,
    )
    return [], RequestRecord(name=request.name, exactly=exactly)


def _check_class(device_class: object) -> list[Problem]:
    if device_class is None:
        return [
            Problem(
                path="device_class",
                code="missing-argument",
                message="no class is named",
                hint='write device_class=h100 with a GpuDeviceClass, or device_class=dra.class_ref("gpu.nvidia.com")',
            )
        ]
    if not isinstance(device_class, (str, NamedClass)):
        return [
            _wrong_type(
                "device_class",
                device_class,
                "a device class",
                'give a GpuDeviceClass, dra.class_ref("name"), or the name as a string',
            )
        ]
    name = class_name_of(device_class)
    # A class that is a component of the program has been checked where it was made.
    is_own = not isinstance(device_class, (str, ClassRef))
    return [] if is_own or not isinstance(name, str) else check_object_name(name, path="device_class")


def _check_count(count: object) -> list[Problem]:
    if count == "all":
        return []
    # bool is an int in Python, and True devices is never meant.
    if not isinstance(count, int) or isinstance(count, bool):
        hint = (
            "counts decide the structure: give a plain int, not a Pulumi Output" if _is_output(count) else ""
        )
        return [_wrong_type("count", count, 'an int or "all"', hint)]
    if count < 1:
        return [
            Problem(
                path="count",
                code="count-below-one",
                message=f"{count} is below 1",
                hint='ask for 1 or more devices, or count="all" for every matching device of a node',
            )
        ]
    return []


def _check_request_names(requests: Sequence[DeviceRequest]) -> list[Problem]:
    seen: dict[str, int] = {}
    problems = []
    for index, request in enumerate(requests):
        name = getattr(request, "name", None)
        if not isinstance(name, str):
            continue
        if name in seen:
            problems.append(
                Problem(
                    path=f"requests[{index}].name",
                    code="duplicate-request",
                    message=f"{name!r} is already the name of requests[{seen[name]}]",
                    hint="give each request a name of its own",
                )
            )
        seen.setdefault(name, index)
    return problems


def _check_total(records: Sequence[RequestRecord], *, shorthand: bool) -> list[Problem]:
    total = sum(record.exactly.count or 0 for record in records if record.exactly)
    if total <= MAX_LIST:
        return []
    return [
        Problem(
            path="count" if shorthand else "requests",
            code="too-many-devices",
            message=f"{total} devices are asked for, a claim holds at most {MAX_LIST}",
            hint="the scheduler refuses such a claim (AllocationResultsMaxSize): use several claims or pods",
        )
    ]


def _compile_constraints(
    constraints: Sequence[Constraint], requests: Sequence[DeviceRequest], target: ClusterTarget
) -> tuple[list[Problem], list[DeviceConstraint]]:
    problems: list[Problem] = []
    records = []
    known = [str(getattr(request, "name", "")) for request in requests]
    if len(constraints) > MAX_LIST:
        problems.append(_too_many("constraints", len(constraints)))
    for index, constraint in enumerate(constraints):
        path = f"constraints[{index}]"
        if not isinstance(constraint, (MatchAttribute, DistinctAttribute)):
            problems.append(
                _wrong_type(path, constraint, "a constraint", "write dra.MatchAttribute(dra.gpu.product)")
            )
            continue
        attribute = constraint.attribute
        name: object = attribute.qualified_name if isinstance(attribute, Attribute) else attribute
        parts = names.split_qualified_name(name) if isinstance(name, str) else None
        if parts is None or not parts[0]:
            problems.append(
                Problem(
                    path=f"{path}.attribute",
                    code="invalid-attribute-name",
                    message=f"{name!r} is not an attribute name with its domain",
                    hint='write "gpu.nvidia.com/productName", or dra.gpu.product',
                )
            )
        problems += [
            _unknown_request(f"{path}.requests[{position}]", wanted, known)
            for position, wanted in enumerate(constraint.requests)
            if wanted not in known
        ]
        if isinstance(constraint, DistinctAttribute):
            problems += _check_distinct(f"{path}", target)
        records.append(
            DeviceConstraint(
                requests=list(constraint.requests) or None,
                match_attribute=str(name) if isinstance(constraint, MatchAttribute) else None,
                distinct_attribute=str(name) if isinstance(constraint, DistinctAttribute) else None,
            )
        )
    return problems, records


def _check_distinct(path: str, target: ClusterTarget) -> list[Problem]:
    too_old = [
        minor
        for minor in target.minors
        if SUPPORTED_MINORS.index(minor) < SUPPORTED_MINORS.index(_DISTINCT_SINCE)
    ]
    # Without a target the newest minor decides; the oldest is only a note in docs until targets carry gates.
    if target.kubernetes is None or not too_old:
        return []
    return [
        Problem(
            path=path,
            code="needs-newer-kubernetes",
            message=f"distinctAttribute is off by default on Kubernetes {too_old[0]} (gate DRAConsumableCapacity)",
            hint=f'set target=dra.ClusterTarget(kubernetes="{_DISTINCT_SINCE}") or newer, or leave the constraint out',
        )
    ]


def _unknown_request(path: str, wanted: object, known: Sequence[str]) -> Problem:
    return Problem(
        path=path,
        code="unknown-request",
        message=f"{wanted!r} is not a request of this claim",
        hint=f"its requests are {', '.join(map(repr, known))}",
    )


def _too_many(path: str, count: int) -> Problem:
    return Problem(
        path=path,
        code="too-many-items",
        message=f"{count} items, the API server takes at most {MAX_LIST}",
        hint="split the claim",
    )


def _wrong_type(path: str, value: object, expected: str, hint: str) -> Problem:
    shown = "a Pulumi Output" if _is_output(value) else f"{_shorten(value)} ({type(value).__name__})"
    return Problem(path=path, code="wrong-type", message=f"{shown} is not {expected}", hint=hint)


def _is_output(value: object) -> bool:
    # By name: specs know no Pulumi, and still must tell people what they passed.
    return any(
        base.__module__.startswith("pulumi") and base.__name__ == "Output" for base in type(value).__mro__
    )


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
