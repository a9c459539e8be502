"""Write a repository whose last commit and working tree a review compares: FOLDER NUMBER KIND.

KIND is `program` or `manifests`. Of NUMBER objects, in fours: a claim template, a Deployment whose pods use it, its
ConfigMap and its Service. The working tree changes the template of every tenth, and every second ConfigMap.
"""

import shutil
import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import json
from pathlib import Path

import pulumi_kubernetes as k8s

import dra_infra as dra

change = json.loads(Path("change.json").read_text())
h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
for index in range(change["groups"]):
    name, labels = f"app-{index}", {"app": f"app-{index}"}
    least = f"{40 + index % 20 + (change['head'] if index % 10 == 0 else 0)}Gi"
    gpus = dra.GpuClaimTemplate(name, device_class=h100, count=index % 2 + 1, select=dra.gpu.memory >= least, namespace="ml")
    meta = {"name": name, "namespace": "ml"}
    flag = change["head"] if index % 2 == 0 else 0
    k8s.core.v1.ConfigMap(name, metadata=meta, data={"settings.yaml": f"flag: {flag}\\nname: {name}\\n"})
    k8s.core.v1.Service(name, metadata=meta, spec={"selector": labels, "ports": [{"port": 80}]})
    containers = [{"name": "app", "image": "example.invalid/app:1", "env": [{"name": "NAME", "value": name}]}]
    k8s.apps.v1.Deployment(
        name,
        metadata=meta,
        spec={
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": gpus.attach({"containers": containers})},
        },
    )
"""


def main(folder: Path, number: int, kind: str) -> None:
    """Write it anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    write(folder, number, kind, head=0)
    identity = (
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.invalid",
        "-c",
        "commit.gpgsign=false",
    )
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "base")):
        subprocess.run(["git", "-C", str(folder), *identity, *words], check=True)
    write(folder, number, kind, head=1)


def write(folder: Path, number: int, kind: str, *, head: int) -> None:
    """One side of it."""
    program = folder if kind == "program" else folder / ".program"
    program.mkdir(exist_ok=True)
    (program / "Pulumi.yaml").write_text("name: bench\nruntime: python\n")
    (program / "__main__.py").write_text(PROGRAM)
    (program / "change.json").write_text(f'{{"groups": {number // 4}, "head": {head}}}')
    if kind == "manifests":
        from dra_infra.documents import yaml
        from dra_infra.program.synth import synth

        objects = synth(program).objects
        shutil.rmtree(program)
        (folder / "all.yaml").write_text(yaml.write_manifests(each.manifest for each in objects))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
