"""Two instances of ours may be alive in a rolling update; a driver of somebody else's may not."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.command import instance
from dra_infra.plugin.command.instance import InstanceLock, Instances, Paths, refuse_others
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.service.serving import Pool, Server
from dra_infra.plugin.service.sockets import Registration, Sockets
from tests.unit.plugin.faults import codes

DRIVER = "gpu.example.com"
UID = "00000001-0000-4000-8000-0000000000ab"


@pytest.fixture
def root(folder: Path) -> Path:
    (folder / "plugins_registry").mkdir()
    return folder


def code_of(work: Callable[[], object]) -> str:
    with pytest.raises(PluginError) as raised:
        work()
    (problem,) = raised.value.problems
    return problem.code


@pytest.fixture
def registered(root: Path) -> Iterator[Callable[[str, str], None]]:
    running = []

    def register(name: str, driver: str) -> None:
        handlers = Registration(driver=driver, endpoint=root / "x", observer=Observer()).handlers()
        path = root / "plugins_registry" / name
        server = Server([path], handlers, pool=Pool(1, "other"))
        server.start()
        server.show(path)
        running.append(server)

    yield register
    for each in running:
        each.stop(0)


def test_the_first_instance_finds_no_other_and_the_second_does(folder: Path):
    first, second = InstanceLock(folder), InstanceLock(folder)
    assert [first.acquire(), second.acquire()] == [False, True]


def test_an_instance_that_ended_is_no_other(folder: Path):
    first = InstanceLock(folder)
    first.acquire()
    first.release()
    assert not InstanceLock(folder).acquire()


def test_an_instance_that_was_killed_is_no_other(folder: Path):
    program = (
        "import sys, os, signal, pathlib; from dra_infra.plugin.command.instance import InstanceLock\n"
        "InstanceLock(pathlib.Path(sys.argv[1])).acquire(); print(flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program, folder], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        other = InstanceLock(folder)
        assert other.acquire()
        other.release()
        process.kill()
    assert not InstanceLock(folder).acquire()


def test_a_third_instance_finds_the_others_after_the_first_went(folder: Path):
    first, second, third = (InstanceLock(folder) for _ in range(3))
    first.acquire()
    second.acquire()
    first.release()
    assert third.acquire()


def test_a_folder_that_cannot_be_used_is_told(folder: Path):
    (folder / "instances").symlink_to("elsewhere")
    assert code_of(InstanceLock(folder).acquire) == "plugin-folder-not-usable"


def test_a_second_instance_without_a_pod_is_refused(root: Path):
    sockets = Sockets(kubelet_root=root, driver=DRIVER)
    assert code_of(lambda: refuse_others(sockets, ours_alive=True)) == "plugin-already-running"


def test_a_second_instance_of_a_rolling_update_is_not(root: Path, registered: Callable[[str, str], None]):
    registered(f"{DRIVER}-0-reg.sock", DRIVER)
    refuse_others(Sockets(kubelet_root=root, driver=DRIVER, pod_uid=UID), ours_alive=True)


@pytest.mark.parametrize("uid", ["", UID])
def test_a_driver_of_somebody_else_with_our_name_is_refused(
    root: Path, registered: Callable[[str, str], None], uid: str, monkeypatch: pytest.MonkeyPatch
):
    # Who does not answer counts as nobody, and a busy machine may take its time.
    monkeypatch.setattr(instance, "_SECONDS", 60.0)
    registered("as-they-like-it", DRIVER)
    sockets = Sockets(kubelet_root=root, driver=DRIVER, pod_uid=uid)
    assert code_of(lambda: refuse_others(sockets, ours_alive=False)) == "driver-name-taken"


def test_other_drivers_and_sockets_that_nobody_serves_are_no_hindrance(
    root: Path, registered: Callable[[str, str], None]
):
    registered("gpu.example.org-reg.sock", "gpu.example.org")
    (root / "plugins_registry" / "a-file").touch()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(root / "plugins_registry" / f"{DRIVER}-reg.sock"))
    refuse_others(Sockets(kubelet_root=root, driver=DRIVER), ours_alive=False)


def test_a_link_in_the_place_of_the_folder_of_records_is_refused_and_one_to_the_plugins_folder_is_not(
    folder: Path,
):
    (elsewhere := folder / "elsewhere").mkdir()
    (state := folder / "state").symlink_to(elsewhere)
    sockets = Sockets(kubelet_root=folder, driver=DRIVER)
    paths = Paths(state=state, cdi=folder / "cdi", sockets=sockets, commands=folder / "commands")
    paths.make_ready()
    assert (elsewhere / "claims").is_dir()
    (elsewhere / "claims").rmdir()
    (outside := folder / "outside").mkdir()
    (elsewhere / "claims").symlink_to(outside)
    with pytest.raises(PluginError, match="is a link") as caught:
        paths.make_ready()
    assert codes(caught.value) == ["plugin-folder-not-usable"]


def paths_of(root: Path, state: str = "") -> Paths:
    (root / "plugins").mkdir(exist_ok=True)
    sockets = Sockets(kubelet_root=root, driver=DRIVER)
    folder = root / state if state else sockets.folder
    paths = Paths(state=folder, cdi=root / "cdi", sockets=sockets, commands=root / "commands")
    paths.make_ready()
    return paths


@pytest.mark.parametrize(("first", "second"), [("one", "two"), ("one", ""), ("", "one")])
def test_an_instance_with_another_state_folder_is_refused_before_either_is_registered(
    root: Path, first: str, second: str
):
    running, other = Instances(paths_of(root, first)), Instances(paths_of(root, second))
    assert not running.acquire()
    assert code_of(other.acquire) == "plugin-already-running"
    other.release()
    running.release()
    assert not Instances(paths_of(root, second)).acquire()


@pytest.mark.parametrize("state", ["", "one"])
def test_instances_with_one_state_folder_find_each_other(root: Path, state: str):
    running, other = Instances(paths_of(root, state)), Instances(paths_of(root, state))
    assert [running.acquire(), other.acquire()] == [False, True]
