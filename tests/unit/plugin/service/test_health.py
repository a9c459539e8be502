from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import Device
from dra_infra.plugin.back_end import Health, Inventory
from dra_infra.plugin.protocol import health_v1_pb2
from dra_infra.plugin.service.health import MOST_WATCHERS, SERVICES, HealthService
from dra_infra.plugin.service.serving import Pool, Server
from tests.support.plugin.kubelet import Connection
from tests.unit.plugin.service.served import Notes

XID = Health(state="unhealthy", message="XID 79")


class Watched:
    def __init__(self, folder: Path, every: float = 60) -> None:
        self.path = folder / "dra.sock"
        self.health: dict[str, Health] = {}
        self.error: Exception | None = None
        self.notes = Notes()
        self.service = HealthService(
            inventory=self.inventory, pool="node-1", observer=self.notes, every=every
        )
        self.server = Server(
            [self.path], self.service.handlers(), pool=Pool(MOST_WATCHERS + 1, "health-test")
        )
        self.server.start()
        self.server.show(self.path)

    def inventory(self) -> Inventory:
        if self.error:
            raise self.error
        return Inventory(devices=(Device(name="gpu-0"), Device(name="gpu-1")), health=self.health)


@pytest.fixture
def watched(folder: Path) -> Iterator[Watched]:
    watched = Watched(folder)
    yield watched
    watched.service.close()
    assert watched.server.stop(60)


@pytest.fixture
def kubelet(watched: Watched) -> Iterator[Connection]:
    with Connection(watched.path) as connection:
        yield connection


def states(message) -> dict[str, tuple[int, str]]:
    return {each.device.device_name: (each.health, each.message) for each in message.devices}


HEALTHY = (health_v1_pb2.HEALTHY, "")


@pytest.mark.parametrize("service", SERVICES)
def test_every_message_has_all_devices_and_comes_at_once_and_when_something_changes(
    watched: Watched, kubelet: Connection, service: str
):
    with kubelet.watch(service) as stream:
        first = next(stream)
        assert states(first) == {"gpu-0": HEALTHY, "gpu-1": HEALTHY}
        assert {each.device.pool_name for each in first.devices} == {"node-1"}
        assert all(each.last_updated_time > 1_500_000_000 for each in first.devices)
        assert {each.health_check_timeout_seconds for each in first.devices} == {45}
        watched.health = {"gpu-1": XID, "gpu-0": Health(state="unknown", message="m" * 2000)}
        watched.service.changed()
        assert states(next(stream)) == {
            "gpu-0": (health_v1_pb2.UNKNOWN, "m" * 1024),
            "gpu-1": (health_v1_pb2.UNHEALTHY, "XID 79"),
        }


def test_a_message_that_no_kubelet_takes_is_cut_between_letters(watched: Watched, kubelet: Connection):
    watched.health = {"gpu-0": Health(message="ü" * 2000), "gpu-1": Health(message="\ud800")}
    with kubelet.watch() as stream:
        told = states(next(stream))
    assert told["gpu-0"] == (health_v1_pb2.HEALTHY, "ü" * 512)
    assert told["gpu-1"] == (health_v1_pb2.HEALTHY, "?")


def test_everything_is_told_again_before_the_kubelet_forgets_it(folder: Path):
    watched = Watched(folder, every=0.01)
    with Connection(watched.path) as kubelet, kubelet.watch() as stream:
        assert [states(next(stream)) for _ in range(3)] == [{"gpu-0": HEALTHY, "gpu-1": HEALTHY}] * 3
    watched.service.close()
    assert watched.server.stop(60)


def test_streams_end_when_the_plugin_stops(watched: Watched, kubelet: Connection):
    with kubelet.watch() as stream:
        next(stream)
        watched.service.close()
        assert watched.server.stop(60)
        with pytest.raises(StopIteration):
            next(stream)


def test_watchers_that_go_leave_no_thread_behind(watched: Watched):
    for _ in range(3 * MOST_WATCHERS):
        with Connection(watched.path) as kubelet, kubelet.watch() as stream:
            next(stream)
        watched.service.wait_until_unwatched(60)
        assert watched.service.watchers == 0
    threads = [each for each in threading.enumerate() if each.name.startswith("health-test")]
    assert len(threads) <= MOST_WATCHERS + 1


def test_more_watchers_than_a_node_has_are_refused(watched: Watched, kubelet: Connection):
    watching = [kubelet.watch() for _ in range(MOST_WATCHERS)]
    streams = [each.__enter__() for each in watching]
    for stream in streams:
        next(stream)
    with kubelet.watch() as stream, pytest.raises(grpc.RpcError) as caught:
        next(stream)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    for each in watching:
        each.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PluginError([Problem(path="NVML", code="device-held", message="does not answer")]), "device-held"),
        (ZeroDivisionError("x"), "plugin-failed"),
    ],
)
def test_where_devices_cannot_be_asked_nothing_is_told_and_it_goes_on_when_they_can(
    watched: Watched, kubelet: Connection, error: Exception, code: str
):
    with kubelet.watch() as stream:
        next(stream)
        watched.error = error
        watched.service.changed()
        while not watched.notes.problems:
            threading.Event().wait(0.005)
        assert watched.notes.problems[0].code == code
        watched.error = None
        watched.health = {"gpu-0": XID}
        watched.service.changed()
        assert states(next(stream))["gpu-0"] == (health_v1_pb2.UNHEALTHY, "XID 79")
