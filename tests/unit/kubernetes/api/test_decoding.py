from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.api import VERSIONS, Record, can_decode, decode
from dra_infra.kubernetes.api.decoding import KINDS
from tests.unit.kubernetes.api.manifests import JSON, manifests

EXACTLY = "spec.devices.requests[0].exactly"


def claim(exactly: object = None, *, version: str = "v1", **more: object) -> dict[str, Any]:
    request = {"name": "gpu"} if exactly is None else {"name": "gpu", "exactly": exactly}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "a"},
        "spec": {"devices": {"requests": [request]}},
        **more,
    }


def exactly_of(decoded: Any) -> Any:
    return decoded.record.spec.devices.requests[0].exactly


def put(manifest: Any, path: tuple[Any, ...], value: object) -> Any:
    changed = copy.deepcopy(manifest)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return changed


def positions(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [found for key, item in items for found in positions(item, (*path, key))]


@pytest.mark.parametrize(
    ("exactly", "shown", "struct", "field", "type_"),
    [
        ({"count": "2"}, "string", "ExactDeviceRequest", "exactly.count", "int64"),
        ({"count": 2.0}, "number 2.0", "ExactDeviceRequest", "exactly.count", "int64"),
        ({"count": True}, "bool", "ExactDeviceRequest", "exactly.count", "int64"),
        ({"count": 2**63}, f"number {2**63}", "ExactDeviceRequest", "exactly.count", "int64"),
        ({"count": [2]}, "array", "ExactDeviceRequest", "exactly.count", "int64"),
        ({"deviceClassName": 1}, "number", "ExactDeviceRequest", "exactly.deviceClassName", "string"),
        ({"adminAccess": "true"}, "string", "ExactDeviceRequest", "exactly.adminAccess", "bool"),
        (
            {"allocationMode": {}},
            "object",
            "ExactDeviceRequest",
            "exactly.allocationMode",
            "v1.DeviceAllocationMode",
        ),
        ({"selectors": {}}, "object", "ExactDeviceRequest", "exactly.selectors", "[]v1.DeviceSelector"),
        ({"selectors": ["a"]}, "string", "ExactDeviceRequest", "exactly.selectors", "v1.DeviceSelector"),
        (
            {"selectors": [{"cel": "true"}]},
            "string",
            "DeviceSelector",
            "exactly.selectors.cel",
            "v1.CELDeviceSelector",
        ),
        (
            {"capacity": {"requests": []}},
            "array",
            "CapacityRequirements",
            "exactly.capacity.requests",
            "map[v1.QualifiedName]resource.Quantity",
        ),
        ([], "array", "DeviceRequest", "exactly", "v1.ExactDeviceRequest"),
    ],
)
def test_a_value_of_another_type_is_told_in_the_words_of_go(exactly, shown, struct, field, type_):
    (error,) = decode(claim(exactly)).type_errors
    assert error[1] == (
        f"json: cannot unmarshal {shown} into Go struct field {struct}.spec.devices.requests.{field} of type {type_}"
    )


@pytest.mark.parametrize(
    ("exactly", "path"),
    [
        ({"count": "2"}, f"{EXACTLY}.count"),
        ({"selectors": [{}, {"cel": {"expression": 1}}]}, f"{EXACTLY}.selectors[1].cel.expression"),
        ({"capacity": {"requests": {"a/b": "x"}}}, f"{EXACTLY}.capacity.requests.a/b"),
    ],
)
def test_a_value_of_another_type_has_its_path_and_is_left_out(exactly, path):
    decoded = decode(claim({**exactly, "deviceClassName": "c"}))
    assert [each for each, _ in decoded.type_errors] == [path]
    assert exactly_of(decoded).device_class_name == "c"


def test_what_ends_the_servers_decoding_is_told_first():
    decoded = decode(claim({"count": "2", "capacity": {"requests": {"a": "1Q"}}}))
    assert [path for path, _ in decoded.type_errors] == [
        f"{EXACTLY}.capacity.requests.a",
        f"{EXACTLY}.count",
    ]


def test_a_wrong_type_in_an_embedded_struct_is_told_as_the_minor_does():
    config = {"devices": {"config": [{"opaque": 1}]}}
    texts = {
        minor: decode(claim(spec=config), minor=minor).type_errors[0][1].split()[-4] for minor in (34, 35, 37)
    }
    assert texts == {
        34: "DeviceClaimConfiguration.spec.devices.config.opaque",
        35: "DeviceClaimConfiguration.spec.devices.config.DeviceConfiguration.opaque",
        37: "DeviceClaimConfiguration.spec.devices.config.DeviceConfiguration.opaque",
    }


@pytest.mark.parametrize(("given_value", "kept"), [("1Gi", "1Gi"), (80, "80"), (1.5, "1.5"), (" 1 ", "1")])
def test_a_quantity_may_be_a_string_or_a_number(given_value, kept):
    decoded = decode(claim({"capacity": {"requests": {"a": given_value}}}))
    assert exactly_of(decoded).capacity.requests == {"a": kept}


@pytest.mark.parametrize("value", ["", "x", "1 Gi", True, [], {}, "1\t"])
def test_what_is_no_quantity_is_refused(value):
    assert decode(claim({"capacity": {"requests": {"a": value}}})).type_errors


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            1,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            "yesterday",
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
    ],
)
def test_what_is_no_time_is_refused(value, told):
    manifest = claim(metadata={"creationTimestamp": value})
    assert decode(manifest).type_errors == (("metadata.creationTimestamp", told),)


