"""Objects of Kueue that let workloads wait for devices: a ResourceFlavor, a ClusterQueue and LocalQueues.

Upstream: apis/kueue/v1beta2 and apis/config/v1beta2 (DeviceClassMapping) of sigs.k8s.io/kueue 0.19.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.apiserver import QuotaKey
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import (
    check_driver_name,
    check_labels,
    check_namespace,
    is_list,
    is_one_of,
    is_output,
    shorten,
    wrong_plain_type,
    wrong_type,
)
from dra_infra.specs.claims import check_gate
from dra_infra.specs.component_plans import PlannedObject, metadata_of
from dra_infra.specs.device_classes import NVIDIA_DRIVER
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.request_records import compile_selectors
from dra_infra.specs.requests import ClassArgument, NamedClass, class_name_of
from dra_infra.specs.tenants import check_quota, read_amount
from dra_infra.target import ClusterTarget

_VERSION: Final = "kueue.x-k8s.io/v1beta2"
STRATEGIES: Final = ("BestEffortFIFO", "StrictFIFO")
MOST_MAPPINGS: Final = 16
"""Mappings that the configuration may have (validateDeviceClassMappings)."""

_MOST_RESOURCES: Final = 64
"""Resources of one group of a ClusterQueue."""
_MOST_CLASSES: Final = 8
"""Classes of one mapping."""


@dataclass(frozen=True)
class _Source:
    name: str
    _: KW_ONLY
    device_classes: Sequence[ClassArgument]
    driver: str = NVIDIA_DRIVER
    select: Selector | None = None


class CounterSource(_Source):
    """Charges a queue what partitions consume of a counter, such as the memory of MIG devices, in place of their number.

    Kueue has it from 0.19 on, and 0.18 behind its gate KueueDRAIntegrationPartitionableDevices.

    Args:
        name: Name of the counter: `"memory"`. It counts in all counter sets of the driver.
        device_classes: Classes whose claims are charged, at most 8. From 0.19 on a class may have several counters; it has no quota beside them.
        driver: The DRA driver whose partitions are looked at.
        select: Which of them; None for all. Of those that a request matches too, the one that consumes most is charged.
    """


class CapacitySource(_Source):
    """Charges a queue the shares that claims take of a capacity, such as the memory of GPUs that several claims share.

    Kueue has it from 0.19 on behind its gate KueueDRAIntegrationConsumableCapacity, without which this mapping keeps it from starting.

    Args:
        name: Name of the capacity as the driver publishes it: `"memory"`.
        device_classes: Classes whose claims are charged, at most 8; such a class counts nowhere else.
        driver: The DRA driver whose devices are looked at.
        select: Which of them; None for all. What a claim asks for is charged, rounded by the device; else its default, else all.
    """


def resource_name(class_name: str) -> str:
    """The name under which Kueue counts devices of a class: the key that a ResourceQuota has for its claims."""
    return QuotaKey.of_class(class_name)


def compile_mappings(classes: Sequence[str]) -> list[dict[str, Any]]:
    """The `deviceClassMappings` of Kueue's configuration for classes whose devices are counted."""
    return [{"name": resource_name(each), "deviceClassNames": [each]} for each in classes]


def compile_sources(sources: Mapping[str, _Source]) -> list[dict[str, Any]]:
    """The `deviceClassMappings` for what else is charged; names of classes may be Outputs."""
    compiled = []
    for resource, source in sources.items():
        kind = "counter" if isinstance(source, CounterSource) else "capacity"
        selector = {"cel": {"expression": "true" if source.select is None else source.select.expression()}}
        charge = {"name": source.name, "driver": source.driver, "deviceSelector": selector}
        classes = class_names(source.device_classes)
        compiled.append({"name": resource, "deviceClassNames": classes, "sources": [{kind: charge}]})
    return compiled


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


