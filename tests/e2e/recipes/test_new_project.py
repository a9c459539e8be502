"""What `dra-infra init` lays out, through the real engine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.cli.app import app
from dra_infra.program.synth import synth
from tools.cluster import ControlPlane
from tools.engine_cli import Stack
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e


def test_a_new_project_is_previewed_as_it_is_synthesized(
    cold_home: PulumiHome, cluster: ControlPlane, tmp_path: Path
):
    folder = tmp_path / "gpus"
    assert CliRunner().invoke(app, ["init", str(folder), "--fleet", "example x 2"]).exit_code == 0
    file = folder / "Pulumi.yaml"
    project = yaml.safe_load(file.read_text())
    if cold_home.plugins:
        file.write_text(yaml.safe_dump({**project, "plugins": cold_home.plugins}))
    # `pulumi install` would make it, from a package index.
    (folder / project["runtime"]["options"]["virtualenv"]).symlink_to(sys.prefix)
    state = tmp_path / "state"
    state.mkdir()
    stack = Stack(
        folder,
        home=cold_home,
        environment={"KUBECONFIG": str(cluster.kubeconfig), "PULUMI_BACKEND_URL": state.as_uri()},
    )
    stack.init()
    preview = stack.preview().check()
    program = synth(folder, stack="dev")
    assert {step.urn for step in preview.steps if "pulumi:providers:" not in step.urn} == set(
        program.resources
    )