def test_null_is_as_good_as_nothing_and_a_zero_value_in_lists_and_maps():
    nothing = decode(
        claim(
            {"deviceClassName": None, "count": None, "selectors": None, "capacity": {"requests": {"a": None}}}
        )
    )
    assert nothing.type_errors == ()
    leaf = exactly_of(nothing)
    assert (leaf.device_class_name, leaf.count, leaf.selectors) == ("", 0, None)
    assert leaf.capacity.requests == {"a": "0"}
    assert exactly_of(decode(claim({"selectors": [None]}))).selectors[0].cel is None


def test_missing_texts_and_numbers_are_empty():
    leaf = exactly_of(decode(claim({})))
    assert (leaf.device_class_name, leaf.allocation_mode, leaf.count, leaf.admin_access) == ("", "", 0, None)


def test_unknown_fields_are_found_in_the_order_of_the_object():
    manifest = claim({"Count": 1, "selectors": [{"cle": {}}]}, extra=1)
    manifest["metadata"]["lables"] = {}
    decoded = decode(manifest)
    assert decoded.unknown_fields == (
        "metadata.lables",
        f"{EXACTLY}.Count",
        f"{EXACTLY}.selectors[0].cle",
        "extra",
    )
    assert decoded.type_errors == ()


def test_unknown_fields_inside_values_of_maps_are_spelled_as_the_server_does():
    device = {"name": "a", "attributes": {"gpu.example.com/b": {"float": 1}}}
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "spec": {"devices": [device]},
    }
    assert decode(manifest).unknown_fields == ("spec.devices[0].attributes.gpu.example.com/b.float",)


def test_unknown_fields_are_collected_up_to_a_hundred():
    assert len(decode(claim(metadata={f"x{index}": 1 for index in range(150)})).unknown_fields) == 100


@pytest.mark.parametrize("value", [[], None, [{"name": "a/b", "expression": "1"}]])
def test_a_field_of_a_newer_minor_is_unknown_to_an_older_one(value):
    manifest = claim({"derivedAttributes": value})
    assert decode(manifest, minor=37).unknown_fields == ()
    assert decode(manifest, minor=36).unknown_fields == (f"{EXACTLY}.derivedAttributes",)
    assert "derivedAttributes" not in str(decode(manifest, minor=36).record.to_manifest())


