"""Roles of personas and drivers, and who has them: ClusterRoles, and the subjects of their bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.personas import personas, rules_of, rules_of_driver
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import names
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import is_list, shorten, wrong_plain_type, wrong_type
from dra_infra.specs.component_plans import ComponentPlan, PlannedObject
from dra_infra.specs.object_names import check_metadata, check_object_name
from dra_infra.target import ClusterTarget

GROUP: Final = "rbac.authorization.k8s.io"
_VERSION: Final = f"{GROUP}/v1"

OF_CLUSTER: Final = tuple(name for name, each in personas().items() if each.scope == "cluster")
OF_TENANTS: Final = tuple(name for name, each in personas().items() if each.scope == "namespace")
DEVICE_READER: Final = "device-reader"
"""The persona that everybody in a tenant is beside their own."""

_ACCOUNT: Final = re.compile(r"(?P<namespace>[^/]*)/(?P<name>.*)", re.DOTALL)
_HINT: Final = 'write "user:alice@example.com", "group:vision" or "serviceaccount:ci/runner"'


def plan_roles(name: str, arguments: Mapping[str, Any], target: ClusterTarget) -> ComponentPlan:
    """Turn the arguments of `GpuRoles` into ClusterRoles, and a binding of each that has members.

    Raises:
        InvalidSpecError: With the problems of `check_members`, and those of drivers, the name and labels.
    """
    members, drivers = arguments["members"], arguments["drivers"]
    problems = [
        *check_object_name(name, path="name"),
        *check_metadata(arguments),
        *check_members(members, OF_CLUSTER),
        *_check_drivers(drivers),
    ]
    if problems:
        raise InvalidSpecError(problems)
    metadata = {key: arguments[key] for key in ("labels", "annotations") if arguments[key] is not None}
    # A rule for what an older server does not have gives nothing there.
    minor = int(target.minors[-1].partition(".")[2])
    roles = roles_of_personas(name, metadata)
    roles |= {driver_key(each): role_of_driver(name, each, minor, metadata) for each in drivers or {}}
    subjects_of = {
        **(members or {}),
        **{driver_key(each): subjects for each, subjects in (drivers or {}).items()},
    }
    bindings = {
        key: binding(role_name(name, key), role_name(name, key), subjects, metadata)
        for key, subjects in subjects_of.items()
    }
    return ComponentPlan(
        objects=(
            *(
                PlannedObject(key=f"ClusterRole {key}", name=f"{name}-{key}", manifest=manifest)
                for key, manifest in roles.items()
            ),
            *(
                PlannedObject(
                    key=f"ClusterRoleBinding {key}",
                    name=f"{name}-{key}",
                    manifest=manifest,
                    after=(f"ClusterRole {key}",),
                )
                for key, manifest in bindings.items()
            ),
        ),
        attributes={"roles": {key: role_name(name, key) for key in roles}},
    )


def role_name(component: str, persona: str) -> str:
    """The name of the ClusterRole of a persona, of the component that makes the roles."""
    return f"{component}-{persona}"


def driver_key(driver: str) -> str:
    """What stands for a driver where personas are named: a driver may be called like one of them."""
    return f"driver-{driver}"


def read_subject(text: str) -> dict[str, str] | None:
    """One subject of a binding; None for a text that names none.

    Args:
        text: `user:NAME`, `group:NAME` or `serviceaccount:NAMESPACE/NAME`.
    """
    kind, _, name = text.partition(":")
    if kind in ("user", "group") and name.strip():
        return {"kind": kind.capitalize(), "apiGroup": GROUP, "name": name}
    account = _ACCOUNT.fullmatch(name) if kind == "serviceaccount" else None
    if account and names.is_dns_label(account["namespace"]) and names.is_dns_subdomain(account["name"]):
        return {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    return None


def role(name: str, rules: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A ClusterRole."""
    return {
        "apiVersion": _VERSION,
        "kind": "ClusterRole",
        "metadata": {"name": name, **metadata},
        "rules": list(rules),
    }


def binding(
    name: str, of_role: Any, members: Sequence[str], metadata: Mapping[str, Any], *, namespace: Any = None
) -> dict[str, Any]:
    """A binding of a ClusterRole, in one namespace or in the whole cluster.

    Args:
        name: Of the binding.
        of_role: Name of the ClusterRole.
        members: Subjects, as `read_subject` takes them.
        metadata: Labels and annotations.
        namespace: Where it holds; None for everywhere.
    """
    place = {} if namespace is None else {"namespace": namespace}
    return {
        "apiVersion": _VERSION,
        "kind": "ClusterRoleBinding" if namespace is None else "RoleBinding",
        "metadata": {"name": name, **place, **metadata},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": of_role},
        "subjects": [subject for each in members if (subject := read_subject(each))],
    }


def roles_of_personas(component: str, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The ClusterRole of each persona."""
    return {each: role(role_name(component, each), rules_of(each), metadata) for each in personas()}


def role_of_driver(component: str, driver: str, minor: int, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The ClusterRole of a driver on a minor version of Kubernetes."""
    return role(role_name(component, driver_key(driver)), rules_of_driver(driver, minor), metadata)


def check_members(members: object, known: Sequence[str], path: str = "members") -> Iterator[Problem]:
    """Problems of an argument that says who has which role: `wrong-type`, `unsupported-value`, `invalid-name`.

    Args:
        members: Subjects by persona.
        known: Personas that may be named.
        path: The argument.
    """
    if members is None:
        return
    if not isinstance(members, Mapping):
        hint = f'write {path}={{"{known[0]}": ["group:gpus"]}}'
        yield wrong_plain_type(path, members, "a mapping of roles to subjects", hint)
        return
    for persona, subjects in members.items():
        where = f"{path}[{shorten(persona)}]"
        if persona not in known:
            near = nearest(str(persona)[:80], known)
            hint = f"did you mean {near!r}?" if near else f"write one of {', '.join(known)}"
            message = f"there is no role {shorten(persona)} here"
            yield Problem(path=path, code="unsupported-value", message=message, hint=hint)
        yield from check_subjects(subjects, where)


def check_subjects(subjects: object, path: str) -> Iterator[Problem]:
    """Problems of a list of subjects: `wrong-type`, `invalid-name`."""
    if not is_list(subjects):
        yield wrong_plain_type(path, subjects, "a list of subjects", _HINT)
        return
    given: Sequence[Any] = subjects  # type: ignore[assignment]  # as is_list has seen
    for number, each in enumerate(given):
        if not isinstance(each, str):
            yield wrong_type(f"{path}[{number}]", each, "a text", _HINT)
        elif read_subject(each) is None:
            message = f"{shorten(each)} names no user, group or service account"
            yield Problem(path=f"{path}[{number}]", code="invalid-name", message=message, hint=_HINT)


def _check_drivers(drivers: object) -> list[Problem]:
    """Problems of the argument `drivers`: `wrong-type`, `invalid-name`."""
    hint = 'write drivers={"gpu.acme.example": ["serviceaccount:acme/plugin"]}'
    if drivers is not None and not isinstance(drivers, Mapping):
        return [wrong_plain_type("drivers", drivers, "a mapping of drivers to subjects", hint)]
    problems: list[Problem] = []
    for driver, subjects in (drivers or {}).items():
        if not (isinstance(driver, str) and names.is_driver_name(driver)):
            message = f"{shorten(driver)} is not the name of a DRA driver"
            problems.append(Problem(path="drivers", code="invalid-name", message=message, hint=hint))
        problems += check_subjects(subjects, f"drivers[{shorten(driver)}]")
    return problems
