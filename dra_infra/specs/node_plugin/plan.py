"""Compiles the arguments of the node plugin to its objects; pure, and all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import (
    CELDeviceSelector,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ObjectMeta,
)
from dra_infra.specs.node_plugin import daemon_set, rights
from dra_infra.specs.node_plugin.checks import IMAGE, check_arguments, check_name
from dra_infra.specs.node_plugin.daemon_set import Hardware, choose_hardware
from dra_infra.specs.platform.namespaces import ALWAYS_THERE, PRIVILEGED, scc_binding

NAMESPACE: Final = "dra-infra-plugin"

_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class NodePluginPlan:
    """The objects of a node plugin.

    Args:
        hardware: Whose devices it has.
        namespace: Where it runs.
        namespace_labels: Labels of the Namespace to make; None where it is there already.
        classes: The DeviceClasses.
        guards: What has to be there before a pod: account, rights, and what limits them.
        daemon_set: The DaemonSet.
        driver_root: Where it is told to look for NVIDIA's kernel driver on nodes; None where nobody said, which is `/`.
        warnings: What stops nothing, at its argument.
    """

    hardware: Hardware
    namespace: Any
    namespace_labels: Mapping[str, Any] | None
    classes: tuple[Mapping[str, Any], ...]
    guards: tuple[Mapping[str, Any], ...]
    daemon_set: Mapping[str, Any]
    driver_root: str | None
    warnings: tuple[Problem, ...]


def compile_node_plugin(
    name: object, arguments: Mapping[str, Any], *, join: Callable[[Sequence[Any]], Any] = "".join
) -> NodePluginPlan:
    """The objects of a plugin.

    Args:
        name: Of the objects, where `object_name` is not given.
        arguments: Those of `NodePlugin`.
        join: Joins texts of which some may not be known yet.

    Raises:
        InvalidSpecError: With every problem of `check_arguments` and `choose_hardware`.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    problems = list(check_arguments(given))
    if "object_name" not in given:
        problems += check_name(name, path="name")
    hardware, wrong = choose_hardware(given)
    problems += wrong
    if hardware:
        problems += _check_back_end_only(given, hardware)
    if hardware is None or any(each.severity == "error" for each in problems):
        raise InvalidSpecError(problems)
    named = str(given.get("object_name", name))
    namespace = given.get("namespace", NAMESPACE)
    makes = given.get("create_namespace", True) and namespace not in ALWAYS_THERE
    metadata = _metadata(named, given)
    return NodePluginPlan(
        hardware=hardware,
        namespace=namespace,
        namespace_labels={**PRIVILEGED, **given.get("namespace_labels", {})} if makes else None,
        classes=tuple(_classes(hardware, metadata)) if given.get("classes", True) else (),
        guards=tuple(_guards(named, namespace, metadata, hardware, given, join)),
        driver_root=given.get("nvidia_driver_root"),
        warnings=tuple(problems),
        daemon_set={
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {**metadata, "namespace": namespace},
            "spec": daemon_set.spec(
                given, hardware, name=named, image=given.get("image", IMAGE), labels=metadata["labels"]
            ),
        },
    )


def _check_back_end_only(arguments: Mapping[str, Any], hardware: Hardware) -> list[Problem]:
    """Arguments that only one back end knows: `field-not-allowed`."""
    only = {"nvidia_driver_root": "nvml", "binding_conditions": "sim"}
    return [
        Problem(
            path=name,
            code="field-not-allowed",
            message=f"is for {back_end} alone",
            hint=f'leave it out, or write back_end="{back_end}"',
        )
        for name, back_end in only.items()
        if name in arguments and back_end != hardware.back_end
    ]


def _metadata(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    labels = {**daemon_set.selector(name), **arguments.get("labels", {}), **daemon_set.selector(name)}
    annotations = arguments.get("annotations")
    return {"name": name, "labels": labels, **({"annotations": annotations} if annotations else {})}


def _classes(hardware: Hardware, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    made = []
    for shipped in hardware.classes:
        selectors = [DeviceSelector(cel=CELDeviceSelector(expression=shipped.expression))]
        class_ = DeviceClass(
            metadata=ObjectMeta(name=shipped.name), spec=DeviceClassSpec(selectors=selectors)
        )
        made.append({**class_.to_manifest(), "metadata": {**metadata, "name": shipped.name}})
    return made


def _guards(
    name: str,
    namespace: Any,
    metadata: Mapping[str, Any],
    hardware: Hardware,
    arguments: Mapping[str, Any],
    join: Callable[[Sequence[Any]], Any],
) -> list[dict[str, Any]]:
    conditions = arguments.get("binding_conditions", False)
    placed = {**metadata, "namespace": namespace}
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    reached = rights.network_policy(arguments, name=name, metadata=placed)
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": placed},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": rights.rules(hardware.driver, binding_conditions=conditions),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [account],
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": rights.admission_policy(
                hardware.driver,
                account=name,
                namespace=namespace,
                binding_conditions=conditions,
                join=join,
            ),
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
        *([reached] if reached else []),
        *([scc_binding(placed, account)] if arguments.get("openshift") else []),
    ]
