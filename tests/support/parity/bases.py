"""Objects with every field, to be broken systematically, and stored ones to be updated."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator, Mapping

from tests.support.parity.cases import ADMIN, PLAIN, RESOURCES, Case, Object
from tests.support.parity.faults import everything, is_of_claims, sweep
from tests.support.parity.kinds.expressions import VALID
from tests.support.parity.kinds.metadata import labels, owner
from tests.support.parity.kinds.pods import WORKLOADS, around
from tests.support.parity.kinds.taint_rule import old_taint_rule, whole_taint_rule
from tests.support.parity.kinds.whole_slices import whole_slices

GROUP = "resource.k8s.io"

_METADATA: Object = {
    "name": "full",
    "labels": labels(),
    "annotations": {"example.com/note": "x"},
    "finalizers": ["example.com/keep"],
    "ownerReferences": [owner()],
}
_OPAQUE: Object = {"driver": "gpu.example.com", "parameters": {"a": 1}}
_SELECTOR: Object = {"cel": {"expression": VALID[1]}}
_LEAF: Object = {
    "deviceClassName": "gpu.example.com",
    "selectors": [_SELECTOR],
    "allocationMode": "ExactCount",
    "count": 2,
    "tolerations": [
        {
            "key": "example.com/broken",
            "operator": "Equal",
            "value": "yes",
            "effect": "NoExecute",
            "tolerationSeconds": 30,
        }
    ],
    "capacity": {"requests": {"gpu.example.com/memory": "40Gi"}},
}
_DERIVED: Object = {"derivedAttributes": [{"name": "gpu.example.com/numa", "expression": '"node-1"'}]}

_UID = "11111111-2222-3333-4444-555555555555"
_TOLERATION: Object = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
_NODES: Object = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]},
    ]
}


def claim_spec(*, derived: bool = True, distinct: bool = True, choices: bool = True) -> Object:
    """A claim spec with every field, or without those that not every server keeps."""
    more = _DERIVED if derived else {}
    field = "distinctAttribute" if distinct else "matchAttribute"
    leaf = {**_LEAF, **more}
    second = {"firstAvailable": [{"name": "large", **leaf}]} if choices else {"exactly": leaf}
    return copy.deepcopy(
        {
            "devices": {
                "requests": [
                    {"name": "gpu", "exactly": {**leaf, "adminAccess": True}},
                    {"name": "nic", **second},
                ],
                "constraints": [
                    {
                        "requests": ["gpu", "nic/large" if choices else "nic"],
                        "matchAttribute": "gpu.example.com/numa",
                    },
                    {field: "a/b"},
                ],
                "config": [{"requests": ["gpu"], "opaque": _OPAQUE}],
            }
        }
    )


def claim(version: str = "v1", **without: bool) -> Object:
    """A claim with the fields of `claim_spec`; in `v1beta1` its first request is flat."""
    spec = claim_spec(**without)
    if version == "v1beta1":
        requests = spec["devices"]["requests"]
        requests[0] = {"name": requests[0]["name"], **requests[0]["exactly"]}
    return _object("ResourceClaim", spec, version)


def allocated_claim() -> Object:
    """A claim whose status has every field."""
    built = claim(derived=False, distinct=False)
    device = {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
    built["status"] = {
        "allocation": {
            "devices": {
                "results": [
                    {"request": "gpu", **device, "adminAccess": True, "tolerations": [_TOLERATION], "shareID": _UID,
                     "consumedCapacity": {"memory": "1024Mi"}, "bindingConditions": ["a/ready"], "bindingFailureConditions": ["a/failed"]},
                    {"request": "nic/large", **device, "device": "nic-0"},
                ],
                "config": [
                    {"source": "FromClass", "opaque": {"driver": "gpu.example.com", "parameters": {"b": 1, "a": None}}},
                    {"source": "FromClaim", "requests": ["gpu"], "opaque": {"driver": "gpu.example.com", "parameters": {}}},
                ],
            },
            "nodeSelector": _NODES,
            "allocationTimestamp": "2026-01-02T03:04:05Z",
        },
        "reservedFor": [{"resource": "pods", "name": "trainer", "uid": _UID}, {"apiGroup": "a.example.com", "resource": "jobs", "name": "b", "uid": "b"}],
        "devices": [
            {**device, "device": "nic-0", "data": {"z": [1.5, "é"], "a": {}},
             "conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 3}],
             "networkData": {"interfaceName": "eth0", "ips": ["192.0.2.5/24"], "hardwareAddress": "02:00:00:00:00:01"}},
        ],
    }  # fmt: skip
    return built


def template(**without: bool) -> Object:
    """A template with the fields of `claim_spec`."""
    metadata = {"labels": labels(), "annotations": {"example.com/note": "x"}}
    spec = {"metadata": metadata, "spec": claim_spec(**without)}
    return _object("ResourceClaimTemplate", spec)


def device_class() -> Object:
    """A class with every field."""
    spec = {
        "selectors": [_SELECTOR],
        "config": [{"opaque": _OPAQUE}],
        "extendedResourceName": "example.com/gpu",
    }
    return _object("DeviceClass", copy.deepcopy(spec))


def slices(minor: str) -> Mapping[str, Object]:
    """Slices that together have every field that *minor* knows, each valid there with all gates on."""
    found: dict[str, Object] = {}
    for name, built in whole_slices().items():
        if (name == "of lists" and minor < "1.36") or (name == "of alphas" and minor < "1.37"):
            continue
        if name == "of parts" and minor == "1.34":
            built["spec"]["sharedCounters"] = [{"name": "gpu", "counters": {"memory": {"value": "1Gi"}}}]
        found[f"slice {name}"] = built
    if minor == "1.36":
        old = whole_slices()["by selector"]
        mapping = {"capacityKey": "memory", "allocationMultiplier": "2"}
        old["spec"]["devices"] = [
            {
                "name": "a",
                "capacity": {"memory": {"value": "1"}},
                "nodeAllocatableResourceMappings": {"cpu": mapping},
            }
        ]
        found["slice of mappings"] = old
    flat = copy.deepcopy(found["slice of a node"])
    flat["apiVersion"] = f"{GROUP}/v1beta1"
    flat["spec"]["devices"] = [
        {"name": each["name"], "basic": {key: value for key, value in each.items() if key != "name"}}
        for each in flat["spec"]["devices"]
    ]
    found["slice in v1beta1"] = flat
    return found


def taint_rules(minor: str) -> Mapping[str, Object]:
    """Taint rules with every field, in the versions that *minor* has."""
    since = {"v1": "1.37", "v1beta2": "1.36", "v1alpha3": "1.35"}
    found = {
        f"rule in {version}": whole_taint_rule(version) for version, first in since.items() if minor >= first
    }
    return {"rule of 1.34": old_taint_rule()} if minor == "1.34" else found


def pod(kind: str = "Pod") -> Object:
    """A pod with claims of both forms, used whole and in part."""
    used = {"claims": [{"name": "gpu"}, {"name": "nic", "request": "a"}]}
    container = {"name": "main", "image": "registry.invalid/main:1", "resources": used}
    spec = {
        "containers": [container],
        "initContainers": [{**container, "name": "first"}],
        "resourceClaims": [
            {"name": "gpu", "resourceClaimTemplateName": "gpu"},
            {"name": "nic", "resourceClaimName": "nic"},
        ],
    }
    return around(kind, copy.deepcopy(spec))


def sweeps(minor: str, wanted: Callable[[int, str], bool] = lambda index, kind: True) -> Iterator[Case]:
    """Every field that a minor knows of every kind broken in every way, one fault per case.

    Args:
        minor: Of the server.
        wanted: Told the number and the kind of a case, whether to make it.
    """
    number = itertools.count()
    known = {"derived": minor >= "1.37", "distinct": minor >= "1.36"}
    whole: Mapping[str, Object] = {
        "claim": claim(**known),
        "claim-v1beta2": claim("v1beta2", **known),
        "claim-v1beta1": claim("v1beta1", **known),
        "template": template(**known),
        "class": device_class(),
        **slices(minor),
        **taint_rules(minor),
    }
    for name, built in whole.items():
        namespace = PLAIN if RESOURCES[built["kind"]][1] is False else ADMIN
        for fault, broken in sweep(built, everything):
            if wanted(next(number), built["kind"]):
                yield Case(id=f"sweep {name} {fault}", object=broken(), namespace=namespace)
    status = allocated_claim()
    for fault, broken in sweep(status, lambda path: path[0] == "status"):
        if wanted(next(number), status["kind"]):
            yield Case(id=f"sweep status {fault}", object=broken())
    for kind in WORKLOADS:
        for fault, broken in sweep(pod(kind), is_of_claims):
            if wanted(next(number), kind):
                yield Case(id=f"sweep {kind} {fault}", object=broken())


def _object(kind: str, spec: Object, version: str = "v1") -> Object:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": copy.deepcopy(_METADATA),
        "spec": spec,
    }
