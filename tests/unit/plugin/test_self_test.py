"""`--check` holds where the plugin works, and says what is missing where it does not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dra_infra.cluster.kinds import Kind
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.check_folders import check_folders
from dra_infra.plugin.command.check_kubelet import ask_kubelet
from dra_infra.plugin.command.check_server import check_server
from dra_infra.plugin.command.findings import Finding, attempt, show
from dra_infra.plugin.disk import Folder
from dra_infra.plugin.protocol import registration_pb2
from dra_infra.plugin.service.sockets import Sockets

DRIVER = "gpu.example.com"


def problem(code: str, severity: Any = "error") -> Problem:
    return Problem(path="where", code=code, message="what", hint="how", severity=severity)


@pytest.fixture
def node(folder: Path) -> Path:
    for name in ("plugins_registry", "plugins", "cdi"):
        (folder / name).mkdir()
    return folder


def folders(node: Path, driver: str = DRIVER) -> dict[str, Finding]:
    sockets = Sockets(kubelet_root=node, driver=driver)
    state = node / "plugins" / driver
    return {each.what: each for each in check_folders(sockets=sockets, state=state, cdi=node / "cdi")}


def codes(findings: Mapping[str, Finding]) -> dict[str, str]:
    return {what: each.problem.code for what, each in findings.items() if each.problem}


def test_folders_as_a_kubelet_has_them_hold_and_are_left_as_they_were(node: Path):
    before = sorted(node.rglob("*"))
    found = folders(node)
    assert codes(found) == {}
    assert len(found) == 4
    assert sorted(node.rglob("*")) == before
    assert "can be made" in found["state folder"].found


def test_a_kubelet_root_without_a_registry_is_told(node: Path):
    (node / "plugins_registry").rmdir()
    assert codes(folders(node)) == {"folder that the kubelet watches": "plugin-folder-not-usable"}


def test_a_file_in_the_place_of_a_folder_is_told(node: Path):
    (node / "cdi").rmdir()
    (node / "cdi").touch()
    assert codes(folders(node)) == {"CDI folder": "plugin-folder-not-usable"}


def test_a_full_disk_is_told(node: Path, monkeypatch: pytest.MonkeyPatch):
    def full(_folder: Folder, name: str, _content: bytes, *, settle: bool) -> None:
        raise PluginError([problem("plugin-folder-not-usable")])

    monkeypatch.setattr(Folder, "replace", full)
    assert len(codes(folders(node))) == 3


def test_a_path_that_no_socket_can_have_is_told(tmp_path: Path):
    node = tmp_path / ("x" * 90)
    for name in ("plugins_registry", "cdi"):
        (node / name).mkdir(parents=True)
    assert codes(folders(node)) == {"paths of the sockets": "socket-path-too-long"}


def test_a_kubelet_that_watches_is_found_and_nothing_is_left_for_it(node: Path):
    sockets = Sockets(kubelet_root=node, driver=DRIVER)
    asked: list[registration_pb2.PluginInfo] = []

    class Kubelet:
        """Asks whoever comes, from a thread of its own."""

        def __enter__(self) -> None:
            import threading

            self.stopped = threading.Event()
            self.thread = threading.Thread(target=self.watch)
            self.thread.start()

        def watch(self) -> None:
            from dra_infra.plugin.command.probes import ask_registration

            while not self.stopped.wait(0.02) and not asked:
                asked.extend(map(ask_registration, sockets.registry.glob("[!.]*")))

        def __exit__(self, *_: object) -> None:
            self.stopped.set()
            self.thread.join()

    with Kubelet():
        assert ask_kubelet(sockets) == f"watches {sockets.registry}"
    assert asked[0].type != "DRAPlugin"
    assert asked[0].name != DRIVER
    assert list(sockets.registry.iterdir()) == []


def test_a_folder_that_no_kubelet_watches_is_told(node: Path):
    with pytest.raises(PluginError) as raised:
        ask_kubelet(Sockets(kubelet_root=node, driver=DRIVER), seconds=0.05)
    assert [each.code for each in raised.value.problems] == ["kubelet-not-watching"]
    assert list((node / "plugins_registry").iterdir()) == []


class Server:
    """An API server that lets its caller do what is named."""

    def __init__(self, *allowed: str, user: str = "system:serviceaccount:dra:plugin") -> None:
        self.allowed = allowed
        self.user = user
        self.away = False
        self.node = "node-1"
        self.asked: list[tuple[str, Any]] = []

    def minor(self) -> int:
        if self.away:
            raise PluginError([problem("api-unreachable")])
        return 37

    def version(self, kind: Kind) -> str:
        return kind.versions[0]

    def get(self, kind: Kind, name: str, namespace: str = "") -> dict[str, Any] | None:
        self._need(f"get {kind.plural}")
        return {} if (name, namespace) == (self.node, "") else None

    def list(self, kind: Kind, *, field_selector: str = "") -> tuple[list[dict[str, Any]], str]:
        self._need(f"list {kind.plural}")
        assert field_selector == "spec.nodeName=node-1"
        return [{"spec": {"driver": DRIVER}}, {"spec": {"driver": "other"}}], "1"

    def create(self, kind: Kind, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        if kind.name == "SelfSubjectAccessReview":
            asked = manifest["spec"]["resourceAttributes"]
            return {"status": {"allowed": f"{asked['verb']} {asked['resource']}" in self.allowed}}
        if kind.name == "SelfSubjectReview":
            return {"status": {"userInfo": {"username": self.user}}}
        assert dry_run
        self._need(f"create {kind.plural}")
        return dict(manifest)

    def _need(self, what: str) -> None:
        if what not in self.allowed:
            raise PluginError([problem("api-forbidden")])


ALL = (
    "get resourceclaims",
    "get nodes",
    "list resourceslices",
    "create resourceslices",
    "update resourceslices",
    "delete resourceslices",
)


def of_server(server: Server) -> dict[str, Finding]:
    return {each.what: each for each in check_server(server, driver=DRIVER, node="node-1")}


def test_a_server_that_lets_the_plugin_work_holds():
    found = of_server(Server(*ALL))
    assert codes(found) == {}
    assert found["API server"].found == "Kubernetes 1.37, resource.k8s.io/v1"
    assert found["right to see the node's slices"].found == "2 there, 1 of gpu.example.com"


@pytest.mark.parametrize("lacking", ALL)
def test_every_right_that_is_missing_is_told(lacking: str):
    found = of_server(Server(*(each for each in ALL if each != lacking)))
    assert list(codes(found).values()) == ["api-forbidden"]


def test_a_missing_right_is_told_with_the_rule_that_grants_it():
    found = of_server(Server(*ALL[1:]))["right to read claims"]
    assert found.problem
    assert found.problem.hint.endswith(
        '{apiGroups: ["resource.k8s.io"], resources: ["resourceclaims"], verbs: ["get"]}'
    )
    assert found.problem.message == "system:serviceaccount:dra:plugin may not"


def test_an_account_of_a_node_is_let_do_it_object_by_object():
    found = of_server(
        Server("get nodes", "list resourceslices", "create resourceslices", user="system:node:node-1")
    )
    assert codes(found) == {}


def test_a_node_that_is_not_known_is_told():
    server = Server(*ALL)
    server.node = "another"
    assert codes(of_server(server)) == {"right to read the node": "node-not-known"}


def test_a_server_that_is_away_is_told_once():
    server = Server(*ALL)
    server.away = True
    assert codes(of_server(server)) == {"API server": "api-unreachable"}


FINDINGS = (
    Finding(what="a", found="b"),
    Finding(what="c", problem=problem("device-held", "warning")),
    Finding(what="d", problem=problem("device-held")),
)


def test_each_finding_is_a_line_with_its_hint_and_one_that_does_not_hold_is_the_exit_code():
    written: list[str] = []
    assert show(FINDINGS, as_json=False, write=written.append) == 1
    assert "".join(written).splitlines() == [
        "✓ a: b",
        "! c: where: what [device-held]",
        "    how",
        "✗ d: where: what [device-held]",
        "    how",
        "1 of 3 do not hold",
    ]
    assert show(FINDINGS[:2], as_json=False, write=written.append) == 0


def test_findings_are_json_for_programs():
    written: list[str] = []
    assert show(FINDINGS, as_json=True, write=written.append) == 1
    said = json.loads("".join(written))
    assert said["works"] is False
    assert [each["holds"] for each in said["checks"]] == [True, True, False]
    assert said["checks"][2]["problem"]["code"] == "device-held"


def test_all_problems_of_an_attempt_are_findings():
    def fail() -> str:
        raise PluginError([problem("device-held"), problem("cdi-refused")])

    assert len(list(attempt("x", fail))) == 2
