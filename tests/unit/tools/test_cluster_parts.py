from __future__ import annotations

import ipaddress
import socket
from pathlib import Path

import pytest

from tools.cluster import ControlPlane, credentials, ports
from tools.cluster import components as parts
from tools.cluster.api import kind_of
from tools.cluster.api_server import api_server
from tools.cluster.by_hand import main as by_hand
from tools.cluster.connection import Connection
from tools.cluster.nodes import node
from tools.errors import ToolError


@pytest.fixture
def layout(tmp_path):
    names = [*parts.ALL, "etcd-peer"]
    return parts.Layout(folder=tmp_path, ports={name: 1000 + index for index, name in enumerate(names)})


@pytest.mark.parametrize("name", parts.ALL)
def test_server_is_told_to_serve_on_loopback_only(layout, name, tmp_path):
    flags = dict(flag.partition("=")[::2] for flag in layout.command(name, tmp_path / name)[1:])
    served = [
        value for flag, value in flags.items() if flag == "--bind-address" or flag.startswith("--listen-")
    ]
    assert served
    assert all(value.removeprefix("http://").startswith("127.0.0.1") for value in served)


@pytest.mark.parametrize("name", [parts.APISERVER, parts.CONTROLLER_MANAGER, parts.SCHEDULER])
def test_gates_and_emulated_version_reach_all_kubernetes_servers(tmp_path, name):
    layout = parts.Layout(
        folder=tmp_path,
        ports=dict.fromkeys([*parts.ALL, "etcd-peer"], 1),
        feature_gates={"B": True, "A": False},
        emulated_version="1.35",
    )
    assert layout.command(name, tmp_path)[-2:] == [
        "--feature-gates=A=false,B=true",
        "--emulated-version=kube=1.35",
    ]


def test_pods_need_no_service_account_where_nobody_makes_them(tmp_path):
    layout = parts.Layout(
        folder=tmp_path,
        ports=dict.fromkeys([*parts.ALL, "etcd-peer"], 1),
        components=(parts.ETCD, parts.APISERVER, parts.SCHEDULER),
    )
    flags = layout.command(parts.APISERVER, tmp_path)
    assert "--disable-admission-plugins=TaintNodesByCondition,ServiceAccount" in flags


@pytest.mark.parametrize(
    ("components", "message"),
    [(["etcd", "kube-proxy"], "kube-proxy"), ([parts.ETCD], "kube-apiserver"), ([], "always needed")],
)
def test_impossible_set_of_servers_is_refused_by_name(components, message):
    with pytest.raises(ValueError, match=message):
        ControlPlane(components=components)


def test_control_plane_that_is_not_started_says_how_to_start_it():
    with pytest.raises(ToolError, match="not running") as caught:
        _ = ControlPlane().url
    assert caught.value.hint == "use it as `with ControlPlane() as plane:`"


def test_reserved_ports_differ_and_are_given_to_nobody_else():
    names = [f"server-{index}" for index in range(50)]
    with ports.reserved(names) as first, ports.reserved(names) as second:
        assert len({*first.values(), *second.values()}) == 100


def test_reserved_port_can_be_listened_on_by_a_server_that_shares_it():
    with ports.reserved(["server"]) as reserved, socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", reserved["server"]))
        server.listen()
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", reserved["server"]), timeout=5):
                accepted, _ = server.accept()
                accepted.close()


def test_connection_survives_the_way_through_a_kubeconfig(tmp_path):
    connection = Connection(url="https://127.0.0.1:1", token="secret", ca="-----BEGIN CERTIFICATE-----\n")
    path = tmp_path / "kubeconfig"
    path.write_text(connection.kubeconfig())
    assert Connection.from_kubeconfig(path) == connection


def test_connection_does_not_show_its_token():
    assert "secret" not in repr(Connection(url="https://127.0.0.1:1", token="secret", ca=""))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "a: [", "current-context: x\ncontexts: []\n", "{contexts: [{name: x}], current-context: x}"],
)
def test_file_that_is_no_kubeconfig_is_an_error(tmp_path, text):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(ToolError, match="no current context with a token"):
        Connection.from_kubeconfig(path)


def test_missing_kubeconfig_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ToolError, match="nowhere: No such file"):
        Connection.from_kubeconfig(tmp_path / "nowhere")


