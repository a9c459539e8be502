"""Admission policies for claims: what the API server lets anybody ask for, whatever their role says.

RBAC knows no classes, counts and configs. ValidatingAdmissionPolicies do, and each of these sees every way to write a claim: the
server converts objects of older versions to the one that a rule names (`matchPolicy: Equivalent`), templates have a policy of their
own, and alternatives are looked at as requests are. Claims that the scheduler makes for pods are claims, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.specs.arguments import (
    check_positive,
    check_total,
    is_list,
    is_one_of,
    shorten,
    wrong_plain_type,
)
from dra_infra.specs.component_plans import ComponentPlan, PlannedObject
from dra_infra.specs.object_names import check_metadata, check_object_name
from dra_infra.specs.requests import NamedClass, class_name_of
from dra_infra.specs.roles import check_subjects, read_subject
from dra_infra.specs.tenants import ADMIN_ACCESS
from dra_infra.target import ClusterTarget

_VERSION: Final = "admissionregistration.k8s.io/v1"
_BRIDGE: Final = "deviceclass.resource.kubernetes.io/"
"""What a pod asks for in place of a claim begins with this, and ends in the name of a class (KEP 5004)."""

_PLUGIN: Final = "nvidia.com/"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What is allowed; None and empty where nothing is said.

    Args:
        classes: Names of the DeviceClasses that a namespace may use, for those namespaces that are named.
        most_devices: Devices that all requests of one claim may ask for, of alternatives the largest; All counts as 32.
        all_devices: Requests may ask for every device of a node.
        admin_access: Namespaces in which claims may have admin access; None leaves it to the label of the namespace.
        admin_label: Who may set or take the label that allows it, as subjects; None for everybody who may change namespaces.
        config_drivers: Drivers for which claims may bring a config; None for all.
        without_device_plugin: Namespaces in which pods may not ask for what NVIDIA's device plugin offers.
        extended_resources: Extended resource names of classes, each with the classes that have it.
        host_paths: Paths of nodes that pods of a namespace may mount.
        node_access: Namespaces whose pods may mount any path of their node, and name it.
    """

    classes: Mapping[str, Sequence[str]]
    most_devices: int | None
    all_devices: bool
    admin_access: Sequence[str] | None
    admin_label: Sequence[str] | None
    config_drivers: Sequence[str] | None
    without_device_plugin: Sequence[str] | None
    extended_resources: Mapping[str, Sequence[str]] = field(default_factory=dict)
    host_paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    node_access: Sequence[str] | None = ()

    @property
    def kept_off_nodes(self) -> dict[str, list[str]]:
        """The namespaces whose pods are kept off the files of their nodes, each with the paths that it may mount."""
        named = dict.fromkeys((*self.classes, *(self.without_device_plugin or ()), *self.host_paths))
        exempt = self.node_access or ()
        return {space: list(self.host_paths.get(space, ())) for space in named if space not in exempt}


def plan_guardrails(name: str, arguments: Mapping[str, Any], _target: ClusterTarget) -> ComponentPlan:
    """Turn the arguments of `GpuGuardrails` into policies, each with its binding.

    Raises:
        InvalidSpecError: With the problems of `check_rules`, and those of the name and of labels.
    """
    classes, extended = arguments["classes"], arguments["extended_resources"]
    host_paths = arguments["host_paths"]
    own = ("most_devices", "all_devices", "admin_access", "admin_label", "config_drivers")
    rules = Rules(
        **{key: arguments[key] for key in (*own, "without_device_plugin", "node_access")},
        classes=_named({} if classes is None else classes),
        extended_resources=_extended(classes, {} if extended is None else extended),
        host_paths={} if host_paths is None else host_paths,
    )
    problems = [
        *check_object_name(name, path="name"),
        *check_metadata(arguments),
        *check_rules(rules),
    ]
    if problems:
        raise InvalidSpecError(problems)
    shared = {key: arguments[key] for key in ("labels", "annotations") if arguments[key] is not None}
    objects: list[PlannedObject] = []
    for manifest in compile_guardrails(name, rules, shared):
        called = manifest["metadata"]["name"]
        key = f"{manifest['kind']} {called.removeprefix(f'{name}-')}"
        # Each policy is followed by its binding.
        after = (objects[-1].key,) if len(objects) % 2 else ()
        objects.append(PlannedObject(key=key, name=called, manifest=manifest, after=after))
    return ComponentPlan(objects=tuple(objects))


