"""The machine loses power: what was not settled is cut, names are the old ones again, and hardware remembers what it was told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.plugin.faults import Faults, FaultyDisk, Killed, Node, claim_of, uid_of


class Unsettled:
    """What no `settle` has followed yet: changes of names, each with what takes it back, and what files say."""

    def __init__(self) -> None:
        self.pending: dict[Path, list[Callable[[], object]]] = {}
        self.contents: set[bytes] = set()
        self.folders: set[Path] = set()

    def changed(self, path: Path, undo: Callable[[], object]) -> None:
        self.pending.setdefault(path.parent, []).append(undo)

    def settle(self, path: Path) -> None:
        if path.is_dir():
            self.pending.pop(path, None)
        else:
            self.contents.discard(path.read_bytes())

    def lose_power(self, kept: float, length: float) -> None:
        """Take back the latest changes of each folder, and cut files; *kept* and *length* are the parts that reached the disk."""
        for changes in self.pending.values():
            for undo in reversed(changes[int(kept * len(changes)) :]):
                undo()
        self.pending.clear()
        for file in (file for folder in self.folders for file in folder.iterdir()):
            content = file.read_bytes()
            if content in self.contents:
                file.write_bytes(content[: int(length * len(content))])
        self.contents.clear()


class LossyDisk(FaultyDisk):
    """What a file says is on the disk when the file is settled; what it is called is there when its folder is."""

    def __init__(self, faults: Faults, unsettled: Unsettled) -> None:
        super().__init__(faults)
        self.unsettled = unsettled

    def write_new(self, path: Path, content: bytes, mode: int) -> None:
        self.unsettled.contents.add(content)
        self.unsettled.folders.add(path.parent)
        self.unsettled.changed(path, lambda: path.unlink(missing_ok=True))
        super().write_new(path, content, mode)

    def rename(self, old: Path, new: Path) -> None:
        moved, before = old.read_bytes(), new.read_bytes() if new.exists() else None
        super().rename(old, new)

        def undo() -> None:
            new.unlink(missing_ok=True)
            if before is not None:
                new.write_bytes(before)
            old.write_bytes(moved)

        self.unsettled.changed(new, undo)

    def remove(self, path: Path) -> None:
        content = path.read_bytes()
        super().remove(path)
        self.unsettled.changed(path, lambda: path.write_bytes(content))

    def settle(self, path: Path) -> None:
        super().settle(path)
        self.unsettled.settle(path)


OPERATIONS = st.lists(st.tuples(st.sampled_from(["prepare", "release"]), st.integers(1, 3)), max_size=8)


@settings(max_examples=300, deadline=None)
@given(operations=OPERATIONS, step=st.integers(0, 40), kept=st.floats(0, 1), length=st.floats(0, 1))
def test_what_hardware_keeps_through_a_boot_is_released_after_the_power_was_lost(
    tmp_path_factory, operations: list[tuple[str, int]], step: int, kept: float, length: float
):
    unsettled = Unsettled()
    node = Node(tmp_path_factory.mktemp("node"), disk=lambda faults: LossyDisk(faults, unsettled))
    node.faults.arm(step)
    try:
        for what, number in operations:
            if what == "prepare":
                node.plugin.prepare(claim_of(number, f"gpu-{number}"))
            else:
                node.plugin.release(uid_of(number))
    except Killed:
        pass
    node.faults.arm(None)
    unsettled.lose_power(kept, length)
    # Runtimes read them before the plugin starts.
    for spec in node.cdi.glob("[!.]*"):
        json.loads(spec.read_bytes())
    node.boot += 1
    node.restart()
    assert node.check() == frozenset()
    assert node.devices.ready == {}
