"""A seventh of a GPU for each notebook: a MIG device, whether it was made before or is made on demand."""

import pulumi_kubernetes as k8s

import dra_infra as dra

notebook = dra.MigPartition("notebook", profile="1g.10gb")

labels = {"app": "jupyter"}
k8s.apps.v1.Deployment(
    "jupyter",
    metadata={"name": "jupyter"},
    spec={
        "replicas": 3,
        "selector": {"match_labels": labels},
        "template": notebook.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "jupyter", "image": "registry.example/jupyter:1.0"}]},
            }
        ),
    },
)
