"""A file system that stops the plugin at a step, devices that outlive it, and a node of both."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_end import Devices as BackEnd
from dra_infra.plugin.cdi import CdiFolder
from dra_infra.plugin.checkpoint import Checkpoint
from dra_infra.plugin.claims import Claim, ClaimDevice, Edits
from dra_infra.plugin.disk import Disk, Folder
from dra_infra.plugin.locks import PreparationLock
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.testing import Faults, FaultyDisk, Killed

DRIVER = "gpu.example.com"
__all__ = ["Faults", "FaultyDisk", "Killed"]

SPEC = "k8s.gpu.example.com-claim_{}.json"


class Devices:
    """Devices with a state that stays when the plugin dies, and goes with a reboot."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.ready: dict[str, set[str]] = {}
        self.broken = False

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        for each in claim.devices:
            self.faults_step()
            self.ready.setdefault(claim.uid, set()).add(each.device)
        if self.broken:
            raise PluginError([Problem(path="device", code="device-held", message="does not answer")])
        return [Edits(env=(f"DEVICE={each.device}",)) for each in claim.devices]

    def release(self, claim: Claim) -> None:
        for device in sorted(self.ready.get(claim.uid, ())):
            self.faults_step()
            self.ready[claim.uid].discard(device)
        self.ready.pop(claim.uid, None)

    def faults_step(self) -> None:
        if self.faults.what == "kill":
            self.faults.step()


class Node:
    """A machine on which the plugin starts, dies and starts again."""

    def __init__(self, folder: Path, disk: Callable[[Faults], Disk] = FaultyDisk) -> None:
        self.disk = disk
        self.claims = folder / "claims"
        self.cdi = folder / "cdi"
        self.claims.mkdir()
        self.cdi.mkdir()
        self.faults = Faults()
        self.devices = Devices(self.faults)
        self.boot = 1
        self.noticed: list[Problem] = []
        self.plugin = self.start()

    def start(self) -> Preparations:
        self.faults.is_dead = False
        disk = self.disk(self.faults)
        return Preparations(
            driver=DRIVER,
            boot_id=f"boot-{self.boot}",
            checkpoint=Checkpoint(Folder(self.claims, disk)),
            specs=CdiFolder(Folder(self.cdi, disk, mode=0o644), DRIVER),
            back_end=self.back_end(disk),
            lock=PreparationLock(self.claims / "lock"),
            notice=self.noticed.extend,
        )

    def back_end(self, disk: Disk) -> BackEnd:
        """What a new process has for its devices."""
        return self.devices

    def forget(self) -> None:
        """What a boot of the machine does to the devices."""
        self.devices.ready.clear()

    def ready(self) -> dict[str, set[str]]:
        """Devices that are ready, by the claim's UID."""
        return self.devices.ready

    def restart(self) -> None:
        self.plugin = self.start()
        self.plugin.recover()

    def reboot(self) -> None:
        self.boot += 1
        self.forget()
        for file in self.cdi.iterdir():
            file.unlink()
        self.restart()

    def check(self) -> frozenset[str]:
        """Prepared set = checkpoint = CDI files = devices that are ready; nothing given twice, nothing left over."""
        prepared = self.plugin.prepared()
        records = {file.name: json.loads(file.read_text()) for file in self.claims.glob("*.json")}
        # What was restored did not begin in this life of the claim's files.
        others = {"lock", *(f"{uid}.started" for uid in prepared)}
        assert {file.name for file in self.claims.iterdir()} - others == {f"{uid}.json" for uid in prepared}
        assert {each["record"]["state"] for each in records.values()} <= {"completed"}
        assert {file.name for file in self.cdi.iterdir()} == {SPEC.format(uid) for uid in prepared}
        given = {uid: {each.device for each in record.claim.devices} for uid, record in prepared.items()}
        assert self.ready() == given
        assert sum(map(len, given.values())) == len(set().union(*given.values()))
        assert not self.plugin.not_restored()
        return frozenset(prepared)


def uid_of(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-0000000000ab"


def claim_of(number: int, *devices: str, share: str = "", admin: bool = False) -> Claim:
    return Claim(
        uid=uid_of(number),
        namespace="ml",
        name=f"claim-{number}",
        devices=tuple(
            ClaimDevice(pool="node-1", device=each, request="gpu", share_id=share, admin_access=admin)
            for each in devices
        ),
    )


def codes(error: PluginError) -> list[str]:
    return [problem.code for problem in error.problems]
