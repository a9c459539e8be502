"""The review of a chart with the real helm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

MAIN = "from dra_infra.cli.app import main; main()"
TEMPLATE = """\
{{- if not .Values.count }}{{ fail "count is missing" }}{{ end }}
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: {{ .Values.names.claim }}-{{ .Values.count }}}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: {{ .Values.count }}}}]}}}
---
apiVersion: v1
kind: Secret
metadata: {name: database}
stringData: {password: {{ .Values.database.password | quote }}}
"""


def git(folder: Path, *words: str) -> None:
    """Run git in the repository of the test."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def test_both_sides_are_rendered_with_the_values_of_their_time(
    binaries: Callable[[str], Path], tmp_path: Path
) -> None:
    chart = tmp_path / "charts" / "inference"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: inference\nversion: 1.0.0\n")
    (chart / "values.yaml").write_text("names: {claim: gpus, unused: a}\ndatabase: {password: planted-one}\n")
    (chart / "templates" / "claims.yaml").write_text(TEMPLATE)
    (tmp_path / "prod.yaml").write_text("count: 1\nnames: {unused: null}\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "base")
    (tmp_path / "prod.yaml").write_text("count: 9\ndatabase: {password: planted-two}\n")

    path = os.pathsep.join([str(binaries("helm").parent), os.environ["PATH"]])
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            MAIN,
            "review",
            "charts/inference",
            "--values",
            "prod.yaml",
            "--format",
            "json",
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    changes = {(each["action"], each["object"]["name"]): each for each in result["changes"]}
    assert set(changes) == {("deleted", "gpus-1"), ("created", "gpus-9"), ("changed", "database")}
    assert changes["created", "gpus-9"]["place"]["file"] == "charts/inference/templates/claims.yaml"
    assert "planted" not in done.stdout
    assert "[secret] (changed)" in done.stdout
