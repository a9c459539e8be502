"""Programs that `dra-infra migrate --to components` writes, on the real engine and API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.cli.app import app
from dra_infra.program_writing.program import write_program
from tests.support.lab import DRIVER, Lab
from tools.cluster import Api, ControlPlane

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


IN_THE_CLUSTER = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {namespace}}}
spec: {{selectors: [{{cel: {{expression: 'device.driver == "{driver}"'}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: cache, namespace: {namespace}, labels: {{team: a}}}}
spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {namespace}}}}}]}}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: trainer, namespace: {namespace}}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {namespace}, count: 2}}}}]}}}}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: changed, namespace: {namespace}}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {namespace}, count: {changed}}}}}]}}}}}}
"""


def test_a_program_written_beside_a_snapshot_takes_over_what_the_cluster_has(
    lab: Lab, cluster: ControlPlane, cluster_api: Api, tmp_path: Path
) -> None:
    def made(changed: int) -> list[Any]:
        text = IN_THE_CLUSTER.format(namespace=lab.namespace, driver=DRIVER, changed=changed)
        return list(yaml.safe_load_all(text))

    def found(each: Any) -> Any:
        metadata = each["metadata"]
        kind = f"{each['apiVersion']}/{each['kind']}"
        return cluster_api.get(kind, metadata["name"], namespace=metadata.get("namespace"))

    same = made(1)[:-1]
    for each in made(1):
        cluster_api.create(each)
    before = [found(each) for each in same]
    snapshot = tmp_path / "cluster.yaml"
    objects_file = tmp_path / "objects.yaml"
    dra_infra("snapshot", "--kubeconfig", str(cluster.kubeconfig), "--output", str(snapshot))
    objects_file.write_text(yaml.safe_dump_all(made(2)))
    files = str(objects_file), "--to", "components", "--snapshot", str(snapshot)
    dra_infra("migrate", *files, "--output", str(tmp_path / "infra"), exit_code=1)
    program = (tmp_path / "infra" / "__main__.py").read_text()
    assert program.count("import_=") == len(same)

    # The one with another spec is in the way under its name, as the report says: without the name it is another object.
    (fixed,) = [line for line in program.splitlines(keepends=True) if 'object_name="changed"' in line]
    lab.up(program.replace(fixed, ""))

    for each, was in zip(same, before, strict=True):
        now = found(each)
        assert (now["metadata"]["uid"], now["spec"]) == (was["metadata"]["uid"], was["spec"])
    lab.write(program.replace(fixed, ""))
    lab.stack.preview("--expect-no-changes").check()


RUNNING = """
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {namespace}}}
data: {{a: b}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {namespace}}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: "registry.example.com/web:1"}}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: node, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: node}}}}
  template:
    metadata: {{labels: {{app: node}}}}
    spec: {{serviceAccountName: default, containers: [{{name: main, image: "registry.example.com/node:1"}}]}}
"""


def test_what_was_read_from_the_cluster_and_stays_is_taken_over(
    lab: Lab, cluster_api: Api, tmp_path: Path
) -> None:
    objects = list(yaml.safe_load_all(RUNNING.format(namespace=lab.namespace)))
    kinds = [(f"{each['apiVersion']}/{each['kind']}", each["metadata"]["name"]) for each in objects]
    for each in objects:
        cluster_api.create(each)
    cluster_api.wait_until(
        "apps/v1/Deployment",
        "web",
        lambda each: each.get("status", {}).get("observedGeneration") == 1,
        namespace=lab.namespace,
    )
    before = [cluster_api.get(kind, name, namespace=lab.namespace) for kind, name in kinds]
    file = tmp_path / "live.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": before}))
    program = dra_infra("migrate", str(file), "--whole-gpus", "--to", "components")
    program = program[program.index('"""Objects of a cluster') :]
    assert program.count("import_=") == len(objects)

    lab.write(program)
    steps = lab.stack.up().check().steps

    assert [each.operation for each in steps if each.operation == "import"] == ["import"] * len(objects)
    for (kind, name), was in zip(kinds, before, strict=True):
        now = cluster_api.get(kind, name, namespace=lab.namespace)
        assert now["metadata"]["uid"] == was["metadata"]["uid"]
        assert (now.get("spec"), now.get("data")) == (was.get("spec"), was.get("data"))
    lab.stack.preview("--expect-no-changes").check()


