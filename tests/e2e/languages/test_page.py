"""What docs/languages.md shows: the program, its preview, and a problem, as a user runs them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dra_infra.catalog import load_fleet
from tests.e2e.languages.pages import block, lines_shown
from tests.support.lab import Lab
from tests.support.pages.documents import ROOT
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs" / "languages.md"
HERE = f"python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def plane(fresh_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster with a server of eight H100."""
    with NodeStandIn(fresh_control_plane.connection), fresh_control_plane.api() as api:
        create_fleet(api, load_fleet("hgx-h100").to_manifests())
        yield fresh_control_plane


@pytest.fixture
def project(plane: ControlPlane, home: PulumiHome, package: Path, tmp_path: Path) -> Lab:
    """An empty project with the virtual environment of the page."""
    lab = Lab.create(
        tmp_path, home=home, namespace="default", environment={"KUBECONFIG": str(plane.kubeconfig)}
    )
    lab.stack.directory.joinpath(".venv").symlink_to(package.parents[4])
    return lab


def write(lab: Lab, text: str) -> None:
    """Make *text* the project, with the provider of the tests and the name that the stack has been made for."""
    program = yaml.safe_load(text.replace("python3.11", HERE))
    lab.stack.directory.joinpath("Pulumi.yaml").write_text(
        yaml.safe_dump({**program, "name": "project", "plugins": lab.home.plugins}, sort_keys=False)
    )


def printed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_the_page_is_what_a_user_sees(project: Lab, plane: ControlPlane) -> None:
    write(project, "{name: gpus, runtime: yaml}")
    added = block(PAGE, "console", "pulumi package add ./.venv")
    folder = added.commands[0].text.split()[-1].replace("python3.11", HERE)
    answer = project.stack.run("package", "add", folder).check()
    assert [line for line in lines_shown(added) if line not in printed(answer.text)] == []
    packages = yaml.safe_load(project.stack.directory.joinpath("Pulumi.yaml").read_text())["packages"]
    program = block(PAGE, "yaml", "runtime: yaml")
    assert packages == yaml.safe_load(program.text.replace("python3.11", HERE))["packages"]

    write(project, program.text)
    preview = project.stack.preview().check()
    shown = block(PAGE, "console", "resourceClaimTemplateName")
    assert [line for line in lines_shown(shown) if line not in printed(preview.text)] == []

    project.stack.up().check()
    with plane.api() as api:
        assert succeeded(api) == 1
    project.stack.destroy().check()
    with plane.api() as api:
        assert api.find("resource.k8s.io/v1/DeviceClass", "h100") is None


def succeeded(api: Api) -> int:
    return int(api.get("batch/v1/Job", "train", namespace="vision")["status"]["succeeded"])


def test_the_page_shows_a_problem_as_the_engine_does(project: Lab) -> None:
    write(project, block(PAGE, "yaml", "runtime: yaml").text.replace("count: 4", "count: 40"))

    preview = project.stack.preview()

    assert preview.exit_code == 1
    shown = block(PAGE, "console", "too-many-devices")
    assert [line for line in lines_shown(shown) if line not in printed(preview.text)] == []