def test_a_field_that_a_newer_minor_removed_is_unknown_to_it():
    device = {"name": "a", "nodeAllocatableResourceMappings": {}}
    manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": {"devices": [device]}}
    found = [bool(decode(manifest, minor=minor).unknown_fields) for minor in (35, 36, 37)]
    assert found == [True, False, True]


def test_paths_and_types_are_those_of_the_version_sent():
    manifest = claim(version="v1beta1")
    manifest["spec"]["devices"]["requests"] = [{"name": "a", "exactly": {}, "allocationMode": 1}]
    decoded = decode(manifest)
    assert decoded.unknown_fields == ("spec.devices.requests[0].exactly",)
    assert decoded.type_errors == (
        (
            "spec.devices.requests[0].allocationMode",
            (
                "json: cannot unmarshal number into Go struct field DeviceRequest.spec.devices.requests.allocationMode "
                "of type v1beta1.DeviceAllocationMode"
            ),
        ),
    )


def test_flat_requests_are_read_into_the_shape_of_v1():
    manifest = claim(version="v1beta1")
    manifest["spec"]["devices"]["requests"] = [
        {"name": "a", "deviceClassName": "c", "count": 2},
        {"name": "b"},
    ]
    decoded = decode(manifest)
    first, second = decoded.record.spec.devices.requests
    assert (decoded.version, first.exactly.device_class_name, first.exactly.count) == ("v1beta1", "c", 2)
    assert second.exactly is None


def test_opaque_parameters_are_kept_as_they_are():
    parameters = {"b": [1.0, None, {"c": None}], "a": "é"}
    config = {"devices": {"config": [{"opaque": {"driver": "d", "parameters": parameters}}]}}
    record = decode(claim(spec=config)).record
    assert record.to_manifest()["spec"] == config


def test_half_a_surrogate_pair_becomes_the_replacement_character():
    decoded = decode(claim(metadata={"name": "a\ud800b"}))
    assert decoded.record.metadata.name == "a\ufffdb"


def test_absent_and_empty_stay_apart():
    manifest = claim({"deviceClassName": "", "selectors": [], "count": 0, "adminAccess": False}, status={})
    assert decode(manifest).record.to_manifest() == manifest


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("resource.k8s.io/v1alpha3", "DeviceClass"), ("v1", "Pod"), (None, []), ("", {})],
)
def test_other_kinds_and_versions_are_not_decoded(api_version, kind):
    manifest = {"apiVersion": api_version, "kind": kind}
    assert not can_decode(manifest)
    with pytest.raises(ValueError, match="is no kind and version"):
        decode(manifest)


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.sampled_from(["v1", "v1beta2"]))
def test_a_manifest_with_the_right_types_comes_back_as_it_was(data, kind, version):
    manifest = data.draw(manifests(kind, version))
    decoded = decode(manifest)
    assert (decoded.unknown_fields, decoded.type_errors) == ((), ())
    assert decoded.record.to_manifest() == {**manifest, "apiVersion": "resource.k8s.io/v1"}


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.sampled_from(VERSIONS), st.sampled_from([34, 36, 37]))
def test_any_json_anywhere_is_decoded_or_told(data, kind, version, minor):
    manifest = data.draw(manifests(kind, version, minor))
    places = [path for path in positions(manifest) if path[0] not in ("apiVersion", "kind")]
    for _ in range(min(len(places), 3)):
        place = data.draw(st.sampled_from(places))
        try:
            manifest = put(manifest, place, data.draw(JSON))
        except (KeyError, IndexError, TypeError):
            continue
    decoded = decode(manifest, minor=minor)
    assert isinstance(decoded.record, Record)
    # What is left after decoding is decoded without a complaint.
    again = decode(decoded.record.to_manifest(), minor=minor)
    assert (again.unknown_fields, again.type_errors) == ((), ())
    assert again.record == decoded.record