def _named(classes: Any) -> Any:
    """Classes by their names; what is none is left for the checks."""
    if not isinstance(classes, Mapping):
        return classes
    return {
        namespace: [class_name_of(each) for each in allowed] if is_list(allowed) else allowed
        for namespace, allowed in classes.items()
    }


def _extended(classes: Any, given: Any) -> Any:
    """Extended resource names with the names of their classes; what is none is left for the checks."""
    if not isinstance(given, Mapping):
        return given
    found = {name: [class_name_of(each)] for name, each in given.items()}
    allowed = [each for each in classes.values() if is_list(each)] if isinstance(classes, Mapping) else []
    for each in (*(each for listed in allowed for each in listed), *given.values()):
        if isinstance(each, NamedClass) and each.extended_resource_name is not None:
            found.setdefault(each.extended_resource_name, []).append(class_name_of(each))
    return found


def compile_guardrails(name: str, rules: Rules, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The policies that say something, each with its binding.

    Args:
        name: What their names begin with.
        rules: What is allowed.
        metadata: Labels and annotations.
    """
    claims = _claims_rule("resourceclaims"), _of_claims(rules, "object.spec")
    templates = _claims_rule("resourceclaimtemplates"), _of_claims(rules, "object.spec.spec")
    policies = {
        "claims": claims,
        "templates": templates,
        "pods": (_rule("", "v1", "pods", "CREATE"), _of_pods(rules)),
        # Whoever may write the status of a namespace, or finalize it, writes its labels too.
        "namespaces": (
            _rule("", "v1", "namespaces", "CREATE", "UPDATE", more=("namespaces/*",)),
            _of_namespaces(rules),
        ),
    }
    made: list[dict[str, Any]] = []
    for key, (rule, validations) in policies.items():
        if not validations:
            continue
        called = {"name": f"{name}-{key}", **metadata}
        spec = {
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [rule]},
            "validations": validations,
        }
        made.append(
            {"apiVersion": _VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": called, "spec": spec}
        )
        bound = {"policyName": called["name"], "validationActions": ["Deny"]}
        made.append(
            {
                "apiVersion": _VERSION,
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": called,
                "spec": bound,
            }
        )
    return made


def _of_claims(rules: Rules, spec: str) -> list[dict[str, Any]]:
    """The validations of a claim's spec at a path."""
    found: list[dict[str, Any]] = []
    if rules.classes:
        allowed = _literal({space: list(classes) for space, classes in rules.classes.items()})
        found.append(
            _validation(
                _each_leaf(
                    spec,
                    f"!(request.namespace in {allowed}) || LEAF.deviceClassName in {allowed}[request.namespace]",
                ),
                f"'namespace ' + request.namespace + ' may use the device classes ' + {allowed}[request.namespace].join(', ')",
            )
        )
    if not rules.all_devices:
        found.append(
            _validation(
                _each_leaf(spec, "LEAF.?allocationMode.orValue('ExactCount') != 'All'"),
                "'a request must say how many devices it asks for: allocationMode All is not allowed'",
            )
        )
    if rules.most_devices is not None:
        found.append(
            _validation(
                f"{_most_devices(spec)} <= {rules.most_devices}",
                f"'a claim may ask for at most {rules.most_devices} devices; allocationMode All counts as {MAX_RESULTS}'",
            )
        )
    if rules.admin_access is not None:
        # Alternatives cannot have it.
        asked = f"{_requests(spec)}.exists(r, r.?exactly.?adminAccess.orValue(false))"
        found.append(
            _validation(
                f"request.namespace in {_literal(list(rules.admin_access))} || !{asked}",
                "'admin access to devices is not allowed in namespace ' + request.namespace",
            )
        )
    if rules.config_drivers is not None:
        drivers = _literal(list(rules.config_drivers))
        told = f"'a claim may bring configs for these drivers alone: ' + {drivers}.join(', ')"
        found.append(
            _validation(
                f"{spec}.devices.?config.orValue([]).all(c, !has(c.opaque) || c.opaque.driver in {drivers})",
                told if rules.config_drivers else "'a claim may bring no config of a driver'",
            )
        )
    return found


def _of_pods(rules: Rules) -> list[dict[str, Any]]:
    """The validations of a pod: the resources that it requests, for it has no claim before it is scheduled, and its node."""
    found: list[dict[str, Any]] = []
    if rules.classes:
        extended = rules.extended_resources
        allowed = _literal(
            {
                space: [
                    *(f"{_BRIDGE}{each}" for each in classes),
                    *(name for name, of in extended.items() if not set(of).isdisjoint(classes)),
                ]
                for space, classes in rules.classes.items()
            }
        )
        other = f"!name.startsWith('{_BRIDGE}')" + (
            f" && !(name in {_literal([*extended])})" if extended else ""
        )
        condition = f"{other} || name in {allowed}[request.namespace]"
        found.append(
            _validation(
                f"!(request.namespace in {allowed}) || {_each_resource(condition)}",
                "'a pod of namespace ' + request.namespace + ' asks for a device class that the namespace may not use'",
            )
        )
    if rules.without_device_plugin:
        spaces = _literal(list(rules.without_device_plugin))
        condition = f"!name.startsWith('{_PLUGIN}')"
        found.append(
            _validation(
                f"!(request.namespace in {spaces}) || {_each_resource(condition)}",
                f"'in namespace ' + request.namespace + ' devices are had by claims, not as resources {_PLUGIN}...'",
            )
        )
    return [*found, *_of_nodes(rules.kept_off_nodes)]


def _of_nodes(paths: Mapping[str, Sequence[str]]) -> Iterator[dict[str, Any]]:
    """The validations by which pods of some namespaces mount no other *paths* of their node, and do not choose it.

    No list of forbidden paths is complete: a device also has links below /dev, and names below the roots of processes and driver
    containers, and the runtime's socket makes any container. Therefore only listed paths are allowed, as they are written: whoever
    may write into a folder can place a link there, which the runtime follows.
    """
    if not paths:
        return
    allowed, spaces = _literal(paths), _literal(list(paths))
    yield _validation(
        f"!(request.namespace in {allowed}) || object.spec.?volumes.orValue([]).all(v, !has(v.hostPath) || "
        f"v.hostPath.path in {allowed}[request.namespace])",
        f"'a pod of namespace ' + request.namespace + ' may mount these paths of its node alone, and no device: ' + "
        f"{allowed}[request.namespace].join(', ')"
        if any(paths.values())
        else "'a pod of namespace ' + request.namespace + ' may mount no path of its node: devices are had by claims'",
    )
    # Pods of a DaemonSet name their node by an affinity, and the scheduler binds by a subresource.
    yield _validation(
        f"!(request.namespace in {spaces}) || object.spec.?nodeName.orValue('') == ''",
        "'a pod of namespace ' + request.namespace + ' may not set nodeName: the scheduler chooses its node'",
    )


def _of_namespaces(rules: Rules) -> list[dict[str, Any]]:
    """The validation of the label that opens admin access: whoever sets it lets everybody in the namespace have it."""
    if rules.admin_label is None:
        return []
    subjects = [subject for each in rules.admin_label if (subject := read_subject(each))]
    users = [_user_name(each) for each in subjects if each["kind"] != "Group"]
    groups = [each["name"] for each in subjects if each["kind"] == "Group"]
    named = f"request.userInfo.username in {_literal(users)} || request.userInfo.?groups.orValue([]).exists(g, g in {_literal(groups)})"
    label = f"metadata.?labels[?'{ADMIN_ACCESS}'].orValue('')"
    same = f"object.{label} == (oldObject == null ? '' : oldObject.{label})"
    return [
        _validation(
            f"{same} || {named}",
            f"'user ' + request.userInfo.username + ' may not change the label {ADMIN_ACCESS}'",
        )
    ]


def _user_name(subject: Mapping[str, str]) -> str:
    if subject["kind"] == "ServiceAccount":
        return f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
    return subject["name"]


def _requests(spec: str) -> str:
    # The server writes null where a claim has none.
    return f"({spec}.devices.?requests.orValue(null) == null ? [] : {spec}.devices.requests)"


def _most_devices(spec: str) -> str:
    """How many devices a claim may come to have: of alternatives the largest counts, and All as in a quota."""

    def of_leaf(leaf: str) -> str:
        return f"({leaf}.?allocationMode.orValue('') == 'All' ? {MAX_RESULTS} : {leaf}.?count.orValue(1))"

    # Of a request that has neither, which the server refuses later, there is no number.
    alternatives = f"[0] + r.?firstAvailable.orValue([]).map(a, {of_leaf('a')})"
    return (
        f"{_requests(spec)}.map(r, (has(r.exactly) ? [{of_leaf('r.exactly')}] : {alternatives}).max()).sum()"
    )


def _each_leaf(spec: str, condition: str) -> str:
    """Holds for every request without alternatives and every alternative, each of which stands for LEAF in the condition."""
    exactly = condition.replace("LEAF", "r.exactly")
    alternative = condition.replace("LEAF", "a")
    return f"{_requests(spec)}.all(r, (!has(r.exactly) || {exactly}) && r.?firstAvailable.orValue([]).all(a, {alternative}))"


def _each_resource(condition: str) -> str:
    """Holds for the `name` of every resource that a container of the pod, or the pod as a whole, asks for."""
    parts = [
        f"object.spec.{kind}.orValue([]).all(c, c.?resources.?{amounts}.orValue({{}}).all(name, {condition}))"
        for kind in ("?containers", "?initContainers")
        for amounts in ("limits", "requests")
    ]
    return f"({' && '.join(parts)})"


def _literal(value: Any) -> str:
    """A list or map of texts as CEL, whose escapes are those of JSON, but for pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False)


def _validation(expression: str, message: str) -> dict[str, Any]:
    return {"expression": expression, "messageExpression": message, "reason": "Forbidden"}


def _claims_rule(resource: str) -> dict[str, Any]:
    # Specs never change. A policy of updates would keep controllers from the finalizers of claims that were there before it.
    return _rule("resource.k8s.io", "v1", resource, "CREATE")


def _rule(
    group: str, version: str, resource: str, *operations: str, more: Sequence[str] = ()
) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource, *more],
    }


def check_rules(rules: Rules) -> Iterator[Problem]:
    """Problems of what is allowed, at the arguments of the same names.

    A class has one extended resource name at most, and several classes may have the same.

    Codes: `wrong-type`, `invalid-name`, `count-below-one`, `too-many-devices`, `field-not-allowed`, and `missing-argument` where
    nothing is forbidden.
    """
    problems = [
        *_check_classes(rules.classes),
        *_check_most(rules.most_devices),
        *_check_names("admin_access", rules.admin_access, _NAMESPACE),
        *_check_names("config_drivers", rules.config_drivers, _DRIVER),
        *_check_names("without_device_plugin", rules.without_device_plugin, _NAMESPACE),
        *_check_extended(rules.extended_resources),
        *_check_host_paths(rules.host_paths),
        *_check_names("node_access", rules.node_access, _NAMESPACE),
        *_check_exempt(rules.host_paths, rules.node_access),
        *(check_subjects(rules.admin_label, "admin_label") if rules.admin_label is not None else ()),
    ]
    if not isinstance(rules.all_devices, bool):
        problems.append(wrong_plain_type("all_devices", rules.all_devices, "True or False"))
    yield from problems
    if not problems and not compile_guardrails("", rules, {}):
        hint = "say what is allowed: classes={...}, most_devices=8, all_devices=False, admin_access=[]"
        yield Problem(path="classes", code="missing-argument", message="nothing is forbidden", hint=hint)


_Format = tuple[Callable[[str], bool], str]
_NAMESPACE: Final[_Format] = (names.is_dns_label, "the name of a namespace")
_DRIVER: Final[_Format] = (names.is_driver_name, "the name of a DRA driver")
_EXTENDED: Final[_Format] = (names.is_extended_resource_name, "the name of an extended resource")
_CLASS: Final[_Format] = (names.is_dns_subdomain, "the name of a device class")


def _check_classes(classes: object) -> Iterator[Problem]:
    hint = 'write classes={"vision": ["h100"]}'
    if not isinstance(classes, Mapping):
        yield wrong_plain_type("classes", classes, "a mapping of namespaces to classes", hint)
        return
    for namespace, allowed in classes.items():
        yield from _check_name("classes", namespace, _NAMESPACE)
        yield from _check_names(f"classes[{shorten(namespace)}]", allowed, _CLASS)


def _check_extended(names_of_classes: object) -> Iterator[Problem]:
    path, hint = "extended_resources", 'write extended_resources={"example.com/a100": "a100"}'
    if not isinstance(names_of_classes, Mapping):
        yield wrong_plain_type(path, names_of_classes, "a mapping of extended resources to classes", hint)
        return
    for name, classes in names_of_classes.items():
        yield from _check_name(path, name, _EXTENDED)
        for each in classes:
            yield from _check_name(f"{path}[{shorten(name)}]", each, _CLASS)


_NODE_PATHS: Final = ("/dev", "/proc", "/sys", "/run", "/var/run", "/var/lib/kubelet", "/etc/cdi")
"""Folders by which a pod reaches devices or the runtime of its node; links may lead there from elsewhere."""


def _check_host_paths(paths: object) -> Iterator[Problem]:
    hint = 'write host_paths={"vision": ["/mnt/datasets"]}'
    if not isinstance(paths, Mapping):
        yield wrong_plain_type("host_paths", paths, "a mapping of namespaces to paths", hint)
        return
    for namespace, allowed in paths.items():
        yield from _check_name("host_paths", namespace, _NAMESPACE)
        at = f"host_paths[{shorten(namespace)}]"
        if not is_list(allowed):
            yield wrong_plain_type(at, allowed, "a list of paths", hint)
            continue
        for number, path in enumerate(allowed):
            yield from _check_host_path(f"{at}[{number}]", path, hint)


def _check_exempt(paths: object, exempt: object) -> Iterator[Problem]:
    """Problems of namespaces whose pods may have the whole node, and only some of its paths: `field-not-allowed`."""
    if not (isinstance(paths, Mapping) and isinstance(exempt, (list, tuple))):
        return
    named = [each for each in exempt if isinstance(each, str)]
    for namespace in paths:
        if is_one_of(namespace, named):
            yield Problem(
                path=f"host_paths[{shorten(namespace)}]",
                code="field-not-allowed",
                message="node_access names the namespace too, whose pods may then mount any path",
                hint="leave one of the two out",
            )


def _check_host_path(at: str, path: object, hint: str) -> Iterator[Problem]:
    if not isinstance(path, str):
        yield wrong_plain_type(at, path, "a path", hint)
        return
    steps = path.split("/")
    if not path.startswith("/") or (any(step in ("", ".", "..") for step in steps[1:]) and path != "/"):
        message = f"{shorten(path)} is not a path from the root, without a slash at its end and steps like .."
        yield Problem(path=at, code="invalid-name", message=message, hint=hint)
    elif any(
        f"{folder}/".startswith(f"{path.rstrip('/')}/") or path.startswith(f"{folder}/")
        for folder in _NODE_PATHS
    ):
        message = f"{shorten(path)} leads to devices or to the container runtime of a node"
        yield Problem(
            path=at,
            code="field-not-allowed",
            message=message,
            hint="name the folders that hold data, or a namespace under node_access=[...] whose pods may have the whole node",
        )


def _check_most(most: object) -> Iterator[Problem]:
    if most is None:
        return
    hint = "write most_devices=8"
    yield from check_positive("most_devices", most, "a number of devices", hint=hint, hint_below=hint)
    if isinstance(most, int):
        yield from check_total("most_devices", most)


def _check_names(path: str, given: object, format_: _Format) -> Iterator[Problem]:
    if given is None:
        return
    if not is_list(given):
        yield wrong_plain_type(path, given, "a list of names")
        return
    listed: Sequence[Any] = given  # type: ignore[assignment]  # as is_list has seen
    for number, each in enumerate(listed):
        yield from _check_name(f"{path}[{number}]", each, format_)


def _check_name(path: str, name: object, format_: _Format) -> Iterator[Problem]:
    holds, told = format_
    if not isinstance(name, str):
        yield wrong_plain_type(path, name, told)
    elif not holds(name):
        message = f"{shorten(name)} is not {told}"
        yield Problem(path=path, code="invalid-name", message=message, hint="write it as the cluster has it")
