from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.back_ends import nvml_library
from dra_infra.plugin.back_ends.driver_files import DriverRoot
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from dra_infra.plugin.back_ends.toolkit import Toolkit, find_toolkit
from dra_infra.plugin.cdi import make_spec
from dra_infra.plugin.claims import Claim, DeviceNode, Edits, Record
from dra_infra.plugin.command import self_test
from dra_infra.plugin.command.back_end_loading import LoadedBackEnd
from dra_infra.plugin.command.checks import Finding
from dra_infra.plugin.command.settings import Settings
from tests.unit.plugin.driver_tree import LIBRARIES, VERSION, make_tree
from tests.unit.plugin.fake_nvml import FakeGpu, FakeMig, FakeNvml, FakeProfile
from tests.unit.plugin.faults import claim_of, codes

DRIVER = "gpu.nvidia.com"
PROFILE = FakeProfile(shape="1_SLICE", id=19, memory_mib=9984)
MIG = FakeMig(uuid="MIG-0", gi=3, ci=1, profile=PROFILE, start=0, size=1)
MIG_NAME = "gpu-0-mig-1g10gb-19-0"
HOOK = {
    "hookName": "createContainer",
    "path": "/usr/bin/nvidia-cdi-hook",
    "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", f"/{LIBRARIES}"],
    "env": ["NVIDIA_CTK_DEBUG=false"],
}


@pytest.fixture(autouse=True)
def without_a_toolkit_of_this_machine(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "root")


@pytest.fixture
def fake() -> FakeNvml:
    whole = FakeGpu(minor=1, uuid="GPU-1")
    parted = FakeGpu(minor=0, uuid="GPU-0", mig_mode=True, profiles=(PROFILE,), migs=[MIG])
    return FakeNvml(parted, whole, driver_version=VERSION)


@pytest.fixture
def plugin(fake: FakeNvml, root: Path) -> Iterator[NvmlBackEnd]:
    made = NvmlBackEnd(pynvml=fake, driver_root=str(root), driver_root_on_host="/run/driver", system=root)
    yield made
    made.close()


def edits(plugin: NvmlBackEnd, claim: Claim) -> list[Edits]:
    """What the plugin says, after a runtime's rules were held against it."""
    found = plugin.prepare(claim)
    record = Record(claim=claim, state="completed", preparation="0a1b2c3d", boot_id="b", edits=tuple(found))
    make_spec(record, DRIVER)
    return list(found)


def spec(**changes: Any) -> dict[str, Any]:
    """As `nvidia-ctk cdi generate` writes it (generate_test.go of its source), with what newer releases add."""
    devices = [
        {
            "name": "GPU-1",
            "containerEdits": {
                "deviceNodes": [
                    {"path": "/dev/nvidia1", "major": 195, "minor": 1, "fileMode": 438, "permissions": "rw"},
                    {"path": "/dev/dri/card1", "gid": 44},
                ],
                "additionalGids": [44],
            },
        },
        {"name": "all", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia1"}]}},
    ]
    common = {
        "env": ["NVIDIA_CTK_LIBCUDA_DIR=/lib", "NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": "/dev/nvidiactl"}],
        "hooks": [HOOK],
        "mounts": [
            {
                "hostPath": f"/{LIBRARIES}/libcuda.so.{VERSION}",
                "containerPath": f"/{LIBRARIES}/libcuda.so.{VERSION}",
                "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"],
            }
        ],
    }
    return {
        "cdiVersion": "0.7.0",
        "kind": "nvidia.com/gpu",
        "devices": devices,
        "containerEdits": common,
        **changes,
    }


