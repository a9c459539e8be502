"""MIG devices are made where NVML would make them, and nowhere else."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog.mig import mig_profiles_of, placements_of
from dra_infra.errors import PluginError
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.back_ends.sim_node import SimulatedNode, simulate_node
from tests.unit.plugin.faults import claim_of, codes, uid_of

FLEETS = {
    "hgx-h100 devices=1 dynamic-mig": "NVIDIA H100 80GB HBM3",
    "a100-40gb devices=1 dynamic-mig": "NVIDIA A100-SXM4-40GB",
    "a30 devices=1 dynamic-mig": "NVIDIA A30",
}
NODES = {fleet: simulate_node(fleet, node="node-1") for fleet in FLEETS}


def slices_of(node: SimulatedNode, device: str, product: str) -> frozenset[int]:
    """Memory slices of a MIG device, by its profile and the number at the end of its name; all of a whole GPU."""
    sizes = {each.name: each.memory_slices for each in mig_profiles_of(product)}
    profile = node.attribute(device, "profile")
    if profile is None:
        return frozenset(range(8))
    start = int(device.rpartition("-")[2])
    return frozenset(range(start, start + sizes[profile]))


@pytest.mark.parametrize("fleet", FLEETS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_devices_are_given_exactly_where_they_fit_beside_those_that_are_there(
    fleet: str, data: st.DataObject
):
    product, node = FLEETS[fleet], NODES[fleet]
    wanted = data.draw(st.lists(st.sampled_from(sorted(node.devices)), unique=True, min_size=1, max_size=8))
    with tempfile.TemporaryDirectory() as folder:
        back_end = SimulatedBackEnd(fleet, node="node-1", folder=Path(folder), boot_id="boot-1")
        held: dict[str, int] = {}
        for number, device in enumerate(wanted):
            beside = [*held, device]
            slices = [slices_of(node, each, product) for each in beside]
            apart = len(frozenset().union(*slices)) == sum(map(len, slices))
            profiles = [node.attribute(each, "profile") for each in beside]
            # A whole GPU is no profile: it stands alone.
            fits = len(beside) == 1 or (None not in profiles and placements_of(profiles, product) is not None)
            told: list[str] = []
            try:
                back_end.prepare(claim_of(number, device))
                held[device] = number
            except PluginError as error:
                told = codes(error)
                back_end.release(claim_of(number, device))
            assert told == ([] if apart and fits else ["device-held"])
            assert set(back_end.hardware.made()) == {each for each in held if "mig" in each}
            assert {use.uid for use in back_end.hardware.uses()} == {uid_of(each) for each in held.values()}
            if data.draw(st.booleans()):
                gone = data.draw(st.sampled_from(sorted(held)))
                back_end.release(claim_of(held.pop(gone), gone))
