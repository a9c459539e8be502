"""Objects of Kueue that let workloads wait for devices: a ResourceFlavor, a ClusterQueue and LocalQueues.

Upstream: apis/kueue/v1beta2 and apis/config/v1beta2 (DeviceClassMapping) of sigs.k8s.io/kueue 0.19.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import names
from dra_infra.specs.arguments import (
    check_labels,
    check_namespace,
    is_list,
    is_output,
    shorten,
    wrong_plain_type,
    wrong_type,
)
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.requests import NamedClass
from dra_infra.specs.tenants import check_quota, quota_keys, read_amount

VERSION: Final = "kueue.x-k8s.io/v1beta2"
STRATEGIES: Final = ("BestEffortFIFO", "StrictFIFO")
MOST_MAPPINGS: Final = 16
"""Mappings that the configuration may have (validateDeviceClassMappings)."""

_MOST_RESOURCES: Final = 64
"""Resources of one group of a ClusterQueue."""


def resource_name(class_name: str) -> str:
    """The name under which Kueue counts devices of a class: the key that a ResourceQuota has for its claims."""
    return quota_keys(class_name)[0]


def compile_mappings(classes: Sequence[str]) -> list[dict[str, Any]]:
    """The `deviceClassMappings` of Kueue's configuration, one for each class."""
    return [{"name": resource_name(each), "deviceClassNames": [each]} for each in classes]


def compile_cluster_queue(
    counts: Sequence[tuple[str, int]],
    resources: Mapping[str, Any],
    *,
    flavor: str,
    namespaces: Sequence[Any],
    cohort: str | None = None,
    strategy: str | None = None,
) -> dict[str, Any]:
    """The spec of a ClusterQueue with one group of resources.

    Args:
        counts: Class, and how many devices of it are admitted at once.
        resources: Other resources that pods request: amounts by name.
        flavor: Name of the ResourceFlavor.
        namespaces: Those whose workloads it admits.
        cohort: The cohort that lends and borrows.
        strategy: One of `STRATEGIES`; None for Kueue's default.
    """
    quotas = {resource_name(name): count for name, count in counts} | dict(resources)
    # The order of covered resources and of their quotas must be one.
    amounts = [{"name": name, "nominalQuota": amount} for name, amount in quotas.items()]
    expression = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
    return {
        "namespaceSelector": {"matchExpressions": [expression]},
        "resourceGroups": [
            {"coveredResources": list(quotas), "flavors": [{"name": flavor, "resources": amounts}]}
        ],
        **({"cohortName": cohort} if cohort is not None else {}),
        **({"queueingStrategy": strategy} if strategy is not None else {}),
    }


def check_queue(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of the arguments of a queue.

    Codes: `missing-argument`, `wrong-type`, `invalid-name`, `invalid-label`, `value-set-twice`, `unsupported-value`, `too-many-items`.
    """
    quota, resources = given["quota"], given["resources"]
    yield from check_quota(quota, None)
    yield from _check_lengths(quota)
    yield from _check_resources(resources, quota)
    yield from _check_namespaces(given["namespaces"])
    for path in ("flavor", "cohort"):
        if given[path] is not None:
            yield from check_object_name(given[path], path=path)
    yield from check_labels(given["node_labels"], "node_labels")
    strategy = given["strategy"]
    if strategy is not None and strategy not in STRATEGIES:
        told = f"write one of {', '.join(STRATEGIES)}"
        yield Problem(
            path="strategy",
            code="unsupported-value",
            message=f"{shorten(strategy)} is no strategy of a queue",
            hint=told,
        )
    if given["flavor"] is not None and given["node_labels"] is not None:
        yield Problem(
            path="node_labels",
            code="value-set-twice",
            message="the ResourceFlavor that is named has labels of its own",
            hint="leave out flavor, or node_labels",
        )


def _check_lengths(quota: object) -> Iterator[Problem]:
    for name in class_names(quota) if isinstance(quota, Mapping) else ():
        if isinstance(name, str) and len(name) > names.LABEL_LENGTH:
            yield Problem(
                path=f"quota[{shorten(name)}]",
                code="invalid-name",
                message=f"the name has {len(name)} characters, and Kueue maps classes with at most {names.LABEL_LENGTH}",
                hint="give the class a shorter name",
            )


def _check_resources(resources: object, quota: object) -> Iterator[Problem]:
    hint = 'write resources={"cpu": "960", "memory": "8Ti"}'
    if not isinstance(resources, Mapping):
        yield wrong_plain_type("resources", resources, "a mapping of resources to quantities", hint)
        return
    # By type, for what is passed by mistake may have no truth value.
    if isinstance(quota, Mapping) and not quota and not resources:
        yield Problem(
            path="quota",
            code="missing-argument",
            message="a queue without amounts admits nothing",
            hint='write quota={"h100": 64}',
        )
    classes = len(quota) if isinstance(quota, Mapping) else 0
    if classes > MOST_MAPPINGS:
        yield Problem(
            path="quota",
            code="too-many-items",
            message=f"{classes} classes, and Kueue's configuration has at most {MOST_MAPPINGS} mappings",
            hint="give the classes that nobody queues for a ResourceQuota only",
        )
    if classes + len(resources) > _MOST_RESOURCES:
        yield Problem(
            path="resources",
            code="too-many-items",
            message=f"{classes + len(resources)} resources, and a group of a ClusterQueue has at most {_MOST_RESOURCES}",
            hint="leave out those that never run short",
        )
    counted = (
        {resource_name(each): each for each in class_names(quota) if isinstance(each, str)}
        if isinstance(quota, Mapping)
        else {}
    )
    for name, amount in resources.items():
        path = f"resources[{shorten(name)}]"
        if name in counted:
            message = f"{shorten(name)} is how Kueue counts the class {counted[name]}, which quota has"
            yield Problem(path=path, code="value-set-twice", message=message, hint="leave it out here")
        if not isinstance(name, str) or not names.is_label_key(name):
            yield wrong_type("resources", name, "the name of a resource", hint)
        found = None if is_output(amount) else read_amount(amount)
        if not is_output(amount) and (found is None or found < 0):
            yield wrong_type(path, amount, "a quantity that is not negative", hint)


def _check_namespaces(namespaces: Any) -> Iterator[Problem]:
    hint = 'write namespaces=["vision"]'
    if not is_list(namespaces):
        yield wrong_plain_type("namespaces", namespaces, "a list of namespaces", hint)
        return
    if not namespaces:
        message = "nobody can reach a queue without namespaces"
        yield Problem(path="namespaces", code="missing-argument", message=message, hint=hint)
    for number, each in enumerate(namespaces):
        for problem in check_namespace(each) if not is_output(each) else ():
            yield Problem(
                path=f"namespaces[{number}]", code=problem.code, message=problem.message, hint=problem.hint
            )
    plain = [each for each in namespaces if isinstance(each, str)]
    if len(set(plain)) < len(plain):
        message = "a namespace stands there twice"
        yield Problem(path="namespaces", code="value-set-twice", message=message, hint="write it once")


def class_names(quota: Mapping[NamedClass | str, int]) -> list[Any]:
    """Names of the classes; Outputs where they are not known yet."""
    return [each.object_name if isinstance(each, NamedClass) else each for each in quota]
