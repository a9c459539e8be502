from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
import yaml

import dra_infra as dra
from dra_infra.testing import SynthesizedProgram, synth

POD: dict[str, Any] = {"containers": [{"name": "train", "image": "t:1"}, {"name": "infer", "image": "i:1"}]}


def partition(name: str = "part", **arguments: Any) -> SynthesizedProgram:
    def program() -> None:
        dra.MigPartition(name, **arguments)

    return synth(program)


def problems_of(program: SynthesizedProgram) -> set[tuple[str, str]]:
    return {(problem.path, problem.code) for problem in program.problems}


def devices_of(program: SynthesizedProgram) -> dict[str, Any]:
    assert program.problems == ()
    (manifest,) = program.objects
    spec = manifest["spec"]
    return spec["spec"]["devices"] if manifest["kind"] == "ResourceClaimTemplate" else spec["devices"]


def test_a_partition_is_a_template_with_a_guarded_test_of_the_profile():
    program = partition("notebook", profile="1g.10gb", namespace="ml")
    (template,) = program.objects
    assert (template["kind"], template["metadata"]["namespace"]) == ("ResourceClaimTemplate", "ml")
    assert template["metadata"]["name"].startswith("notebook-")
    profile = 'device.attributes["gpu.nvidia.com"].profile'
    exactly = {
        "deviceClassName": "mig.nvidia.com",
        "count": 1,
        "selectors": [{"cel": {"expression": f'has({profile}) && {profile} == "1g.10gb"'}}],
    }
    assert devices_of(program) == {"requests": [{"name": "mig", "exactly": exactly}]}


def test_a_shared_partition_is_a_claim():
    def program() -> None:
        shared = dra.MigPartition("shared", profile="1g.10gb", shared=True, object_name="fixed")
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=shared.attach(POD, "train"))

    made = synth(program)
    assert made.problems == ()
    assert made.claim("shared").manifest["kind"] == "ResourceClaim"
    (pod,) = [each for each in made.objects if each["kind"] == "Pod"]
    assert pod["spec"]["resourceClaims"] == [{"name": "shared", "resourceClaimName": "fixed"}]


def test_devices_of_one_gpu_have_one_parent():
    devices = devices_of(partition(profiles=["3g.40gb", "1g.10gb"], same_gpu=True))
    assert devices["constraints"] == [{"matchAttribute": "gpu.nvidia.com/parentUUID"}]
    assert [each["name"] for each in devices["requests"]] == ["mig-0", "mig-1"]


def test_at_least_is_a_list_of_alternatives():
    (request,) = devices_of(partition(memory="20Gi", compute=2))["requests"]
    alternatives = request["firstAvailable"]
    assert len(alternatives) == 8
    assert {each["deviceClassName"] for each in alternatives} == {"mig.nvidia.com"}


def test_each_container_gets_its_own_profile_by_the_name_of_the_request():
    def program() -> None:
        pair = dra.MigPartition("pair", profiles={"big": "3g.40gb", "small": "1g.10gb"}, same_gpu=True)
        spec = pair.attach(pair.attach(POD, "train", request="big"), "infer", request="small")
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=spec)

    made = synth(program)
    assert made.problems == ()
    (pod,) = [each for each in made.objects if each["kind"] == "Pod"]
    assert [each["resources"]["claims"] for each in pod["spec"]["containers"]] == [
        [{"name": "pair", "request": "big"}],
        [{"name": "pair", "request": "small"}],
    ]


def test_problems_name_the_arguments_of_the_component_all_at_once():
    made = partition(
        "part",
        profile="1g.10bg",
        gpu="H100-80GB",
        count=0,
        device_class="gpu.nvidia.com",
        labels=3,
        shared="yes",
        driver_release="9.9",
        profil=1,
    )
    assert problems_of(made) == {
        (f'MigPartition("part").{argument}', code)
        for argument, code in {
            "profile": "mig-profile-not-known",
            "count": "count-below-one",
            "device_class": "attribute-of-other-device",
            "labels": "wrong-type",
            "shared": "wrong-type",
            "driver_release": "unknown-driver-release",
            "profil": "unknown-argument",
        }.items()
    }
    assert made.objects == ()


def test_an_output_cannot_decide_what_is_asked_for():
    def program() -> None:
        dra.MigPartition(
            "part", profile=pulumi.Output.from_input("1g.10gb"), count=pulumi.Output.from_input(2)
        )

    assert problems_of(synth(program)) == {
        ('MigPartition("part").profile', "wrong-type"),
        ('MigPartition("part").count', "wrong-type"),
    }


