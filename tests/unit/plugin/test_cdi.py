from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.cdi import CdiFolder, device_ids, make_spec
from dra_infra.plugin.claims import DeviceNode, Edits, Hook, Mount, Record
from dra_infra.plugin.disk import Folder
from tests.unit.plugin.faults import DRIVER, SPEC, claim_of, codes, uid_of

RECORD = Record(
    claim=claim_of(1, "gpu-0", "gpu-1"),
    state="completed",
    preparation="0a1b2c3d",
    boot_id="boot-1",
    edits=(
        Edits(env=("GPU_DEVICE_0=gpu-0",), device_nodes=(DeviceNode(path="/dev/nvidia0"),)),
        Edits(mounts=(Mount(host_path="/var/lib/marker", container_path="/marker"),)),
    ),
)
NAME = f"{uid_of(1)}-0a1b2c3d"


def folder(path: Path) -> CdiFolder:
    return CdiFolder(Folder(path, mode=0o644), DRIVER)


def test_a_spec_is_what_runtimes_load(tmp_path: Path):
    folder(tmp_path).write(RECORD)
    [file] = tmp_path.iterdir()
    assert file.name == SPEC.format(uid_of(1))
    assert file.stat().st_mode & 0o777 == 0o644
    assert json.loads(file.read_text()) == {
        "cdiVersion": "0.5.0",
        "kind": "k8s.gpu.example.com/claim",
        "devices": [
            {
                "name": f"{NAME}-0-gpu-0",
                "containerEdits": {"env": ["GPU_DEVICE_0=gpu-0"], "deviceNodes": [{"path": "/dev/nvidia0"}]},
            },
            {
                "name": f"{NAME}-1-gpu-1",
                "containerEdits": {
                    "mounts": [
                        {
                            "hostPath": "/var/lib/marker",
                            "containerPath": "/marker",
                            "options": ["ro", "nosuid", "nodev", "bind"],
                        }
                    ]
                },
            },
        ],
    }


def test_a_spec_says_all_that_is_known_of_a_device_file():
    plain = DeviceNode(path="/dev/nvidia0", host_path="/run/driver/dev/nvidia0", permissions="rw", gid=0)
    made = DeviceNode(path="/dev/nvidia-caps/nvidia-cap3", type="c", major=236, minor=3, file_mode=0o444)
    edits = Edits(device_nodes=(plain, made), additional_gids=(44,))
    spec = make_spec(replace(RECORD, claim=claim_of(1, "gpu-0"), edits=(edits,)), DRIVER)
    assert spec["cdiVersion"] == "0.7.0", "the oldest with groups"
    assert spec["devices"][0]["containerEdits"] == {
        "deviceNodes": [
            {
                "path": "/dev/nvidia0",
                "hostPath": "/run/driver/dev/nvidia0",
                "permissions": "rw",
                "gid": 0,
            },
            {
                "path": "/dev/nvidia-caps/nvidia-cap3",
                "type": "c",
                "major": 236,
                "minor": 3,
                "fileMode": 0o444,
            },
        ],
        "additionalGids": [44],
    }
    bad = replace(plain, type="x", permissions="rx", host_path="dev")
    with pytest.raises(PluginError) as caught:
        make_spec(replace(RECORD, claim=claim_of(1, "gpu-0"), edits=(Edits(device_nodes=(bad,)),)), DRIVER)
    assert codes(caught.value) == ["cdi-refused"] * 3