def test_kind_is_named_by_version_and_kind():
    assert kind_of(node("n")) == "v1/Node"


def test_more_apis_are_served_beside_those_of_dra(tmp_path):
    layout = parts.Layout(
        folder=tmp_path, ports=dict.fromkeys([*parts.ALL, "etcd-peer"], 1), more_apis=("a.k8s.io/v1alpha1",)
    )
    [flag] = [
        each for each in layout.command(parts.APISERVER, tmp_path) if each.startswith("--runtime-config=")
    ]
    assert "resource.k8s.io/v1=true" in flag
    assert flag.endswith(",a.k8s.io/v1alpha1=true")


@pytest.mark.parametrize(
    ("minor", "name"),
    [("1.37", "kube-apiserver"), ("1.36", "kube-apiserver-1.36"), ("1.34", "kube-apiserver-1.34")],
)
def test_api_server_of_a_minor_is_that_minors_own_binary(minor, name):
    asked = []

    def find(binary):
        asked.append(binary)
        if binary != parts.ETCD:
            raise ToolError("not built")
        return Path(binary)

    with pytest.raises(ToolError, match="not built"):
        api_server(minor, binaries=find).start()
    assert asked == [parts.ETCD, name]


def test_server_with_workloads_serves_the_api_that_it_waits_for():
    plane = api_server("1.36", feature_gates={"GenericWorkload": True})
    assert plane._more_apis == ("scheduling.k8s.io/v1alpha2",)
    assert api_server("1.36")._more_apis == ()


def test_held_port_refuses_connections_and_is_given_to_nobody_else():
    with ports.reserved(["server"]) as reserved:
        port = reserved["server"]
    with ports.held(port), socket.socket() as other, socket.socket() as client:
        with pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with pytest.raises(ConnectionRefusedError):
            client.connect(("127.0.0.1", port))


def test_user_of_a_node_is_in_the_group_of_nodes_and_has_a_token_of_its_own(tmp_path):
    tokens = credentials.write_tokens(tmp_path / "tokens", ["one", "two"])
    lines = (tmp_path / "tokens").read_text().splitlines()
    for name in ("one", "two"):
        token = tokens[credentials.of_node(name)]
        assert f'{token},system:node:{name},system:node:{name},"system:nodes"' in lines
    assert len(set(tokens.values())) == len(tokens)
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600


def test_nodes_are_held_to_themselves_where_there_are_real_ones(tmp_path):
    flag = "--enable-admission-plugins=NodeRestriction"
    ports_of_all = dict.fromkeys([*parts.ALL, "etcd-peer"], 1)
    for nodes, is_held in ((("one",), True), ((), False)):
        layout = parts.Layout(folder=tmp_path, ports=ports_of_all, nodes=nodes)
        assert (flag in layout.command(parts.APISERVER, tmp_path)) == is_held


def test_services_of_clusters_with_real_nodes_have_addresses_of_their_own(tmp_path):
    def services(port, nodes):
        ports_of_all = {**dict.fromkeys([*parts.ALL, "etcd-peer"], 1), parts.APISERVER: port}
        layout = parts.Layout(folder=tmp_path, ports=ports_of_all, nodes=nodes)
        flag = "--service-cluster-ip-range="
        [found] = [one for one in layout.command(parts.APISERVER, tmp_path) if one.startswith(flag)]
        return ipaddress.ip_network(found.removeprefix(flag))

    assert str(services(65535, ())) == "10.96.0.0/16"
    first, second, last = (services(port, ("one",)) for port in (1024, 1025, 65535))
    assert not first.overlaps(second)
    assert all(one.subnet_of(ipaddress.ip_network("10.96.0.0/12")) for one in (first, second, last))


def test_a_fleet_that_there_is_not_is_told_before_anything_is_started(capsys):
    assert by_hand(["--node", "--fleet", "hgx-h10"]) == 1
    said = capsys.readouterr()
    assert "did you mean hgx-h100?" in said.err
    assert said.out == ""


def test_who_is_not_root_is_told_before_anything_is_started(capsys, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert by_hand(["--node"]) == 1
    said = capsys.readouterr()
    assert "root alone" in said.err
    assert said.out == ""
