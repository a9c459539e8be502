"""One request of a claim, from what people ask for to its record."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.errors import Problem, SelectorError
from dra_infra.kubernetes.api import (
    CapacityRequirements,
    CELDeviceSelector,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    Quantity,
    names,
)
from dra_infra.kubernetes.api import DeviceRequest as RequestRecord
from dra_infra.kubernetes.api.limits import MAX_FIRST_AVAILABLE, MAX_TOLERATIONS
from dra_infra.kubernetes.apiserver import check_toleration as find_toleration_errors
from dra_infra.program_objects import UNKNOWN
from dra_infra.selectors.attributes import Attribute
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import (
    is_list,
    is_output,
    known_text,
    shorten,
    too_many,
    wrong_type,
)
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.requests import (
    Alternative,
    ClassRef,
    DeviceRequest,
    NamedClass,
    Toleration,
    class_name_of,
)
from dra_infra.target import ClusterTarget

_OPERATORS: Final = ("Exists", "Equal")
_EFFECTS: Final = ("NoSchedule", "NoExecute")
_LARGEST: Final = 2**63 - 1
"""A time in seconds is an int64."""


def check_toleration(toleration: Toleration) -> list[Problem]:
    """Find `wrong-type`, `unsupported-value`, `invalid-label` and `invalid-toleration`."""
    if wrong := list(_check_types(toleration)):
        return wrong
    errors = find_toleration_errors(_record_of(toleration), "", ClusterTarget().releases[-1])
    # One rule may have several things to say of a key.
    rules = dict.fromkeys(error.rule for error in errors)
    return [*(_refused(rule, toleration) for rule in rules), *_check_together(toleration)]


def _check_types(toleration: Toleration) -> Iterator[Problem]:
    key: object = toleration.key
    value: object = toleration.value
    if not isinstance(key, str):
        yield wrong_type("key", key, "a string", 'write key="gpu.nvidia.com/xid"')
    if not isinstance(value, str):
        yield wrong_type("value", value, "a string")
    effect: object = toleration.effect
    yield from _check_choice("operator", toleration.operator, _OPERATORS)
    if effect is not None:
        yield from _check_choice("effect", effect, _EFFECTS)
    seconds: object = toleration.seconds
    if seconds is not None and not (type(seconds) is int and abs(seconds) <= _LARGEST):
        yield wrong_type("seconds", seconds, "a number of seconds")


def _check_choice(path: str, value: object, choices: tuple[str, ...]) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield wrong_type(path, value, "a string", f'write {path}="{choices[0]}"')
    elif value not in choices:
        message = f"{shorten(value)} is none of {', '.join(choices)}"
        yield Problem(
            path=path, code="unsupported-value", message=message, hint=f'write {path}="{choices[0]}"'
        )


def _refused(rule: str, toleration: Toleration) -> Problem:
    """The problem that a rule of the API server finds in a toleration, in terms of its arguments."""
    if rule == "toleration.key":
        return Problem(
            path="key",
            code="invalid-label",
            message=f"{shorten(toleration.key)} cannot be the key of a taint",
            hint='keys are like those of labels: key="gpu.nvidia.com/xid"',
        )
    if rule == "toleration.value":
        return Problem(
            path="value",
            code="invalid-label",
            message=f"{shorten(toleration.value)} cannot be the value of a taint",
            hint="use at most 63 letters, digits, '-', '_' and '.'",
        )
    return Problem(
        path="value",
        code="invalid-toleration",
        message=f'{toleration.value!r:.80} is compared with nothing, for operator="Exists" takes any value',
        hint='leave value out, or write operator="Equal"',
    )


def _record_of(toleration: Toleration) -> DeviceToleration:
    given: dict[str, Any] = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "toleration_seconds": toleration.seconds,
    }
    return DeviceToleration(**{key: value for key, value in given.items() if value not in (None, "")})


def _check_together(toleration: Toleration) -> Iterator[Problem]:
    """Check what the API server takes and no scheduler can mean."""
    if toleration.operator == "Equal" and not toleration.key:
        yield Problem(
            path="key",
            code="invalid-toleration",
            message='operator="Equal" needs the key of a taint',
            hint='write key="gpu.nvidia.com/xid"',
        )
    if toleration.seconds is not None and toleration.effect != "NoExecute":
        yield Problem(
            path="seconds",
            code="invalid-toleration",
            message="only taints that end pods are tolerated for a time",
            hint='write effect="NoExecute", or leave seconds out',
        )


_OF_ALTERNATIVES: Final = ("device_class", "select", "tolerations", "capacity")


def compile_request(request: DeviceRequest) -> tuple[list[Problem], RequestRecord | None]:
    """The record of a request, or what is wrong with it; paths begin at its arguments.

    A class whose name is not a plain string stands as `UNKNOWN` in the record.
    """
    problems = list(_check_name(request.name))
    if not is_list(request.first_available):
        hint = "write first_available=[dra.Alternative(...), ...]"
        return [*problems, wrong_type("first_available", request.first_available, "a list", hint)], None
    if len(request.first_available):
        found, alternatives = _compile_alternatives(request)
        problems += found
        return problems, None if problems else RequestRecord(name=request.name, first_available=alternatives)
    found, fields = _compile_leaf(request)
    problems += found
    if not isinstance(request.admin_access, bool):
        problems.append(wrong_type("admin_access", request.admin_access, "True or False"))
    if problems:
        return problems, None
    if request.admin_access:
        fields["admin_access"] = True
    exactly = ExactDeviceRequest(**fields)
    return [], RequestRecord(name=request.name, exactly=exactly)


def compile_selectors(select: object) -> tuple[list[Problem], list[DeviceSelector]]:
    """The selector list for one `select=` argument, and what is wrong with it."""
    if select is None:
        return [], []
    if not isinstance(select, Selector):
        hint = "write a test such as dra.gpu.memory >= '40Gi'"
        if isinstance(select, str):
            hint = f"wrap CEL text: dra.cel({select!r})"
        elif isinstance(select, Attribute):
            hint = "an attribute alone is no test: compare it, or use .exists()"
        return [wrong_type("select", select, "a selector", hint)], []
    problems = [problem for problem in select.problems("select") if problem.severity == "error"]
    if problems:
        return problems, []
    return [], [DeviceSelector(cel=CELDeviceSelector(expression=select.expression()))]


def check_names(requests: Sequence[object], path: str) -> Iterator[Problem]:
    """Checks that no two of *requests*, or of alternatives, have one name: `duplicate-request`."""
    seen: dict[str, int] = {}
    for index, request in enumerate(requests):
        name = getattr(request, "name", None)
        if not isinstance(name, str):
            continue
        if name in seen:
            message = f"{name!r} is already the name of {path}[{seen[name]}]"
            hint = "give each request a name of its own"
            yield Problem(path=f"{path}[{index}].name", code="duplicate-request", message=message, hint=hint)
        seen.setdefault(name, index)


def _compile_alternatives(request: DeviceRequest) -> tuple[list[Problem], list[DeviceSubRequest]]:
    path = "first_available"
    problems = [
        Problem(
            path=name,
            code="shorthand-with-requests",
            message=f"{name} is given beside first_available",
            hint=f"say it in each alternative: dra.Alternative(..., {name}=...)",
        )
        for name in _OF_ALTERNATIVES
        if _is_given(getattr(request, name))
    ]
    count: object = request.count
    is_admin = _is_given(request.admin_access)
    if is_admin or not (isinstance(count, int) and count == 1):
        name = "admin_access" if is_admin else "count"
        message = f"{name} is given beside {path}"
        hint = "leave it out: admin access goes with one class" if is_admin else "say it in each alternative"
        problems.append(Problem(path=name, code="shorthand-with-requests", message=message, hint=hint))
    if len(request.first_available) > MAX_FIRST_AVAILABLE:
        hint = "leave out the alternatives that are least likely to be had"
        problems.append(too_many(path, len(request.first_available), MAX_FIRST_AVAILABLE, hint))
    problems += check_names(request.first_available, path)
    records = []
    for index, alternative in enumerate(request.first_available):
        place = f"{path}[{index}]"
        if not isinstance(alternative, Alternative):
            hint = 'write dra.Alternative("name", device_class=...)'
            problems.append(wrong_type(place, alternative, "an Alternative", hint))
            continue
        found, fields = _compile_leaf(alternative)
        found = [*_check_name(alternative.name), *found]
        problems += [problem.below(place) for problem in found]
        if not found:
            records.append(DeviceSubRequest(name=alternative.name, **fields))
    return problems, records


def _compile_leaf(asked: DeviceRequest | Alternative) -> tuple[list[Problem], dict[str, Any]]:
    """Compiles the fields that requests and alternatives have in common."""
    problems = [*_check_class(asked.device_class), *_check_count(asked.count)]
    found, selectors = compile_selectors(asked.select)
    problems += found
    found, tolerations = _compile_tolerations(asked.tolerations)
    problems += found
    found, capacity = _compile_capacity(asked.capacity)
    problems += found
    if problems:
        return problems, {}
    class_name = class_name_of(asked.device_class)
    fields: dict[str, Any] = {
        "device_class_name": class_name if isinstance(class_name, str) else UNKNOWN,
        "selectors": selectors or None,
    }
    # ExactCount is the server's default; writing it would only make diffs longer.
    if asked.count == "all":
        fields["allocation_mode"] = "All"
    else:
        # What is known later is one device at least, and judged when it is known.
        fields["count"] = asked.count if isinstance(asked.count, int) else 1
    if tolerations:
        fields["tolerations"] = tolerations
    if capacity:
        fields["capacity"] = CapacityRequirements(requests=capacity)
    return [], fields


def _is_given(value: object) -> bool:
    """True for an argument that was written, as one without a truth value was."""
    try:
        return bool(value)
    except (SelectorError, TypeError):
        return True


def _check_name(name: object) -> Iterator[Problem]:
    if not isinstance(name, str):
        yield wrong_type("name", name, "a string")
    elif not names.is_dns_label(name):
        hint = "use lower-case letters, digits and '-', at most 63"
        yield Problem(path="name", code="invalid-name", message=f"{name!r} is not a DNS label", hint=hint)


def _check_class(device_class: object) -> Iterator[Problem]:
    device_class, name = known_text(device_class), class_name_of(device_class)
    if device_class is None:
        hint = (
            'write device_class=h100 with a GpuDeviceClass, or device_class=dra.class_ref("gpu.nvidia.com")'
        )
        yield Problem(path="device_class", code="missing-argument", message="no class is named", hint=hint)
    elif is_output(device_class):
        return
    elif not isinstance(device_class, (str, NamedClass)):
        hint = 'give a GpuDeviceClass, dra.class_ref("name"), or the name as a string'
        yield wrong_type("device_class", device_class, "a device class", hint)
    elif not isinstance(name, str) and not is_output(name):
        yield wrong_type("device_class", name, "the name of a class")
    elif isinstance(name, str) and isinstance(device_class, (str, ClassRef)):
        # A class that is a component of the program has been checked where it was made.
        yield from check_object_name(name, path="device_class")


def _check_count(count: object) -> Iterator[Problem]:
    if (isinstance(count, str) and count == "all") or is_later(count):
        return
    # bool is an int in Python, and True devices is never meant.
    if not isinstance(count, int) or isinstance(count, bool):
        yield wrong_type("count", count, 'an int or "all"')
    elif count < 1:
        hint = 'ask for 1 or more devices, or count="all" for every matching device of a node'
        yield Problem(path="count", code="count-below-one", message=f"{count} is below 1", hint=hint)


def is_later(count: object) -> bool:
    """True for a count that is known later: a Pulumi Output or an awaitable."""
    return is_output(count) or isinstance(count, Awaitable)


def _compile_tolerations(tolerations: object) -> tuple[list[Problem], list[DeviceToleration]]:
    example = 'write tolerations=[dra.Toleration(key="gpu.nvidia.com/xid", effect="NoSchedule")]'
    if not isinstance(tolerations, Sequence) or not is_list(tolerations):
        return [wrong_type("tolerations", tolerations, "a list of tolerations", example)], []
    problems: list[Problem] = []
    if len(tolerations) > MAX_TOLERATIONS:
        message = f"{len(tolerations)} tolerations, the API allows {MAX_TOLERATIONS} per request without checking it"
        hint = "leave the key out to tolerate all taints: dra.Toleration()"
        problems.append(Problem(path="tolerations", code="too-many-tolerations", message=message, hint=hint))
    records = []
    for index, each in enumerate(tolerations):
        path = f"tolerations[{index}]"
        if not isinstance(each, Toleration):
            problems.append(wrong_type(path, each, "a Toleration", example))
            continue
        found = check_toleration(each)
        problems += [problem.below(path) for problem in found]
        if not found:
            records.append(_record_of(each))
    return problems, [] if problems else records


def _compile_capacity(capacity: object) -> tuple[list[Problem], dict[str, str]]:
    example = 'write capacity={"memory": "20Gi"}'
    if not isinstance(capacity, Mapping):
        return [wrong_type("capacity", capacity, "a mapping of capacities to amounts", example)], {}
    problems: list[Problem] = []
    requests: dict[str, str] = {}
    for key, amount in capacity.items():
        if not isinstance(key, str):
            problems.append(wrong_type("capacity", key, "the name of a capacity", example))
            continue
        try:
            requests[key] = Quantity.parse(amount).canonical() if isinstance(amount, str) else ""
        except ValueError:
            requests[key] = ""
        if not requests[key]:
            problems.append(wrong_type(f"capacity[{key!r}]", amount, "an amount", 'write "20Gi"'))
    return problems, requests
