"""A component whose arguments are a record of Pulumi Inputs."""

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


@dataclass(frozen=True, kw_only=True)
class TrainingArgs:
    gpus: pulumi.Input[int]
    namespace: pulumi.Input[str]


class Training(pulumi.ComponentResource):
    claim: pulumi.Output[str]

    def __init__(self, name: str, args: TrainingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("acme:ml:Training", name, {"gpus": args.gpus}, opts)
        below = pulumi.ResourceOptions(parent=self)
        claim = dra.GpuClaimTemplate(
            "gpus", device_class="gpu.nvidia.com", count=args.gpus, namespace=args.namespace, opts=below
        )
        k8s.batch.v1.Job(
            name,
            metadata={"name": name, "namespace": args.namespace},
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
            opts=below,
        )
        self.claim = claim.object_name
        self.register_outputs({"claim": self.claim})


training = Training("train", TrainingArgs(gpus=pulumi.Output.from_input(GPUS), namespace="ml"))
pulumi.export("claim", training.claim.apply(lambda name: f"claim/{name}"))
