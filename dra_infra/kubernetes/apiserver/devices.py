"""Hand-written rules for one device of a slice (validateDevice, validation.go).

- Attributes of devices: validateDeviceAttribute.
- Binding conditions, of devices and of allocated ones: validateDeviceBindingParameters.
- Taints of devices, in slices and in taint rules: validateDeviceTaint.
- Node selectors, of slices and of devices: ValidateNodeSelector in pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.device_taints import DeviceTaint
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.go_text import go_json
from dra_infra.kubernetes.api.limits import (
    MAX_CONDITIONS,
    MAX_ENTRIES,
    MAX_VALUE_LENGTH,
    MAX_VALUES,
    max_taints,
)
from dra_infra.kubernetes.api.record_equality import are_lists_equal, are_maps_equal
from dra_infra.kubernetes.api.resource_slice import (
    Device,
    DeviceAttribute,
    NodeSelector,
    NodeSelectorRequirement,
)
from dra_infra.kubernetes.apiserver.capacities import (
    check_capacities,
    check_consumption,
    check_node_resources,
    check_old_consumption,
)
from dra_infra.kubernetes.apiserver.configurations import check_qualified
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    check_items,
    check_unique,
    forbidden,
    invalid,
    itself,
    keyed,
    label_wording,
    malformed,
    not_supported,
    required,
    taint_effects,
    too_long,
)

VALUES = {
    "int": "int_",
    "bool": "bool_",
    "string": "string",
    "version": "version",
    "ints": "ints",
    "bools": "bools",
    "strings": "strings",
    "versions": "versions",
}
"""JSON name of each kind of value to the field of the record, in the server's order."""

LISTS = ("ints", "bools", "strings", "versions")