def plan_queue_objects(
    name: str, spec: Any, arguments: Mapping[str, Any], *, flavor: str | None
) -> list[PlannedObject]:
    """Return the ResourceFlavor unless *flavor* names one, the ClusterQueue, and a LocalQueue in each namespace.

    Args:
        name: Of the component.
        spec: Of the ClusterQueue.
        arguments: `namespaces`, `node_labels`, `labels` and `annotations`.
        flavor: The argument of that name.
    """
    shared = {"labels": arguments["labels"], "annotations": arguments["annotations"]}
    objects = []
    if flavor is None:
        nodes = {"spec": {"nodeLabels": arguments["node_labels"]}} if arguments["node_labels"] else {}
        manifest = {**_head("ResourceFlavor", name, shared), **nodes}
        objects.append(PlannedObject(key="ResourceFlavor", name=name, manifest=manifest))
    manifest = {**_head("ClusterQueue", name, shared), "spec": spec}
    before = tuple(each.key for each in objects)
    objects.append(PlannedObject(key="ClusterQueue", name=name, manifest=manifest, after=before))
    for number, namespace in enumerate(arguments["namespaces"]):
        # A namespace that is known while the program runs names its child, which then stays when others come and go.
        key = namespace if isinstance(namespace, str) else str(number)
        head = _head("LocalQueue", name, {**shared, "namespace": namespace})
        objects.append(
            PlannedObject(
                key=f"LocalQueue {key}",
                name=f"{name}-{key}",
                manifest={**head, "spec": {"clusterQueue": name}},
                after=("ClusterQueue",),
            )
        )
    return objects


def _head(kind: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata_of(name, arguments)}


def check_queue(given: Mapping[str, Any], target: ClusterTarget) -> Iterator[Problem]:
    """Problems of the arguments of a queue.

    Codes: `missing-argument`, `wrong-type`, `invalid-name`, `invalid-label`, `value-set-twice`, `unsupported-value`, `too-many-items`,
    `needs-newer-kubernetes`, and those of selectors.
    """
    quota, resources = given["quota"], given["resources"]
    yield from check_quota(quota, None)
    for name in class_names(quota) if isinstance(quota, Mapping) else ():
        yield from _check_length(name, f"quota[{shorten(name)}]")
    yield from _check_resources(resources, quota, given["sources"])
    yield from _check_sources(given["sources"], quota, resources, target)
    yield from _check_namespaces(given["namespaces"])
    for path in ("flavor", "cohort"):
        if given[path] is not None:
            yield from check_object_name(given[path], path=path)
    yield from check_labels(given["node_labels"], "node_labels")
    strategy = given["strategy"]
    if strategy is not None and not is_one_of(strategy, STRATEGIES):
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


def check_together(
    mappings: Iterable[Mapping[str, Any]], others: Mapping[str, Sequence[tuple[str, Mapping[str, Any]]]]
) -> Iterator[Problem]:
    """Problems `value-set-twice` of a queue's mappings beside those of other queues, which Kueue reads in one configuration.

    Args:
        mappings: Of the queue.
        others: Those of other queues of the cluster by `keys_of`, each with how problems name its queue.
    """
    for mapping in mappings:
        name, classes = mapping["name"], mapping["deviceClassNames"]
        path = f"sources[{shorten(name)}]" if "sources" in mapping else f"quota[{shorten(classes[0])}]"
        for label, other in (each for key in keys_of(mapping) for each in others.get(key, ())):
            both = [each for each in classes if each in other["deviceClassNames"]]
            counters = _counters(mapping), _counters(other)
            if name == other["name"]:
                both = [name] if mapping.get("sources") != other.get("sources") else []
            elif all(counters) and counters[0].isdisjoint(counters[1]):
                both = []
            if both:
                message = f"{shorten(both[0])} is counted in another way by {label}, and Kueue has one configuration for both"
                told = "count a class in one way, and one thing under one name"
                yield Problem(path=path, code="value-set-twice", message=message, hint=told)
                break


def keys_of(mapping: Mapping[str, Any]) -> list[str]:
    """The name and the classes of a mapping: without any of them in common two mappings are never at odds."""
    return [mapping["name"], *mapping["deviceClassNames"]]


def _counters(mapping: Mapping[str, Any]) -> set[str]:
    return {each["counter"]["name"] for each in mapping.get("sources", ()) if "counter" in each}


def _check_length(name: object, path: str) -> Iterator[Problem]:
    if isinstance(name, str) and len(name) > names.LABEL_LENGTH:
        yield Problem(
            path=path,
            code="invalid-name",
            message=f"the name has {len(name)} characters, and Kueue maps classes with at most {names.LABEL_LENGTH}",
            hint="give the class a shorter name",
        )