def test_what_all_devices_of_a_claim_mount_and_run_is_said_once():
    library = Mount(host_path="/lib/a", container_path="/lib/a", options=("ro", "rbind"))
    own = Mount(host_path="/lib/b", container_path="/lib/b")
    hook = Hook(name="createContainer", path="/usr/bin/hook", arguments=("hook",))
    first = Edits(env=("A=1",), mounts=(library, own), hooks=(hook,))
    second = Edits(env=("B=1",), mounts=(library,), hooks=(hook,))
    spec = make_spec(replace(RECORD, edits=(first, second)), DRIVER)
    assert [each["hostPath"] for each in spec["containerEdits"]["mounts"]] == ["/lib/a"]
    assert [each["path"] for each in spec["containerEdits"]["hooks"]] == ["/usr/bin/hook"]
    one, two = (each["containerEdits"] for each in spec["devices"])
    assert [each["hostPath"] for each in one["mounts"]] == ["/lib/b"]
    assert two == {"env": ["B=1"]}
    # A device that would have nothing left keeps all, for runtimes refuse a device that changes nothing.
    spec = make_spec(replace(RECORD, edits=(first, replace(second, env=()))), DRIVER)
    assert "containerEdits" not in spec
    assert all(each["containerEdits"]["hooks"] for each in spec["devices"])


def test_ids_are_unique_per_device_and_preparation():
    twice = replace(RECORD, claim=claim_of(1, "gpu-0", "gpu-0"))
    again = replace(twice, preparation="ffffffff")
    ids = [*device_ids(twice, DRIVER), *device_ids(again, DRIVER)]
    assert ids[0] == f"k8s.gpu.example.com/claim={NAME}-0-gpu-0"
    assert len(set(ids)) == 4


def test_a_spec_that_says_the_same_is_left_alone(tmp_path: Path):
    folder(tmp_path).write(RECORD)
    [before] = [file.stat().st_ino for file in tmp_path.iterdir()]
    folder(tmp_path).write(RECORD)
    assert [file.stat().st_ino for file in tmp_path.iterdir()] == [before]


def test_what_runtimes_would_refuse_is_told_at_once_and_not_written(tmp_path: Path):
    mount = Mount(host_path="marker", container_path="/a\0b")
    bad = replace(
        RECORD,
        claim=claim_of(1, "gpu/0", "gpu-1", "gpu-2"),
        edits=(Edits(), Edits(env=("GPU", "=x"), device_nodes=(DeviceNode(path="dev"),), mounts=(mount,))),
    )
    with pytest.raises(PluginError) as caught:
        folder(tmp_path).write(bad)
    assert set(codes(caught.value)) == {"cdi-refused"}
    texts = " ".join(problem.message for problem in caught.value.problems)
    for each in ("2 edits for 3", "letters", "nothing", "'GPU'", "'=x'", "'dev'", "'marker'", "'/a\\x00b'"):
        assert each in texts
    assert not list(tmp_path.iterdir())
    with pytest.raises(PluginError):
        make_spec(RECORD, "gpu example")


def test_only_specs_of_the_driver_are_read_and_removed(tmp_path: Path):
    specs = folder(tmp_path)
    specs.write(RECORD)
    others = {"nvidia.yaml", f"k8s.other.example.com-claim_{uid_of(2)}.json", f".{SPEC.format('x')}"}
    for name in others:
        (tmp_path / name).write_text("{}")
    half = tmp_path / f".{SPEC.format(uid_of(3))}.12345678.tmp"
    half.write_text("{")
    specs.tidy()
    assert specs.uids() == {uid_of(1)}
    assert specs.names(uid_of(1)) == (f"{NAME}-0-gpu-0", f"{NAME}-1-gpu-1")
    specs.remove(uid_of(1))
    specs.remove(uid_of(1))
    assert {file.name for file in tmp_path.iterdir()} == others


@pytest.mark.parametrize(
    "content",
    ["", "[", "[]", '{"devices": [{}]}', '{"kind": "x/y", "devices": []}', '{"devices": [{"name": 1}]}'],
)
def test_a_spec_that_is_not_ours_tells_no_names(tmp_path: Path, content: str):
    (tmp_path / SPEC.format(uid_of(1))).write_text(content)
    assert folder(tmp_path).names(uid_of(1)) == ()


def test_a_spec_has_no_name_but_a_uid(tmp_path: Path):
    with pytest.raises(PluginError) as caught:
        folder(tmp_path).remove("../../etc/passwd")
    assert codes(caught.value) == ["invalid-claim-uid"]
