from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import grpc
import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.service.serving import Pool, Server
from dra_infra.plugin.service.sockets import Registration
from tests.support.plugin.kubelet import Connection
from tests.unit.plugin.faults import claim_of, codes
from tests.unit.plugin.service.served import Notes, Served, errors


def registration_server(path: Path, notes: Notes | None = None) -> tuple[Registration, Server]:
    registration = Registration(
        driver="gpu.example.com", endpoint=Path("here/dra.sock"), observer=notes or Notes()
    )
    return registration, Server([path], registration.handlers(), pool=Pool(2, "registration"))


def test_registration_says_who_where_and_in_which_versions_and_hears_the_answer(folder: Path):
    notes = Notes()
    registration, server = registration_server(folder / "reg.sock", notes)
    server.start()
    server.show(folder / "reg.sock")
    with Connection(folder / "reg.sock") as kubelet:
        info = kubelet.get_info()
        assert (info.type, info.name) == ("DRAPlugin", "gpu.example.com")
        assert info.endpoint == str(Path.cwd() / "here" / "dra.sock")
        assert list(info.supported_versions) == [
            "v1.DRAPlugin",
            "v1beta1.DRAPlugin",
            "v1.DRAResourceHealth",
            "v1alpha1.DRAResourceHealth",
        ]
        assert not registration.registered
        kubelet.notify(registered=True)
        assert registration.registered
        kubelet.notify(registered=False, error="none of services supported")
        assert not registration.registered
    assert notes.registrations == [(True, ""), (False, "none of services supported")]
    assert server.stop(60)


def test_a_socket_that_ctrl_c_comes_behind_is_taken_away_as_well(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    _, server = registration_server(folder / "reg.sock")
    server.start()
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> None:
        rename(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.show(folder / "reg.sock")
    monkeypatch.undo()
    assert (folder / "reg.sock").exists()
    assert server.stop(60)
    assert list(folder.iterdir()) == []


def test_a_socket_is_for_our_user_alone_and_is_taken_away_at_the_end(folder: Path):
    before = os.umask(0)
    try:
        _, server = registration_server(folder / "reg.sock")
        server.start()
        server.show(folder / "reg.sock")
    finally:
        os.umask(before)
    assert stat.S_IMODE((folder / "reg.sock").stat().st_mode) == 0o600
    assert [each.name for each in folder.iterdir()] == ["reg.sock"]
    assert server.intact(folder / "reg.sock")
    assert server.stop(60)
    assert not list(folder.iterdir())
    assert not server.intact(folder / "reg.sock")
    assert server.stop(60)


def test_a_hidden_socket_is_shown_again_and_one_that_was_taken_away_cannot_be_hidden(folder: Path):
    path = folder / "reg.sock"
    _, server = registration_server(path)
    server.start()
    server.show(path)
    assert not server.is_hidden(path)
    server.hide(path)
    assert server.is_hidden(path)
    assert not path.exists()
    server.show(path)
    with Connection(path) as kubelet:
        assert kubelet.get_info().name == "gpu.example.com"
    path.unlink()
    with pytest.raises(PluginError) as caught:
        server.hide(path)
    assert codes(caught.value) == ["socket-not-made"]
    assert not server.is_hidden(path)
    assert server.stop(60)


def test_a_socket_that_a_killed_instance_left_is_replaced_in_one_step(folder: Path):
    path = folder / "reg.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    _, server = registration_server(path)
    server.start()
    server.show(path)
    with Connection(path) as kubelet:
        assert kubelet.get_info().name == "gpu.example.com"
    assert server.stop(60)


def test_a_socket_is_seen_when_it_is_shown_and_goes_with_its_connections_kept(folder: Path):
    one = folder / "one.sock"
    two = folder / "two.sock"
    registration = Registration(driver="gpu.example.com", endpoint=one, observer=Notes())
    server = Server([one, two], registration.handlers(), pool=Pool(2, "registration"))
    server.start()
    assert not server.intact(one)
    assert not [each for each in folder.iterdir() if not each.name.startswith(".")]
    server.show(one)
    assert (one.exists(), two.exists()) == (True, False)
    server.show(two)
    assert len(list(folder.iterdir())) == 2
    with Connection(two) as kubelet, Connection(one) as other:
        kubelet.get_info()
        server.withdraw(two)
        assert (server.intact(one), server.intact(two)) == (True, False)
        assert kubelet.get_info() == other.get_info()
    assert server.stop(60)
    assert not list(folder.iterdir())


def test_an_instance_takes_away_its_own_socket_and_no_later_one(folder: Path):
    path = folder / "reg.sock"
    (_, old), (_, new) = registration_server(path), registration_server(path)
    for server in (old, new):
        server.start()
        server.show(path)
    assert (old.intact(path), new.intact(path)) == (False, True)
    assert old.stop(60)
    with Connection(path) as kubelet:
        assert kubelet.get_info().name == "gpu.example.com"
    path.unlink()
    assert not new.intact(path)
    assert new.stop(60)


def test_a_folder_that_is_not_there_is_told_and_nothing_runs(folder: Path, shared_threads: None):
    before = set(threading.enumerate())
    _, server = registration_server(folder / "none" / "reg.sock")
    with pytest.raises(PluginError) as caught:
        server.start()
    assert codes(caught.value) == ["socket-not-made"]
    assert caught.value.problems[0].path == str(folder / "none" / "reg.sock")
    assert not set(threading.enumerate()) - before
    (folder / "full").mkdir()
    (folder / "full" / "reg.sock").mkdir()
    _, server = registration_server(folder / "full" / "reg.sock")
    server.start()
    with pytest.raises(PluginError) as caught:
        server.show(folder / "full" / "reg.sock")
    assert codes(caught.value) == ["socket-not-made"]
    assert server.stop(60)
    assert [each.name for each in (folder / "full").iterdir()] == ["reg.sock"]


def test_a_path_with_letters_that_addresses_do_not_have_is_served(folder: Path):
    path = folder / "100% of #1?" / "dra socket"
    path.parent.mkdir()
    _, server = registration_server(path)
    server.start()
    server.show(path)
    with Connection(Path(quote(str(path)))) as kubelet:
        assert kubelet.get_info().name == "gpu.example.com"
    assert server.stop(60)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        PREFACE[:10],
        PREFACE,
        PREFACE + b"\0\0\0\4\0\0\0\0\0" + b"\xff\xff\xff\1\4\0\0\0\1" + b"\xff" * 4096,
        b"\0" * 1_000_000,
    ],
    ids=["nothing", "other protocol", "half a greeting", "greeting alone", "frame of 16 MiB cut", "zeros"],
)
def test_bytes_that_are_no_grpc_end_their_own_connection_and_no_other(folder: Path, sent: bytes):
    claim = claim_of(1, "gpu-0")
    with Served(folder, claim) as served, Connection(served.path) as kubelet:
        assert errors(kubelet.prepare(claim)) == [""]
        strangers = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for each in strangers:
            each.settimeout(60)
            each.connect(str(served.path))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                each.sendall(sent)
        assert errors(kubelet.prepare(claim)) == [""]
        with Connection(served.path) as another:
            assert errors(another.release(claim)) == [""]
        for each in strangers:
            each.close()
        assert served.node.check() == frozenset()


