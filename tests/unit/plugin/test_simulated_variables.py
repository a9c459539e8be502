"""What containers see of simulated devices, and what is set on the hardware for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra.catalog.fleets import load_fleet
from dra_infra.errors import PluginError
from dra_infra.fleet import Fleet
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.claims import Claim, ClaimDevice
from tests.unit.plugin.faults import claim_of, codes, uid_of
from tests.unit.plugin.test_simulated_driver import NODE, simulated, variables

SHARES = ("1b2c3d4e-3e8f-4b43-9a4c-2f5a9d0c7b11", "5d9a0e6e-3e8f-4b43-9a4c-2f5a9d0c7b11")


def config(sharing: object, kind: str = "GpuConfig", version: str = "resource.nvidia.com/v1beta1") -> str:
    return json.dumps({"apiVersion": version, "kind": kind, "sharing": sharing})


def slicing(interval: str) -> str:
    return config({"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}})


def claim_with(*configs: str, device: str = "gpu-0", number: int = 1, **arguments: object) -> Claim:
    allocated = ClaimDevice(pool=NODE, device=device, request="gpu", configs=configs, **arguments)
    return Claim(uid=uid_of(number), namespace="ml", name=f"claim-{number}", devices=(allocated,))


def test_the_example_drivers_variables_are_those_of_its_own(tmp_path: Path):
    claim = claim_of(1, "gpu-0", "gpu-3")
    assert variables(simulated(tmp_path, "example"), claim) == {
        "KUBERNETES_NODE_NAME": NODE,
        "DRA_RESOURCE_DRIVER_NAME": "gpu.example.com",
        "DRA_ADMIN_ACCESS": "false",
        "GPU_DEVICE_GPU_0_RESOURCE_CLAIM": uid_of(1),
        "GPU_DEVICE_0": "gpu-0",
        "GPU_DEVICE_0_SHARING_STRATEGY": "TimeSlicing",
        "GPU_DEVICE_0_TIMESLICE_INTERVAL": "Default",
        "GPU_DEVICE_GPU_3_RESOURCE_CLAIM": uid_of(1),
        "GPU_DEVICE_3": "gpu-3",
        "GPU_DEVICE_3_SHARING_STRATEGY": "TimeSlicing",
        "GPU_DEVICE_3_TIMESLICE_INTERVAL": "Default",
    }


def test_a_fleet_of_nvidia_keeps_the_legacy_hook_out(tmp_path: Path):
    found = variables(simulated(tmp_path, "hgx-h100 driver=0.5"), claim_of(1, "gpu-0"))
    assert found["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert found["GPU_DEVICE_0"] == "gpu-0"
    assert not any("SHARING" in name for name in found)


def test_a_slice_of_time_is_seen_in_the_container_and_reset_at_the_end(tmp_path: Path):
    back_end = simulated(tmp_path)
    claim = claim_with(slicing("Short"), slicing("Long"))
    assert variables(back_end, claim)["GPU_DEVICE_0_TIMESLICE_INTERVAL"] == "Long"
    assert back_end.hardware.sharing()["gpu-0"]["timeSlice"] == 3
    back_end.release(claim)
    assert not back_end.hardware.sharing()


def test_mig_devices_are_made_and_removed_and_exclude_what_overlaps(tmp_path: Path):
    back_end = simulated(tmp_path, "hgx-h100 dynamic-mig")
    first = claim_of(1, "gpu-0-mig-3g40gb-9-0")
    found = variables(back_end, first)
    assert found["GPU_DEVICE_0_MIG_3G40GB_9_0_PROFILE"] == "3g.40gb"
    assert (
        back_end.hardware.made()["gpu-0-mig-3g40gb-9-0"]["uuid"] == found["GPU_DEVICE_0_MIG_3G40GB_9_0_UUID"]
    )
    back_end.prepare(claim_of(2, "gpu-0-mig-3g40gb-9-4"))
    for other in ("gpu-0-mig-1g10gb-19-2", "gpu-0"):
        with pytest.raises(PluginError) as caught:
            simulated(tmp_path, "hgx-h100 dynamic-mig").prepare(claim_of(3, other))
        assert codes(caught.value) == ["device-held"]
        assert uid_of(1) in str(caught.value)
    back_end.release(first)
    assert list(back_end.hardware.made()) == ["gpu-0-mig-3g40gb-9-4"]
    back_end.prepare(claim_of(3, "gpu-0-mig-1g10gb-19-2"))


def test_limits_of_mps_are_seen_and_the_compute_mode_is_reset(tmp_path: Path):
    limits = {"defaultActiveThreadPercentage": 50, "defaultPinnedDeviceMemoryLimit": "1.5Gi"}
    claim = claim_with(config({"strategy": "MPS", "mpsConfig": limits}))
    back_end = simulated(tmp_path)
    found = variables(back_end, claim)
    assert found["GPU_DEVICE_0_SHARING_STRATEGY"] == "MPS"
    assert found["CUDA_MPS_PIPE_DIRECTORY"].endswith("/nvidia-mps")
    assert found["GPU_DEVICE_0_ACTIVE_THREAD_PERCENTAGE"] == "50"
    assert found["GPU_DEVICE_0_PINNED_DEVICE_MEMORY_LIMIT"] == "1536M"
    assert back_end.hardware.sharing()["gpu-0"]["computeMode"] == "EXCLUSIVE_PROCESS"
    back_end.release(claim)
    assert not back_end.hardware.sharing()


def test_parts_of_the_example_driver_are_seen(tmp_path: Path):
    parts = config(
        {"strategy": "SpacePartitioning", "spacePartitioningConfig": {"partitionCount": 4}},
        version="gpu.resource.example.com/v1alpha1",
    )
    found = variables(simulated(tmp_path, "example"), claim_with(parts))
    assert found["GPU_DEVICE_0_SHARING_STRATEGY"] == "SpacePartitioning"
    assert found["GPU_DEVICE_0_PARTITION_COUNT"] == "4"
    assert "GPU_DEVICE_0_TIMESLICE_INTERVAL" not in found


def test_partitions_have_names_of_their_own(tmp_path: Path):
    found = variables(simulated(tmp_path, "example partitions=2"), claim_of(1, "gpu-0-partition-1"))
    assert found["GPU_DEVICE_0_PARTITION_1"] == "gpu-0-partition-1"


def test_two_shares_of_a_device_in_one_claim_hide_nothing_of_each_other(tmp_path: Path):
    devices = tuple(
        ClaimDevice(
            pool=NODE, device="gpu-0", request=request, share_id=share, capacity=(("memory", amount),)
        )
        for request, share, amount in zip(("a", "b"), SHARES, ("10Gi", "20Gi"), strict=True)
    )
    claim = Claim(uid=uid_of(1), namespace="ml", name="claim-1", devices=devices)
    found = variables(simulated(tmp_path, "l4 driver=0.5 shares=memory"), claim)
    assert found["GPU_DEVICE_0_SHARE_1B2C3D4E_MEMORY"] == "10Gi"
    assert found["GPU_DEVICE_0_SHARE_5D9A0E6E_MEMORY"] == "20Gi"
    assert found["GPU_DEVICE_0_MEMORY"] == "10Gi"


def test_a_network_card_tells_its_bandwidth(tmp_path: Path):
    amounts = (("egressBandwidth", "1500M"), ("ingressBandwidth", "1G"), ("vfs", "1"))
    bursts = {
        "apiVersion": "net.resource.example.com/v1alpha1",
        "kind": "NetConfig",
        "bwBurst": {"ingressBurst": 8000, "egressBurst": 0},
    }
    claim = claim_with(json.dumps(bursts), device="nic-3", share_id=SHARES[0], capacity=amounts)
    found = variables(simulated(tmp_path, "example-net"), claim)
    assert found["NET_DEVICE_NIC_3_RESOURCE_CLAIM"] == claim.uid
    rates = (found["NET_DEVICE_3_INGRESS_RATE"], found["NET_DEVICE_3_EGRESS_RATE"])
    assert rates == ("1000000000", "1500000000"), "as the example driver writes them"
    assert found["NET_DEVICE_3_INGRESS_BURST"] == "8000"
    assert "NET_DEVICE_3_EGRESS_BURST" not in found


def test_cpus_that_a_claim_has_are_told(tmp_path: Path):
    claim = claim_with(device="numa-1", share_id=SHARES[0], capacity=(("cpu.example.com/cpu", "2"),))
    found = variables(simulated(tmp_path, "example-cpu"), claim)
    assert (found["CPU_DEVICE_1"], found["CPU_DEVICE_1_CONSUMED_CPU"]) == ("numa-1", "2")


def test_a_device_for_admin_access_is_only_looked_at(tmp_path: Path):
    back_end = simulated(tmp_path, "hgx-h100 dynamic-mig")
    back_end.prepare(claim_of(1, "gpu-0"))
    watching = claim_of(2, "gpu-0", "gpu-0-mig-1g10gb-19-0", admin=True)
    assert variables(back_end, watching)["DRA_ADMIN_ACCESS"] == "true"
    assert [use.uid for use in back_end.hardware.uses()] == [uid_of(1)]
    assert not back_end.hardware.made()
    back_end.release(watching)
    assert [use.uid for use in back_end.hardware.uses()] == [uid_of(1)]


def shared_claim(number: int, *configs: str) -> Claim:
    return claim_with(*configs, number=number, share_id=f"{number:08x}-3e8f-4b43-9a4c-2f5a9d0c7b11")


def test_claims_that_share_a_device_have_one_config_and_the_last_one_resets_it(tmp_path: Path):
    back_end = simulated(tmp_path, "hgx-h100 driver=0.5 shares=unlimited")
    back_end.prepare(shared_claim(1, slicing("Long")))
    with pytest.raises(PluginError) as caught:
        back_end.prepare(shared_claim(2, slicing("Short")))
    assert codes(caught.value) == ["config-conflict"]
    told = f"requested device gpu-0 has conflicting configuration with already prepared claim {uid_of(1)}"
    assert told in str(caught.value)
    back_end.release(shared_claim(2, slicing("Short")))
    # Another text of the same meaning.
    back_end.prepare(shared_claim(3, " " + slicing("Long")))
    back_end.release(shared_claim(1, slicing("Long")))
    assert back_end.hardware.sharing()["gpu-0"]["interval"] == "Long"
    back_end.release(shared_claim(3))
    assert not back_end.hardware.sharing()


@pytest.mark.parametrize("fleet", ["hgx-h100 driver=0.5 shares=unlimited", "hgx-h100 dynamic-mig"])
@pytest.mark.parametrize("load", [str, load_fleet])
def test_mps_is_refused_with_the_gates_that_exclude_it(
    tmp_path: Path, fleet: str, load: Callable[[str], str | Fleet]
):
    back_end = simulated(tmp_path, load(fleet))
    with pytest.raises(PluginError) as caught:
        back_end.prepare(claim_with(config({"strategy": "MPS"})))
    assert codes(caught.value) == ["driver-gate-conflict"]


def test_a_claim_of_which_nothing_but_the_uid_is_known_is_released(tmp_path: Path):
    back_end = simulated(tmp_path, "hgx-h100 dynamic-mig")
    back_end.prepare(claim_of(1, "gpu-0-mig-1g10gb-19-0"))
    back_end.release(Claim(uid=uid_of(1), namespace="", name="", devices=()))
    assert not back_end.hardware.uses()
    assert not back_end.hardware.made()


def test_a_reboot_forgets_mig_devices_and_uses(tmp_path: Path):
    simulated(tmp_path, "hgx-h100 dynamic-mig").prepare(claim_of(1, "gpu-0-mig-1g10gb-19-0"))
    later = SimulatedBackEnd("hgx-h100 dynamic-mig", node=NODE, folder=tmp_path / "sim", boot_id="boot-2")
    assert not later.hardware.uses()
    assert not later.hardware.made()
    assert [each.name for each in (tmp_path / "sim").iterdir()] == ["boot-2"]


@pytest.mark.parametrize(
    ("devices", "refused"),
    [
        (("gpu-5",), False),
        (("gpu-0", "gpu-1"), False),
        (("gpu-1", "gpu-2"), True),
        (("gpu-0", "gpu-1", "gpu-2"), True),
        (("gpu-4", "gpu-5", "gpu-6", "gpu-7"), False),
        (("gpu-2", "gpu-3", "gpu-4", "gpu-5"), True),
        (tuple(f"gpu-{minor}" for minor in range(8)), False),
    ],
)
def test_whole_gpus_of_a_claim_are_one_partition_of_the_fabric_manager(
    tmp_path: Path, devices: tuple[str, ...], refused: bool
):
    back_end = simulated(tmp_path, "hgx-h100 driver=0.5 fabric-partitions")
    if not refused:
        back_end.prepare(claim_of(1, *devices))
        assert len(back_end.hardware.uses()) == len(devices)
        return
    with pytest.raises(PluginError) as caught:
        back_end.prepare(claim_of(1, *devices))
    assert codes(caught.value) == ["fabric-partition-mismatch"]
    assert "does not match any FM partition" in str(caught.value)
    assert not back_end.hardware.uses()
