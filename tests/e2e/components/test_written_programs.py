"""Programs that `dra-infra migrate --to components` writes, on the real engine and API server."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dra_infra.program_writing.program import write_program
from tests.e2e.lab import DRIVER, Lab
from tools.cluster import Api

pytestmark = pytest.mark.e2e

OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {namespace}}}
data: {{match_labels: '"); import os #', run.sh: "echo one\\necho two\\n"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: exported, namespace: {namespace}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: exported}}}}
  template:
    metadata: {{labels: {{app: exported}}}}
    spec: {{containers: [{{name: main, image: "registry.invalid/main:1"}}]}}
status: {{}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpus, namespace: {namespace}, labels: {{team: a}}}}
spec:
  spec:
    devices:
      requests: [{{name: gpu, exactly: {{deviceClassName: {driver}, count: 2}}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: labelled, namespace: {namespace}}}
spec:
  metadata: {{labels: {{team: a}}}}
  spec:
    devices:
      requests: [{{name: gpu, exactly: {{deviceClassName: {driver}}}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: serve, namespace: {namespace}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: serve}}}}
  template:
    metadata: {{labels: {{app: serve}}}}
    spec:
      containers:
      - {{name: main, image: "registry.invalid/main:1", resources: {{claims: [{{name: accelerators}}]}}}}
      - {{name: other, image: "registry.invalid/main:1"}}
      resourceClaims: [{{name: accelerators, resourceClaimTemplateName: gpus}}]
"""


def objects(lab: Lab) -> list[Any]:
    return list(yaml.safe_load_all(OBJECTS.format(namespace=lab.namespace, driver=DRIVER)))


def holds(found: Any, wanted: Any) -> bool:
    """True where the server has all that the manifest says, and perhaps defaults beside it."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(holds(found.get(key), each) for key, each in wanted.items())
    if isinstance(wanted, list):
        return len(found or ()) == len(wanted) and all(map(holds, found, wanted))
    return bool(found == wanted)


def test_the_engine_makes_the_objects_and_a_second_run_changes_nothing(lab: Lab, cluster_api: Api) -> None:
    program = write_program(objects(lab))
    assert program.components == 1
    # For what the class of its kind has no argument for.
    assert 'pulumi.CustomResource(\n    "kubernetes:apps/v1:Deployment",\n    "exported",' in program.text
    lab.up(program.text)
    for each in objects(lab):
        kind = f"{each['apiVersion']}/{each['kind']}"
        found = cluster_api.get(kind, each["metadata"]["name"], namespace=lab.namespace)
        assert holds(found, each), (found, each)
    assert [each for each in lab.stack.preview().check().steps if each.operation != "same"] == []
