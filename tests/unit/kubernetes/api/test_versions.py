from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.api import VERSIONS, DeviceRequest, ExactDeviceRequest, convert, decode, v1beta1
from dra_infra.kubernetes.api.decoding import KINDS
from tests.unit.kubernetes.api.manifests import manifests

ARRANGED = ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")


def an_object(kind: str = "ResourceClaim", version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


def a_claim(request: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    return an_object(version=version, devices={"requests": [request]})


def says_all_in_v1beta1(manifest: dict[str, Any]) -> bool:
    """False where v1beta1 cannot tell something empty from nothing."""
    spec = manifest.get("spec", {})
    requests = spec.get("spec", spec).get("devices") or {}
    if manifest["kind"] == "ResourceSlice":
        return spec.get("nodeName") != "" and spec.get("allNodes") is not False
    exactly = [each["exactly"] for each in requests.get("requests") or () if "exactly" in each]
    return all(map(v1beta1.is_exact, exactly))


def test_exactly_is_flat_in_v1beta1():
    hub = a_claim({"name": "a", "exactly": {"deviceClassName": "c", "adminAccess": False}})
    flat = a_claim({"name": "a", "deviceClassName": "c", "adminAccess": False}, "v1beta1")
    assert convert(hub, "v1beta1") == flat
    assert convert(flat, "v1") == hub


def test_templates_are_rearranged_below_their_own_spec():
    requests = [{"name": "a", "exactly": {"deviceClassName": "c"}}]
    template = an_object("ResourceClaimTemplate", spec={"devices": {"requests": requests}})
    converted = convert(template, "v1beta1")
    assert converted["spec"]["spec"]["devices"]["requests"] == [{"name": "a", "deviceClassName": "c"}]


def test_devices_are_wrapped_in_v1beta1():
    hub = an_object("ResourceSlice", nodeName="n", devices=[{"name": "a", "allNodes": True}, {"name": "b"}])
    flat = an_object(
        "ResourceSlice",
        "v1beta1",
        nodeName="n",
        devices=[{"name": "a", "basic": {"allNodes": True}}, {"name": "b", "basic": {}}],
    )
    assert convert(hub, "v1beta1") == flat
    assert convert(flat, "v1") == hub


def test_empty_node_fields_of_v1beta1_are_absent_in_v1():
    flat = an_object("ResourceSlice", "v1beta1", nodeName="", allNodes=False)
    assert convert(flat, "v1") == an_object("ResourceSlice")


def test_a_misspelled_field_stays_where_it_is():
    manifest = a_claim({"name": "a", "exactly": {"deviceClassName": "c", "cuont": 1}})
    assert convert(manifest, "v1beta1")["spec"]["devices"]["requests"][0]["cuont"] == 1


def test_a_kind_that_the_version_lacks_stays_as_it_is():
    manifest = an_object("DeviceTaintRule", taint={"key": "a"})
    assert convert(manifest, "v1beta1") == manifest


@pytest.mark.parametrize("version", ["v1alpha3", "", "v2"])
def test_other_versions_are_not_converted_to(version):
    with pytest.raises(ValueError, match="cannot be converted"):
        convert(an_object(), version)


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(KINDS)), st.sampled_from(VERSIONS))
def test_there_and_back_is_identity_where_nothing_is_lost(data, kind, version):
    manifest = data.draw(manifests(kind))
    assume(version != "v1beta1" or says_all_in_v1beta1(manifest))
    assert convert(convert(manifest, version), "v1") == manifest


@settings(deadline=None)
@given(st.data(), st.sampled_from(ARRANGED))
def test_what_comes_as_v1beta1_goes_back_with_the_same_meaning(data, kind):
    manifest = data.draw(manifests(kind, "v1beta1"))
    hub = convert(manifest, "v1")
    back = convert(hub, "v1beta1")
    assert decode(back) == decode(manifest)
    assert convert(back, "v1") == hub


@settings(deadline=None)
@given(st.data(), st.sampled_from(ARRANGED), st.sampled_from(VERSIONS))
def test_an_object_has_the_same_record_in_every_version(data, kind, version):
    manifest = data.draw(manifests(kind))
    assume(version != "v1beta1" or says_all_in_v1beta1(manifest))
    assert decode(convert(manifest, version)).record == decode(manifest).record


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
            assert convert({**broken, "apiVersion": f"resource.k8s.io/{version}"}, "v1beta1")["kind"]


def test_a_request_can_be_printed_as_v1beta1_has_it():
    request = DeviceRequest(name="a", exactly=ExactDeviceRequest(device_class_name="c", count=1))
    assert v1beta1.flat_request(request).to_go_json() == '{"name":"a","deviceClassName":"c","count":1}'
