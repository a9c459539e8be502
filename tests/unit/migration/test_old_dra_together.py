"""Objects of old DRA that belong together are rewritten together, or stay together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_infra.migration.old_dra.conversion import migrate_old_dra

GPU = "gpu.resource.nvidia.com"


def parameters(kind: str, name: str, spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "d"}
    return {"apiVersion": f"{GPU}/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def a_template(name: str, kind: str, *, class_name: str = "gpu.nvidia.com") -> dict[str, Any]:
    reference = {"apiGroup": GPU, "kind": kind, "name": name}
    spec = {"resourceClassName": class_name, "parametersRef": reference}
    metadata = {"name": name, "namespace": "d"}
    version = "resource.k8s.io/v1alpha2"
    return {
        "apiVersion": version,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": spec},
    }


TEMPLATES: dict[str, list[dict[str, Any]]] = {
    "whole": [
        parameters("GpuClaimParameters", "whole", {"count": 1}),
        a_template("whole", "GpuClaimParameters"),
    ],
    "owned": [
        parameters("GpuClaimParameters", "owned", {"count": 2}),
        a_template("owned", "GpuClaimParameters", class_name="own"),
    ],
    "card": [
        parameters("GpuClaimParameters", "card", {"selector": {"migEnabled": True}}),
        a_template("card", "GpuClaimParameters"),
    ],
    "part": [
        parameters("MigDeviceClaimParameters", "part", {"profile": "1g.5gb", "gpuClaimName": "card"}),
        a_template("part", "MigDeviceClaimParameters"),
    ],
    "unknown": [
        parameters("GpuClaimParameters", "unknown", {"selector": {"invented": 5}}),
        a_template("unknown", "GpuClaimParameters", class_name="own"),
    ],
    "missing": [a_template("missing", "GpuClaimParameters")],
}
CLASS = {
    "apiVersion": "resource.k8s.io/v1alpha2",
    "kind": "ResourceClass",
    "metadata": {"name": "own"},
    "driverName": GPU,
    "suitableNodes": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]},
}


def a_pod(number: int, claims: list[str], named: list[list[str]]) -> dict[str, Any]:
    entries = [{"name": each, "source": {"resourceClaimTemplateName": each}} for each in claims]
    containers = [
        {
            "name": f"c{index}",
            "image": "x:1",
            "resources": {"claims": [{"name": each} for each in names if each in claims]},
        }
        for index, names in enumerate(named)
    ]
    metadata = {"name": f"p{number}", "namespace": "d"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": entries, "containers": containers},
    }


NAMES = st.lists(st.sampled_from(sorted(TEMPLATES)), max_size=4, unique=True)


@st.composite
def estates(draw: st.DrawFn) -> list[dict[str, Any]]:
    pods = [
        a_pod(number, draw(NAMES), draw(st.lists(NAMES, min_size=1, max_size=3)))
        for number in range(draw(st.integers(0, 3)))
    ]
    kept = draw(st.lists(st.sampled_from(sorted(TEMPLATES)), unique=True))
    objects = [CLASS, *(each for name in kept for each in TEMPLATES[name]), *pods]
    return draw(st.permutations(objects))


def names_of(pod: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Each template that a pod names, and whether it does so in the form of today."""
    for entry in pod["spec"]["resourceClaims"]:
        is_old = "source" in entry
        yield (entry["source"] if is_old else entry)["resourceClaimTemplateName"], not is_old


@given(objects=estates())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_pods_claims_classes_and_parameters_go_together(objects: list[dict[str, Any]]):
    found = migrate_old_dra(objects)
    now = [found[index].manifest if index in found else each for index, each in enumerate(objects)]
    added = [each for done in found.values() for each in done.added]
    left = [each for each in (*now, *added) if each is not None]
    there = {(each["kind"], each["metadata"]["name"]): each for each in left}
    for each in left:
        version = each["apiVersion"].rpartition("/")[2]
        if each["kind"] == "Pod":
            forms = set()
            for name, is_new in names_of(each):
                forms.add(is_new)
                own = there.get(("ResourceClaimTemplate", name))
                if own is not None:
                    assert (own["apiVersion"] == "resource.k8s.io/v1") == is_new
                else:
                    # What an input lacks is on nobody's side, and nothing that was there is lost.
                    assert all(was["metadata"]["name"] != name for was in objects if was["kind"] != "Pod")
            assert len(forms) <= 1, "a pod is in one form"
        elif each["kind"] == "ResourceClaimTemplate" and version == "v1alpha2":
            spec = each["spec"]["spec"]
            reference = spec["parametersRef"]
            had = any(
                was["kind"] == reference["kind"] and was["metadata"]["name"] == reference["name"]
                for was in objects
            )
            assert ((reference["kind"], reference["name"]) in there) == had
            if spec["resourceClassName"] == "own":
                assert ("ResourceClass", "own") in there


@given(objects=estates())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_stays_has_somebody_to_decide(objects: list[dict[str, Any]]):
    found = migrate_old_dra(objects)
    for index, was in enumerate(objects):
        is_old = was["apiVersion"] != "v1" and was["kind"] != "ResourceClass"
        if is_old and (index not in found or found[index].manifest is was):
            assert any(each.outcome == "decide" for each in found[index].remarks)
