"""Reads claims, claim templates and classes as calls of components, where these make the very same object.

A call is tried: it is compiled as the component compiles it, and the result compared with the object, with the defaults
filled in that a server fills in. Whatever differs stays the object that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.catalog.drivers import newest
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import API_VERSION, mapping, mappings, value_at
from dra_infra.migration.claim_templates import normal_claim, without_empty
from dra_infra.program_writing.python_text import Call, Name
from dra_infra.program_writing.said import CannotSayError, Said, check_fields, listed, make, same, texts_of
from dra_infra.program_writing.selector_texts import attribute_code, read_selector
from dra_infra.specs import device_configs
from dra_infra.specs.arguments import check_annotations, check_labels, check_namespace
from dra_infra.specs.claims import SHORTHAND_REQUEST, compile_claim
from dra_infra.specs.device_classes import NVIDIA_DRIVER, compile_class
from dra_infra.specs.device_taints import check_taint_rule, compile_taint_rule
from dra_infra.specs.mig_partitions import compile_mig_partition
from dra_infra.specs.mig_profiles import MIG_REQUEST, MigWish
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.requests import (
    Alternative,
    DeviceRequest,
    DistinctAttribute,
    MatchAttribute,
    NamedClass,
    Toleration,
)
from dra_infra.target import ClusterTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentCall:
    """A component that makes an object.

    Args:
        component: Its class: `GpuClaimTemplate`.
        keywords: Arguments beside its name, but for those of the object's metadata.
        requests: Names of the requests of a claim, for pods.
        uses: Names of the classes of the program that it takes.
        named_class: What claims of the program take from a class.
    """

    component: str
    keywords: Mapping[str, Any]
    requests: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    named_class: NamedClass = field(default_factory=NamedClass)


Classes = Mapping[str, tuple[str, NamedClass]]
"""Classes of the program by their names in the cluster: the variable, and what is known of each."""


def read_claim(manifest: Mapping[str, Any], classes: Classes) -> ComponentCall:
    """The component that makes a ResourceClaim or ResourceClaimTemplate.

    Raises:
        CannotSayError: When none makes this very object.
    """
    is_template = manifest["kind"] == "ResourceClaimTemplate"
    _check_object(manifest, ("apiVersion", "kind", "metadata", "spec"))
    spec = mapping(manifest.get("spec"))
    if is_template:
        check_fields(spec, ("spec",), "spec")
        spec = mapping(spec.get("spec"))
    check_fields(spec, ("devices",), "spec")
    devices = mapping(spec.get("devices"))
    check_fields(devices, ("requests", "constraints", "config"), "spec.devices")
    wanted = normal_claim(spec)
    used: list[str] = []
    requests = [_request(each, classes, used) for each in mappings(devices.get("requests"))]
    constraints = [_constraint(each) for each in mappings(devices.get("constraints"))]
    configs = [read_config(each) for each in mappings(devices.get("config"))]
    names = tuple(each.value.name for each in requests)
    rest = {"configs": [each.code for each in configs]} if configs else {}
    if wish := _mig_wish(requests, constraints):
        try:
            asked = compile_mig_partition(MigWish(**wish))
            compiled = compile_claim(*asked, [each.value for each in configs])
            if normal_claim(compiled.to_manifest()) == wanted:
                shared = {} if is_template else {"shared": True}
                return ComponentCall(
                    component="MigPartition", keywords={**wish, **shared, **rest}, requests=names
                )
        except InvalidSpecError:
            # As requests it may be said all the same.
            pass
    try:
        compiled = compile_claim(
            *([each.value for each in said] for said in (requests, constraints, configs))
        )
    except InvalidSpecError as error:
        raise CannotSayError(_tell(error.problems[0])) from error
    if normal_claim(compiled.to_manifest()) != wanted:
        raise CannotSayError("it has what no argument says")
    return ComponentCall(
        component="GpuClaimTemplate" if is_template else "GpuClaim",
        keywords={
            **_request_keywords(requests),
            **({"constraints": [each.code for each in constraints]} if constraints else {}),
            **rest,
        },
        requests=names,
        uses=tuple(dict.fromkeys(used)),
    )


def read_class(manifest: Mapping[str, Any]) -> ComponentCall:
    """The component that makes a DeviceClass.

    Raises:
        CannotSayError: When none makes this very object.
    """
    _check_object(manifest, ("apiVersion", "kind", "metadata", "spec"))
    spec = mapping(manifest.get("spec"))
    texts = [mapping(each.get("cel")).get("expression") for each in mappings(spec.get("selectors"))]
    first = _DRIVER.match(texts[0]) if texts and isinstance(texts[0], str) else None
    if first is None or len(texts) > 2:
        raise CannotSayError("its first selector is not the one of a driver that a class begins with")
    driver = first[1]
    keywords: dict[str, Said] = {}
    if driver != NVIDIA_DRIVER:
        keywords["driver"] = same(driver)
    if len(texts) == 2:
        keywords["select"] = _selector(texts[1])
    if configs := [read_config(each) for each in mappings(spec.get("config"))]:
        keywords["configs"] = listed(configs)
    if name := spec.get("extendedResourceName"):
        keywords["extended_resource_name"] = same(name)
    try:
        compiled = compile_class(**{key: each.value for key, each in keywords.items()})
    except InvalidSpecError as error:
        raise CannotSayError(_tell(error.problems[0])) from error
    if without_empty(compiled.to_manifest()) != without_empty(spec):
        raise CannotSayError("its selectors are written in another way than a component writes them")
    named = NamedClass()
    named.object_name = mapping(manifest.get("metadata")).get("name")
    named.selects = (driver, "gpu") if driver == NVIDIA_DRIVER else None
    named.configs = tuple(each.value for each in configs)
    return ComponentCall(
        component="GpuDeviceClass",
        keywords={key: each.code for key, each in keywords.items()},
        named_class=named,
    )


def of_minor(manifest: Mapping[str, Any], kubernetes: str | None) -> Mapping[str, Any]:
    """A DeviceTaintRule in the version that a minor serves, unless it says what that lacks; any other object as it is."""
    group, _, version = str(manifest.get("apiVersion")).rpartition("/")
    if kubernetes is None or (group, manifest.get("kind")) != ("resource.k8s.io", "DeviceTaintRule"):
        return manifest
    lacks_effect = (
        ClusterTarget(kubernetes=kubernetes).minor == "1.34"
        and value_at(manifest, "spec", "taint", "effect") == "None"
    )
    gone = {"deviceClassName", "selectors"} & mapping(value_at(manifest, "spec", "deviceSelector")).keys()
    wanted = _version_of_rules(kubernetes)
    is_kept = version == wanted or lacks_effect or gone
    return manifest if is_kept else {**manifest, "apiVersion": f"{group}/{wanted}"}


def _version_of_rules(kubernetes: str) -> str:
    return ClusterTarget(kubernetes=kubernetes).releases[0].newest_version("DeviceTaintRule")


def read_taint_rule(manifest: Mapping[str, Any], kubernetes: str | None = None) -> ComponentCall:
    """The component that makes a DeviceTaintRule: for *kubernetes*, or the newest minor whose version it is written in.

    Raises:
        CannotSayError: When none makes this very object.
    """
    version = str(manifest["apiVersion"])
    word = version.rpartition("/")[2]
    is_asked = kubernetes is not None and _version_of_rules(kubernetes) == word
    target = ClusterTarget(kubernetes=kubernetes if is_asked else _TAINT_RULES.get(word, "1.37"))
    _check_object(manifest, ("apiVersion", "kind", "metadata", "spec"), version)
    spec, metadata = mapping(manifest.get("spec")), mapping(manifest.get("metadata"))
    taint, selector = mapping(spec.get("taint")), mapping(spec.get("deviceSelector"))
    check_fields(taint, ("key", "value", "effect"), "spec.taint")
    check_fields(selector, ("driver", "pool", "device"), "spec.deviceSelector")
    keywords = {**selector, **taint}
    unset = dict.fromkeys(("key", "value", "effect", "driver", "pool", "device"))
    if problem := next(check_taint_rule({**unset, **keywords}, target), None):
        raise CannotSayError(_tell(problem))
    named = {key: each for key, each in metadata.items() if key != "namespace"}
    if compile_taint_rule(taint, selector, named, release=target.releases[0]) != manifest:
        raise CannotSayError("it has what no argument says")
    code = Call("dra.ClusterTarget", [], {"kubernetes": target.kubernetes})
    return ComponentCall(component="DeviceTaint", keywords={**keywords, "target": code})


_TAINT_RULES: Final = {"v1": "1.37", "v1beta2": "1.36", "v1alpha3": "1.35"}
_DRIVER: Final = re.compile(r'device\.driver == "([a-z0-9.-]+)"')
_METADATA: Final = ("name", "namespace", "labels", "annotations")


def _check_object(manifest: Mapping[str, Any], fields: Sequence[str], version: str = API_VERSION) -> None:
    if manifest.get("apiVersion") != version:
        raise CannotSayError(f"components make {API_VERSION}, and it is of another version")
    check_fields(manifest, fields, "")
    metadata = mapping(manifest.get("metadata"))
    check_fields(metadata, _METADATA, "metadata")
    problems = [
        *check_object_name(metadata.get("name"), path="metadata.name"),
        *check_namespace(metadata.get("namespace")),
        *check_labels(metadata.get("labels")),
        *check_annotations(metadata.get("annotations")),
    ]
    if problems:
        raise CannotSayError(_tell(problems[0]))


def _tell(problem: Problem) -> str:
    return f"{problem.path}: {problem.message} [{problem.code}]"


def _request(request: Mapping[str, Any], classes: Classes, used: list[str]) -> Said:
    name = request.get("name")
    if not isinstance(name, str):
        raise CannotSayError("a request has no name")
    alternatives = mappings(request.get("firstAvailable"))
    if alternatives:
        made = [
            make(Alternative, str(each.get("name")), **_leaf(each, classes, used)) for each in alternatives
        ]
        return make(DeviceRequest, name, first_available=listed(made))
    exactly = mapping(request.get("exactly"))
    keywords = _leaf(exactly, classes, used)
    if exactly.get("adminAccess"):
        keywords["admin_access"] = same(exactly["adminAccess"])
    return make(DeviceRequest, name, **keywords)


def _leaf(leaf: Mapping[str, Any], classes: Classes, used: list[str]) -> dict[str, Said]:
    named = leaf.get("deviceClassName")
    if not isinstance(named, str):
        raise CannotSayError("a request names no class")
    keywords = {"device_class": _class(named, classes)}
    if named in classes:
        used.append(named)
    if leaf.get("allocationMode") == "All":
        keywords["count"] = same("all")
    elif type(count := leaf.get("count", 1)) is not int or count != 1:
        # True is 1 in Python, and no count.
        keywords["count"] = same(count)
    selectors = mappings(leaf.get("selectors"))
    if len(selectors) > 1:
        raise CannotSayError("a request has several selectors, and select= makes one")
    for each in selectors:
        keywords["select"] = _selector(mapping(each.get("cel")).get("expression"))
    if tolerations := mappings(leaf.get("tolerations")):
        keywords["tolerations"] = listed([_toleration(each) for each in tolerations])
    if capacity := mapping(mapping(leaf.get("capacity")).get("requests")):
        keywords["capacity"] = same(dict(capacity))
    return keywords


def _class(name: str, classes: Classes) -> Said:
    if name in classes:
        variable, known = classes[name]
        return Said(known, Name(variable))
    if name in newest().classes:
        return same(name)
    return Said(name, Call("dra.class_ref", [name]))


def _selector(text: object) -> Said:
    if not isinstance(text, str):
        raise CannotSayError("a selector is no CEL")
    found = read_selector(text)
    return Said(found.selector, found.code)


_TOLERATION: Final = {"key": "key", "value": "value", "effect": "effect", "tolerationSeconds": "seconds"}


def _toleration(toleration: Mapping[str, Any]) -> Said:
    given = {ours: toleration[theirs] for theirs, ours in _TOLERATION.items() if toleration.get(theirs)}
    # The server's default is not that of the component.
    if (operator := toleration.get("operator", "Equal")) != "Exists":
        given["operator"] = operator
    return make(Toleration, **{key: same(value) for key, value in given.items()})


def _constraint(constraint: Mapping[str, Any]) -> Said:
    kind = MatchAttribute
    name = constraint.get("matchAttribute")
    if name is None:
        kind, name = DistinctAttribute, constraint.get("distinctAttribute")  # type: ignore[assignment]
    if not isinstance(name, str):
        raise CannotSayError("a constraint names no attribute")
    requests = texts_of(constraint.get("requests"))
    keywords = {"requests": requests} if requests else {}
    code = Call(f"dra.{kind.__name__}", [attribute_code(name)], keywords)
    return Said(kind(name, **keywords), code)


def _request_keywords(requests: Sequence[Said]) -> Mapping[str, Any]:
    """The only request as arguments of the component where it has the name that these give it, else all as a list."""
    if len(requests) == 1 and requests[0].value.name == SHORTHAND_REQUEST:
        only: Call = requests[0].code
        return only.keywords
    return {"requests": [each.code for each in requests]}


_MIG_CLASS: Final = "mig.nvidia.com"
_PROFILE: Final = re.compile(r'dra\.gpu\.profile == "([^"\\]+)"')
_ONE_GPU: Final = "gpu.nvidia.com/parentUUID"


def _mig_wish(requests: Sequence[Said], constraints: Sequence[Said]) -> dict[str, Any]:
    """The arguments of a MigPartition that may mean these requests; empty where none can."""
    profiles: dict[str, str] = {}
    for each in requests:
        match = _PROFILE.fullmatch(getattr(each.code.keywords.get("select"), "text", ""))
        if match is None or each.value.device_class != _MIG_CLASS:
            return {}
        profiles[each.value.name] = match[1]
    if not profiles:
        return {}
    if list(profiles) == [MIG_REQUEST]:
        wish: dict[str, Any] = {"profile": profiles[MIG_REQUEST]}
        if (count := requests[0].value.count) != 1:
            wish["count"] = count
    else:
        wish = {"profiles": profiles}
    if any(each.value == MatchAttribute(_ONE_GPU) for each in constraints):
        wish["same_gpu"] = True
    return wish


def with_server_defaults(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object as it is compared: of a claim, with what a server fills in; of any, without fields that are null."""
    spec = mapping(manifest.get("spec"))
    if manifest.get("apiVersion") == API_VERSION and "devices" in spec:
        return {**_without_null(manifest), "spec": normal_claim(spec)}
    if manifest.get("apiVersion") == API_VERSION and isinstance(spec.get("spec"), Mapping):
        # Servers write metadata of claims that have none as an empty object.
        kept = {key: each for key, each in _without_null(spec).items() if key != "metadata" or each}
        return {**_without_null(manifest), "spec": {**kept, "spec": normal_claim(spec["spec"])}}
    result: Mapping[str, Any] = _without_null(manifest)
    return result


