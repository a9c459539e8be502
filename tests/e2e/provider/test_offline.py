"""Without a cluster: previews work by echoing the program, everything else says what is missing."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.lab import Lab

pytestmark = pytest.mark.e2e

Offline = Callable[[Mapping[str, str]], Lab]

PROGRAM = """
claim = claim_template("claim", 1)
deployment("app", claim.metadata["name"])
k8s.resource.v1.DeviceClass("class", metadata={"name": "class"}, spec={})
k8s.core.v1.ConfigMap("map", data={"key": "value"})
k8s.rbac.v1.ClusterRole("role", metadata={"name": "role"}, rules=[])
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: lab, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: lab, user: {{token: hush-token}}}}]
contexts: [{{name: lab, context: {{cluster: lab, user: lab}}}}]
current-context: lab
"""


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port of loopback on which nobody listens, and nobody else can."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture(params=["none", "missing", "broken", "dead"])
def nowhere(
    request: pytest.FixtureRequest, offline_lab: Offline, tmp_path: Path, dead_port: int
) -> tuple[Lab, str, str | None]:
    """A project without a cluster, the reason that it must be told, and the namespace of objects that name none."""
    contents = {"broken": "hush: [", "dead": KUBECONFIG.format(port=dead_port)}
    path = tmp_path / "kubeconfig"
    if request.param in contents:
        path.write_text(contents[request.param])
    reasons = {
        "none": "does not exist; set KUBECONFIG or the provider option kubernetes:kubeconfig",
        "missing": f"{path} does not exist; set KUBECONFIG or the provider option kubernetes:kubeconfig",
        "broken": "failed to parse kubeconfig",
        "dead": "unable to load schema information from the API server",
    }
    lab = offline_lab({} if request.param == "none" else {"KUBECONFIG": str(path)})
    lab.write(PROGRAM)
    # A kubeconfig that can be read says where objects go, whether or not its server answers.
    return lab, reasons[request.param], "default" if request.param == "dead" else None


def test_preview_shows_the_program(nowhere: tuple[Lab, str, str | None]) -> None:
    lab, _, namespace = nowhere

    preview = lab.stack.preview().check()

    assert {name: preview.operations(name) for name in ("claim", "app", "class", "map")} == dict.fromkeys(
        ("claim", "app", "class", "map"), ("create",)
    )
    assert preview.step("map", "create").inputs["metadata"].get("namespace") == namespace
    # A known difference to what `up` makes: without a server the provider takes a class for an object of a namespace.
    assert preview.step("class", "create").inputs["metadata"].get("namespace") == namespace
    assert "namespace" not in preview.step("role", "create").inputs["metadata"]


def test_up_says_why_and_creates_nothing(nowhere: tuple[Lab, str, str | None]) -> None:
    lab, reason, _ = nowhere

    up = lab.stack.up()

    assert up.exit_code == 1
    assert "configured Kubernetes cluster is unreachable" in up.text
    assert "hush" not in up.text
    assert lab.names() == []
    if lab.home.provider is not None:
        assert reason in up.text


def test_a_preview_with_state_shows_a_change_of_an_immutable_spec_as_update(lab: Lab, dead_port: int) -> None:
    program = 'claim_template("claim", {count}, name="claim"{options})\n'
    replaced = ', opts=ResourceOptions(replace_on_changes=["spec"])'
    lab.up(program.format(count=1, options=""))
    kubeconfig = lab.stack.directory / "dead"
    kubeconfig.write_text(KUBECONFIG.format(port=dead_port))
    lab.stack.environment["KUBECONFIG"] = str(kubeconfig)
    lab.write(program.format(count=2, options=""))
    plain = lab.stack.preview().check()
    lab.write(program.format(count=2, options=replaced))
    told = lab.stack.preview().check()

    path = "spec.spec.devices.requests[0].exactly.count"
    assert plain.step("claim", "update").changes == {path: "update"}
    assert told.step("claim", "replace").changes == {path: "update-replace"}


@pytest.mark.parametrize("command", ["refresh", "destroy"])
def test_state_is_kept_when_the_cluster_is_away(lab: Lab, dead_port: int, command: str) -> None:
    lab.up('config_map("object")\n')
    kubeconfig = lab.stack.directory / "dead"
    kubeconfig.write_text(KUBECONFIG.format(port=dead_port))
    lab.stack.environment["KUBECONFIG"] = str(kubeconfig)

    result = getattr(lab.stack, command)()

    assert result.exit_code == 1
    assert "unreachable" in result.text
    assert lab.names() == ["object"]


def test_state_of_a_deleted_cluster_is_dropped_on_request(lab: Lab, dead_port: int) -> None:
    lab.up('config_map("object")\n')
    kubeconfig = lab.stack.directory / "dead"
    kubeconfig.write_text(KUBECONFIG.format(port=dead_port))
    lab.stack.environment.update(KUBECONFIG=str(kubeconfig), PULUMI_K8S_DELETE_UNREACHABLE="true")

    lab.stack.refresh().check()

    assert lab.names() == []
