"""What the teams of the company build their stacks from."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra


@dataclass(frozen=True)
class Platform:
    """What a team goes by of the platform's stack.

    Args:
        namespace: The team's.
        h100: The class of whole H100.
        workload_labels: By which a workload goes to the queue.
    """

    namespace: pulumi.Output[str]
    h100: dra.ClassRef
    workload_labels: pulumi.Output[dict[str, str]]

    @classmethod
    def of(cls, team: str) -> Platform:
        """Read the stack of the platform that has the name of this one: `dev` goes by `dev`."""
        stack = pulumi.StackReference(f"organization/company-platform/{pulumi.get_stack()}")
        return cls(
            namespace=stack.require_output("namespaces")[team],
            h100=dra.class_ref(stack.require_output("classes")["h100"]),
            workload_labels=stack.require_output("workload_labels"),
        )


class Model(pulumi.ComponentResource):
    """A model that is served: a Deployment whose pods have GPUs of their own.

    Args:
        name: Name of the component and of the Deployment.
        platform: Where it runs.
        image: What serves it.
        gpus: GPUs of each pod.
        replicas: How many pods.
        opts: Pulumi resource options.
    """

    def __init__(
        self,
        name: str,
        *,
        platform: Platform,
        image: str,
        gpus: int = 1,
        replicas: int = 1,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("acme:gpus:Model", name, None, opts)
        below = pulumi.ResourceOptions(parent=self)
        claim = dra.GpuClaimTemplate(
            name, namespace=platform.namespace, device_class=platform.h100, count=gpus, opts=below
        )
        labels = {"app": name}
        k8s.apps.v1.Deployment(
            name,
            metadata={
                "name": name,
                "namespace": platform.namespace,
                "labels": platform.workload_labels,
            },
            spec={
                "replicas": replicas,
                "selector": {"match_labels": labels},
                "template": claim.attach(
                    {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "model", "image": image}]},
                    }
                ),
            },
            opts=below,
        )
        self.register_outputs({})