def _check_sources(
    sources: object, quota: object, resources: object, target: ClusterTarget
) -> Iterator[Problem]:
    hint = 'write sources={"example.com/mig-memory": dra.CounterSource("memory", device_classes=["mig.nvidia.com"])}'
    if not isinstance(sources, Mapping):
        yield wrong_plain_type("sources", sources, "a mapping of resources to sources", hint)
        return
    # An empty counter is none: what counts by number, or by capacity, counts once.
    counted = [(name, "") for name in class_names(quota)] if isinstance(quota, Mapping) else []
    for resource, source in sources.items():
        path = f"sources[{shorten(resource)}]"
        if isinstance(resources, Mapping) and resource not in resources:
            told = f'write resources={{{shorten(resource)}: "800Gi"}}'
            message = "resources has no amount of it"
            yield Problem(path=path, code="missing-argument", message=message, hint=told)
        if not isinstance(source, _Source):
            yield wrong_type(path, source, "a CounterSource or a CapacitySource", hint)
            continue
        yield from (each.below(path) for each in _check_source(source, target))
        counter = str(source.name) if isinstance(source, CounterSource) else ""
        classes = class_names(source.device_classes) if is_list(source.device_classes) else ()
        for number, name in enumerate(classes):
            place = f"{path}.device_classes[{number}]"
            if not is_output(name):
                yield from check_object_name(name, path=place)
                yield from _check_length(name, place)
            others = [other for each, other in counted if each == name]
            if others and (not counter or {"", counter}.intersection(others)):
                message = f"the class {shorten(name)} is counted already, and Kueue takes it again for another counter alone"
                yield Problem(path=place, code="value-set-twice", message=message, hint="write it once")
            counted.append((name, counter))


def _check_source(source: _Source, target: ClusterTarget) -> Iterator[Problem]:
    name: object = source.name
    is_right: Callable[[str], object] = names.split_qualified_name
    kind, gate = "capacity", "DRAConsumableCapacity"
    if isinstance(source, CounterSource):
        kind = "counter"
        gate = "DRAPartitionableDevices"
        is_right = names.is_dns_label
    if not isinstance(name, str) or not is_right(name):
        message = f"{shorten(name)} is no name of a {kind}"
        told = 'write it as the driver does: "memory"'
        yield Problem(path="name", code="invalid-name", message=message, hint=told)
    yield from check_gate("name", f"a {kind} of devices that the driver publishes", gate, target)
    yield from check_driver_name(source.driver)
    yield from compile_selectors(source.select)[0]
    path = "device_classes"
    classes = source.device_classes
    if not is_list(classes) or not classes:
        yield wrong_type(path, classes, "a list of classes", 'write device_classes=["mig.nvidia.com"]')
    elif len(classes) > _MOST_CLASSES:
        message = f"{len(classes)} classes, and Kueue maps at most {_MOST_CLASSES} to one resource"
        told = "give the others a source of their own"
        yield Problem(path=path, code="too-many-items", message=message, hint=told)


def warn_of_sources(sources: Mapping[str, _Source]) -> Iterator[Problem]:
    """Warnings `kueue-refuses`: classes that pods cannot have by an extended resource any more, for what it costs is not known."""
    for resource, source in sources.items():
        for number, each in enumerate(source.device_classes):
            if isinstance(each, NamedClass) and each.extended_resource_name:
                path = f"sources[{shorten(resource)}].device_classes[{number}]"
                message = f"pods that ask for {each.extended_resource_name} are not admitted: a source has its class"
                hint = "let them ask by a claim template, or give them a class of their own"
                yield Problem(path=path, code="kueue-refuses", message=message, hint=hint, severity="warning")


def _check_resources(resources: object, quota: object, sources: object) -> Iterator[Problem]:
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
    charged = len(sources) if isinstance(sources, Mapping) else 0
    if classes + charged > MOST_MAPPINGS:
        path, told = "quota", "give the classes that nobody queues for a ResourceQuota only"
        if charged > MOST_MAPPINGS:
            path = "sources"
            told = f"one source takes up to {_MOST_CLASSES} classes: leave out the others"
        message = f"{classes + charged} classes and sources, and Kueue's configuration has at most {MOST_MAPPINGS} mappings"
        yield Problem(path=path, code="too-many-items", message=message, hint=told)
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


def class_names(classes: Iterable[ClassArgument]) -> list[Any]:
    """Names of the classes; Outputs where they are not known yet."""
    return [class_name_of(each) for each in classes]
