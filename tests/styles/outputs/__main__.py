"""Names that are handed on as Outputs, and what the stack exports."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
claim = dra.GpuClaimTemplate("gpus", device_class=h100, count=GPUS, namespace="ml")
k8s.batch.v1.Job(
    "train",
    metadata={"name": "train", "namespace": claim.namespace},
    spec={
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example/train:1",
                        "resources": {"claims": [{"name": "gpus"}]},
                    }
                ],
                "resource_claims": [{"name": "gpus", "resource_claim_template_name": claim.object_name}],
                "restart_policy": "Never",
            }
        }
    },
)
pulumi.export("class", h100.object_name)
pulumi.export("claim", pulumi.Output.concat("claim/", claim.object_name))
pulumi.export("spec", claim.resources["ResourceClaimTemplate"].spec)