def make_toolkit(place: Path, says: Any, *, code: int = 0, error: str = "") -> str:
    """A program that stands for nvidia-ctk: it writes what it is to say, and keeps how it was called."""
    text = says if isinstance(says, str) else json.dumps(says)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open({str(place) + '.calls'!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        f"sys.stdout.write({text!r})\nsys.stderr.write({error!r})\nsys.exit({code})\n"
    )
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return str(place)


def with_toolkit(fake: FakeNvml, root: Path, says: Any, **more: Any) -> NvmlBackEnd:
    program = make_toolkit(root.parent / "bin/nvidia-ctk", says, **more)
    return NvmlBackEnd(pynvml=fake, system=root, toolkit=program)


def test_without_the_toolkit_the_drivers_files_are_found(plugin: NvmlBackEnd):
    [found] = edits(plugin, claim_of(1, "gpu-1"))
    assert found.env == ("NVIDIA_VISIBLE_DEVICES=void",)
    assert [(each.path, each.host_path) for each in found.device_nodes] == [
        ("/dev/nvidiactl", "/run/driver/dev/nvidiactl"),
        ("/dev/nvidia-uvm", "/run/driver/dev/nvidia-uvm"),
        ("/dev/nvidia-uvm-tools", "/run/driver/dev/nvidia-uvm-tools"),
        ("/dev/nvidia1", "/run/driver/dev/nvidia1"),
    ]
    mounts = {each.container_path: each.host_path for each in found.mounts}
    folder = f"/{LIBRARIES}"
    cuda = f"/run/driver{folder}/libcuda.so.{VERSION}"
    # Loaders ask for the second name, compilers for the third, and a cache of libraries is not made.
    for name in (f"libcuda.so.{VERSION}", "libcuda.so.1", "libcuda.so"):
        assert mounts[f"{folder}/{name}"] == cuda
    assert f"{folder}/vdpau/libvdpau_nvidia.so.1" in mounts
    assert mounts["/usr/bin/nvidia-smi"] == "/run/driver/usr/bin/nvidia-smi"
    assert not any("550.54" in path or "libz" in path for path in (*mounts, *mounts.values()))
    assert all(each.options == ("ro", "nosuid", "nodev", "rbind", "rprivate") for each in found.mounts)
    assert not found.hooks
    assert "without nvidia-ctk" in plugin.edits_from


def test_a_mig_device_has_its_gpus_file_and_two_that_open_it(plugin: NvmlBackEnd):
    [found] = edits(plugin, claim_of(1, MIG_NAME))
    assert DeviceNode(path="/dev/nvidia0", host_path="/run/driver/dev/nvidia0") in found.device_nodes
    assert found.device_nodes[-2:] == (
        DeviceNode(path="/dev/nvidia-caps/nvidia-cap30", type="c", major=236, minor=30, file_mode=0o444),
        DeviceNode(path="/dev/nvidia-caps/nvidia-cap31", type="c", major=236, minor=31, file_mode=0o444),
    )


def test_the_same_claim_is_answered_the_same(plugin: NvmlBackEnd):
    claim = claim_of(1, MIG_NAME, "gpu-1")
    assert edits(plugin, claim) == edits(plugin, claim)


@pytest.mark.parametrize("name", ["dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia1"])
def test_a_device_file_that_is_not_there_is_told_with_what_makes_it(
    name: str, plugin: NvmlBackEnd, root: Path
):
    (root / name).unlink()
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, "gpu-1"))
    [problem] = caught.value.problems
    assert (problem.code, problem.path) == ("driver-files-missing", f"/{name}")
    assert "nvidia-modprobe" in problem.hint


def test_other_files_that_are_missing_are_told(plugin: NvmlBackEnd, fake: FakeNvml, root: Path):
    (root / "proc/devices").write_text("Character devices:\n  1 mem\n")
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, MIG_NAME))
    assert codes(caught.value) == ["driver-files-missing"]
    make_proc_unreadable(root)
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, MIG_NAME))
    assert codes(caught.value) == ["driver-files-missing"]
    fake.driver_version = "580.1.1"
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, "gpu-1"))
    assert "no libcuda.so.580.1.1 is in" in caught.value.problems[0].message
    fake.fail("nvmlSystemGetDriverVersion", pynvml.NVML_ERROR_UNKNOWN)
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, "gpu-1"))
    assert codes(caught.value) == ["driver-files-missing"]


