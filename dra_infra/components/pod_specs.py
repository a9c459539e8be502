"""Pod specs and pod templates as Pulumi programs write them: dicts in either spelling, or args objects.

Args objects are `PodSpecArgs` and `PodTemplateSpecArgs`, and those of the workloads around a template. Everything
here reads and copies; nothing is changed in place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
from pydantic.alias_generators import to_camel

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.specs.arguments import PLAIN_HINT, wrong_type
from dra_infra.specs.attachments import ContainerView
from dra_infra.specs.nvlink_groups import POD_NUMBERS


def read(value: Any, field: str) -> Any:
    """The field *field* (snake_case) of a dict in either spelling, or of a Pulumi args object; None when unset."""
    if isinstance(value, Mapping):
        return value.get(to_camel(field), value.get(field))
    return getattr(value, field, None)


def replaced(value: Any, field: str, new: Any) -> Any:
    """A copy of *value*, of the same type, with *field* set."""
    if isinstance(value, Mapping):
        spelling = field if field in value else to_camel(field)
        return type(value)({**value, spelling: new})  # type: ignore[call-arg]  # dict and its subclasses
    result = copy.copy(value)
    setattr(result, field, new)
    return result


def pod_spec_of(value: Any) -> tuple[Any, tuple[str, ...]]:
    """The pod spec in *value*, and the fields (snake_case) that lead to it; none where *value* is the pod spec.

    Args:
        value: A pod spec, a pod template, a workload (`{"spec": {"template": ...}}`) or its spec.

    Raises:
        InvalidSpecError: With code `wrong-type` when *value* is none of them, or a Pulumi Output on the way.
    """
    path = template_path(value)
    fields = () if path is None else (*path, "spec")
    pod = value
    for depth in range(len(fields) + 1):
        pod = read_template(value, fields[:depth])
        if isinstance(pod, pulumi.Output):
            message = "the pod spec is a Pulumi Output, so its containers are not known here"
            hint = "give the dict or PodSpecArgs itself; its values may be Outputs"
            raise InvalidSpecError.of(path="pod_spec", code="wrong-type", message=message, hint=hint)
    if not isinstance(pod, Mapping) and not hasattr(pod, "containers"):
        message = f"{type(value).__name__} is not a pod spec"
        if fields:
            message = f"there is no pod spec at {'.'.join(map(to_camel, fields))}"
        hint = "give a pod spec, a pod template, or the Job, Deployment or the like around it, or its spec"
        raise InvalidSpecError.of(path="pod_spec", code="wrong-type", message=message, hint=hint)
    return pod, fields


def view_pod(pod: Any) -> list[ContainerView]:
    """The containers of *pod*, init containers first, as attaching reads them.

    Raises:
        InvalidSpecError: With code `wrong-type` when containers, or a part of them that decides the structure, is a
            Pulumi Output, or nothing that holds containers.
    """
    problems: list[Problem] = []
    views = [
        *_view_containers(pod, "init_containers", problems),
        *_view_containers(pod, "containers", problems),
    ]
    entries = read(pod, "resource_claims")
    if isinstance(entries, pulumi.Output) or any(isinstance(entry, pulumi.Output) for entry in entries or ()):
        problems.append(_is_output("pod_spec.resource_claims"))
    if problems:
        raise InvalidSpecError(problems)
    return views


def find_entry(pod: Any, name: str) -> Any:
    """The entry of `resourceClaims` called *name*; None when there is none."""
    entries = read(pod, "resource_claims") or ()
    return next((entry for entry in entries if read(entry, "name") == name), None)


def add_entry(pod: Any, entry: Mapping[str, Any]) -> Any:
    """A copy of *pod* with one more entry of `resourceClaims`, whose fields are given in snake_case."""
    spelled = {to_camel(field): value for field, value in entry.items()}
    return replaced(pod, "resource_claims", [*(read(pod, "resource_claims") or ()), spelled])


def add_container_claims(pod: Any, names: Sequence[str], claim: Mapping[str, Any]) -> Any:
    """A copy of *pod* in which the containers *names* use *claim*."""
    for field in ("init_containers", "containers"):
        containers = read(pod, field)
        if not containers:
            continue
        pod = replaced(
            pod,
            field,
            [_with_claim(each, claim) if read(each, "name") in names else each for each in containers],
        )
    return pod


def _with_claim(container: Any, claim: Mapping[str, Any]) -> Any:
    resources = read(container, "resources")
    resources = {} if resources is None else resources
    return replaced(
        container,
        "resources",
        replaced(resources, "claims", [*(read(resources, "claims") or ()), dict(claim)]),
    )


def _view_containers(pod: Any, field: str, problems: list[Problem]) -> list[ContainerView]:
    containers = read(pod, field)
    path = f"pod_spec.{field}"
    if containers is None:
        return []
    if isinstance(containers, pulumi.Output):
        problems.append(_is_output(path))
        return []
    if not isinstance(containers, Sequence) or isinstance(containers, str):
        message = f"{type(containers).__name__} is not a list of containers"
        problems.append(Problem(path=path, code="wrong-type", message=message))
        return []
    views = []
    for index, container in enumerate(containers):
        name = None if isinstance(container, pulumi.Output) else read(container, "name")
        resources = None if isinstance(container, pulumi.Output) else read(container, "resources")
        for part, where in ((container, ""), (name, ".name"), (resources, ".resources")):
            if isinstance(part, pulumi.Output):
                problems.append(_is_output(f"{path}[{index}]{where}"))
                break
        else:
            if not isinstance(name, str):
                problems.append(
                    Problem(
                        path=f"{path}[{index}].name",
                        code="missing-argument",
                        message="the container has no name",
                        hint="give it a name: claims are attached to containers by name",
                    )
                )
                continue
            views.append(
                ContainerView(name=name, claims=_view_claims(resources), init=field == "init_containers")
            )
    return views


def _view_claims(resources: Any) -> tuple[tuple[str, str | None], ...] | None:
    claims = None if resources is None else read(resources, "claims")
    if isinstance(claims, pulumi.Output):
        return None
    return tuple((str(read(claim, "name")), read(claim, "request")) for claim in claims or ())


def _is_output(path: str) -> Problem:
    return Problem(
        path=path,
        code="wrong-type",
        message="is a Pulumi Output, so the containers are not known here",
        hint="containers and their names decide the structure: give them plainly; other values may be Outputs",
    )


_TEMPLATES: Final = (
    ("spec", "template"),
    ("template",),
    ("spec", "job_template", "spec", "template"),
    ("job_template", "spec", "template"),
)
_AFFINITY: Final = ("spec", "affinity", "pod_affinity", "required_during_scheduling_ignored_during_execution")


def template_path(value: Any) -> tuple[str, ...] | None:
    """The fields that lead from a workload to its pod template; none from a pod template, None for a pod spec.

    Args:
        value: A workload (`{"spec": {"template": ...}}`), its spec, a pod template or a pod spec.
    """
    for path in _TEMPLATES:
        if read_template(value, path) is not None:
            return path
    return (
        ()
        if read_template(value, ("spec",)) is not None and read_template(value, ("containers",)) is None
        else None
    )


def read_pod_numbers(value: Any, path: Sequence[str]) -> dict[str, Any]:
    """The numbers of pods that the holder of the pod template at *path* writes; None for each that it does not."""
    return {name: read_template(value, (*path[:-1], name)) for name in POD_NUMBERS}


def add_label(template: Any, key: str, label: str) -> Any:
    """A copy of a pod template with one more label.

    Raises:
        InvalidSpecError: `wrong-type` when labels are a Pulumi Output, `claim-attached-twice` when the label is there
            with another value.
    """
    labels = _plain(template, ("metadata", "labels"))
    there = (labels or {}).get(key)
    if there not in (None, label):
        message = (
            f"the pods are in the group {there!r} already, and a node belongs to one ComputeDomain at a time"
        )
        hint = "attach one NvlinkGroup of several nodes to a workload"
        path, code = "metadata.labels", "claim-attached-twice"
        raise InvalidSpecError.of(path=path, code=code, message=message, hint=hint)
    return template_replaced(template, ("metadata", "labels"), {**(labels or {}), key: label})


def add_pod_affinity(template: Any, term: Mapping[str, Any]) -> Any:
    """A copy of a pod template with one more required term of podAffinity, unless it is there.

    Raises:
        InvalidSpecError: `wrong-type` when the affinity, or a part of it, is a Pulumi Output.
    """
    terms = list(_plain(template, _AFFINITY) or ())
    return template if term in terms else template_replaced(template, _AFFINITY, [*terms, term])


def read_template(value: Any, path: Sequence[str]) -> Any:
    """The value at *path* (snake_case) in dicts in either spelling and args objects; None when unset or not known."""
    for field in path:
        if isinstance(value, pulumi.Output):
            return None
        value = read(value, field)
    return value


def template_replaced(value: Any, path: Sequence[str], new: Any) -> Any:
    """A copy of *value*, of the same type, with *new* at *path*; what is missing on the way is a dict."""
    if not path:
        return new
    field, rest = path[0], path[1:]
    inner = template_replaced(read_template(value, (field,)), rest, new) if rest else new
    return replaced({} if value is None else value, field, inner)


def _plain(template: Any, path: Sequence[str]) -> Any:
    """The value at *path*, of which no part may be a Pulumi Output."""
    for depth in range(len(path) + 1):
        if isinstance(part := read_template(template, path[:depth]), pulumi.Output):
            raise InvalidSpecError(
                [wrong_type(".".join(path[:depth]) or "template", part, "a plain value", PLAIN_HINT)]
            )
    return part
