"""The objects of a tenant: its Namespace, its ResourceQuota, and the arguments of the claim templates that it is given.

Quotas count devices under several keys (pkg/quota/v1/evaluator/core/resource_claims.go and pods.go), and each limits
alone: a class has them all, or the scheduler finds a claim refused whose pod was let in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import Quantity, names
from dra_infra.kubernetes.api.pod_security import PREFIX, Level
from dra_infra.kubernetes.apiserver import QuotaKey
from dra_infra.specs.arguments import (
    check_labels,
    check_merged,
    is_list,
    is_output,
    shorten,
    wrong_plain_type,
    wrong_type,
)
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.platform.namespaces import ALWAYS_THERE
from dra_infra.specs.pod_security import PodSecurity, check_pod_security_argument, read_pod_security
from dra_infra.specs.requests import Alternative, DeviceRequest, NamedClass, Toleration, class_name_of

ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
"""The label of namespaces in which claims may have admin access (DRAAdminNamespaceLabelKey)."""


def compile_quota(
    counts: Sequence[tuple[str, str | None, int]], hard: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The `spec.hard` of a tenant.

    Args:
        counts: Class, its extended resource or None, and how many devices of it. Classes with one extended resource share
            its key, which has their sum.
        hard: Other keys, as they stand in `spec.hard`.
    """
    limits: dict[str, int] = {}
    for class_name, extended, count in counts:
        for key in QuotaKey.list_of_class(class_name, extended):
            limits[key] = limits.get(key, 0) + count
    others = {key: str(each) if isinstance(each, int) else each for key, each in (hard or {}).items()}
    return {**{key: str(limit) for key, limit in limits.items()}, **others}


def makes_namespace(namespace: object, *, create: object) -> bool:
    """True where the tenant makes its Namespace: it is asked to, and the cluster has none of that name from the start."""
    # By type, for what is passed by mistake may have no truth value.
    return create is True and not (isinstance(namespace, str) and namespace in ALWAYS_THERE)


def labels_of_namespace(
    labels: Mapping[str, Any] | None, *, admin_access: bool, pod_security: PodSecurity | Level | None
) -> dict[str, Any]:
    """The labels of a tenant's Namespace."""
    return {
        **(labels or {}),
        **read_pod_security(pod_security).labels(),
        **({ADMIN_ACCESS: "true"} if admin_access else {}),
    }


def check_quota(quota: object, hard: object) -> Iterator[Problem]:
    """Problems of `quota` and `hard`: `wrong-type`, `invalid-name`, `value-set-twice`."""
    hint = 'write quota={"h100": 8}: devices by class'
    keys: dict[str, str] = {}
    if quota is not None and not isinstance(quota, Mapping):
        yield wrong_plain_type("quota", quota, "a mapping of classes to numbers", hint)
    elif quota is not None:
        for class_, count in quota.items():
            name = class_name_of(class_)
            path = f"quota[{shorten(name)}]"
            if not is_output(name):
                yield from _check_class(name, path)
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                yield wrong_plain_type(path, count, "a number of devices, 0 for none", hint)
            if isinstance(name, str):
                if QuotaKey.of_class(name) in keys:
                    yield _set_twice(path, "the class stands there twice")
                extended = class_.extended_resource_name if isinstance(class_, NamedClass) else None
                keys |= dict.fromkeys(QuotaKey.list_of_class(name, extended), path)
    yield from _check_hard(hard, keys)


def _check_class(name: object, path: str) -> Iterator[Problem]:
    yield from check_object_name(name, path=path)
    if isinstance(name, str) and names.is_dns_subdomain(name):
        longest = QuotaKey.LONGEST_CLASS
        if len(name) > longest:
            message = (
                f"the name has {len(name)} characters, and a quota can name classes of at most {longest}"
            )
            yield Problem(
                path=path, code="invalid-name", message=message, hint="give the class a shorter name"
            )


def _check_hard(hard: object, taken: Mapping[str, str]) -> Iterator[Problem]:
    hint = 'write hard={"cpu": "64", "pods": "100"}'
    if hard is not None and not isinstance(hard, Mapping):
        yield wrong_plain_type("hard", hard, "a mapping of keys to quantities", hint)
        return
    for key, amount in (hard or {}).items():
        path = f"hard[{shorten(key)}]"
        if not isinstance(key, str):
            yield wrong_type("hard", key, "a key of spec.hard", hint)
            continue
        if key in taken:
            yield _set_twice(path, f"{taken[key]} sets it too")
        elif not QuotaKey(key).is_known:
            message = f"{shorten(key)} is no key of a ResourceQuota"
            yield Problem(path=path, code="invalid-name", message=message, hint=hint)
        if is_output(amount):
            continue
        found = read_amount(amount)
        if found is None or found < 0:
            yield wrong_type(path, amount, "a quantity that is not negative", hint)
        elif QuotaKey(key).is_whole and found.denominator != 1:
            yield wrong_type(path, amount, "a whole number", hint)


