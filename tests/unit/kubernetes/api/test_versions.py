from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.api import v1beta1
from dra_infra.kubernetes.api.decoding import KINDS, VERSIONS, decode
from dra_infra.kubernetes.api.resource_claim import DeviceRequest, ExactDeviceRequest
from dra_infra.kubernetes.api.versions import convert
from tests.unit.kubernetes.api.manifests import manifests

ARRANGED = ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")


def an_object(kind: str = "ResourceClaim", version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def a_claim(request: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    return an_object(version=version, devices={"requests": [request]})


def codes(converted: Any) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in converted.problems]


def test_exactly_is_flat_in_v1beta1():
    hub = a_claim({"name": "a", "exactly": {"deviceClassName": "c", "adminAccess": False}})
    flat = a_claim({"name": "a", "deviceClassName": "c", "adminAccess": False}, "v1beta1")
    assert convert(hub, "v1beta1").manifest == flat
    assert convert(flat, "v1").manifest == hub


def test_templates_are_rearranged_below_their_own_spec():
    requests = [{"name": "a", "exactly": {"deviceClassName": "c"}}]
    template = an_object("ResourceClaimTemplate", spec={"devices": {"requests": requests}})
    converted = convert(template, "v1beta1").manifest
    assert converted["spec"]["spec"]["devices"]["requests"] == [{"name": "a", "deviceClassName": "c"}]


def test_devices_are_wrapped_in_v1beta1():
    hub = an_object("ResourceSlice", nodeName="n", devices=[{"name": "a", "allNodes": True}, {"name": "b"}])
    flat = an_object(
        "ResourceSlice",
        "v1beta1",
        nodeName="n",
        devices=[{"name": "a", "basic": {"allNodes": True}}, {"name": "b", "basic": {}}],
    )
    assert convert(hub, "v1beta1").manifest == flat
    assert convert(flat, "v1").manifest == hub


def test_empty_node_fields_of_v1beta1_are_absent_in_v1():
    flat = an_object("ResourceSlice", "v1beta1", nodeName="", allNodes=False)
    assert convert(flat, "v1").manifest == an_object("ResourceSlice")


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (a_claim({"name": "a", "exactly": {"count": 0}}), "spec.devices.requests[0].exactly"),
        (an_object("ResourceSlice", nodeName=""), "spec.nodeName"),
        (an_object("ResourceSlice", allNodes=False), "spec.allNodes"),
        (
            an_object("ResourceClaimTemplate", spec={"devices": {"requests": [{"exactly": {}}]}}),
            "spec.spec.devices.requests[0].exactly",
        ),
    ],
)
def test_what_v1beta1_cannot_tell_from_nothing_is_a_problem(manifest, path):
    assert codes(convert(manifest, "v1beta1")) == [("field-not-in-version", path)]
    assert codes(convert(manifest, "v1beta2")) == []


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("v1beta2", "spec.devices.requests[0].exactly.derivedAttributes"),
        ("v1beta1", "spec.devices.requests[0].derivedAttributes"),
    ],
)
def test_a_field_that_the_minor_lacks_is_a_problem_that_names_field_and_version(version, path):
    manifest = a_claim({"name": "a", "exactly": {"deviceClassName": "c", "derivedAttributes": []}})
    (problem,) = convert(manifest, version, minor=36).problems
    assert (problem.code, problem.path) == ("field-not-in-version", path)
    assert f"resource.k8s.io/{version}" in problem.message
    assert "1.36" in problem.message
    assert convert(manifest, version, minor=37).problems == ()


def test_a_field_that_only_1_36_has_is_lost_in_1_37():
    manifest = an_object("ResourceSlice", devices=[{"name": "a", "nodeAllocatableResourceMappings": {}}])
    path = "spec.devices[0].basic.nodeAllocatableResourceMappings"
    assert codes(convert(manifest, "v1beta1", minor=37)) == [("field-not-in-version", path)]
    assert codes(convert(manifest, "v1beta1", minor=36)) == []


def test_a_misspelled_field_is_not_a_matter_of_versions():
    manifest = a_claim({"name": "a", "exactly": {"deviceClassName": "c", "cuont": 1}})
    converted = convert(manifest, "v1beta1", minor=34)
    assert converted.problems == ()
    assert converted.manifest["spec"]["devices"]["requests"][0]["cuont"] == 1


@pytest.mark.parametrize(("version", "minor"), [("v1beta1", 37), ("v1", 36), ("v1beta2", 35)])
def test_a_kind_that_the_version_lacks_is_a_problem(version, minor):
    manifest = an_object("DeviceTaintRule", taint={"key": "a"})
    converted = convert(manifest, version, minor=minor)
    assert codes(converted) == [("unknown-version", "apiVersion")]
    assert converted.manifest == manifest


@pytest.mark.parametrize("version", ["v1alpha3", "", "v2"])
def test_other_versions_are_not_converted_to(version):
    with pytest.raises(ValueError, match="cannot be converted"):
        convert(an_object(), version)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_that_is_decoded_is_served_as_v1_by_the_newest_minor(kind):
    assert convert({"apiVersion": "resource.k8s.io/v1", "kind": kind}, "v1").problems == ()


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.sampled_from(VERSIONS))
def test_there_and_back_is_identity_where_nothing_is_lost(data, kind, version):
    manifest = data.draw(manifests(kind))
    there = convert(manifest, version)
    assume(not there.problems)
    assert convert(there.manifest, "v1").manifest == manifest


@settings(deadline=None)
@given(st.data(), st.sampled_from(ARRANGED))
def test_what_comes_as_v1beta1_goes_back_with_the_same_meaning(data, kind):
    manifest = data.draw(manifests(kind, "v1beta1"))
    hub = convert(manifest, "v1")
    back = convert(hub.manifest, "v1beta1")
    assert (hub.problems, back.problems) == ((), ())
    assert decode(back.manifest) == decode(manifest)
    assert convert(back.manifest, "v1").manifest == hub.manifest


@settings(deadline=None)
@given(st.data(), st.sampled_from(ARRANGED), st.sampled_from(VERSIONS))
def test_an_object_has_the_same_record_in_every_version(data, kind, version):
    manifest = data.draw(manifests(kind))
    converted = convert(manifest, version)
    assume(not converted.problems)
    assert decode(converted.manifest).record == decode(manifest).record


@settings(deadline=None)
@given(manifests("ResourceClaim"), st.data())
def test_conversion_takes_anything_in_any_place(manifest, data):
    odd = data.draw(st.sampled_from([None, 1, "a", [], {}, [None], [[]]]))
    for place in (("spec",), ("spec", "devices"), ("spec", "devices", "requests")):
        broken = {**manifest, "spec": {**manifest.get("spec", {})}}
        holder = broken
        for step in place[:-1]:
            holder = holder.setdefault(step, {})
        holder[place[-1]] = odd
        for version in ("v1", "v1beta1"):
            assert convert({**broken, "apiVersion": f"resource.k8s.io/{version}"}, "v1beta1").manifest["kind"]


def test_a_request_can_be_printed_as_v1beta1_has_it():
    request = DeviceRequest(name="a", exactly=ExactDeviceRequest(device_class_name="c", count=1))
    assert v1beta1.flat_request(request).to_go_json() == '{"name":"a","deviceClassName":"c","count":1}'
