"""A driver of two lamps: the least that a back end is, and all that stands around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dra_infra.kubernetes.api import Device
from dra_infra.plugin.back_end import Health, Inventory
from dra_infra.plugin.cdi import CdiFolder
from dra_infra.plugin.checkpoint import Checkpoint
from dra_infra.plugin.claims import Claim, Edits
from dra_infra.plugin.disk import Folder
from dra_infra.plugin.driver import Driver
from dra_infra.plugin.locks import PreparationLock
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.service.sockets import Sockets
from tests.unit.plugin.service.served import Api, Notes

NAME = "lamp.example.com"


class Lamps:
    """A back end."""

    driver = NAME

    def __init__(self) -> None:
        self.lit: set[str] = set()
        self.health: dict[str, Health] = {}
        self.listeners: list[Callable[[], None]] = []
        self.closed = False

    def inventory(self) -> Inventory:
        return Inventory(devices=(Device(name="lamp-0"), Device(name="lamp-1")), health=self.health)

    def watch(self, changed: Callable[[], None]) -> None:
        self.listeners.append(changed)

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        self.lit |= {each.device for each in claim.devices}
        return [Edits(env=(f"LAMP={each.device}",)) for each in claim.devices]

    def release(self, claim: Claim) -> None:
        self.lit -= {each.device for each in claim.devices}

    def close(self) -> None:
        self.closed = True


class Publisher:
    """Notes what was there when the slices were published."""

    def __init__(self, sockets: Sockets) -> None:
        self.sockets = sockets
        self.seen: list[tuple[bool, bool]] = []
        self.error: Exception | None = None
        self.is_taken = False
        self.on_name_taken: Callable[[bool], None] = lambda _: None

    def start(self, *, on_name_taken: Callable[[bool], None]) -> None:
        self.on_name_taken = on_name_taken
        if self.is_taken:
            on_name_taken(True)
        self.note()
        if self.error:
            raise self.error

    def stop(self) -> None:
        self.note()

    def note(self) -> None:
        self.seen.append((self.sockets.service.exists(), self.sockets.registration.exists()))


class Instance:
    """One process of the driver, on a node of which the folders may have had others."""

    def __init__(
        self, root: Path, *, pod_uid: str = "", lamps: Lamps | None = None, linger: float = 0.0
    ) -> None:
        self.lamps = lamps or Lamps()
        self.api = Api()
        self.notes = Notes()
        self.sockets = Sockets(kubelet_root=root, driver=NAME, pod_uid=pod_uid)
        self.publisher = Publisher(self.sockets)
        for name in ("claims", "cdi"):
            (root / name).mkdir(exist_ok=True)
        self.preparations = Preparations(
            driver=NAME,
            boot_id="boot-1",
            checkpoint=Checkpoint(Folder(root / "claims")),
            specs=CdiFolder(Folder(root / "cdi", mode=0o644), NAME),
            back_end=self.lamps,
            lock=PreparationLock(root / "claims" / "lock"),
        )
        self.driver = Driver(
            node="node-1",
            back_end=self.lamps,
            preparations=self.preparations,
            read_claim=self.api.read,
            publisher=self.publisher,
            sockets=self.sockets,
            observer=self.notes,
            linger=linger,
            grace=60,
        )
