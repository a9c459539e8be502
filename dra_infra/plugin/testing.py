"""Tests of a back end of your own: prepare and release as the plugin does them, with a crash at each step.

Neither a kubelet nor an API server is needed. One test is enough:

    def test_a_crash_at_any_step_is_recovered_from(tmp_path):
        check_back_end(SerialPorts, tmp_path)
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn

from dra_infra.plugin.back_end import BackEnd
from dra_infra.plugin.cdi import CdiFolder
from dra_infra.plugin.checkpoint import Checkpoint
from dra_infra.plugin.claims import Claim, ClaimDevice, Edits
from dra_infra.plugin.disk import Disk, Folder
from dra_infra.plugin.inventories import find_refused_names
from dra_infra.plugin.locks import PreparationLock
from dra_infra.plugin.preparations import Preparations

_POOL: Final = "node-1"
_MOST_STEPS: Final = 1000
"""Steps of one call; a call of the plugin has about 15."""


class Killed(BaseException):
    """The process is gone: nothing of it runs on, no handler either."""


class Faults:
    """Counts the steps of a call down; at zero something happens, once.

    Attributes:
        last: The last step that was begun, in words.
    """

    def __init__(self) -> None:
        self.left: int | None = None
        self.what = "kill"
        self.is_dead = False
        self.last = ""

    def arm(self, left: int | None, what: str = "kill") -> None:
        """Let something happen behind so many steps: `kill`, `full` or `read-only`; None lets nothing happen."""
        self.left = left
        self.what = what
        self.is_dead = False

    def step(self, name: str = "") -> None:
        """Begin a step.

        Raises:
            Killed: When the process is to end here.
            OSError: When the disk is to refuse here.
        """
        if self.is_dead:
            raise AssertionError("a process that was killed took another step")
        self.last = name
        if self.left is None:
            return
        if self.left:
            self.left -= 1
            return
        self.left = None
        if self.what == "kill":
            self.is_dead = True
            raise Killed
        if self.what == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
        raise OSError(errno.EROFS, "Read-only file system")


class FaultyDisk(Disk):
    """A file system on which every change is a step, and writing is two. It syncs nothing: a killed process loses nothing by that."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    def write_new(self, path: Path, content: bytes, mode: int) -> None:
        """Write a file in two halves."""
        self.faults.step(f"writing {path.name}")
        path.touch(mode, exist_ok=False)
        path.write_bytes(content[: len(content) // 2])
        self.faults.step(f"writing the second half of {path.name}")
        path.write_bytes(content)

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file."""
        self.faults.step(f"renaming {old.name} to {new.name}")
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        self.faults.step(f"removing {path.name}")
        super().remove(path)

    def settle(self, path: Path) -> None:
        """Sync nothing."""
        self.faults.step(f"syncing {path.name}")


class _StoppedDevices:
    """A back end with a step before and behind each call."""

    def __init__(self, back_end: BackEnd, faults: Faults) -> None:
        self._back_end = back_end
        self._faults = faults

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        self._faults.step("prepare of the back end begins")
        edits = self._back_end.prepare(claim)
        self._faults.step("prepare of the back end has ended")
        return edits

    def release(self, claim: Claim) -> None:
        self._faults.step("release of the back end begins")
        self._back_end.release(claim)
        self._faults.step("release of the back end has ended")


class PluginNode:
    """A node on which the plugin with a back end of your own starts, is killed and starts again.

    Args:
        make: Makes the back end, once for each process; usually its class.
        folder: Where the plugin keeps its files; has to be empty.
    """

    def __init__(self, make: Callable[[], BackEnd], folder: Path) -> None:
        self._make = make
        self._folder = folder
        self.cdi = folder / "cdi"
        for each in (folder / "claims", self.cdi):
            each.mkdir(parents=True)
        self.faults = Faults()
        self.restart()

    def restart(self) -> None:
        """Start a new process with a new back end, which recovers what the last one left.

        Raises:
            AssertionError: When something cannot be recovered.
        """
        self.faults.arm(None)
        self.back_end = self._make()
        driver = self.back_end.driver
        disk = FaultyDisk(self.faults)
        claims = self._folder / "claims"
        self.plugin = Preparations(
            driver=driver,
            boot_id="boot-1",
            checkpoint=Checkpoint(Folder(claims, disk)),
            specs=CdiFolder(Folder(self.cdi, disk, mode=0o644), driver),
            back_end=_StoppedDevices(self.back_end, self.faults),
            lock=PreparationLock(claims / "lock"),
        )
        if problems := self.plugin.recover():
            raise AssertionError(f"not recovered: {'; '.join(map(str, problems))}")

    def prepare(self, claim: Claim) -> list[dict[str, Any]]:
        """Prepare a claim, and return what containers get: the devices of its CDI spec."""
        ids = self.plugin.prepare(claim)
        names = {each.rpartition("=")[2] for each in ids}
        specs = [json.loads(each.read_text()) for each in sorted(self.cdi.glob("*.json"))]
        devices = [each for spec in specs for each in spec["devices"] if each["name"] in names]
        return [each["containerEdits"] for each in devices]

    def kill_at(self, step: int, call: Callable[[], object]) -> bool:
        """Make a call, and kill the process at one of its steps; returns whether the call has so many."""
        self.faults.arm(step)
        try:
            call()
        except Killed:
            return True
        finally:
            self.faults.left = None
        return False


def claim_of(number: int, *devices: str) -> Claim:
    """Return an allocated claim of the devices with these names."""
    return Claim(
        uid=f"{number:08x}-0000-4000-8000-0000000000ab",
        namespace="default",
        name=f"claim-{number}",
        devices=tuple(ClaimDevice(pool=_POOL, device=each, request="device") for each in devices),
    )


def check_back_end(
    make: Callable[[], BackEnd], folder: Path, *, state: Callable[[], object] = lambda: None
) -> None:
    """Check that a back end keeps what is expected of it, whenever the plugin is killed.

    Its inventory must have a device, better two. Each call of the plugin is repeated with a kill at each of its steps.
    Then a new process with a new back end starts, and all has to be as if nothing had happened.

    Args:
        make: Makes the back end, once for each process; usually its class.
        folder: An empty folder for files of the plugin.
        state: Reads the state of the hardware, such as the modes of devices. It has to be the same when all claims are released.

    Raises:
        AssertionError: With the step at which the plugin was killed, and what was wrong after that.
    """
    first = make()
    try:
        _Check(make, folder, state).run([each.name for each in _read_inventory(first)])
    finally:
        first.close()


def _read_inventory(back_end: BackEnd) -> Sequence[Any]:
    inventory = back_end.inventory()
    if problems := [*find_refused_names(inventory)]:
        raise AssertionError("\n".join(map(str, problems)))
    if not inventory.devices:
        raise AssertionError("inventory() has no device: give the back end one to prepare, simulated or real")
    return inventory.devices


class _Check:
    def __init__(self, make: Callable[[], BackEnd], folder: Path, state: Callable[[], object]) -> None:
        self._make = make
        self._folder = folder
        self._state = state

    def run(self, devices: Sequence[str]) -> None:
        """Check calls without a crash, then with one at each step."""
        self._before = self._state()
        claim, other = claim_of(1, devices[0]), claim_of(2, *devices[1:2])
        self._others = (other,) if other.devices else ()
        node = PluginNode(self._make, self._folder / "plain")
        # What was never prepared is released after a crash that lost the record.
        self._try("release of a claim that was never prepared", lambda: node.back_end.release(claim))
        self._expected = self._try("prepare", lambda: node.prepare(claim))
        self._check_repeated(node, claim)
        self._try("release", lambda: node.plugin.release(claim.uid))
        self._try("release again", lambda: node.back_end.release(claim))
        self._compare_state("release")
        for name in ("prepare", "release"):
            for step in count():
                if step > _MOST_STEPS:
                    raise AssertionError(f"{name} does not end: it has more than {_MOST_STEPS} steps")
                if not self._crash(name, step, claim):
                    break

    def _check_repeated(self, node: PluginNode, claim: Claim) -> None:
        """Ask the back end itself twice: a crash may have come before the first answer was written."""
        first, again = (self._try("prepare again", lambda: node.back_end.prepare(claim)) for _ in "ab")
        if [*first] != [*again] or len(first) != len(claim.devices):
            self._fail(
                "prepare again",
                f"it returns {again}, and {first} before: one Edits for each device, the same each time",
            )

    def _crash(self, name: str, step: int, claim: Claim) -> bool:
        node = PluginNode(self._make, self._folder / f"{name}-{step}")
        kept = [node.prepare(each) for each in self._others]
        if name == "release":
            node.prepare(claim)
            died = node.kill_at(step, lambda: node.plugin.release(claim.uid))
        else:
            died = node.kill_at(step, lambda: node.prepare(claim))
        where = f"{name}, killed where {node.faults.last}" if died else name
        self._try(where, node.restart)
        if name == "prepare":
            edits = self._try(where, lambda: node.prepare(claim))
            if edits != self._expected:
                self._fail(
                    where, f"containers get {edits} after the restart, and {self._expected} without a crash"
                )
        if [self._try(where, partial(node.prepare, each)) for each in self._others] != kept:
            self._fail(where, "another claim that was prepared before changed")
        for each in (claim, claim, *self._others):
            self._try(where, partial(node.plugin.release, each.uid))
        self._compare_state(where)
        node.back_end.close()
        return died

    def _compare_state(self, where: str) -> None:
        now = self._state()
        if now != self._before:
            self._fail(
                where, f"the state is {now!r} when all is released, and was {self._before!r} at the start"
            )

    def _try(self, where: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            # What others wrote may raise anything. It fails their test, with the step at which it happened.
            raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error

    def _fail(self, where: str, message: str) -> NoReturn:
        raise AssertionError(f"{where}: {message}")
