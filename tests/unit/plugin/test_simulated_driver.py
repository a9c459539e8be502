"""The simulated driver: the devices that the catalogue publishes, and what containers see of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dra_infra.catalog.fleets import load_fleet
from dra_infra.catalog.records import fleet_kinds
from dra_infra.errors import PluginError
from dra_infra.fleet import Fleet
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.back_ends.sim_edits import edits_of
from dra_infra.plugin.back_ends.sim_node import simulate_node
from dra_infra.plugin.cdi import make_spec
from dra_infra.plugin.claims import Claim, Record
from tests.unit.plugin.faults import claim_of, codes

NODE = "node-1"
BOOT = "boot-1"

FLEETS = [
    *sorted(fleet_kinds()),
    "hgx-h100 driver=25.3",
    "hgx-b200 driver=0.5 fabric-partitions",
    "hgx-h100 dynamic-mig driver=0.5",
    "a100-80gb dynamic-mig",
    "a100-80gb mig=1g.10gb*7",
    "a100-40gb mig=3g.20gb*1+1g.5gb*4 driver=25.8",
    "a30 mig=1g.6gb*4",
    "hgx-h200 compute-domains",
    "l40s vfio",
    "l4 driver=0.5 shares=memory",
    "h100-nvl driver=0.5 shares=4",
    "hgx-h100 mig=1g.10gb*7 driver=0.5 shares=unlimited",
    "rtx-pro-6000 dynamic-mig",
    "example driver=0.1",
    "example partitions=4",
    "example shareable",
]
"""Every kind of fleet, and every option that changes what is published."""


def simulated(folder: Path, fleet: str | Fleet = "hgx-h100", **arguments: str | None) -> SimulatedBackEnd:
    return SimulatedBackEnd(fleet, node=NODE, folder=folder / "sim", boot_id=BOOT, **arguments)


def variables(back_end: SimulatedBackEnd, claim: Claim) -> dict[str, str]:
    """Those of all devices together, as the runtime merges them."""
    return dict(pair.split("=", 1) for edits in back_end.prepare(claim) for pair in edits.env)


@pytest.mark.parametrize("fleet", FLEETS)
def test_the_inventory_is_what_the_catalogue_publishes_for_a_node_of_that_name(tmp_path: Path, fleet: str):
    name = load_fleet(fleet).nodes[0].name
    published = [each.spec for each in load_fleet(fleet).slices if each.spec.node_name == name]
    back_end = SimulatedBackEnd(fleet, node=name, folder=tmp_path, boot_id=BOOT)
    own = [spec for spec in published if spec.driver == back_end.driver]
    found = back_end.inventory()
    assert list(found.devices) == [device for spec in own for device in spec.devices or ()]
    assert list(found.counters) == [each for spec in own for each in spec.shared_counters or ()]
    # Under another name nothing differs but what is made of the name.
    renamed = simulated(tmp_path, fleet).inventory()
    assert [each.name for each in renamed.devices] == [each.name for each in found.devices]
    assert renamed.counters == found.counters


@pytest.mark.parametrize("fleet", FLEETS)
def test_every_device_is_prepared_and_released_and_no_variable_hides_another(tmp_path: Path, fleet: str):
    back_end = simulated(tmp_path, fleet)
    for number, device in enumerate(back_end.inventory().devices):
        claim = claim_of(number, device.name)
        edits = tuple(back_end.prepare(claim))
        assert edits == tuple(back_end.prepare(claim))
        make_spec(
            Record(claim=claim, state="completed", preparation="0a1b2c3d", boot_id=BOOT, edits=edits),
            back_end.driver,
        )
        told = json.loads(Path(edits[0].mounts[0].host_path).read_text())
        # A whole line, else what a container prints of it does not show in its log.
        assert Path(edits[0].mounts[0].host_path).read_text().endswith("}\n")
        assert told["claim"]["uid"] == claim.uid
        assert [each["name"] for each in told["devices"]] == [device.name]
        back_end.release(claim)
    assert not [each for each in back_end.hardware.path.rglob("*") if each.is_file()]


@pytest.mark.parametrize("fleet", FLEETS)
def test_no_variable_of_two_devices_of_a_claim_has_two_values(fleet: str):
    node = simulate_node(fleet, node=NODE)
    claim = claim_of(1, *node.devices)
    merged: dict[str, str] = {}
    for edits in edits_of(node, claim, node.decoder.decode(claim, node.type_of), "/marker"):
        for pair in edits.env:
            name, _, value = pair.partition("=")
            assert merged.setdefault(name, value) == value
    shown = set(merged.values()) | {name.removesuffix("_RESOURCE_CLAIM") for name in merged}
    for device in node.devices:
        assert device in shown or f"NET_DEVICE_{device.upper().replace('-', '_')}" in shown


def test_a_driver_may_be_called_otherwise(tmp_path: Path):
    back_end = simulated(tmp_path, "example-cpu", driver="cpu.acme.example")
    assert back_end.driver == "cpu.acme.example"
    assert set(back_end.inventory().devices[0].capacity or ()) == {"cpu.acme.example/cpu"}
    assert variables(back_end, claim_of(1, "numa-0"))["CPU_DEVICE_0"] == "numa-0"


def test_of_a_fleet_with_two_drivers_one_is_chosen(tmp_path: Path):
    fleet = "hgx-h100 compute-domains"
    assert simulated(tmp_path, fleet).driver == "gpu.nvidia.com"
    other = simulated(tmp_path, fleet, driver="compute-domain.nvidia.com")
    assert [each.name for each in other.inventory().devices] == ["channel-0", "daemon-0"]
    assert simulated(tmp_path, load_fleet(fleet)).driver == "gpu.nvidia.com"


def test_a_fleet_without_devices_is_refused(tmp_path: Path):
    with pytest.raises(PluginError) as caught:
        simulated(tmp_path, Fleet(name="nothing"))
    assert codes(caught.value) == ["sim-no-devices"]
    assert caught.value.problems[0].path == "fleet"


def test_a_device_that_the_node_has_not_is_refused_in_the_drivers_words(tmp_path: Path):
    with pytest.raises(PluginError) as caught:
        simulated(tmp_path).prepare(claim_of(1, "gpu-9"))
    assert codes(caught.value) == ["device-not-allocatable"]
    assert caught.value.problems[0].path == "ResourceClaim ml/claim-1: device gpu-9"
    assert "requested device is not allocatable" in str(caught.value)
