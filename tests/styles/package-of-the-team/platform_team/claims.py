import pulumi_kubernetes as k8s

import dra_infra as dra


def make_job(name: str, gpus: int) -> k8s.batch.v1.Job:
    claim = dra.GpuClaimTemplate(f"{name}-gpus", device_class="gpu.nvidia.com", count=gpus, namespace="ml")
    return k8s.batch.v1.Job(
        name,
        metadata={"name": name, "namespace": "ml"},
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