@pytest.mark.parametrize(
    ("library", "told"),
    [
        ("/usr/local/nvidia/lib64/libnvidia-ml.so.580.159.04", "/usr/local/nvidia"),
        ("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/"),
        ("/opt/libnvidia-ml.so.1", ""),
        ("/usr/lib64/libnvidia-mlx.so.1", ""),
    ],
)
def test_libraries_that_are_elsewhere_are_where_nvml_was_loaded_from(
    library: str, told: str, fake: FakeNvml, plugin: NvmlBackEnd, tmp_path: Path, monkeypatch
):
    maps = tmp_path / "maps"
    maps.write_text(
        f"7f00-7f01 r-xp 00000000 fe:10 40    {library}\n7ffd-7ffe rw-p 00000000 00:00 0    [stack]\n"
    )
    monkeypatch.setattr(nvml_library, "_MAPS", maps)
    fake.driver_version = "580.159.04"
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, "gpu-1"))
    [problem] = caught.value.problems
    assert problem.code == "driver-files-missing"
    assert problem.hint.endswith(f": set --driver-root {told}") if told else "(nvidia-ctk)" in problem.hint


def make_proc_unreadable(root: Path) -> None:
    (root / "proc/devices").write_text("Character devices:\n236 nvidia-caps\n\nBlock devices:\n")
    (root / "proc/driver/nvidia/capabilities/gpu0/mig/gi3/ci1/access").write_text("DeviceFileMinor: 31\n")


def test_without_device_files_in_the_drivers_folder_those_of_the_node_are_taken(fake: FakeNvml, root: Path):
    (root / "dev").rename(root.parent / "dev")
    plugin = NvmlBackEnd(pynvml=fake, driver_root=str(root), toolkit="", system=root.parent)
    [found] = edits(plugin, claim_of(1, "gpu-1"))
    plugin.close()
    assert found.device_nodes[0] == DeviceNode(path="/dev/nvidiactl")


def test_links_in_a_circle_are_no_library(plugin: NvmlBackEnd, root: Path):
    (root / LIBRARIES / "liba.so.1").symlink_to("libb.so.1")
    (root / LIBRARIES / "libb.so.1").symlink_to("liba.so.1")
    (root / LIBRARIES / "libc.so.1").symlink_to("../../../../../../libcuda.so")
    [found] = edits(plugin, claim_of(1, "gpu-1"))
    assert not any(
        name in each.container_path for each in found.mounts for name in ("liba", "libb", "libc.so")
    )


def test_the_toolkits_spec_is_taken_as_a_whole(fake: FakeNvml, root: Path):
    plugin = with_toolkit(fake, root, spec())
    [found] = edits(plugin, claim_of(1, "gpu-1"))
    plugin.close()
    assert found.env == ("NVIDIA_CTK_LIBCUDA_DIR=/lib", "NVIDIA_VISIBLE_DEVICES=void")
    assert found.device_nodes == (
        DeviceNode(path="/dev/nvidiactl"),
        DeviceNode(path="/dev/nvidia1", major=195, minor=1, file_mode=0o666, permissions="rw"),
        DeviceNode(path="/dev/dri/card1", gid=44),
    )
    assert found.additional_gids == (44,)
    [mount] = found.mounts
    assert mount.options == ("ro", "nosuid", "nodev", "rbind", "rprivate")
    [hook] = found.hooks
    assert (hook.name, hook.path) == ("createContainer", "/usr/bin/nvidia-cdi-hook")
    assert hook.arguments[1] == "update-ldcache"
    assert plugin.edits_from.endswith("bin/nvidia-ctk")
    calls = (root.parent / "bin/nvidia-ctk.calls").read_text()
    assert calls == "cdi generate --format=json --mode=nvml --device-name-strategy=uuid --driver-root=/\n"


def test_a_mig_device_that_the_toolkit_names_gets_its_two_files_besides(fake: FakeNvml, root: Path):
    said = spec()
    said["devices"].append({"name": "MIG-0", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}})
    for one in (said, spec()):
        plugin = with_toolkit(fake, root, one)
        [found] = edits(plugin, claim_of(1, MIG_NAME))
        plugin.close()
        assert [each.path for each in found.device_nodes] == [
            "/dev/nvidiactl",
            "/dev/nvidia0",
            "/dev/nvidia-caps/nvidia-cap30",
            "/dev/nvidia-caps/nvidia-cap31",
        ]
        assert found.hooks