def _check_attributes(
    attributes: Mapping[str, DeviceAttribute] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check names and values of attributes."""
    for name, attribute in (attributes or {}).items():
        at = f"{path}[{keyed(name)}]"
        yield from check_qualified(
            name, path if release.number >= 36 else at, release, rule="device.attribute-name"
        )
        yield from _check_attribute(attribute, at, release)


def _check_number_of_entries(device: Device, path: str, release: Release) -> Iterator[FieldError]:
    """Check how many attributes, capacities and values a device has."""
    entries = len(device.attributes or ()) + len(device.capacity or ())
    if entries > MAX_ENTRIES:
        told = f"the total number of attributes and capacities must not exceed {MAX_ENTRIES}"
        yield invalid("device.entries", path, entries, told)
    values = sum(_values(attribute) for attribute in (device.attributes or {}).values())
    if release.number >= 36 and values > MAX_VALUES:
        told = f"the total number of attribute values must not exceed {MAX_VALUES}"
        yield invalid("device.values", path, values, told)


def _values(attribute: DeviceAttribute) -> int:
    return sum(len(getattr(attribute, name) or ()) for name in LISTS) or 1


def _given(attribute: DeviceAttribute) -> tuple[str, ...]:
    """JSON names of the kinds of value that are there, empty lists among them."""
    return tuple(name for name, field in VALUES.items() if getattr(attribute, field) is not None)


def _check_attribute(attribute: DeviceAttribute, path: str, release: Release) -> Iterator[FieldError]:
    if attribute.string is not None:
        yield from _check_length(attribute.string, f"{path}.string")
    if attribute.version is not None:
        yield from _check_version(attribute.version, f"{path}.version")
    for name in LISTS:
        if getattr(attribute, name) == []:
            yield invalid("attribute.list-empty", f"{path}.{name}", [], "must not be empty if specified")
    for index, text in enumerate(attribute.strings or ()):
        yield from _check_length(text, f"{path}.strings[{index}]")
    for index, text in enumerate(attribute.versions or ()):
        yield from _check_version(text, f"{path}.versions[{index}]")
    told = "exactly one value must be specified"
    number = len(_given(attribute))
    if number == 0 and release.number < 35:
        yield required("attribute.one-of-none", path, told)
    elif number == 0:
        yield invalid("attribute.one-of-none", path, "", told, origin="union", covered=True)
    elif number > 1:
        shown = Printed(attribute.to_internal_json(release.number))
        yield invalid("attribute.one-of-many", path, shown, told, origin="union", covered=True)


def _check_length(text: str, path: str) -> Iterator[FieldError]:
    if names.size(text) > MAX_VALUE_LENGTH:
        yield too_long("attribute.length", path, MAX_VALUE_LENGTH)


def _check_version(text: str, path: str) -> Iterator[FieldError]:
    yield from malformed("attribute.version", path, text, names.semver(text))
    yield from _check_length(text, path)


def _check_bindings(
    conditions: Sequence[str] | None, failures: Sequence[str] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check both lists; *path* is that of the device."""
    ready = f"{path}.bindingConditions"
    failed = f"{path}.bindingFailureConditions"
    for items, at in ((conditions, ready), (failures, failed)):
        yield from check_items(
            items,
            at,
            lambda name, place: _check_condition(name, place, release),
            size_rule="binding.size",
            limit=MAX_CONDITIONS,
            checks_all=release.number < 35,
        )
        # Looked at even where there are too many.
        yield from check_unique(items, at, itself, rule="binding.duplicate", covered=False)
    for index, name in enumerate(failures or ()):
        if name in (conditions or ()):
            told = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid("binding.overlap", f"{failed}[{index}]", name, told)
    if failures and not conditions:
        told = "bindingConditions are required to use bindingFailureConditions"
        yield invalid("binding.both", ready, conditions, told)
    if conditions and not failures:
        told = "bindingFailureConditions are required to use bindingConditions"
        yield invalid("binding.both", failed, failures, told)


def _check_condition(name: str, path: str, release: Release) -> Iterator[FieldError]:
    noun, unit = label_wording(release)
    yield from malformed("binding.condition", path, name, names.label_key(name, noun=noun, unit=unit))


def check_taint(
    taint: DeviceTaint, path: str, release: Release, *, effect: bool = True
) -> Iterator[FieldError]:
    """Check a taint by the hand-written rules; its *effect* may be one that was stored before."""
    noun, unit = label_wording(release)
    for told in names.label_key(taint.key, noun=noun, unit=unit):
        yield invalid("taint.key", f"{path}.key", taint.key, told)
    if taint.value:
        for told in names.label_value(taint.value, unit):
            yield invalid("taint.value", f"{path}.value", taint.value, told)
    if effect:
        yield from check_effect(taint, path, release, covered=True)


def check_effect(
    taint: DeviceTaint, path: str, release: Release, *, covered: bool = False
) -> Iterator[FieldError]:
    """Check the effect of a taint, which both engines do in the same words."""
    effects = taint_effects(release)
    if not taint.effect:
        yield required("taint.effect-required", f"{path}.effect", covered=covered)
    elif taint.effect not in effects:
        yield not_supported("taint.effect", f"{path}.effect", taint.effect, effects, covered=covered)


_ONE_NODE_FIELD = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceContext:
    """The surroundings of a device, its slice above all, that rules for it need.

    Args:
        release: The server.
        selects_per_device: Whether devices say themselves which nodes they are for.
        stored: Devices of the stored slice by name.
        sets: Names of the counters of each set of the slice, for servers up to 1.34.
    """

    release: Release
    selects_per_device: bool
    stored: Mapping[str, Device]
    sets: Mapping[str, frozenset[str]]


def check_device(device: Device, path: str, context: SliceContext) -> Iterator[FieldError]:
    """Check one device."""
    release = context.release
    old = context.stored.get(device.name)
    yield from malformed("device.name", f"{path}.name", device.name, names.dns_label(device.name))
    yield from _check_number_of_entries(device, path, release)
    yield from _check_attributes(device.attributes, f"{path}.attributes", release)
    if release.number < 37 or old is None or not are_maps_equal(old.capacity, device.capacity):
        yield from check_capacities(
            device.capacity, f"{path}.capacity", release, is_shareable=bool(device.allow_multiple_allocations)
        )
    if release.number < 35 or old is None or not are_lists_equal(old.taints, device.taints):
        yield from check_items(
            device.taints,
            f"{path}.taints",
            lambda taint, at: check_taint(taint, at, release),
            size_rule="taints.size",
            limit=max_taints(release),
            checks_all=release.number < 35,
            covered=False,
        )
    yield from check_consumption(device.consumes_counters, f"{path}.consumesCounters", release)
    if release.number < 35:
        yield from check_old_consumption(device.consumes_counters, path, context.sets)
    if context.selects_per_device:
        yield from _check_nodes(device, path, release)
    elif not (device.node_name is None and device.node_selector is None and device.all_nodes is None):
        told = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
        )
        yield invalid("device.nodes-of-slice", path, None, told)
    yield from _check_bindings(device.binding_conditions, device.binding_failure_conditions, path, release)
    if release.number >= 36:
        yield from check_node_resources(device, path, release)


