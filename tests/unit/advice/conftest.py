"""Small inputs as people write them, and the advice on them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dra_infra.advice.objects import advise
from dra_infra.advice.references import KnownObjects, advise_pods
from dra_infra.catalog.drivers import read_pins
from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.kubernetes.api import DeviceClass, ResourceClaim, ResourceClaimTemplate
from dra_infra.target import ClusterTarget

RELEASE = ClusterTarget(kubernetes="1.37").releases[0]
KINDS = {
    "DeviceClass": DeviceClass,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
}
SELECTOR = "requests[0].exactly.selectors[0].cel.expression"


def selectors(*expressions):
    return [{"cel": {"expression": text}} for text in expressions]


def a_class(name, *expressions, resource=""):
    spec = {"selectors": selectors(*expressions)} | ({"extendedResourceName": resource} if resource else {})
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": spec,
    }


def a_request(*expressions, name="gpu", of="gpu.nvidia.com", **rest):
    exactly = {"deviceClassName": of, **rest}
    return {
        "name": name,
        "exactly": exactly | ({"selectors": selectors(*expressions)} if expressions else {}),
    }


def a_claim(*requests, name="claim", namespace="", kind="ResourceClaim", **devices):
    spec = {"devices": {"requests": list(requests), **devices}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "spec": spec if kind == "ResourceClaim" else {"spec": spec},
    }


def a_pod(*claims, namespace="", limits=None):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod"} | ({"namespace": namespace} if namespace else {}),
        "spec": {
            "resourceClaims": [{"name": f"c{index}", **claim} for index, claim in enumerate(claims)],
            "containers": [{"name": "main", "resources": {"limits": limits or {}}}],
        },
    }


def advice_on(*manifests, driver="newest", flat=False):
    """All advice on *manifests*; paths of claims are below `spec.devices`."""
    records = [KINDS[each["kind"]].from_manifest(each) for each in manifests if each["kind"] in KINDS]
    classes = [each for each in records if isinstance(each, DeviceClass)]
    known_objects = KnownObjects.gather(manifests, classes=classes)
    pins = read_pins(driver)
    found = [
        problem
        for record in records
        for problem in advise(record, RELEASE, known_objects, pins=pins, flat=flat)
    ]
    for manifest in manifests:
        for template in find_pod_templates(manifest):
            found += advise_pods(template, known_objects, pins=pins)
    return found


def codes(*manifests, driver="newest"):
    """The codes of the advice, each once, sorted."""
    return sorted({problem.code for problem in advice_on(*manifests, driver=driver)})


def of_selector(*expressions, of="gpu.nvidia.com", driver="newest", classes=()):
    """The advice on a request's selectors."""
    return advice_on(*classes, a_claim(a_request(*expressions, of=of)), driver=driver)


@pytest.fixture
def inputs():
    return SimpleNamespace(
        a_class=a_class,
        a_claim=a_claim,
        a_pod=a_pod,
        a_request=a_request,
        advice_on=advice_on,
        codes=codes,
        of_selector=of_selector,
        SELECTOR=f"spec.devices.{SELECTOR}",
        selectors=selectors,
    )