def test_paths_of_the_drivers_folder_become_those_of_the_node(fake: FakeNvml, root: Path):
    said = spec()
    said["containerEdits"]["mounts"][0]["hostPath"] = f"{root}/{LIBRARIES}/libcuda.so.{VERSION}"
    said["containerEdits"]["deviceNodes"] = [{"path": "/dev/nvidiactl", "hostPath": f"{root}/dev/nvidiactl"}]
    program = make_toolkit(root / "usr/bin/nvidia-ctk", said)
    plugin = NvmlBackEnd(pynvml=fake, driver_root=str(root), driver_root_on_host="/", system=root)
    assert plugin.edits_from == program, "found in the driver's folder"
    [found] = edits(plugin, claim_of(1, "gpu-1"))
    plugin.close()
    assert found.mounts[0].host_path == f"/{LIBRARIES}/libcuda.so.{VERSION}"
    assert found.device_nodes[0] == DeviceNode(path="/dev/nvidiactl")
    assert f"--driver-root={root}" in Path(f"{program}.calls").read_text()


@pytest.mark.parametrize("there", ["no folder", "an empty folder"])
def test_the_toolkit_is_told_that_device_files_are_not_in_the_drivers_folder(
    there: str, fake: FakeNvml, root: Path
):
    (root / "dev").rename(root.parent / "dev")
    if there == "an empty folder":
        (root / "dev").mkdir()
    program = make_toolkit(root / "usr/bin/nvidia-ctk", spec())
    plugin = NvmlBackEnd(pynvml=fake, driver_root=str(root), system=root.parent)
    edits(plugin, claim_of(1, "gpu-1"))
    plugin.close()
    assert f"--driver-root={root} --dev-root={root.parent}\n" in Path(f"{program}.calls").read_text()


def test_hooks_are_those_beside_the_toolkit_at_their_path_on_the_node(fake: FakeNvml, root: Path):
    folder = root / "usr/local/nvidia/toolkit"
    program = make_toolkit(folder / "nvidia-ctk.real", spec())
    make_toolkit(folder / "nvidia-ctk", "", code=1)
    (folder / "nvidia-cdi-hook").touch()
    plugin = NvmlBackEnd(pynvml=fake, driver_root=str(root), driver_root_on_host="/", system=root)
    assert plugin.edits_from == program, "beside it is a script, and an image without a shell cannot run it"
    edits(plugin, claim_of(1, "gpu-1"))
    plugin.close()
    called = Path(f"{program}.calls").read_text().split()
    assert "--nvidia-cdi-hook-path=/usr/local/nvidia/toolkit/nvidia-cdi-hook" in called


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("", "no JSON"),
        ("{}{}", "no JSON"),
        ("[]", "has to be of type dict"),
        ({"kind": "a/b"}, "devices is None"),
        (spec(containerEdits={"netDevices": [{"name": "x"}]}), "'netDevices'"),
        (spec(containerEdits={"intelRdt": {}}), "'intelRdt'"),
        (spec(containerEdits={"env": [1]}), "containerEdits.env is 1"),
        (spec(containerEdits={"env": "A=1"}), "of type list"),
        (
            spec(containerEdits={"mounts": [{"hostPath": "/a", "containerPath": "/a", "type": "tmpfs"}]}),
            "'type'",
        ),
        (spec(containerEdits={"mounts": [{"hostPath": "/a"}]}), "containerPath is None"),
        (spec(containerEdits={"hooks": [{**HOOK, "timeout": 1}]}), "'timeout'"),
        (spec(containerEdits={"deviceNodes": [{"path": "/dev/a", "major": True}]}), "major is True"),
        (spec(containerEdits={"deviceNodes": [{"path": "/dev/a", "gid": "44"}]}), "gid is '44'"),
        (spec(containerEdits={"additionalGids": [None]}), "additionalGids is None"),
        (spec(devices=[{"name": 1, "containerEdits": {}}]), "devices[0].name is 1"),
        (spec(devices=[{"name": "GPU-1", "containerEdits": None}]), "device GPU-1 is None"),
        (spec(hurry=1), "'hurry'"),
        (spec(devices=[]), "says nothing of GPU-1"),
    ],
)
def test_a_spec_that_would_not_be_taken_as_a_whole_is_refused(
    says: Any, told: str, fake: FakeNvml, root: Path
):
    plugin = with_toolkit(fake, root, says)
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, "gpu-1"))
    plugin.close()
    [problem] = caught.value.problems
    assert problem.code == "toolkit-failed"
    assert told in problem.message