def _check_nodes(device: Device, path: str, release: Release) -> Iterator[FieldError]:
    found = []
    if device.node_name == "":
        yield invalid("device.node-name", f"{path}.nodeName", "", "must not be empty")
    elif device.node_name is not None:
        found.append("`nodeName`")
        for told in names.dns_subdomain(device.node_name):
            yield invalid("device.node-name", f"{path}.nodeName", device.node_name, told)
    if device.node_selector is not None:
        found.append("`nodeSelector`")
        yield from check_node_selector(device.node_selector, f"{path}.nodeSelector", release)
    if device.all_nodes:
        found.append("`allNodes`")
    elif device.all_nodes is not None:
        told = "must be either unset or set to true"
        yield invalid("device.all-nodes", f"{path}.allNodes", device.all_nodes, told)
    if not found:
        yield required("device.nodes-none", path, _ONE_NODE_FIELD)
    elif len(found) > 1:
        yield invalid("device.nodes-many", path, f"{{{', '.join(found)}}}", _ONE_NODE_FIELD)


def check_node_selector(selector: NodeSelector, path: str, release: Release) -> Iterator[FieldError]:
    """Check the terms of a node selector; how many there may be is a rule of its holder."""
    terms = selector.node_selector_terms or ()
    if not terms:
        told = "must have at least one node selector term"
        yield required("node-selector.terms", f"{path}.nodeSelectorTerms", told)
    for index, term in enumerate(terms):
        at = f"{path}.nodeSelectorTerms[{index}]"
        for position, each in enumerate(term.match_expressions or ()):
            yield from _check_match_expression(each, f"{at}.matchExpressions[{position}]", release)
        for position, each in enumerate(term.match_fields or ()):
            yield from _check_match_field(each, f"{at}.matchFields[{position}]")


def _check_match_expression(
    requirement: NodeSelectorRequirement, path: str, release: Release
) -> Iterator[FieldError]:
    noun, unit = label_wording(release)
    values = requirement.values or ()
    if requirement.operator in ("In", "NotIn"):
        if not values:
            told = "must be specified when `operator` is 'In' or 'NotIn'"
            yield required("node-selector.values", f"{path}.values", told)
    elif requirement.operator in ("Exists", "DoesNotExist"):
        if values:
            told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden("node-selector.no-values", f"{path}.values", told)
    elif requirement.operator in ("Gt", "Lt"):
        if len(values) != 1:
            told = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required("node-selector.values", f"{path}.values", told)
    else:
        yield _unknown_operator(requirement, path)
    for told in names.label_key(requirement.key, noun=noun, unit=unit):
        yield invalid("node-selector.key", f"{path}.key", requirement.key, told)
    for index, value in enumerate(values):
        for told in names.label_value(value, unit):
            yield invalid("node-selector.value", f"{path}.values[{index}]", value, told)


def _check_match_field(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldError]:
    values = requirement.values or ()
    if requirement.operator in ("In", "NotIn"):
        if len(values) != 1:
            told = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required("node-selector.values", f"{path}.values", told)
    else:
        yield _unknown_operator(requirement, path)
    if requirement.key != "metadata.name":
        yield invalid("node-selector.field", f"{path}.key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        for told in names.dns_subdomain(value):
            yield invalid("node-selector.node-name", f"{path}.values[{index}]", value, told)


def _unknown_operator(requirement: NodeSelectorRequirement, path: str) -> FieldError:
    shown = Printed(go_json(requirement.operator))
    return invalid("node-selector.operator", f"{path}.operator", shown, "not a valid selector operator")
