from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_end import Health
from dra_infra.plugin.claims import Claim
from tests.support.plugin.kubelet import Connection, Kubelet
from tests.unit.plugin.faults import claim_of, codes, uid_of
from tests.unit.plugin.service.served import errors
from tests.unit.plugin.small_driver import Instance, Lamps

OLD, NEW = (f"{digit * 8}-1b7d-4c39-9e51-7a2f4d6b8c10" for digit in "12")


@pytest.fixture
def kubelet(folder: Path) -> Iterator[Kubelet]:
    kubelet = Kubelet(folder)
    yield kubelet
    kubelet.close()


def lamp(number: int) -> Claim:
    return claim_of(number, f"lamp-{number}")


def test_the_service_comes_first_then_the_slices_then_the_registration_and_all_goes_in_the_opposite_order(
    kubelet: Kubelet,
):
    instance = Instance(kubelet.root)
    instance.driver.start()
    assert instance.driver.intact
    assert not instance.driver.registered
    kubelet.look()
    assert instance.driver.registered
    instance.driver.stop()
    assert instance.publisher.seen == [(True, False), (True, False)]
    assert not instance.sockets.service.exists()
    assert not instance.driver.registered
    assert instance.lamps.closed
    instance.driver.stop()
    assert len(instance.publisher.seen) == 2


def test_a_registered_driver_prepares_releases_and_tells_health(kubelet: Kubelet):
    instance = Instance(kubelet.root)
    instance.api.claims = {uid_of(0): lamp(0)}
    instance.driver.start()
    kubelet.look()
    assert errors(kubelet.call(lambda plugin: plugin.prepare(lamp(0)))) == [""]
    assert instance.lamps.lit == {"lamp-0"}
    with Connection(instance.sockets.service) as plugin, plugin.watch() as stream:
        assert [each.message for each in next(stream).devices] == ["", ""]
        instance.lamps.health = {"lamp-1": Health(state="unhealthy", message="flickers")}
        for changed in instance.lamps.listeners:
            changed()
        assert [each.message for each in next(stream).devices] == ["", "flickers"]
    assert errors(kubelet.call(lambda plugin: plugin.release(lamp(0)))) == [""]
    assert instance.lamps.lit == set()
    instance.driver.stop()


def test_what_cannot_start_leaves_nothing_running(kubelet: Kubelet, shared_threads: None):
    before = set(threading.enumerate())
    instance = Instance(kubelet.root)
    instance.publisher.error = PluginError([Problem(path="the API server", code="device-held", message="no")])
    with pytest.raises(PluginError) as caught:
        instance.driver.start()
    assert codes(caught.value) == ["device-held"]
    assert not list(kubelet.registry.iterdir())
    assert not instance.sockets.service.exists()
    assert instance.lamps.closed
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_what_recovery_finds_is_told(kubelet: Kubelet):
    (kubelet.root / "claims").mkdir()
    (kubelet.root / "claims" / f"{uid_of(7)}.json").write_text("{")
    instance = Instance(kubelet.root)
    instance.driver.start()
    assert [each.code for each in instance.notes.problems] == ["checkpoint-unreadable"]
    instance.driver.stop()


def test_a_socket_that_was_taken_away_is_noticed(kubelet: Kubelet):
    instance = Instance(kubelet.root)
    instance.driver.start()
    kubelet.look()
    instance.sockets.registration.unlink()
    assert not instance.driver.intact
    assert not instance.driver.registered
    instance.driver.stop()


def test_a_driver_is_not_registered_while_its_name_is_taken_and_lives(kubelet: Kubelet):
    instance = Instance(kubelet.root)
    instance.driver.start()
    kubelet.look()
    assert instance.driver.registered
    for _ in range(2):
        for _ in range(2):
            instance.publisher.on_name_taken(True)
        kubelet.look()
        assert not kubelet.plugins
        assert instance.driver.is_aside
        assert instance.driver.intact
        assert not instance.driver.registered
        for _ in range(2):
            instance.publisher.on_name_taken(False)
        kubelet.look()
        assert instance.driver.registered
        assert instance.driver.intact
        assert not instance.driver.is_aside
    assert errors(kubelet.call(lambda plugin: plugin.release(lamp(0)))) == [""]
    instance.driver.stop()
    assert not list(kubelet.registry.iterdir())


