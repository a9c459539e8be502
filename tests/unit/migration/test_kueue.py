"""Workloads that wait in a queue of Kueue, whose configuration is mostly in another repository."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings

WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))
QUEUE = "kueue.x-k8s.io/queue-name"
TOPOLOGIES = ("required", "preferred", "unconstrained", "slice-required")


def a_template(number: Any = 1, resource: str = "nvidia.com/gpu", **metadata: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "r/x:1", "resources": {"limits": {resource: number}}}
    return {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}


def a_workload(kind: str, template: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    versions = {"Job": "batch/v1", "Deployment": "apps/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}
    versions |= {"RayCluster": "ray.io/v1", "Pod": "v1", "PyTorchJob": "kubeflow.org/v1"}
    specs: dict[str, Any] = {
        "Job": {"template": template},
        "Deployment": {"selector": {}, "template": template},
        "JobSet": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": template}}}]},
        "RayCluster": {"headGroupSpec": {"rayStartParams": {}, "template": template}},
        "PyTorchJob": {"pytorchReplicaSpecs": {"Worker": {"template": template}}},
        "Pod": template["spec"],
    }
    metadata = {"name": "train", "namespace": "ml", **metadata}
    return {"apiVersion": versions[kind], "kind": kind, "metadata": metadata, "spec": specs[kind]}


def needs(was: dict[str, Any], *beside: dict[str, Any]) -> list[tuple[str, str]]:
    done = migrate_objects([was, *beside], WHOLE)[0]
    return [
        (each.path, each.outcome)
        for each in done.remarks
        if each.code == "controller-setting-needed" and "Kueue" in each.message
    ]


KINDS = pytest.mark.parametrize("kind", ["Job", "Deployment", "JobSet", "RayCluster", "PyTorchJob", "Pod"])


@KINDS
def test_a_workload_with_a_queue_needs_its_class_to_be_mapped(kind: str):
    was = a_workload(kind, a_template(), labels={QUEUE: "user-queue"})
    assert needs(was) == [(f"metadata.labels[{QUEUE}]", "lost")]
    assert needs(a_workload(kind, a_template())) == []
    assert needs(a_workload(kind, a_template(0), labels={QUEUE: "user-queue"})) == []


def test_the_queue_may_stand_on_the_pods():
    was = a_workload("Deployment", a_template(labels={QUEUE: "user-queue"}))
    assert needs(was) == [(f"spec.template.metadata.labels[{QUEUE}]", "lost")]


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("kind", ["Job", "JobSet", "RayCluster", "PyTorchJob"])
def test_a_topology_of_kueue_counts_no_devices_of_claims(kind: str, name: str):
    annotation = f"kueue.x-k8s.io/podset-{name}-topology"
    was = a_workload(
        kind, a_template(annotations={annotation: "rack", "kueue.x-k8s.io/podset-slice-size": "2"})
    )
    [(path, outcome)] = needs(was)
    assert outcome == "lost"
    assert path.endswith(f"metadata.annotations[{annotation}]")


def a_configuration(*classes: str) -> dict[str, Any]:
    mappings = [{"name": "gpus", "deviceClassNames": list(classes)}]
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {"deviceClassMappings": mappings},
    }


def test_a_class_that_the_configuration_in_the_input_maps_needs_no_word():
    was = a_workload("Job", a_template(), labels={QUEUE: "user-queue"})
    mapped = a_configuration("gpu.nvidia.com")
    text = {"controller_manager_config.yaml": yaml.safe_dump(mapped)}
    in_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kueue"}, "data": text}
    assert needs(was, mapped) == []
    assert needs(was, in_map) == []
    assert len(needs(was, a_configuration("mig.nvidia.com"))) == 1
    of_mig = a_workload("Job", a_template(1, "nvidia.com/mig-1g.10gb"), labels={QUEUE: "user-queue"})
    assert len(needs(of_mig, mapped)) == 1