@pytest.mark.parametrize(
    ("arguments", "request_name"),
    [({"profiles": {"big": "3g.40bg"}}, "big"), ({"memory": "20"}, "mig"), ({"profile": "1g"}, "mig")],
)
def test_a_partition_with_problems_adds_none_where_it_is_attached(arguments, request_name):
    def program() -> None:
        broken = dra.MigPartition("broken", gpu="H101", **arguments)
        broken.attach(POD, "train", request=request_name)

    assert problems_of(synth(program)) == {('MigPartition("broken").gpu', "product-not-known")}


def test_release_and_gates_are_those_that_are_given_or_that_the_stack_names():
    path = 'MigPartition("part").dynamic'
    assert problems_of(partition(profile="1g.10gb", dynamic=True, driver_release="25.8")) == {
        (path, "unknown-driver-gate")
    }

    def program() -> None:
        dra.MigPartition("part", profile="1g.10gb", dynamic=True)

    assert problems_of(synth(program, config={"dra-infra:driver": "25.8"})) == {(path, "unknown-driver-gate")}
    old = dra.ClusterTarget(kubernetes="1.35")
    assert problems_of(
        partition(profile="1g.10gb", driver_gates={"DynamicMIG": True, "MPSSupport": False}, target=old)
    ) == {(path, "needs-newer-kubernetes")}


def test_configs_are_for_the_devices_of_the_partition():
    devices = devices_of(partition(profile="1g.10gb", configs=[dra.MigDeviceConfig(sharing=dra.Mps())]))
    assert devices["config"][0]["opaque"]["parameters"]["kind"] == "MigDeviceConfig"
    wrong = partition(profile="1g.10gb", configs=[dra.GpuConfig(sharing=dra.TimeSlicing())])
    assert {code for _, code in problems_of(wrong)} == {"config-device-type"}


def test_a_class_of_whole_gpus_is_refused():
    def program() -> None:
        dra.MigPartition("part", profile="1g.10gb", device_class=dra.GpuDeviceClass("h100"))

    assert problems_of(synth(program)) == {('MigPartition("part").device_class', "attribute-of-other-device")}


# Placement, where the simulation knows all that decides it.


@pytest.mark.parametrize(
    ("arguments", "fleet", "fits"),
    [
        ({"profile": "1g.10gb"}, "hgx-h100 mig=1g.10gb*7", True),
        ({"profile": "1g.10gb"}, "a100-80gb x 2 mig=3g.40gb*1+1g.10gb*4", True),
        ({"profile": "1g.10gb"}, "hgx-h100", False),
        ({"profile": "1g.10gb", "gpu": "H100"}, "a100-80gb mig=1g.10gb*7", False),
        ({"profile": "1g.10gb", "gpu": "A100-80GB"}, "a100-80gb mig=1g.10gb*7", True),
        ({"profile": "3g.93gb"}, "gb200-nvl72 mig=3g.95gb", True),
        ({"profiles": ["3g.40gb", "1g.10gb"], "same_gpu": True}, "hgx-h100 mig=3g.40gb*1+1g.10gb*4", True),
        ({"profile": "1g.10gb", "count": 8}, "hgx-h100 mig=1g.10gb*7", True),
        ({"profile": "1g.10gb", "count": 7, "same_gpu": True}, "hgx-h100 mig=1g.10gb*7", True),
        ({"profile": "1g.10gb", "count": 7, "same_gpu": True}, "hgx-h100 mig=1g.10gb*6", False),
        ({"memory": "20Gi", "compute": 2, "gpu": "H100-80GB"}, "hgx-h100 mig=3g.40gb*2", True),
        ({"memory": "20Gi", "compute": 2, "gpu": "H100-80GB"}, "hgx-h100 mig=2g.20gb*3", False),
    ],
)
def test_partitions_are_placed_where_their_devices_are(arguments, fleet, fits):
    made = partition(**arguments)
    assert made.problems == ()
    assert made.claim("part").fits(fleet).placement.verdict == ("fits" if fits else "does-not-fit")


def test_devices_of_different_gpus_of_a_node_are_not_on_one_gpu(tmp_path):
    node = {"kind": "hgx-h100", "devices": 2, "mig": [{"3g.40gb": 2}, {"1g.10gb": 7}]}
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump({"nodeGroups": [node]}))
    profiles = ["3g.40gb", "1g.10gb"]
    assert not partition(profiles=profiles, same_gpu=True).claim("part").fits(str(path))
    assert partition(profiles=profiles).claim("part").fits(str(path))
