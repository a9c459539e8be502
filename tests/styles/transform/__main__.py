"""A transform that puts the team's label on every object."""

from typing import Any, cast

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


def add_label(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    if not args.type_.startswith("kubernetes:"):
        return None
    metadata: dict[str, Any] = {**cast("dict[str, Any]", args.props.get("metadata") or {})}
    metadata["labels"] = {**metadata.get("labels", {}), "team": "vision"}
    return pulumi.ResourceTransformResult({**args.props, "metadata": metadata}, args.opts)


pulumi.runtime.register_resource_transform(add_label)
claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=GPUS, namespace="ml")
k8s.batch.v1.Job(
    "train",
    metadata={"name": "train", "namespace": "ml"},
    spec={
        "template": {
            "spec": claim.attach(
                {
                    "containers": [{"name": "main", "image": "registry.example/train:1"}],
                    "restart_policy": "Never",
                }
            )
        }
    },
)
