"""The simulated driver is killed at every step: what its hardware keeps is what the claims have, no more and no less."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from dra_infra.plugin.back_ends import sim
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.back_ends.sim_node import simulate_node
from dra_infra.plugin.disk import Disk
from tests.unit.plugin.faults import DRIVER, Node, claim_of, uid_of
from tests.unit.plugin.test_crashes import Life, killed_at

SMALL, LARGE = "gpu-0-mig-1g10gb-19-0", "gpu-0-mig-3g40gb-9-4"
"""Two MIG devices that stand side by side, and neither beside gpu-0 as a whole."""


@pytest.fixture(autouse=True, scope="module")
def one_fleet() -> Iterator[None]:
    """Each start reads the same fleet, which takes longer than all the rest of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim, "simulate_node", cache(simulate_node))
        yield


class SimulatedMachine(Node):
    """A machine whose devices are files."""

    def back_end(self, disk: Disk) -> SimulatedBackEnd:
        # The last release in which a whole GPU without a config gets slices of time, so that there is more to undo.
        self.simulated = SimulatedBackEnd(
            "hgx-h100 devices=2 driver=25.12 dynamic-mig",
            node="node-1",
            folder=self.claims.parent / "sim",
            driver=DRIVER,
            boot_id=f"boot-{self.boot}",
            disk=disk,
        )
        return self.simulated

    def forget(self) -> None:
        # The folder of another boot is another one.
        pass

    def ready(self) -> dict[str, set[str]]:
        uses = self.simulated.hardware.uses()
        there = {use.device for use in uses}
        assert set(self.simulated.hardware.made()) == {name for name in there if "mig" in name}
        folder = self.simulated.hardware.path
        assert [each.name for each in folder.parent.iterdir()] == [f"boot-{self.boot}"]
        files = {each.name for each in folder.rglob("*.json")}
        assert files == {f"{use.uid}.json" for use in uses}
        # Slices of time are as the only config here has them: the driver's default.
        assert set(self.simulated.hardware.sharing()) == {name for name in there if "mig" not in name}
        return {use.uid: {each.device for each in uses if each.uid == use.uid} for use in uses}


def test_a_kill_at_any_step_of_prepare_leaves_no_mig_device_behind(tmp_path: Path):
    for step in count():
        (folder := tmp_path / str(step)).mkdir()
        node = SimulatedMachine(folder)
        before = node.plugin.prepare(claim_of(1, "gpu-1"))
        died = killed_at(node, step, node.plugin.prepare, claim_of(2, SMALL, LARGE))
        node.restart()
        assert node.check() >= {uid_of(1)}
        assert node.plugin.prepare(claim_of(1, "gpu-1")) == before
        node.plugin.prepare(claim_of(2, SMALL, LARGE))
        assert node.check() == {uid_of(1), uid_of(2)}
        if not died:
            break
    # More than the steps of the checkpoint and of CDI: the devices are files too.
    assert step == 27


def test_a_kill_at_any_step_of_release_is_finished_and_frees_the_whole_gpu(tmp_path: Path):
    for step in count():
        (folder := tmp_path / str(step)).mkdir()
        node = SimulatedMachine(folder)
        node.plugin.prepare(claim_of(2, SMALL, LARGE))
        died = killed_at(node, step, node.plugin.release, uid_of(2))
        node.restart()
        node.plugin.release(uid_of(2))
        assert node.check() == frozenset()
        node.plugin.prepare(claim_of(3, "gpu-0"))
        assert node.check() == {uid_of(3)}
        if not died:
            break
    assert step == 10


class SimulatedLife(Life):
    """The same life over simulated hardware, on which some devices exclude each other."""

    node_kind = SimulatedMachine
    names = ("gpu-0", "gpu-1", SMALL, LARGE)


TestSimulatedLife = SimulatedLife.TestCase
TestSimulatedLife.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
del Life
