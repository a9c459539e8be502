"""The demos of Kubernetes' example driver, whose GPUs need no hardware, as typed components."""

import pulumi_kubernetes as k8s

import dra_infra as dra

gpu_class = dra.class_ref("gpu.example.com")


def pod_template(app: str, *containers: str) -> k8s.core.v1.PodTemplateSpecArgsDict:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": each, "image": "ubuntu:24.04"} for each in containers]},
    }


def deploy(app: str, template: k8s.core.v1.PodTemplateSpecArgsDict, replicas: int = 1) -> None:
    k8s.apps.v1.Deployment(
        app,
        metadata={"name": app},
        spec={"replicas": replicas, "selector": {"match_labels": {"app": app}}, "template": template},
    )


# Each pod gets a GPU of its own.
single = dra.GpuClaimTemplate("single", device_class=gpu_class)
deploy("one-each", single.attach(pod_template("one-each", "main")), replicas=2)

# The containers of a pod share the pod's GPU.
halves = dra.SharedGpu("halves", device_class=gpu_class)
deploy("one-for-two", halves.attach(pod_template("one-for-two", "left", "right"), ["left", "right"]))

# Pods share one GPU through one claim.
common = dra.SharedGpu("common", device_class=gpu_class, across="pods", consumers=2)
deploy("two-pods", common.attach(pod_template("two-pods", "main")), replicas=2)

# Two GPUs, each shared by two containers in a way of its own.
strategies = dra.GpuClaimTemplate(
    "strategies",
    requests=[
        dra.DeviceRequest("turns", device_class=gpu_class),
        dra.DeviceRequest("parts", device_class=gpu_class),
    ],
    configs=[
        dra.ExampleGpuConfig(sharing=dra.TimeSlicing(interval="Long"), requests=["turns"]),
        dra.ExampleGpuConfig(sharing=dra.SpacePartitioning(partition_count=10), requests=["parts"]),
    ],
)
template = pod_template("two-ways", "turn-a", "turn-b", "part-a", "part-b")
template = strategies.attach(template, ["turn-a", "turn-b"], request="turns")
template = strategies.attach(template, ["part-a", "part-b"], request="parts")
deploy("two-ways", template)
