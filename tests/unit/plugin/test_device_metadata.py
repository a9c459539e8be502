from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import Device
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.cdi import CdiFolder
from dra_infra.plugin.checkpoint import Checkpoint
from dra_infra.plugin.claims import Claim, ClaimDevice
from dra_infra.plugin.disk import Folder
from dra_infra.plugin.locks import PreparationLock
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.service.device_metadata import WithMetadata
from tests.unit.plugin.faults import codes
from tests.unit.plugin.small_driver import Lamps

UID = "0f3c2a5e-1b7d-4c39-9e51-7a2f4d6b8c10"
CLAIM = Claim(
    uid=UID,
    namespace="ml",
    name="trainer-gpus-x7k2p",
    devices=(
        ClaimDevice(pool="node-1", device="gpu-0", request="gpu", subrequest="large"),
        ClaimDevice(pool="node-1", device="gpu-1", request="gpu", subrequest="large"),
        ClaimDevice(pool="node-1", device="gpu-2", request="spare"),
    ),
    pod_claim_name="gpus",
)
ATTRIBUTES = {
    "productName": {"string": "NVIDIA <H100> & ü"},
    "resource.kubernetes.io/pcieRoot": {"strings": ["pci0000:00"]},
    "index": {"int": 0},
    "driverVersion": {"version": "580.65.6"},
    "isMig": {"bool": False},
}

# One of the two objects that processPreparedClaim of k8s.io/dynamic-resource-allocation v0.37.1 writes for the request gpu.
FROM_GO = r"""{
  "kind": "DeviceMetadata",
  "apiVersion": "metadata.resource.k8s.io/v1beta1",
  "metadata": {
    "name": "trainer-gpus-x7k2p",
    "namespace": "ml",
    "uid": "0f3c2a5e-1b7d-4c39-9e51-7a2f4d6b8c10",
    "generation": 1
  },
  "podClaimName": "gpus",
  "requests": [
    {
      "name": "gpu/large",
      "devices": [
        {
          "driver": "lamp.example.com",
          "pool": "node-1",
          "name": "gpu-0",
          "attributes": {
            "driverVersion": {
              "version": "580.65.6"
            },
            "index": {
              "int": 0
            },
            "isMig": {
              "bool": false
            },
            "productName": {
              "string": "NVIDIA \u003cH100\u003e \u0026 ü"
            },
            "resource.kubernetes.io/pcieRoot": {
              "strings": [
                "pci0000:00"
              ]
            }
          }
        },
        {
          "driver": "lamp.example.com",
          "pool": "node-1",
          "name": "gpu-1"
        }
      ]
    }
  ]
}
"""


class Gpus(Lamps):
    def inventory(self) -> Inventory:
        first = Device.from_manifest({"name": "gpu-0", "attributes": ATTRIBUTES})
        return Inventory(devices=(first, Device(name="gpu-1"), Device(name="gpu-2")))


@pytest.fixture
def back_end(tmp_path: Path) -> WithMetadata:
    return WithMetadata(Gpus(), tmp_path / "metadata")


def test_the_file_of_a_request_is_byte_by_byte_that_of_kubernetes_helper_library(
    back_end: WithMetadata, tmp_path: Path
):
    first, second, third = back_end.prepare(CLAIM)
    [mount], [other] = first.mounts, third.mounts
    assert not second.mounts
    assert first.env == ("LAMP=gpu-0",)
    older = FROM_GO.replace("v1beta1", "v1alpha1")
    assert Path(mount.host_path).read_text() == FROM_GO + older
    assert Path(mount.host_path).stat().st_mode & 0o777 == 0o644
    place = "/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/gpus"
    assert mount.container_path == f"{place}/gpu/lamp.example.com-metadata.json"
    assert other.container_path == f"{place}/spare/lamp.example.com-metadata.json"
    assert "ro" in mount.options
    written = json.loads(Path(other.host_path).read_text().split("\n}\n")[0] + "}")
    assert [each["name"] for each in written["requests"]] == ["spare"]


def test_a_claim_that_no_template_made_is_found_by_its_own_name(back_end: WithMetadata):
    [edits] = back_end.prepare(replace(CLAIM, devices=CLAIM.devices[2:], pod_claim_name=""))
    [mount] = edits.mounts
    assert mount.container_path == (
        "/var/run/kubernetes.io/dra-device-attributes/resourceclaims/trainer-gpus-x7k2p/spare/"
        "lamp.example.com-metadata.json"
    )
    assert "podClaimName" not in Path(mount.host_path).read_text()


def test_preparing_again_says_the_same_and_releasing_takes_the_files_away_also_twice(
    back_end: WithMetadata, tmp_path: Path
):
    assert back_end.prepare(CLAIM) == back_end.prepare(CLAIM)
    later = replace(CLAIM, uid=UID.replace("0f", "1f"))
    back_end.prepare(later)
    back_end.release(CLAIM)
    back_end.release(CLAIM)
    assert [each.name for each in (tmp_path / "metadata").iterdir()] == [later.uid]


@pytest.mark.parametrize(
    "claim",
    [
        replace(CLAIM, devices=(replace(CLAIM.devices[0], request="../../x"),)),
        replace(CLAIM, devices=(replace(CLAIM.devices[0], request=""),)),
        replace(CLAIM, pod_claim_name="../x"),
        replace(CLAIM, pod_claim_name="", name="a/b"),
    ],
)
def test_names_that_would_lead_elsewhere_are_refused_before_anything_is_written(
    back_end: WithMetadata, tmp_path: Path, claim: Claim
):
    with pytest.raises(PluginError) as caught:
        back_end.prepare(claim)
    assert codes(caught.value) == ["invalid-claim-name"]
    assert not list(tmp_path.rglob("*"))
    with pytest.raises(PluginError) as caught:
        back_end.release(replace(claim, uid="../x"))
    assert codes(caught.value) == ["invalid-claim-uid"]


def test_a_folder_that_cannot_be_written_fails_the_claim_and_nothing_stays(tmp_path: Path):
    (tmp_path / "metadata").write_text("in the way")
    lamps = Gpus()
    plugin = preparations(tmp_path, WithMetadata(lamps, tmp_path / "metadata"))
    with pytest.raises(PluginError) as caught:
        plugin.prepare(CLAIM)
    assert set(codes(caught.value)) == {"plugin-folder-not-usable"}
    (tmp_path / "metadata").unlink()
    plugin.recover()
    assert lamps.lit == set()
    assert not plugin.prepared()


def test_recovery_takes_away_the_files_of_what_an_earlier_boot_had(tmp_path: Path):
    back_end = WithMetadata(Gpus(), tmp_path / "metadata")
    plugin = preparations(tmp_path, back_end)
    [first, *_] = plugin.prepare(CLAIM)
    [spec] = (tmp_path / "cdi").iterdir()
    assert "lamp.example.com-metadata.json" in spec.read_text()
    assert first.split("=")[1] in spec.read_text()
    preparations(tmp_path, back_end, boot="2").recover()
    assert not list((tmp_path / "metadata").iterdir())
    assert not list((tmp_path / "cdi").iterdir())


def preparations(folder: Path, back_end: WithMetadata, boot: str = "1") -> Preparations:
    for name in ("claims", "cdi"):
        (folder / name).mkdir(exist_ok=True)
    return Preparations(
        driver=Lamps.driver,
        boot_id=boot,
        checkpoint=Checkpoint(Folder(folder / "claims")),
        specs=CdiFolder(Folder(folder / "cdi"), Lamps.driver),
        back_end=back_end,
        lock=PreparationLock(folder / "lock"),
    )