def test_a_toolkit_that_fails_is_told_in_its_own_words(fake: FakeNvml, root: Path):
    plugin = with_toolkit(fake, root, "", code=3, error="level=info\nlevel=error msg=no driver\n")
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, "gpu-1"))
    plugin.close()
    assert "ends with 3: level=error msg=no driver" in caught.value.problems[0].message
    assert "--toolkit /dev/null" in caught.value.problems[0].hint
    gone = NvmlBackEnd(pynvml=fake, system=root, toolkit=str(root / "none"))
    with pytest.raises(PluginError) as caught:
        gone.prepare(claim_of(1, "gpu-1"))
    gone.close()
    assert codes(caught.value) == ["toolkit-failed"]


def test_a_spec_is_made_anew_when_it_is_old_or_its_files_are_gone(root: Path):
    library = root / "library.so"
    library.touch()
    said = spec()
    said["containerEdits"]["mounts"][0]["hostPath"] = str(library)
    program = make_toolkit(root.parent / "bin/nvidia-ctk", said)
    calls = Path(f"{program}.calls")
    now = [0.0]
    toolkit = Toolkit(program, DriverRoot(), clock=lambda: now[0])

    def made() -> int:
        toolkit.edits("GPU-1")
        return len(calls.read_text().splitlines())

    assert (made(), made()) == (1, 1)
    now[0] = 301
    assert (made(), made()) == (2, 2)
    library.unlink()
    assert made() == 3
    with pytest.raises(PluginError):
        toolkit.edits("GPU-2")
    assert len(calls.read_text().splitlines()) == 4, "it may have been added since"


def test_the_toolkit_can_be_left_alone(fake: FakeNvml, root: Path):
    make_toolkit(root / "usr/bin/nvidia-ctk", "", code=1)
    plugin = NvmlBackEnd(pynvml=fake, driver_root=str(root), toolkit="/dev/null", system=root)
    [found] = edits(plugin, claim_of(1, "gpu-1"))
    plugin.close()
    assert any(each.container_path.endswith("/libcuda.so.1") for each in found.mounts)


def test_the_toolkit_is_looked_for_on_path_first(root: Path, monkeypatch):
    assert find_toolkit(DriverRoot(here=root)) is None
    program = make_toolkit(root.parent / "bin/nvidia-ctk", spec())
    monkeypatch.setenv("PATH", str(root.parent / "bin"))
    assert find_toolkit(DriverRoot(here=root)) == program


def checked(plugin: NvmlBackEnd, folder: Path, monkeypatch) -> list[Finding]:
    monkeypatch.setattr(
        self_test, "make_back_end", lambda *_: LoadedBackEnd(back_end=plugin, try_edits=plugin.try_edits)
    )
    settings = Settings(back_end="nvml", node_name="node-1", kubelet_root=folder, cdi_folder=folder / "cdi")
    return [each for each in self_test.check(settings, {}) if each.what in ("devices", "what containers get")]


def test_the_check_tries_what_a_container_would_get(plugin: NvmlBackEnd, root: Path, tmp_path, monkeypatch):
    devices, files = checked(plugin, tmp_path, monkeypatch)
    assert devices.found == "2 of gpu.nvidia.com"
    assert (
        files.found
        == "6 device files, 10 files of the driver, by the driver's files, found without nvidia-ctk"
    )
    (root / "dev/nvidia-uvm").unlink()
    devices, files = checked(plugin, tmp_path, monkeypatch)
    assert devices.holds, "and yet no pod would start"
    assert files.problem
    assert files.problem.code == "driver-files-missing"


def test_the_check_says_once_that_nvml_does_not_work(
    plugin: NvmlBackEnd, fake: FakeNvml, tmp_path, monkeypatch
):
    fake.fail("nvmlInitWithFlags", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    [found] = checked(plugin, tmp_path, monkeypatch)
    assert found.problem
    assert (found.what, found.problem.code) == ("devices", "nvml-not-usable")
