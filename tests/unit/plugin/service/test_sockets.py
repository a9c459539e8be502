from __future__ import annotations

import socket
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.service.serving import Pool, Server
from dra_infra.plugin.service.sockets import LONGEST, Registration, Sockets
from tests.support.plugin.kubelet import Connection
from tests.unit.plugin.faults import codes

UID = "0f3c2a5e-1b7d-4c39-9e51-7a2f4d6b8c10"
KUBELET = Path("/var/lib/kubelet")
LONG = "d" * 59 + ".com"


def names(root: Path, driver: str, uid: str = "") -> tuple[str, str]:
    sockets = Sockets(kubelet_root=root, driver=driver, pod_uid=uid)
    return sockets.service.name, sockets.registration.name


def test_one_instance_alone_has_names_that_the_next_takes_over():
    sockets = Sockets(kubelet_root=KUBELET, driver="gpu.example.com")
    assert str(sockets.service) == "/var/lib/kubelet/plugins/gpu.example.com/dra.sock"
    assert str(sockets.registration) == "/var/lib/kubelet/plugins_registry/gpu.example.com-reg.sock"


def test_paths_are_absolute_whatever_the_root_is():
    sockets = Sockets(kubelet_root=Path("kubelet"), driver="gpu.example.com")
    assert sockets.service == Path.cwd() / "kubelet" / "plugins" / "gpu.example.com" / "dra.sock"
    assert sockets.registration.is_absolute()


@pytest.mark.parametrize(
    ("driver", "registration"),
    [
        ("gpu.nvidia.com", f"gpu.nvidia.com-{UID}-reg.sock"),
        (
            "gpu.with-a-rather-long-name.example.com",
            "gpu.with-a-rather-long-name.example.com-xmWlrd9G_zU-reg.sock",
        ),
        (LONG, "dra-c4ar5Z91Mx_kOZ4Ft3OFbg-reg.sock"),
    ],
)
def test_in_a_rolling_update_registrations_have_the_names_of_kubernetes_helper_library(
    driver: str, registration: str
):
    # Names as RollingUpdateRegistrarSocketFile of k8s.io/dynamic-resource-allocation v0.37.1 answers them.
    assert names(KUBELET, driver, UID)[1] == registration


def test_in_a_rolling_update_two_instances_have_different_sockets_with_any_name_of_a_driver():
    for driver in ("gpu.nvidia.com", "gpu.with-a-rather-long-name.example.com", LONG):
        found = [Sockets(kubelet_root=KUBELET, driver=driver, pod_uid=uid) for uid in (UID, UID[::-1])]
        paths = {path for each in found for path in (each.service, each.registration)}
        assert len(paths) == 4
        assert all(len(bytes(path)) <= LONGEST for path in paths)
    assert names(KUBELET, "gpu.nvidia.com", UID)[0] == f"dra-{UID}.sock"


def test_the_longest_path_is_one_that_can_be_served_and_called(folder: Path):
    room = LONGEST - len(bytes(folder / "plugins_registry")) - len(f"/-{UID}-reg.sock")
    fits = Sockets(kubelet_root=folder, driver="d" * room, pod_uid=UID)
    longer = Sockets(kubelet_root=folder, driver="d" * (room + 1), pod_uid=UID)
    assert len(bytes(fits.registration)) == LONGEST
    assert fits.registration.name.endswith(f"-{UID}-reg.sock")
    assert UID not in longer.registration.name
    fits.registry.mkdir()
    registration = Registration(driver="gpu.example.com", endpoint=fits.service, observer=Observer())
    server = Server([fits.registration], registration.handlers(), pool=Pool(1, "test"))
    server.start()
    server.show(fits.registration)
    with Connection(fits.registration) as kubelet:
        assert kubelet.get_info().endpoint == str(fits.service)
    assert server.stop(60)


@pytest.mark.parametrize("uid", ["", UID])
def test_a_root_that_leaves_no_room_is_told_with_the_folder(uid: str):
    root = Path("/" + "r" * 90)
    sockets = Sockets(kubelet_root=root, driver="gpu.example.com", pod_uid=uid)
    for path, folder in (("service", "plugins/gpu.example.com"), ("registration", "plugins_registry")):
        with pytest.raises(PluginError) as caught:
            getattr(sockets, path)
        assert codes(caught.value) == ["socket-path-too-long"]
        assert caught.value.problems[0].path == str(root / folder)


@pytest.fixture
def kubelet_root(folder: Path) -> Path:
    for name in ("plugins", "plugins_registry"):
        (folder / name).mkdir()
    return folder


def leave(path: Path) -> Path:
    """A socket as a killed process leaves it."""
    path.parent.mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    return path


def test_sockets_of_killed_instances_are_taken_away_and_others_stay(kubelet_root: Path):
    plugins = kubelet_root / "plugins" / "gpu.example.com"
    registry = kubelet_root / "plugins_registry"
    plugins.mkdir()
    gone = [
        leave(plugins / f"dra-{UID}.sock"),
        leave(plugins / "dra.sock"),
        leave(plugins / ".0a1b2c"),
        leave(registry / f"gpu.example.com-{UID}-reg.sock"),
        leave(registry / "gpu.example.com-xmWlrd9G_zU-reg.sock"),
    ]
    stay = [
        leave(registry / f"gpu.nvidia.com-{UID}-reg.sock"),
        leave(registry / "gpu.example.com.other-reg.sock"),
        leave(plugins / "mps.sock"),
        plugins / "dra-notes.sock",
        registry / f"gpu.example.com-{UID[::-1]}-reg.sock",
    ]
    stay[-2].write_text("no socket")
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(stay[-1]))
        alive.listen()
        sockets = Sockets(
            kubelet_root=kubelet_root, driver="gpu.example.com", pod_uid=UID.replace("0f", "1f")
        )
        sockets.make_ready()
        assert [path for path in gone if path.exists()] == []
        assert [path for path in stay if not path.exists()] == []


def test_the_name_that_the_next_instance_takes_over_stays_until_it_does(kubelet_root: Path):
    sockets = Sockets(kubelet_root=kubelet_root, driver="gpu.example.com")
    left = [leave(sockets.service), leave(sockets.registration)]
    sockets.make_ready()
    assert all(path.exists() for path in left)


def test_the_folder_of_the_driver_is_made_for_our_user_alone(kubelet_root: Path):
    sockets = Sockets(kubelet_root=kubelet_root, driver="gpu.example.com")
    sockets.make_ready()
    sockets.make_ready()
    assert sockets.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("missing", ["plugins", "plugins_registry"])
def test_where_no_kubelet_has_its_folders_nothing_is_made(kubelet_root: Path, missing: str):
    (kubelet_root / missing).rmdir()
    with pytest.raises(PluginError) as caught:
        Sockets(kubelet_root=kubelet_root, driver="gpu.example.com").make_ready()
    assert codes(caught.value) == ["plugin-folder-not-usable"]
    assert missing in caught.value.problems[0].path
    assert not (kubelet_root / missing).exists()
