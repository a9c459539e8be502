"""Pod specs as people write them in Pulumi: dicts in either spelling, `PodSpecArgs`, `PodTemplateSpecArgs`.

Everything here reads and copies; nothing is changed in place.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.specs.attachments import ContainerView, PodView


def camel(field: str) -> str:
    """The name of a field as Kubernetes spells it."""
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def read(value: Any, field: str) -> Any:
    """The field *field* (snake_case) of a dict in either spelling, or of a Pulumi args object; None when unset."""
    if isinstance(value, Mapping):
        return value.get(camel(field), value.get(field))
    return getattr(value, field, None)


def replaced(value: Any, field: str, new: Any) -> Any:
    """A copy of *value*, of the same type, with *field* set."""
    if isinstance(value, Mapping):
        spelling = field if field in value else camel(field)
        return type(value)({**value, spelling: new})  # type: ignore[call-arg]  # dict and its subclasses
    result = copy.copy(value)
    setattr(result, field, new)
    return result


def pod_spec_of(value: Any) -> tuple[Any, bool]:
    """The pod spec in *value*, and whether *value* is a pod template around it.

    Raises:
        InvalidSpecError: With code `wrong-type` when *value* is neither, or is a Pulumi Output.
    """
    if isinstance(value, pulumi.Output):
        raise InvalidSpecError(
            [
                Problem(
                    path="pod_spec",
                    code="wrong-type",
                    message="the pod spec is a Pulumi Output, so its containers are not known here",
                    hint="give the dict or PodSpecArgs itself; its values may be Outputs",
                )
            ]
        )
    inner = read(value, "spec") if isinstance(value, Mapping) or hasattr(value, "spec") else None
    if inner is not None and read(value, "containers") is None:
        pod, _ = pod_spec_of(inner)
        return pod, True
    if (
        read(value, "containers") is None
        and not isinstance(value, Mapping)
        and not hasattr(value, "containers")
    ):
        raise InvalidSpecError(
            [
                Problem(
                    path="pod_spec",
                    code="wrong-type",
                    message=f"{type(value).__name__} is not a pod spec",
                    hint="give a dict, PodSpecArgs or PodTemplateSpecArgs",
                )
            ]
        )
    return value, False


def view_pod(pod: Any) -> PodView:
    """What attaching needs to know of *pod*.

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
    return PodView(containers=tuple(views))


def find_entry(pod: Any, name: str) -> Any:
    """The entry of `resourceClaims` called *name*; None when there is none."""
    entries = read(pod, "resource_claims") or ()
    return next((entry for entry in entries if read(entry, "name") == name), None)


def add_entry(pod: Any, entry: Mapping[str, Any]) -> Any:
    """A copy of *pod* with one more entry of `resourceClaims`, whose fields are given in snake_case."""
    spelled = {camel(field): value for field, value in entry.items()}
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
        problems.append(
            Problem(
                path=path,
                code="wrong-type",
                message=f"{type(containers).__name__} is not a list of containers",
            )
        )
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