def _without_null(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_null(each) for key, each in value.items() if each is not None}
    return [_without_null(each) for each in value] if isinstance(value, list) else value


_CONFIGS: Final = (
    device_configs.GpuConfig,
    device_configs.MigDeviceConfig,
    device_configs.VfioDeviceConfig,
    device_configs.ComputeDomainChannelConfig,
    device_configs.ExampleGpuConfig,
)


def read_config(config: Mapping[str, Any]) -> Said:
    """The config of a claim or class: of a type of its own where that says all of it, else with its parameters as they are.

    Raises:
        CannotSayError: When it has fields that no config has.
    """
    check_fields(config, ("requests", "opaque"), "config")
    opaque = mapping(config.get("opaque"))
    driver, parameters = opaque.get("driver"), opaque.get("parameters")
    named = texts_of(config.get("requests"))
    keywords = {"requests": same(named)} if named else {}
    for kind in _CONFIGS:
        if (
            isinstance(parameters, Mapping)
            and (typed := _typed_config(kind, driver, parameters, keywords)) is not None
        ):
            return typed
    return make(device_configs.OpaqueConfig, driver=same(driver), parameters=same(parameters), **keywords)


def _typed_config(
    kind: type[Any], driver: Any, parameters: Mapping[str, Any], keywords: Mapping[str, Said]
) -> Said | None:
    """A config with a type of its own; None where that does not say all of the parameters."""
    given = dict(keywords)
    for argument, place in kind.places.items():
        value: Any = parameters
        for step in place:
            value = mapping(value).get(step)
        if value is not None:
            given[argument] = same(value)
    if "sharing" in given:
        sharing = mapping(given["sharing"].value)
        strategy = next((each for each in kind.strategies if each.strategy == sharing.get("strategy")), None)
        if strategy is None:
            return None
        given["sharing"] = make(strategy, **dict(_sharing_arguments(strategy, sharing)))
    if kind is device_configs.ExampleGpuConfig and driver != "gpu.example.com":
        given["driver"] = same(driver)
    try:
        made = make(kind, **given)
    except TypeError:
        return None
    is_same = made.value.driver == driver and made.value.to_parameters() == parameters
    return made if is_same else None


def _sharing_arguments(strategy: type[Any], sharing: Mapping[str, Any]) -> Iterator[tuple[str, Said]]:
    for argument, place in strategy.places.items():
        value: Any = sharing
        for step in place:
            value = mapping(value).get(step)
        if value is not None:
            yield argument, same(value)
