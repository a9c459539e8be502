"""What charts make, before anything is installed: rendered by the real helm from the releases of a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dra_infra.program.charts import with_charts
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program
from tests.support.charts import ChartFolder
from tests.support.lab import Lab
from tools.cluster import Api, ControlPlane

pytestmark = pytest.mark.e2e

Charts = Callable[[str, str], ChartFolder]

MAIN = "from dra_infra.cli.app import main; main()"


def platform(chart: ChartFolder, **driver: Any) -> str:
    """Return a program that installs the DRA driver on machines of its owner."""
    arguments = {
        "version": chart.version,
        "chart": str(chart.path),
        "gpu_resources_enabled_override": True,
        "skip_await": True,
        **driver,
    }
    return f"import dra_infra as dra\ndra.GpuPlatform('gpus', platform='kubeadm', driver={arguments!r})\n"


def write_project(folder: Path, program: str) -> Path:
    """Write a project without an engine."""
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (folder / "__main__.py").write_text(program)
    return folder


def seen(program: Program) -> set[str]:
    """Return kind and name of every object."""
    return {f"{each.ref.kind} {each.ref.name}" for each in program.objects}


def live_object(api: Api, manifest: dict[str, Any]) -> dict[str, Any] | None:
    """Return the object of the cluster that a manifest is about."""
    metadata = manifest["metadata"]
    kind = f"{manifest['apiVersion']}/{manifest['kind']}"
    return api.find(kind, metadata["name"], namespace=metadata.get("namespace", "default"))


@pytest.fixture
def helm(binaries: Callable[[str], Path]) -> str:
    """The real helm."""
    return str(binaries("helm"))


def test_what_is_rendered_is_what_an_installation_makes(
    chart: Charts,
    helm: str,
    make_platform_lab: Callable[[ControlPlane], Lab],
    fresh_control_plane: ControlPlane,
) -> None:
    found = chart("dra-driver-nvidia-gpu", "0.4.1")
    lab = make_platform_lab(fresh_control_plane)
    lab.write(platform(found, log_verbosity=6))
    program = with_charts(synth(lab.stack.directory), lab.stack.directory, helm=helm)

    lab.stack.up().check()

    with fresh_control_plane.api() as api:
        live = {each.ref: live_object(api, dict(each.manifest)) for each in program.objects}
    assert [str(ref) for ref, found_there in live.items() if found_there is None] == []
    for each in program.objects:
        if each.ref.name == "gpus-driver-values":
            arrived = live[each.ref] or {}
            assert json.loads(arrived["data"]["values"]) == json.loads(each.manifest["data"]["values"])
    assert program.not_seen == ()
    assert {f"CustomResourceDefinition {each['metadata']['name']}" for each in found.crds} <= seen(program)
    assert "DeviceClass gpu.nvidia.com" in seen(program)


def test_values_that_the_schema_refuses_are_told_without_a_cluster(
    chart: Charts, helm: str, tmp_path: Path
) -> None:
    found = chart("dra-driver-nvidia-gpu", "0.4.1")
    if found.real:
        pytest.skip(f"{found.path} is a real chart, without the schema of our stand-in")
    # By hand: the check of a component would come first.
    folder = write_project(
        tmp_path / "app",
        f"import pulumi_kubernetes as k8s\nk8s.helm.v3.Release('d', chart={str(found.path)!r}, namespace='gpu', "
        "values={'gpuResourcesEnabledOverride': True, 'resources-computeDomains': {'enabled': False}})\n",
    )

    program = with_charts(synth(folder), folder, helm=helm)

    (problem,) = program.problems
    assert (problem.path, problem.code) == ('Release("d")', "chart-not-rendered")
    assert "additional properties 'resources-computeDomains' not allowed" in problem.message


def test_a_review_shows_what_a_changed_value_does_to_the_objects_of_a_chart(
    chart: Charts, helm: str, tmp_path: Path
) -> None:
    found = chart("dra-driver-nvidia-gpu", "0.4.1")
    folder = write_project(tmp_path / "app", platform(found, compute_domains=False))
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "before")):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)
    write_project(folder, platform(found, compute_domains=True))

    path = os.pathsep.join([str(Path(helm).parent), os.environ["PATH"]])
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            MAIN,
            "review",
            str(folder),
            "--base",
            "HEAD",
            "--charts",
            "--format",
            "json",
        ],
        env={**os.environ, "PATH": path},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )

    changes = {
        (each["action"], each["object"]["kind"], each["object"]["name"])
        for each in json.loads(done.stdout)["changes"]
    }
    assert ("created", "DeviceClass", "compute-domain-daemon.nvidia.com") in changes
    # Helm changes a ConfigMap in place; the Kubernetes provider would replace one of the program's own.
    assert "replaced" not in {action for action, *_ in changes}
