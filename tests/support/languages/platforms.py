"""One platform in several languages: a class, a tenant, MIG devices, claim templates, and a Job that takes one of them."""

from __future__ import annotations

from typing import Final

IN_YAML: Final = """\
name: gpus
runtime: yaml
packages:
  dra-infra: 0.1.0
resources:
  h100:
    type: dra-infra:GpuDeviceClass
    properties:
      match: {product: H100, memoryAtLeast: 79Gi}
      labels: {team: platform}
  vision:
    type: dra-infra:GpuTenant
    properties:
      quota: {h100: 8, mig.nvidia.com: 7}
      templates:
        notebook: {mig: {profile: 1g.10gb}}
  trainer:
    type: dra-infra:GpuClaimTemplate
    properties:
      deviceClass: ${h100.objectName}
      count: 4
      configs: [{timeSlicing: {interval: Long}}]
      namespace: ${vision.namespace}
  ladder:
    type: dra-infra:GpuClaimTemplate
    properties:
      firstAvailable:
        - {name: h100, deviceClass: "${h100.objectName}", count: 2}
        - {name: any, deviceClass: gpu.nvidia.com, allDevices: true}
      namespace: ${vision.namespace}
  notebook:
    type: dra-infra:MigPartition
    properties: {profile: 1g.10gb, namespace: ml}
  train:
    type: kubernetes:batch/v1:Job
    properties:
      metadata: {name: train, namespace: "${vision.namespace}"}
      spec:
        template:
          spec:
            restartPolicy: Never
            resourceClaims: ["${trainer.podClaim}"]
            containers:
              - name: train
                image: registry.example/train:1.0
                resources: {claims: ["${trainer.containerClaim}"]}
"""

IN_PYTHON: Final = """\
from functools import partial

import pulumi_kubernetes as k8s

import dra_infra as dra

h100 = dra.GpuDeviceClass(
    "h100", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "79Gi"), labels={"team": "platform"})
vision = dra.GpuTenant("vision", quota={h100: 8, "mig.nvidia.com": 7}, templates={
    "notebook": partial(dra.MigPartition, profile="1g.10gb")})
trainer = dra.GpuClaimTemplate("trainer", device_class=h100, count=4, namespace=vision.namespace,
    configs=[dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))])
dra.GpuClaimTemplate("ladder", namespace=vision.namespace, first_available=[
    dra.Alternative("h100", device_class=h100, count=2),
    dra.Alternative("any", device_class="gpu.nvidia.com", count="all")])
dra.MigPartition("notebook", profile="1g.10gb", namespace="ml")
pod = {"restartPolicy": "Never", "containers": [{"name": "train", "image": "registry.example/train:1.0"}]}
k8s.batch.v1.Job("train", metadata={"name": "train", "namespace": vision.namespace},
    spec={"template": {"spec": trainer.attach(pod)}})
"""

IN_TYPESCRIPT: Final = """\
import * as pulumi from "@pulumi/pulumi";

/** A component of the package, as its generated SDK registers it. */
class Component extends pulumi.ComponentResource {
    readonly objectName!: pulumi.Output<string>;
    readonly namespace!: pulumi.Output<string>;
    readonly podClaim!: pulumi.Output<object>;
    readonly containerClaim!: pulumi.Output<object>;
    constructor(kind: string, name: string, args: pulumi.Inputs) {
        const outputs = { objectName: undefined, namespace: undefined, podClaim: undefined, containerClaim: undefined };
        super(`dra-infra:index:${kind}`, name, { ...outputs, ...args }, {}, true);
    }
}

class KubernetesObject extends pulumi.CustomResource {}

const h100 = new Component("GpuDeviceClass", "h100", {
    match: { product: "H100", memoryAtLeast: "79Gi" },
    labels: { team: "platform" },
});
const vision = new Component("GpuTenant", "vision", {
    quota: { h100: 8, "mig.nvidia.com": 7 },
    templates: { notebook: { mig: { profile: "1g.10gb" } } },
});
const trainer = new Component("GpuClaimTemplate", "trainer", {
    deviceClass: h100.objectName,
    count: 4,
    configs: [{ timeSlicing: { interval: "Long" } }],
    namespace: vision.namespace,
});
new Component("GpuClaimTemplate", "ladder", {
    firstAvailable: [
        { name: "h100", deviceClass: h100.objectName, count: 2 },
        { name: "any", deviceClass: "gpu.nvidia.com", allDevices: true },
    ],
    namespace: vision.namespace,
});
new Component("MigPartition", "notebook", { profile: "1g.10gb", namespace: "ml" });
new KubernetesObject("kubernetes:batch/v1:Job", "train", {
    metadata: { name: "train", namespace: vision.namespace },
    spec: { template: { spec: {
        restartPolicy: "Never",
        resourceClaims: [trainer.podClaim],
        containers: [{
            name: "train",
            image: "registry.example/train:1.0",
            resources: { claims: [trainer.containerClaim] },
        }],
    } } },
});
"""
