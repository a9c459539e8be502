"""Probes: what the kubelet asks is answered by what is tried, and failures are told once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.command import probes
from dra_infra.plugin.command.probes import ProbeServer, ask_itself
from dra_infra.plugin.command.settings import Address
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.protocol import grpc_health_v1_pb2 as messages
from dra_infra.plugin.service.serving import Pool, Server
from dra_infra.plugin.service.sockets import Registration
from tests.support.plugin.publishing import wait_until

DRIVER = "gpu.example.com"


@pytest.fixture
def reasons() -> dict[str, str]:
    return {"": "", "liveness": "", "readiness": "not registered yet"}


@pytest.fixture
def server(reasons: dict[str, str], folder: Path) -> Iterator[ProbeServer]:
    checks = {name: lambda name=name: reasons[name] for name in reasons}
    server = ProbeServer(Address("127.0.0.1", 0), checks, folder=folder, fresh=0.0)
    yield server
    server.stop()


def ask(server: ProbeServer, service: str) -> str:
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            messages.HealthCheckRequest.SerializeToString,
            messages.HealthCheckResponse.FromString,
        )
        answer = call(messages.HealthCheckRequest(service=service), timeout=60)
        return messages.HealthCheckResponse.ServingStatus.Name(answer.status)


def test_each_service_is_answered_by_its_own_check(server: ProbeServer, reasons: dict[str, str]):
    assert [ask(server, name) for name in reasons] == ["SERVING", "SERVING", "NOT_SERVING"]
    reasons["readiness"] = ""
    assert ask(server, "readiness") == "SERVING"


def test_a_service_that_is_not_known_is_said_not_to_be_found(server: ProbeServer):
    with pytest.raises(grpc.RpcError) as raised:
        ask(server, "redyness")
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    assert raised.value.details() == "services are liveness, readiness"


def test_a_failing_probe_is_told_once_and_again_when_it_works(
    server: ProbeServer, reasons: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(probes, "log", lambda level, message, **_: told.append((level, message)))
    for _ in range(3):
        ask(server, "readiness")
    reasons["readiness"] = ""
    for _ in range(3):
        ask(server, "readiness")
    assert told == [("warning", "a probe fails"), ("info", "a probe succeeds again")]


def test_the_messages_are_those_of_every_health_client():
    assert messages.HealthCheckRequest(service="readiness").SerializeToString() == b"\n\x09readiness"
    assert (
        messages.HealthCheckResponse(status=messages.HealthCheckResponse.SERVING).SerializeToString()
        == b"\x08\x01"
    )


def test_an_address_that_is_taken_is_told(folder: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = Address("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(PluginError) as raised:
            ProbeServer(address, {}, folder=folder)
    (problem,) = raised.value.problems
    assert (problem.code, problem.path) == ("plugin-address-not-usable", "healthAddress")


@pytest.fixture
def sockets(folder: Path) -> Iterator[tuple[Path, Path]]:
    registration = folder / "reg.sock"
    service = folder / "dra sock"
    handlers = Registration(driver=DRIVER, endpoint=service, observer=Observer()).handlers()
    server = Server((registration, service), handlers, pool=Pool(1, "service"))
    server.start()
    for each in (registration, service):
        server.show(each)
    yield registration, service
    server.stop(0)


def test_a_plugin_whose_sockets_answer_lives(sockets: tuple[Path, Path]):
    wait_until(lambda: ask_itself(*sockets) == "")


@pytest.mark.parametrize("gone", [0, 1])
def test_a_plugin_with_a_socket_that_is_gone_does_not(
    sockets: tuple[Path, Path], gone: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(probes, "SECONDS", 0.3)
    sockets[gone].unlink()
    wait_until(lambda: ask_itself(*sockets) == f"{sockets[gone]} does not answer")


def test_a_plugin_whose_place_another_instance_took_does_not(sockets: tuple[Path, Path]):
    registration, service = sockets
    found = f"{registration} is another instance's"
    wait_until(lambda: ask_itself(registration, service.with_name("mine")) == found)