def read_amount(amount: object) -> Fraction | None:
    """The value of an amount of a resource; None for what is no quantity."""
    if isinstance(amount, bool) or not isinstance(amount, (int, str)):
        return None
    try:
        return Quantity.parse(str(amount)).value
    except ValueError:
        return None


def _set_twice(path: str, message: str) -> Problem:
    return Problem(path=path, code="value-set-twice", message=message, hint="write it once")


def check_namespace_of_tenant(
    namespace: object, labels: object, *, create: object, admin_access: object, pod_security: object
) -> Iterator[Problem]:
    """Problems of the Namespace of a tenant: `wrong-type`, `invalid-label`, `field-not-allowed`, `unsupported-value`.

    Args:
        namespace: Its name.
        labels: The argument `namespace_labels`.
        create: The argument `create_namespace`.
        admin_access: The argument of that name.
        pod_security: The argument of that name.
    """
    yield from check_merged("namespace_labels", labels)
    yield from check_labels(labels, "namespace_labels")
    for path, value in (("create_namespace", create), ("admin_access", admin_access)):
        if not isinstance(value, bool):
            yield wrong_plain_type(path, value, "True or False")
    if isinstance(labels, Mapping) and ADMIN_ACCESS in labels:
        yield Problem(
            path="namespace_labels",
            code="field-not-allowed",
            message=f"{ADMIN_ACCESS} lets claims look at devices of everybody, and has an argument of its own",
            hint="write admin_access=True, or leave the label out",
        )
    yield from check_pod_security_argument(pod_security)
    if isinstance(labels, Mapping) and any(str(key).startswith(PREFIX) for key in labels):
        yield Problem(
            path="namespace_labels",
            code="field-not-allowed",
            message=f"labels {PREFIX}... decide which pods the namespace refuses, and have an argument of their own",
            hint='write pod_security="baseline", or a dra.PodSecurity(...), and leave the labels out',
        )
    given = {
        "admin_access": admin_access is True,
        "pod_security": pod_security is not None,
        "namespace_labels": isinstance(labels, Mapping) and bool(labels),
    }
    for path, is_given in given.items():
        if is_given and not makes_namespace(namespace, create=create):
            yield Problem(
                path=path,
                code="field-not-allowed",
                message="is a label of the Namespace, which the tenant does not make",
                hint="leave create_namespace out, or set the label where the Namespace is made",
            )


def check_tolerations(tolerations: object) -> Iterator[Problem]:
    """Problems of the argument `tolerations`: `wrong-type`."""
    hint = 'write tolerations=[dra.Toleration(key="gpu.nvidia.com/xid", effect="NoSchedule")]'
    if not is_list(tolerations):
        yield wrong_plain_type("tolerations", tolerations, "a list of Toleration", hint)
        return
    given: Sequence[Any] = tolerations  # type: ignore[assignment]  # as is_list has seen
    for number, each in enumerate(given):
        if not isinstance(each, Toleration):
            yield wrong_type(f"tolerations[{number}]", each, "a Toleration", hint)


def with_tolerations(
    arguments: Mapping[str, Any], tolerations: Sequence[Toleration], *, takes_alternatives: bool
) -> dict[str, Any]:
    """The arguments of a claim, with tolerations wherever it has none of its own.

    Args:
        arguments: Of the component.
        tolerations: Those of the tenant.
        takes_alternatives: The component has the arguments `requests` and `first_available`.
    """
    changed = dict(arguments)
    if takes_alternatives:
        for name in ("requests", "first_available"):
            if is_list(changed.get(name)):
                changed[name] = [_tolerant(each, tolerations) for each in changed[name]]
                return changed
    if not changed.get("tolerations"):
        changed["tolerations"] = list(tolerations)
    return changed


def _tolerant(each: Any, tolerations: Sequence[Toleration]) -> Any:
    if isinstance(each, DeviceRequest) and each.first_available:
        # The server takes tolerations of a prioritized request at its alternatives alone.
        return replace(each, first_available=[_tolerant(one, tolerations) for one in each.first_available])
    if isinstance(each, (DeviceRequest, Alternative)) and not each.tolerations:
        return replace(each, tolerations=list(tolerations))
    return each
