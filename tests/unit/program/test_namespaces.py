from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.program import namespaces

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")

ENTER = """
import ctypes, json, os, sys
from pathlib import Path
from dra_infra.program import namespaces
home, network = Path(sys.argv[1]), sys.argv[2] == "network"
user, group = os.geteuid(), os.getegid()
if not namespaces.start_processes():
    print("{}")
    sys.exit()
if os.fork() == 0:
    held = namespaces.enter(home=home, network=network, processes=True)
    (home / "file").touch()
    limits = os.statvfs(home)
    print(json.dumps({
        "held": sorted(held),
        "process": os.getpid(),
        "same user": [user, group] == [os.geteuid(), os.getegid()],
        "bytes": limits.f_blocks * limits.f_frsize,
        "files": limits.f_files,
        "processes": [each for each in os.listdir("/proc") if each.isdigit()],
        "process limit": Path("/proc/sys/kernel/pid_max").read_text().strip(),
        "network": os.readlink("/proc/self/ns/net"),
        "ipc": os.readlink("/proc/self/ns/ipc"),
    }), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.fixture
def entered(tmp_path: Path):
    """Has a process enter the namespaces, and returns what it finds there."""

    def enter(network: str = "") -> dict[str, object]:
        home = tmp_path / "home"
        home.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", ENTER, str(home), network], capture_output=True, text=True, check=True
        )
        if not (found := json.loads(done.stdout)):
            pytest.skip("this system gives no PID namespace")
        return found

    return enter


def test_a_process_is_the_first_one_and_sees_no_other(entered):
    found = entered()
    assert (found["process"], found["same user"], found["processes"]) == (1, True, ["1"])


def test_a_home_has_a_size_and_leaves_nothing(entered, tmp_path: Path):
    before = Path("/proc/self/mounts").read_text()
    found = entered()
    assert namespaces.HOME in found["held"]
    assert (found["bytes"], found["files"]) == (namespaces.MOST_BYTES, namespaces.MOST_FILES)
    assert list((tmp_path / "home").iterdir()) == []
    assert Path("/proc/self/mounts").read_text() == before


def test_a_limit_of_processes_is_not_that_of_the_machine(entered):
    before = Path("/proc/sys/kernel/pid_max").read_text()
    found = entered()
    if namespaces.PROCESS_LIMIT not in found["held"]:
        pytest.skip("Linux has this limit from 6.14 on")
    assert namespaces.MOST_PROCESSES < int(found["process limit"]) < 2 * namespaces.MOST_PROCESSES
    assert Path("/proc/sys/kernel/pid_max").read_text() == before


@pytest.mark.parametrize("network", ["", "network"])
def test_a_network_is_kept_only_where_it_is_allowed(entered, network: str):
    found = entered(network)
    assert (found["network"] == str(Path("/proc/self/ns/net").readlink())) == bool(network)
    assert found["ipc"] != str(Path("/proc/self/ns/ipc").readlink())


def test_a_system_that_refuses_namespaces_is_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(namespaces, "_unshare", lambda _: False)
    assert not namespaces.start_processes()
    assert namespaces.enter(home=tmp_path, network=False, processes=False) == frozenset()


def test_a_user_namespace_without_rights_is_not_entered(monkeypatch: pytest.MonkeyPatch):
    # Ubuntu makes one, and takes the rights in it away.
    entered = []
    monkeypatch.setattr(namespaces, "_unshare", lambda flags: flags == namespaces._NEW_USER)
    monkeypatch.setattr(namespaces, "_enter_user_namespace", lambda: entered.append(os.getpid()) or True)
    assert not namespaces.start_processes()
    assert entered == []


@pytest.mark.parametrize(
    ("release", "is_new"), [("6.14.0-rc1", True), ("6.13.9", False), ("4.4.0", False), ("7.0", True)]
)
def test_an_older_kernel_keeps_the_limit_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, release: str, is_new: bool
):
    written = []
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "n", release, "v", "x86_64")))
    monkeypatch.setattr(Path, "write_text", lambda _, text: written.append(text))
    assert namespaces._limit_processes() == is_new
    assert bool(written) == is_new
