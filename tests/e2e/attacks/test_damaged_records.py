"""What somebody who can write into the plugin's folders, or a disk that fails, puts in the place of its files.

The plugin runs as in its pod: as root without a single capability, so that the modes of files count for it too.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest

from dra_infra.plugin.claims import Claim, is_uid
from dra_infra.specs.node_plugin.daemon_set import _RESOURCES
from tests.e2e.attacks.conftest import Loot
from tests.support.plugin.whole_plugin import PROGRAM, Machine, machine_in, wait_until

pytestmark = pytest.mark.e2e

DRIVER, FLEET = "gpu.nvidia.com", "a100-80gb mig=1g.10gb*7"
MEMORY: Final = int(_RESOURCES["limits"]["memory"].removesuffix("Mi"))
SECRET = "what-the-folder-beside-has"
WITHOUT_CAPABILITIES = f"""
import os, sys
words = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", sys.executable, *{PROGRAM!r}, *sys.argv[1:]]
os.execvp(words[0], words)
"""


def a_folder(path: Path) -> None:
    path.mkdir()


def a_full_folder(path: Path) -> None:
    (path / "deeper").mkdir(parents=True)
    (path / "deeper" / path.name).write_text(SECRET)


def a_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target.format(outside=path.parents[2] / "outside", itself=path))


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        # By its name alone: the whole path is too long for an address.
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(path.name)
    finally:
        os.chdir(here)


def an_unreadable_file(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0)


def a_huge_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def content(written: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(written) and None


def nested(depth: int) -> bytes:
    return b'{"format": 1, "checksum": "", "record": ' + b"[" * depth + b"]" * depth + b"}"


ODD: Final[Mapping[str, Callable[[Path], None]]] = MappingProxyType(
    {
        "a folder": a_folder,
        "a full folder": a_full_folder,
        "a link to a file": a_link_to("{outside}/secret"),
        "a link to a folder": a_link_to("{outside}"),
        "a link to a device": a_link_to("/dev/zero"),
        "a link to nothing": a_link_to("{outside}/none"),
        "a link to itself": a_link_to("{itself}"),
        "a pipe": os.mkfifo,
        "a socket": a_socket,
        "a file of no mode": an_unreadable_file,
        "a file of a terabyte": a_huge_file,
        "a file of a million parts": content(
            b'{"format": 1, "checksum": "", "record": [' + b'{"":0},' * 1_190_000 + b"0]}"
        ),
        "an empty file": content(b""),
        "zeros": content(b"\0" * 5000),
        "invalid UTF-8": content(b'{"format": 1, "record": "\xff\xfe"}'),
        "half a letter": content(b'{"format": 1, "checksum": "\\ud800", "record": {}}'),
        "no numbers": content(b'{"format": NaN}'),
        "a long number": content(b'{"format": ' + b"9" * 5000 + b"}"),
        "a newer format": content(b'{"format": 4000000000, "checksum": "", "record": {}}'),
        "a list": content(b"[1]"),
        **{f"{depth} deep": content(nested(depth)) for depth in (300, 900, 970, 990, 100_000)},
    }
)


@pytest.fixture
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, machine_in(Path(folder), DRIVER) as found:
        (outside := found.state / "outside").mkdir(parents=True)
        (outside / "secret").write_text(SECRET)
        found.back_end = ("--back-end", "sim", "--fleet", FLEET)
        yield found


def peak(pid: int) -> int:
    """The most MiB of memory that a process had."""
    (line,) = [
        each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM:")
    ]
    return int(line.split()[1]) // 1024


def start(machine: Machine) -> Any:
    return machine.start_and_register(program=("-c", WITHOUT_CAPABILITIES))


def devices(machine: Machine) -> list[str]:
    slices = machine.server.store.list("resourceslices")
    return sorted(each["name"] for item in slices for each in item["spec"].get("devices", ()))


def replaced(path: Path, odd: Callable[[Path], None]) -> None:
    path.unlink(missing_ok=True)
    odd(path)


def in_place_of(machine: Machine, claim: Claim, which: str) -> tuple[Path, ...]:
    """The files of a claim that are damaged."""
    files = machine.state / "claims"
    spec = machine.cdi / f"k8s.{DRIVER}-claim_{claim.uid}.json"
    record = files / f"{claim.uid}.json"
    started = files / f"{claim.uid}.started"
    return {
        "the record": (record,),
        "the first file": (started,),
        "both files": (record, started),
        "the spec": (spec,),
        "the record and the spec": (record, spec),
        "every file": (record, started, spec),
        "what was set aside": (record, files / f"{claim.uid}.unreadable"),
        "a file half written": (
            files / f".{record.name}.00000000.tmp",
            machine.cdi / f".{spec.name}.00000000.tmp",
        ),
    }[which]


WHICH = (
    "the record",
    "the first file",
    "both files",
    "the spec",
    "the record and the spec",
    "every file",
    "what was set aside",
    "a file half written",
)
COMPARED = "compared with the claims of the API server"


@pytest.mark.parametrize("which", WHICH)
def test_a_damaged_file_costs_no_other_claim_anything(machine: Machine, loot: Loot, which: str):
    running = start(machine)
    wait_until(lambda: len(devices(machine)) == 56)
    free = iter(devices(machine))
    healthy = machine.allocate(1, next(free))
    claims = {name: machine.allocate(number, next(free)) for number, name in enumerate(ODD, 2)}
    before = {claim.uid: machine.prepare(claim) for claim in (healthy, *claims.values())}
    assert [answer.error for answer in before.values()] == [""] * len(before)
    wait_until(lambda: machine.told(COMPARED))
    machine.kill(running)
    for name, claim in claims.items():
        for path in in_place_of(machine, claim, which):
            replaced(path, ODD[name])
    for name in (b"\xff.json", b"notes.json", b"..json", b"0000.started"):
        (machine.state / "claims" / os.fsdecode(name)).mkdir()

    try:
        running = start(machine)
    except AssertionError as error:
        loot.add(f"a plugin that does not start: {str(error)[-300:]}")
        return
    # A claim of which no file is left is one that the API server knows, and gets new ids.
    wait_until(lambda: sum(each["message"] == COMPARED for each in machine.lines()) == 2)
    loot.add_if(
        machine.prepare(healthy) != before[healthy.uid],
        f"another claim's answer: {machine.prepare(healthy).error}",
    )
    another = machine.allocate(99, next(free))
    loot.add_if(machine.prepare(another).error, f"another claim's device: {machine.prepare(another).error}")
    for name, claim in claims.items():
        answer = machine.prepare(claim)
        same = which == "every file" or answer == before[claim.uid]
        loot.add_if(answer.error or not same, f"the claim of {name}: {answer.error or 'other ids'}")
        loot.add_if(said := machine.release(claim), f"the release of {name}: {said}")
    for claim in (healthy, another):
        loot.add_if(said := machine.release(claim), f"another claim's release: {said}")
    left = {each for files in machine.prepared() for each in files if is_uid(each)}
    loot.add_if(left, f"files of claims that were released: {left}")
    loot.add_if(running.poll() is not None, "the plugin's life")
    # As much as its container may have: who is killed for more starts again, and reads the same files.
    loot.add_if((most := peak(running.pid)) > MEMORY, f"{most} MiB of memory")
    (outside,) = (machine.state / "outside").iterdir()
    loot.add_if(outside.read_text() != SECRET, "the file that a link pointed at")
    loot.add_secrets("the log", machine.log.read_text(), SECRET)
    specs = [json.loads(file.read_text()) for file in machine.cdi.glob("*.json") if file.is_file()]
    loot.add_secrets("a CDI spec", json.dumps(specs), SECRET)


def test_a_folder_of_records_that_is_a_link_is_not_followed(machine: Machine, loot: Loot):
    elsewhere = machine.state / "outside" / "claims"
    elsewhere.mkdir()
    (machine.state / "claims").symlink_to(elsewhere)
    running = machine.start(program=("-c", WITHOUT_CAPABILITIES))
    wait_until(lambda: running.poll() is not None or bool(list(machine.kubelet.registry.iterdir())))
    loot.add_if(running.poll() is None, "a plugin whose records are read and written elsewhere")
    said = machine.log.read_text()
    loot.add_if("plugin-folder-not-usable" not in said, f"an end without a reason: {said[-300:]}")
    loot.add_if(list(elsewhere.iterdir()), "files in the folder that the link points at")