CHANGING = """
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
      - {{name: main, image: "registry.example.com/serve:1", resources: {{limits: {{nvidia.com/gpu: "1", cpu: "1"}}}}}}
      tolerations: [{{key: nvidia.com/gpu, operator: Equal, value: present, effect: NoSchedule}}]
"""
FORCE = '"annotations": {"pulumi.com/patchForce": "true"}'


def made_by(manager: str, lab: Lab, api: Api) -> dict[str, Any]:
    """The Deployment as a tool of that name makes it, once its controller has seen it."""
    path = f"/apis/apps/v1/namespaces/{lab.namespace}/deployments"
    manifest = yaml.safe_load(CHANGING.format(namespace=lab.namespace))
    api.request("POST", path, json=manifest, params={"fieldManager": manager})
    return api.wait_until(
        "apps/v1/Deployment",
        "serve",
        lambda each: each.get("status", {}).get("observedGeneration") == 1,
        namespace=lab.namespace,
    )


def program_of(was: Any, folder: Path, *, exit_code: int = 0) -> str:
    file = folder / "live.json"
    file.write_text(json.dumps(was))
    program = dra_infra("migrate", str(file), "--whole-gpus", "--to", "components", exit_code=exit_code)
    return program[program.index('"""Objects of a cluster') :]


def test_a_workload_of_the_cluster_gets_its_claim_and_stays_the_same_object(
    lab: Lab, cluster_api: Api, tmp_path: Path
) -> None:
    was = made_by("kubectl-client-side-apply", lab, cluster_api)
    program = program_of(was, tmp_path)
    assert (program.count("import_="), program.count(FORCE)) == (1, 1)

    lab.write(program.replace(FORCE, '"annotations": {}'))
    assert "conflict with" in lab.stack.preview().text
    lab.write(program)
    lab.stack.preview().check()
    steps = lab.stack.up().check().steps

    assert [each.operation for each in steps if each.type.endswith(":Deployment")] == ["import", "update"]
    now = cluster_api.get("apps/v1/Deployment", "serve", namespace=lab.namespace)
    pod = now["spec"]["template"]["spec"]
    assert now["metadata"]["uid"] == was["metadata"]["uid"]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "claims": [{"name": "gpu"}]}
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "serve-gpu"}]
    assert len(pod["tolerations"]) == 2
    lab.stack.preview("--expect-no-changes").check()
    taken = f'opts=pulumi.ResourceOptions(import_="{lab.namespace}/serve"),'
    assert taken in program
    rest = program.replace(FORCE, '"annotations": {}').replace(taken, "")
    lab.up(rest)
    again = cluster_api.get("apps/v1/Deployment", "serve", namespace=lab.namespace)
    assert (again["metadata"]["uid"], again["spec"]) == (now["metadata"]["uid"], now["spec"])


def test_fields_of_another_manager_would_stay_beside_the_claim(
    lab: Lab, cluster_api: Api, tmp_path: Path
) -> None:
    was = made_by("helm", lab, cluster_api)
    assert "import_=" not in program_of(was, tmp_path, exit_code=1)

    # As if kubectl had written it: that is why it is not taken over.
    for each in was["metadata"]["managedFields"]:
        each["manager"] = "kubectl"
    lab.up(program_of(was, tmp_path))

    now = cluster_api.get("apps/v1/Deployment", "serve", namespace=lab.namespace)
    resources = now["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert (resources["limits"].get("nvidia.com/gpu"), resources["claims"]) == ("1", [{"name": "gpu"}])


def dra_infra(*arguments: str, exit_code: int = 0) -> str:
    """Runs the command, which must end with that code, and returns what it prints."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == exit_code, result.output
    return result.stdout
