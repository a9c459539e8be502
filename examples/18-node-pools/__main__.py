"""Two teams on a pool of H100 machines that an autoscaler grows: what fits now, and what a change costs."""

import pulumi_kubernetes as k8s

import dra_infra as dra

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))


def deploy(name: str, team: str, replicas: int, claim: dra.GpuClaimTemplate) -> None:
    """A Deployment whose pods each get the GPUs of the claim; its label names the team that pays."""
    labels = {"app": name, "team": team}
    k8s.apps.v1.Deployment(
        name,
        metadata={"name": name, "labels": labels},
        spec={
            "replicas": replicas,
            "selector": {"match_labels": {"app": name}},
            "template": claim.attach(
                {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": name, "image": f"registry.example/{name}:1.0"}]},
                }
            ),
        },
    )


deploy("server", "web", 1, dra.GpuClaimTemplate("large", device_class=h100, count=4))
deploy("tuner", "research", 2, dra.GpuClaimTemplate("small", device_class=h100, count=2))