def held_up(served: Served) -> tuple[threading.Event, threading.Event]:
    """Have calls wait where they read the claim: what tells that one does, and what lets it go on."""
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert go_on.wait(60)

    served.api.before = wait
    return begun, go_on


def test_stopping_waits_for_calls_in_flight_and_takes_no_new_ones(folder: Path):
    claim = claim_of(1, "gpu-0")
    served = Served(folder, claim)
    begun, go_on = held_up(served)
    with Connection(served.path) as kubelet, Connection(served.path) as other, ThreadPoolExecutor(2) as pool:
        answer = pool.submit(kubelet.prepare, claim)
        assert begun.wait(60)
        stopped = pool.submit(served.server.stop, 60)
        while served.path.exists():
            threading.Event().wait(0.005)
        with pytest.raises(grpc.RpcError) as caught:
            other.prepare(claim)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        go_on.set()
        assert errors(answer.result(60)) == [""]
        assert stopped.result(60)


def test_stopping_waits_for_a_call_whose_caller_went(folder: Path):
    claim = claim_of(1, "gpu-0")
    served = Served(folder, claim)
    begun, go_on = held_up(served)
    with Connection(served.path) as kubelet, ThreadPoolExecutor(2) as pool:
        answer = pool.submit(kubelet.prepare, claim)
        assert begun.wait(60)
        kubelet.channel.close()
        with pytest.raises(grpc.RpcError):
            answer.result(60)
        # It is not known to grpc any more, and has the claim half-way.
        stopped = pool.submit(served.server.stop, 60)
        with pytest.raises(TimeoutError):
            stopped.result(1)
        go_on.set()
        assert stopped.result(60)


def test_a_call_that_never_ends_does_not_keep_the_plugin_from_stopping(folder: Path):
    claim = claim_of(1, "gpu-0")
    served = Served(folder, claim)
    begun, go_on = held_up(served)
    with Connection(served.path) as kubelet, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(kubelet.prepare, claim)
        assert begun.wait(60)
        assert not served.server.stop(0.05)
        with pytest.raises(grpc.RpcError) as caught:
            answer.result(60)
        assert caught.value.code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
        go_on.set()