def test_a_driver_whose_name_is_taken_at_the_start_registers_when_it_is_free(kubelet: Kubelet):
    instance = Instance(kubelet.root)
    instance.publisher.is_taken = True
    instance.driver.start()
    assert not instance.sockets.registration.exists()
    assert instance.driver.intact
    instance.publisher.on_name_taken(False)
    kubelet.look()
    assert instance.driver.registered
    instance.driver.stop()


def test_a_driver_that_could_not_be_registered_again_is_not_taken_for_alive(kubelet: Kubelet):
    instance = Instance(kubelet.root)
    instance.publisher.is_taken = True
    instance.driver.start()
    for hidden in kubelet.registry.iterdir():
        hidden.unlink()
    assert not instance.driver.intact
    with pytest.raises(PluginError):
        instance.publisher.on_name_taken(False)
    instance.driver.stop()


def test_a_driver_that_ends_while_its_name_is_taken_leaves_nothing_and_is_not_registered_again(
    kubelet: Kubelet,
):
    instance = Instance(kubelet.root)
    instance.publisher.is_taken = True
    instance.driver.start()
    instance.driver.stop()
    instance.publisher.on_name_taken(False)
    assert not list(kubelet.registry.iterdir())


def test_after_a_kill_the_next_instance_takes_over_what_is_prepared(kubelet: Kubelet):
    killed = Instance(kubelet.root)
    killed.api.claims = {uid_of(0): lamp(0)}
    killed.driver.start()
    kubelet.look()
    before = kubelet.call(lambda plugin: plugin.prepare(lamp(0)))
    # Its sockets stay, as those of a process that was killed.
    following = Instance(kubelet.root, lamps=killed.lamps)
    following.api.claims = killed.api.claims
    following.driver.start()
    kubelet.close()
    kubelet.plugins.clear()
    kubelet.look()
    assert kubelet.call(lambda plugin: plugin.prepare(lamp(0))) == before
    assert errors(kubelet.call(lambda plugin: plugin.release(lamp(0)))) == [""]
    assert killed.lamps.lit == set()
    killed.driver.stop()
    assert following.driver.intact
    following.driver.stop()


def test_in_a_rolling_update_no_call_is_refused_and_both_instances_know_what_is_prepared(kubelet: Kubelet):
    lamps = Lamps()
    claims = {uid_of(0): lamp(0), uid_of(1): lamp(1)}
    old = Instance(kubelet.root, pod_uid=OLD, lamps=lamps, linger=120)
    new = Instance(kubelet.root, pod_uid=NEW, lamps=lamps)
    old.api.claims = new.api.claims = claims
    old.driver.start()
    kubelet.look()
    done = threading.Event()
    failed = []
    calls = 0

    def work() -> None:
        nonlocal calls
        while not done.is_set():
            for ask in (lambda plugin: plugin.prepare(lamp(0)), lambda plugin: plugin.release(lamp(0))):
                try:
                    failed.extend(text for text in errors(kubelet.call(ask)) if text)
                except grpc.RpcError as error:
                    failed.append(str(error))
                calls += 1

    pods = threading.Thread(target=work)
    pods.start()
    kubelet.call(lambda plugin: plugin.prepare(lamp(1)))
    # The health stream is the kubelet's: it ends when it has noticed that the registration went.
    with kubelet.call(lambda plugin: plugin).watch() as stream:
        next(stream)
        new.driver.start()
        kubelet.look()
        assert new.driver.registered
        assert old.driver.registered
        stopping = threading.Thread(target=old.driver.stop)
        stopping.start()
        while old.sockets.registration.exists():
            threading.Event().wait(0.005)
        assert stopping.is_alive()
        assert old.sockets.service.exists()
        with Connection(old.sockets.service) as late:
            assert errors(late.prepare(lamp(1))) == [""]
        kubelet.look()
    stopping.join(60)
    assert not stopping.is_alive()
    assert len(kubelet.plugins) == 1
    reached = calls
    while calls < reached + 20:
        threading.Event().wait(0.005)
    done.set()
    pods.join(60)
    assert not failed
    assert new.preparations.prepared().keys() == {uid_of(1)}
    assert errors(kubelet.call(lambda plugin: plugin.release(lamp(1)))) == [""]
    assert lamps.lit == set()
    new.driver.stop()
