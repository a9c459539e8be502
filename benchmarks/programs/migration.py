"""Write 10,000 manifests that ask device plugins for GPUs to FOLDER, of the kinds that people have, one in ten with nothing to migrate."""

from __future__ import annotations

import sys
from pathlib import Path

NUMBER = 10_000
FILES = 100

LIMITS = ("nvidia.com/gpu: 1", "nvidia.com/gpu: 8", "nvidia.com/mig-1g.10gb: 2", "nvidia.com/gpu: 1")
SELECTORS = (
    "{}",
    "{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}",
    '{nvidia.com/gpu.count: "8", nvidia.com/gpu.present: "true"}',
    "{cloud.google.com/gke-accelerator: nvidia-l4}",
    "{nvidia.com/gpu.family: hopper, zone: a}",
)


def manifest(index: int) -> str:
    """One manifest, with a comment."""
    if index % 10 == 9:
        return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings-{index}, namespace: ml}}\ndata: {{level: debug}}\n"
    version, kind = ("apps/v1", "Deployment") if index % 2 else ("batch/v1", "Job")
    selector = f"  selector: {{matchLabels: {{app: a{index}}}}}\n" if index % 2 else ""
    return f"""\
apiVersion: {version}
kind: {kind}
metadata: {{name: work-{index}, namespace: ml}}
spec:
{selector}  template:
    metadata: {{labels: {{app: a{index}}}}}
    spec:
      nodeSelector: {SELECTORS[index % len(SELECTORS)]}
      restartPolicy: {"Always" if index % 2 else "Never"}
      containers:
        - name: main
          image: registry.example.com/work:{index}  # pinned
          resources:
            limits: {{{LIMITS[index % len(LIMITS)]}}}
            requests: {{cpu: "4", memory: 16Gi}}
"""


def main(folder: Path) -> None:
    """Write a hundred files."""
    folder.mkdir(parents=True, exist_ok=True)
    size = NUMBER // FILES
    for number in range(FILES):
        texts = map(manifest, range(number * size, (number + 1) * size))
        (folder / f"{number}.yaml").write_text("---\n".join(texts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
