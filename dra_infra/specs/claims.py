"""The spec of claims and claim templates from what people ask for, with constraints and gate checks.

A claim may ask for what needs a feature gate: a server whose gate is off clears the field without a word. Constraints
go from what people ask for to their records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.catalog.drivers import DeviceType, Pins, newest
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import (
    GATES,
    SUPPORTED_MINORS,
    DeviceClaim,
    DeviceConstraint,
    ResourceClaimSpec,
    names,
)
from dra_infra.kubernetes.api import DeviceRequest as RequestRecord
from dra_infra.kubernetes.api.limits import MAX_ITEMS
from dra_infra.selectors.attributes import Attribute
from dra_infra.specs.arguments import check_total, is_list, is_output, shorten, too_many, wrong_type
from dra_infra.specs.config_checks import check_claim_configs
from dra_infra.specs.config_matching import ConfiguredRequest, compile_claim_configs
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.request_records import check_names, compile_request
from dra_infra.specs.requests import (
    Alternative,
    Constraint,
    DeviceRequest,
    DistinctAttribute,
    MatchAttribute,
    NamedClass,
    class_name_of,
)
from dra_infra.target import ClusterTarget

_ARGUMENTS: Final = {
    "first_available": "DRAPrioritizedList",
    "tolerations": "DRADeviceTaints",
    "capacity": "DRAConsumableCapacity",
    "admin_access": "DRAAdminAccess",
}


def check_gates(
    requests: Sequence[object], constraints: object, target: ClusterTarget, *, shorthand: bool
) -> Iterator[Problem]:
    """Arguments whose gate is off on a target: `needs-newer-kubernetes`.

    On a target without a minor only gates count that it names. Else the verdict on the object says what the oldest one clears.
    """
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
    """Checks that a target has a gate on: `needs-newer-kubernetes`. A target without a minor has off what it names as off.

    Args:
        path: The argument that needs it.
        what: What a server without the gate clears.
        gate: Name of the gate.
        target: The cluster.
    """
    release = target.releases[0]
    if release.enabled(gate) or (target.kubernetes is None and gate not in target.gates):
        return
    newer = first_minor_with(gate, after=release.minor)
    on = f"gates={{{gate!r}: True}} where the cluster has it on"
    move = f'target=dra.ClusterTarget(kubernetes="{newer}") or newer, ' if newer else ""
    yield Problem(
        path=path,
        code="needs-newer-kubernetes",
        message=f"{what} is cleared without a word by Kubernetes {release.minor}: the gate {gate} is off",
        hint=f"set {move}{on}, or leave it out",
    )


def first_minor_with(gate: str, *, after: str = "") -> str:
    """The oldest minor after *after* that has a gate on by default; empty where none has."""
    states = GATES[gate]
    minors = (minor for minor in SUPPORTED_MINORS if minor in states and states[minor].default)
    return next((minor for minor in minors if minor > after), "")


def compile_constraints(
    constraints: object, known: Sequence[str]
) -> tuple[list[Problem], list[DeviceConstraint]]:
    """The records of *constraints*, and what is wrong with them.

    Args:
        constraints: As the user gave them.
        known: Names of the claim's requests, alternatives as `request/alternative`.
    """
    if not isinstance(constraints, Sequence) or not is_list(constraints):
        hint = "constraints decide the structure: give a plain list"
        return [wrong_type("constraints", constraints, "a list of constraints", hint)], []
    problems: list[Problem] = []
    records = []
    for index, constraint in enumerate(constraints):
        path = f"constraints[{index}]"
        if not isinstance(constraint, (MatchAttribute, DistinctAttribute)):
            hint = "write dra.MatchAttribute(dra.gpu.product)"
            problems.append(wrong_type(path, constraint, "a constraint", hint))
            continue
        attribute = constraint.attribute
        name: object = attribute.qualified_name if isinstance(attribute, Attribute) else attribute
        parts = names.split_qualified_name(name) if isinstance(name, str) else None
        # Up to 1.34 the server took capitals in the domain; no driver has any.
        if parts is None or not parts[0] or parts[0] != parts[0].lower():
            message = f"{shorten(name)} is not an attribute name with its domain"
            hint = 'write "gpu.nvidia.com/productName", or dra.gpu.product'
            problems.append(
                Problem(path=f"{path}.attribute", code="invalid-attribute-name", message=message, hint=hint)
            )
        if found := list(_check_requests(constraint.requests, path, known)):
            problems += found
            continue
        records.append(
            DeviceConstraint(
                requests=list(constraint.requests) or None,
                match_attribute=str(name) if isinstance(constraint, MatchAttribute) else None,
                distinct_attribute=str(name) if isinstance(constraint, DistinctAttribute) else None,
            )
        )
    return problems, records


def _check_requests(requests: object, path: str, known: Sequence[str]) -> Iterator[Problem]:
    """Checks the names of requests in a constraint."""
    path = f"{path}.requests"
    if not isinstance(requests, Sequence) or not is_list(requests):
        yield wrong_type(path, requests, "a list of names", f"write requests={list(known[:2])!r}")
        return
    if len(requests) > MAX_ITEMS:
        yield too_many(path, len(requests), MAX_ITEMS, "leave requests out for all of them")
    for position, wanted in enumerate(requests):
        if not isinstance(wanted, str) or wanted not in known:
            message = f"{shorten(wanted)} is not a request of this claim"
            hint = f"its requests are {', '.join(map(repr, known))}"
            yield Problem(path=f"{path}[{position}]", code="unknown-request", message=message, hint=hint)
    texts = [each for each in requests if isinstance(each, str)]
    for position, wanted in enumerate(texts):
        if wanted in texts[:position]:
            message = f"{shorten(wanted)} is named twice"
            yield Problem(
                path=f"{path}[{position}]", code="duplicate-item", message=message, hint="leave it out"
            )


SHORTHAND_REQUEST: Final = "gpu"
"""Name of the one request of a claim that was asked for by `device_class=`, `count=`, `select=`."""

_SHORTHAND: Final = (
    "device_class",
    "count",
    "select",
    "first_available",
    "tolerations",
    "capacity",
    "admin_access",
)


@dataclass(frozen=True, kw_only=True)
class AskedDevices:
    """The devices that a claim component asks for.

    Args:
        requests: The requests.
        constraints: What the devices share or must not share.
        configs: How drivers set the devices up.
        problems: What is wrong with arguments of the component.
        shorthand: Whether the user wrote the only request as arguments of the component.
        shared: Whether pods share one ResourceClaim; else each pod gets a claim of its own from a template.
        arguments: What paths begin with, and the argument of the component that it stands for; first match counts.
        request_names: What pods may name, where that is known although there are no requests.
    """

    requests: Sequence[DeviceRequest]
    constraints: Sequence[Constraint] = ()
    configs: Sequence[DeviceConfig] = ()
    problems: Sequence[Problem] = ()
    shorthand: bool = False
    shared: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)
    request_names: tuple[str, ...] = ()


def ask_for_devices(arguments: Mapping[str, Any], _target: ClusterTarget, _pins: Pins | None) -> AskedDevices:
    """Return the devices of `GpuClaimTemplate`: its requests, or the one of its shorthand arguments."""
    requests = arguments["requests"]
    chosen, problems = _choose_requests(requests, {name: arguments[name] for name in _SHORTHAND})
    return AskedDevices(
        requests=chosen,
        constraints=arguments["constraints"],
        configs=arguments["configs"],
        problems=problems,
        shorthand=requests is None,
    )


def _choose_requests(
    requests: Any, shorthand: Mapping[str, Any]
) -> tuple[Sequence[DeviceRequest], list[Problem]]:
    if requests is None:
        return [
            DeviceRequest(
                SHORTHAND_REQUEST, **{key: value for key, value in shorthand.items() if value is not None}
            )
        ], []
    problems = [
        Problem(
            path=name,
            code="shorthand-with-requests",
            message=f"{name} is given beside requests",
            hint=f"say it in each DeviceRequest, or leave requests out: requests=[dra.DeviceRequest(..., {name}=...)]",
        )
        for name, value in shorthand.items()
        if value is not None
    ]
    if not is_list(requests):
        kind = "a Pulumi Output" if is_output(requests) else type(requests).__name__
        message = f"{kind} is not a list of DeviceRequest"
        hint = "requests decide the structure: give a plain list"
        return [], [*problems, Problem(path="requests", code="wrong-type", message=message, hint=hint)]
    if not requests:
        problems.append(
            Problem(
                path="requests",
                code="missing-argument",
                message="no device is asked for",
                hint='write requests=[dra.DeviceRequest("gpu", device_class=...)]',
            )
        )
    return requests, problems


def compile_claim(
    requests: Sequence[DeviceRequest],
    constraints: Sequence[Constraint] = (),
    configs: Sequence[DeviceConfig] = (),
    *,
    target: ClusterTarget | None = None,
    pins: Pins | None = None,
    gates: Mapping[str, bool] | None = None,
    shorthand: bool = False,
    warnings: list[Problem] | None = None,
) -> ResourceClaimSpec:
    """Turn requests, constraints and configs into the spec of a claim.

    Args:
        requests: At least one; a class whose name is not a plain string stands as `UNKNOWN` in the result.
        constraints: What the devices share or must not share.
        configs: How drivers set the devices up; Outputs in them stand as `UNKNOWN`.
        target: The minors on which the claim must work.
        pins: The driver releases that are meant; the newest when left out.
        gates: Feature gates that the NVIDIA driver is given; None where they are not known.
        shorthand: Name problems of the only request without `requests[0]`, as the user wrote it.
        warnings: Gets what is wrong with configs and stops nothing. Advice on the object says it too, for the releases
            that are pinned there.

    Raises:
        InvalidSpecError: With every problem; codes `count-below-one`, `too-many-devices`, `wrong-type`,
            `duplicate-request`, `unknown-request`, `invalid-name`, `missing-argument`, `too-many-items`,
            `invalid-toleration`, `needs-newer-kubernetes`, and those of selectors and configs.
    """
    records, problems = _compile_requests(requests, shorthand=shorthand)
    problems += check_names(requests, "requests")
    problems += check_total(
        "count" if shorthand else "requests",
        sum(
            record.exactly.count
            if record.exactly
            else max((each.count for each in record.first_available or ()), default=0)
            for record in records
        ),
    )
    if is_list(constraints) and len(constraints) > MAX_ITEMS:
        problems.append(too_many("constraints", len(constraints), MAX_ITEMS, "split the claim"))
    wrong, compiled = compile_constraints(constraints, _names(requests))
    problems += wrong
    problems += check_gates(requests, constraints, target or ClusterTarget(), shorthand=shorthand)
    # What a config is for cannot be told while the requests are wrong.
    if not problems and not (is_list(configs) and not configs):
        pins = pins or newest()
        configured = [_configured(asked, name, pins) for name, asked in leaves_of(requests)]
        told = check_claim_configs(configs, configured, pins=pins, gates=gates)
        problems += [problem for problem in told if problem.severity == "error"]
        if warnings is not None:
            warnings += [problem for problem in told if problem.severity == "warning"]
    if problems:
        raise InvalidSpecError(problems)
    claim = DeviceClaim(requests=records, constraints=compiled or None)
    if configs:
        claim = claim.model_copy(update={"config": compile_claim_configs(configs)})
    return ResourceClaimSpec(devices=claim)


def _compile_requests(
    requests: Sequence[DeviceRequest], *, shorthand: bool
) -> tuple[list[RequestRecord], list[Problem]]:
    problems: list[Problem] = []
    records: list[RequestRecord] = []
    if len(requests) > MAX_ITEMS:
        problems.append(too_many("requests", len(requests), MAX_ITEMS, "split the claim"))
    for index, request in enumerate(requests):
        prefix = "" if shorthand else f"requests[{index}]"
        if not isinstance(request, DeviceRequest):
            hint = 'write dra.DeviceRequest("name", device_class=...)'
            problems.append(wrong_type(prefix, request, "a DeviceRequest", hint))
            continue
        wrong, record = compile_request(request)
        problems += [problem.below(prefix) if prefix else problem for problem in wrong]
        if record is not None:
            records.append(record)
    return records, problems


def leaves_of(requests: Sequence[DeviceRequest]) -> Iterator[tuple[str, DeviceRequest | Alternative]]:
    """Requests and alternatives that name a class, by the name that configs and constraints refer to."""
    for request in requests:
        if request.first_available:
            for alternative in request.first_available:
                yield f"{request.name}/{alternative.name}", alternative
        else:
            yield request.name, request


def _names(requests: Sequence[object]) -> list[str]:
    found = []
    for request in requests:
        name = str(getattr(request, "name", ""))
        found.append(name)
        alternatives = getattr(request, "first_available", ())
        found += [
            f"{name}/{getattr(each, 'name', '')}" for each in (alternatives if is_list(alternatives) else ())
        ]
    return found


def _configured(asked: DeviceRequest | Alternative, name: str, pins: Pins) -> ConfiguredRequest:
    class_ = asked.device_class
    return ConfiguredRequest(
        name=name,
        devices=_devices_of(class_, pins),
        count=asked.count if isinstance(asked.count, int) else None,
        class_configs=class_.configs if isinstance(class_, NamedClass) else (),
    )


def _devices_of(class_: object, pins: Pins) -> tuple[DeviceType, ...] | None:
    """The types of devices in a class of the program, or in one that a driver ships; None where they are not known."""
    if isinstance(class_, NamedClass) and class_.selects is not None:
        found = tuple(each for each in pins.devices if (each.driver, each.name) == class_.selects)
        return found or None
    name = class_name_of(class_)
    return pins.devices_of(name) if isinstance(name, str) else None
