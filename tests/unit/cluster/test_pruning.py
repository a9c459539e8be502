from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.client.kinds import SNAPSHOT
from dra_infra.cluster.capture import prune
from dra_infra.output.secrets import SecretMask

SECRET = "s3cr3t-value"

POD: dict[str, Any] = {
    "nodeName": "n",
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "containers": [
        {
            "name": "main",
            "image": SECRET,
            "command": [SECRET],
            "args": [SECRET],
            "env": [{"name": "A", "value": SECRET}],
            "envFrom": [{"secretRef": {"name": SECRET}}],
            "lifecycle": {"postStart": {"exec": {"command": [SECRET]}}},
            "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "a", "value": SECRET}]}},
            "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
        }
    ],
    "initContainers": [{"name": "i", "restartPolicy": "Always", "env": [{"name": "A", "value": SECRET}]}],
    "volumes": [
        {"name": "v", "csi": {"volumeAttributes": {"a": SECRET}}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
    ],
    "imagePullSecrets": [{"name": SECRET}],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
}
METADATA = {
    "name": "a",
    "namespace": "b",
    "labels": {"app": "a"},
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "note": SECRET},
    "managedFields": [{"manager": SECRET}],
}


def kept(kind: str, **more: Any) -> Any:
    return prune({"apiVersion": "v1", "kind": kind, "metadata": METADATA, **more}, SecretMask())


def test_a_pod_keeps_what_scheduling_reads_and_nothing_else() -> None:
    found = kept(
        "Pod",
        spec=POD,
        status={"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"image": SECRET}]},
    )
    assert SECRET not in json.dumps(found)
    assert found["spec"]["containers"] == [{"name": "main", "resources": POD["containers"][0]["resources"]}]
    assert found["spec"]["initContainers"] == [{"name": "i", "restartPolicy": "Always"}]
    assert found["spec"]["resourceClaims"] == POD["resourceClaims"]
    assert found["spec"]["volumes"] == [
        {"name": "v"},
        {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
    ]
    assert found["metadata"] == {"name": "a", "namespace": "b", "labels": {"app": "a"}}


def test_templates_of_workloads_are_pods() -> None:
    template = {"metadata": METADATA, "spec": POD}
    for kind, spec in (
        ("Deployment", {"replicas": 2, "template": template}),
        ("Job", {"parallelism": 2, "template": template}),
        ("CronJob", {"jobTemplate": {"metadata": METADATA, "spec": {"template": template}}}),
    ):
        found = kept(kind, spec=spec)
        assert SECRET not in json.dumps(found), kind
        assert "resourceClaims" in json.dumps(found), kind


def test_why_a_pod_waits_is_kept() -> None:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    other = {"type": "Ready", "status": "False", "message": SECRET}
    found = kept("Pod", spec=POD, status={"conditions": [said, other]})
    assert found["status"]["conditions"] == [said]


def test_secrets_in_configs_and_addresses_are_hidden() -> None:
    opaque = {
        "driver": "d",
        "parameters": {"apiToken": SECRET, "url": f"https://u:{SECRET}@h", "mode": "shared"},
    }
    spec = {"devices": {"config": [{"opaque": opaque}]}}
    found = kept("ResourceClaim", spec=spec, status={"devices": [{"driver": "d", "data": {"a": SECRET}}]})
    assert SECRET not in json.dumps(found)
    assert found["spec"]["devices"]["config"][0]["opaque"]["parameters"]["mode"] == "shared"


def test_what_tells_claims_of_extended_resources_is_kept() -> None:
    mark = {"resource.kubernetes.io/extended-resource-claim": "true"}
    metadata = {"name": "a", "annotations": {**mark, "note": SECRET}}
    found = prune(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}, SecretMask()
    )
    assert found is not None
    assert found["metadata"]["annotations"] == mark


def test_old_replica_sets_are_left_out() -> None:
    assert kept("ReplicaSet", spec={"replicas": 0}) is None
    assert kept("ReplicaSet", spec={"replicas": 0}, status={"replicas": 1}) is not None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(SECRET),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["env", "name", "spec", "template", "containers", "value", "data"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(kind=st.sampled_from([kind.name for kind in SNAPSHOT]), spec=_JSON, status=_JSON, metadata=_JSON)
def test_any_shape_is_pruned_without_an_error(kind: str, spec: Any, status: Any, metadata: Any) -> None:
    prune(
        {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}, SecretMask()
    )


@given(spec=_JSON)
def test_no_environment_is_in_a_pod_of_any_shape(spec: Any) -> None:
    found = kept("Pod", spec={"containers": [{"env": spec, "data": spec}], "data": spec})
    assert SECRET not in json.dumps(found)


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"])
def test_policies_are_kept_as_they_are_so_that_a_review_can_ask_them(kind: str) -> None:
    spec = {
        "policyName": "p",
        "validations": [{"expression": "object.metadata.name != 'a'", "message": "no"}],
    }
    assert kept(kind, spec=spec)["spec"] == spec
    assert kind in {each.name for each in SNAPSHOT}
