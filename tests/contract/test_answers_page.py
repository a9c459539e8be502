"""The example of docs/answers.md, run as a program that embeds dra-infra."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from dra_infra.answers import review
from tests.support.pages.documents import ROOT, blocks_of


def test_the_example_prints_where_the_quickstart_fits(tmp_path: Path) -> None:
    (block,) = (block for block in blocks_of(ROOT / "docs" / "answers.md") if block.language == "python")
    shutil.copytree(ROOT / "examples" / "00-quickstart", tmp_path / "infra")

    ran = subprocess.run(
        [sys.executable, "-c", block.text], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ran.stderr == ""
    *workloads, joint, why = ran.stdout.splitlines()
    nodes = [f"hgx-h100-{number}" for number in range(4)]
    assert workloads == [f"Deployment ml/inference fits {nodes}", f"Job ml/train fits {nodes}"]
    assert (joint, why) == ("always 0", "fits hgx-h100-0 0")


def test_a_review_in_python_gives_the_answer_of_the_command(tmp_path: Path) -> None:
    for side, replicas in (("before", 1), ("after", 9)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "objects.yaml").write_text(
            f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpu, namespace: ml}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com}}}}]}}}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: serve, namespace: ml}}
spec:
  replicas: {replicas}
  strategy: {{type: Recreate}}
  selector: {{matchLabels: {{app: serve}}}}
  template:
    metadata: {{labels: {{app: serve}}}}
    spec:
      containers: [{{name: c, image: i}}]
      resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpu}}]
"""
        )

    grown = review(tmp_path / "after", base_path=tmp_path / "before", fleet="hgx-h100")
    shrunk = review(tmp_path / "before", base_path=tmp_path / "after", fleet="hgx-h100")

    assert [each.after.verdict for each in grown.review.workloads] == ["does-not-fit"]
    assert (grown.exit_code(), shrunk.exit_code(), shrunk.exit_code("change")) == (1, 0, 1)
