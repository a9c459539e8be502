"""The spec of claims and claim templates from what people ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dra_infra.catalog.drivers import DeviceType
from dra_infra.catalog.pins import Pins, newest
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.model.resource_claim import DeviceClaim, ResourceClaimSpec
from dra_infra.model.resource_claim import DeviceRequest as RequestRecord
from dra_infra.model.target import ClusterTarget
from dra_infra.specs.arguments import is_list, too_many, wrong_type
from dra_infra.specs.claim_gates import check_gates
from dra_infra.specs.config_checks import check_claim_configs
from dra_infra.specs.config_encoding import compile_claim_configs
from dra_infra.specs.config_matching import ConfiguredRequest
from dra_infra.specs.constraint_records import compile_constraints
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.request_records import check_names, class_name_of, compile_request
from dra_infra.specs.requests import Alternative, Constraint, DeviceRequest, NamedClass

SHORTHAND_REQUEST: Final = "gpu"
"""Name of the one request of a claim that was asked for by `device_class=`, `count=`, `select=`."""

MAX_LIST: Final = 32
"""Most requests and most constraints of a claim, and most devices it can hold (resource/v1 types.go)."""


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
    problems: list[Problem] = []
    records: list[RequestRecord] = []
    if len(requests) > MAX_LIST:
        problems.append(too_many("requests", len(requests), MAX_LIST, "split the claim"))
    for index, request in enumerate(requests):
        prefix = "" if shorthand else f"requests[{index}]"
        if not isinstance(request, DeviceRequest):
            hint = 'write dra.DeviceRequest("name", device_class=...)'
            problems.append(wrong_type(prefix, request, "a DeviceRequest", hint))
            continue
        found, record = compile_request(request)
        problems += [problem.below(prefix) if prefix else problem for problem in found]
        if record is not None:
            records.append(record)
    problems += check_names(requests, "requests")
    problems += _check_total(records, shorthand=shorthand)
    if is_list(constraints) and len(constraints) > MAX_LIST:
        problems.append(too_many("constraints", len(constraints), MAX_LIST, "split the claim"))
    found, compiled = compile_constraints(constraints, _names(requests))
    problems += found
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


def leaves_of(requests: Sequence[DeviceRequest]) -> Iterator[tuple[str, DeviceRequest | Alternative]]:
    """What devices are asked for, by the name that configs and constraints refer to."""
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
    return pins.devices_of(str(class_name_of(class_)))


def _check_total(records: Sequence[RequestRecord], *, shorthand: bool) -> list[Problem]:
    total = sum(
        record.exactly.count
        if record.exactly
        else max((each.count for each in record.first_available or ()), default=0)
        for record in records
    )
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
