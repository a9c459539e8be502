"""`--check` holds where the plugin works, and says what is missing where it does not."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dra_infra.client.kinds import Kind
from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import Device
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.command import back_end_loading
from dra_infra.plugin.command.checks import (
    Finding,
    ask_kubelet,
    attempt,
    check_addresses,
    check_folders,
    show,
)
from dra_infra.plugin.command.self_test import check, check_server
from dra_infra.plugin.command.settings import Address, Settings
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


def test_a_folder_is_made_below_a_link_as_var_run_is_one(node: Path):
    (node / "cdi").rmdir()
    (node / "run").mkdir()
    (node / "var-run").symlink_to("run")
    sockets = Sockets(kubelet_root=node, driver=DRIVER)
    cdi = node / "var-run/cdi"
    found = {each.what: each for each in check_folders(sockets=sockets, state=node / "plugins", cdi=cdi)}
    assert codes(found) == {}
    assert found["CDI folder"].found == f"{cdi} can be made in {node / 'var-run'}"
    assert not list((node / "run").iterdir())


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
    for name in ("plugins_registry", "plugins", "cdi"):
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
                asked.extend(ask_registration(each, 60) for each in sockets.registry.glob("[!.]*"))

        def __exit__(self, *_: object) -> None:
            self.stopped.set()
            self.thread.join()

    with Kubelet():
        assert ask_kubelet(sockets, seconds=60) == f"watches {sockets.registry}"
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
        self.created: list[Mapping[str, Any]] = []

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
        self.created.append(manifest)
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


def of_server(server: Server, inventory: Inventory | None = None) -> dict[str, Finding]:
    has = inventory or Inventory(devices=())
    return {each.what: each for each in check_server(server, driver=DRIVER, node="node-1", inventory=has)}


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


def machine(node: Path, **settings: Any) -> Settings:
    given = {"back_end": "sim", "fleet": "example", "kubelet_root": node, "cdi_folder": node / "cdi"}
    return Settings(node_name="node-1", **{**given, **settings})


def of_machine(settings: Settings) -> dict[str, Finding]:
    """Without a server, so that all that follows is of the machine."""
    return {each.what: each for each in check(settings, {"KUBECONFIG": "nowhere"})}


def test_a_state_folder_that_cannot_be_written_to_is_told_and_the_devices_are_counted(
    node: Path, monkeypatch: pytest.MonkeyPatch
):
    state = node / "plugins" / DRIVER
    state.mkdir()
    # Root may write anywhere: what others meet is made up.
    monkeypatch.setattr("os.access", lambda path, _mode: path != state)

    replace = Folder.replace

    def refuse(folder: Folder, name: str, content: bytes, **how: Any) -> Any:
        if folder.path == state:
            raise PluginError([problem("plugin-folder-not-usable")])
        return replace(folder, name, content, **how)

    monkeypatch.setattr(Folder, "replace", refuse)
    monkeypatch.setattr("dra_infra.plugin.command.self_test.ask_kubelet", lambda *_: "")
    found = of_machine(machine(node))
    assert found["devices"].found == f"8 of {DRIVER}"
    assert codes(found)["state folder"] == "plugin-folder-not-usable"
    assert list(state.iterdir()) == []


@pytest.mark.parametrize(
    ("inventory", "code", "said"),
    [
        (
            "raise OSError(5, 'no answer')",
            "plugin-failed",
            "OSError: [Errno 5] no answer (lamps.py, line 6, in",
        ),
        ("return None", "back-end-not-loaded", "gives NoneType"),
    ],
)
def test_a_back_end_of_ones_own_that_has_no_inventory_is_told_with_its_line(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inventory: str, code: str, said: str
):
    (tmp_path / "lamps.py").write_text(
        "class Lamps:\n"
        "    driver = 'lamp.example.com'\n"
        "    watch = prepare = release = len\n"
        "    def close(self): pass\n"
        "    def inventory(self):\n"
        f"        {inventory}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "lamps", raising=False)
    back_end_loading.load.cache_clear()
    monkeypatch.setattr("dra_infra.plugin.command.self_test.ask_kubelet", lambda *_: "")
    found = of_machine(machine(node, back_end="lamps:Lamps", fleet=""))["devices"]
    assert found.problem
    assert found.problem.code == code
    assert said in found.problem.message


def test_devices_that_no_server_would_have_are_told():
    server = Server(*ALL)
    twice = Inventory(devices=(Device(name="a"), Device(name="a")))
    assert codes(of_server(server, twice)) == {"right to publish slices": "pool-not-usable"}


def test_the_devices_themselves_are_tried_in_the_dry_run():
    server = Server(*ALL)
    of_server(server, Inventory(devices=tuple(Device(name=f"gpu-{index}") for index in range(130))))
    pools = [each["spec"]["pool"] for each in server.created]
    assert [each["resourceSliceCount"] for each in pools] == [2, 2]
    assert server.created[1]["spec"]["devices"][-1]["name"] == "gpu-129"


def test_a_machine_without_a_kubelet_is_told_so(folder: Path):
    found = folders(folder)
    assert codes(found) == {
        "state folder": "plugin-folder-not-usable",
        "folder that the kubelet watches": "plugin-folder-not-usable",
    }
    assert found["state folder"].problem
    assert found["state folder"].problem.path == str(folder / "plugins")
    assert "no kubelet has been started" in found["state folder"].problem.message


LISTEN = """
import socket, sys
listening = socket.create_server(("127.0.0.1", 0))
kept = [open(each) for each in sys.argv[1:]]
print(listening.getsockname()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def listening(*files: Path) -> Iterator[tuple[int, int]]:
    """A process that listens on loopback, and has files open; its id and the port."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, *map(str, files)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        yield process.pid, int(process.stdout.readline())
        process.communicate()


@contextmanager
def free_address() -> Iterator[Address]:
    """An address that a server may have, and nobody gets who asks the kernel for any port."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield Address("127.0.0.1", holder.getsockname()[1])


def addresses(node: Path, **settings: Address) -> dict[str, Finding]:
    return {each.what: each for each in check_addresses(machine(node, **settings), node / "instances")}


def test_addresses_that_are_free_hold_and_are_free_afterwards(node: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dra_infra.plugin.command.self_test.ask_kubelet", lambda *_: "")
    with free_address() as free:
        for _ in range(2):
            found = of_machine(machine(node, metrics_address=free, health_address=Address("::", 0)))
            assert found["metrics address"].found == str(free)
            assert found["health address"].holds


def test_addresses_that_are_not_given_are_not_tried(node: Path):
    assert addresses(node) == {}


def test_a_port_that_another_process_has_is_told_with_that_process(node: Path):
    (node / "instances").touch()
    with listening() as (process, port):
        for each in ("metrics", "health"):
            found = addresses(node, **{f"{each}_address": Address("127.0.0.1", port)})[f"{each} address"]
            assert found.problem
            assert (found.problem.code, found.problem.path) == (
                "plugin-address-not-usable",
                f"{each}Address",
            )
            assert f"; process {process} (" in found.problem.message
            assert found.problem.message.endswith(") listens there")


def test_a_port_that_a_running_instance_of_the_same_plugin_has_holds(node: Path):
    (node / "instances").touch()
    with listening(node / "instances") as (process, port):
        found = addresses(node, metrics_address=Address("127.0.0.1", port))["metrics address"]
    assert found.problem is None
    assert f"where the plugin that runs listens: process {process} (" in found.found


def test_two_addresses_with_one_port_are_told(node: Path):
    with free_address() as free:
        found = addresses(node, metrics_address=free, health_address=free)
    assert codes(found) == {"health address": "plugin-address-not-usable"}
    assert found["health address"].problem
    assert "metricsAddress has the same port" in found["health address"].problem.message


@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 70])
def test_an_address_that_is_not_of_this_machine_is_told_so(node: Path, host: str):
    found = addresses(node, health_address=Address(host, 8081))
    assert codes(found) == {"health address": "plugin-address-not-usable"}
    assert found["health address"].problem
    assert found["health address"].problem.hint == (
        "give an address of this machine, or :8081 for all that it has"
    )
