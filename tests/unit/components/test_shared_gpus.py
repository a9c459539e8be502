from __future__ import annotations

from typing import Any

import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.program.synth import synth_function


def run(body: Any, **config: str) -> Any:
    return synth_function(body, config={f"dra-infra:{key}": value for key, value in config.items()})


def made(kubernetes: str = "1.37", **arguments: Any) -> dict[str, Any]:
    program = run(lambda: dra.SharedGpu("gpu", **arguments), kubernetes=kubernetes)
    assert [str(problem) for problem in check_program(program)] == []
    (found,) = program.objects
    return dict(found.manifest)


def problems(kubernetes: str = "1.37", **arguments: Any) -> dict[str, str]:
    program = run(lambda: dra.SharedGpu("gpu", **arguments), kubernetes=kubernetes)
    assert program.objects == ()
    return {problem.path.removeprefix('SharedGpu("gpu").'): problem.code for problem in program.problems}


def test_containers_share_a_gpu_of_the_pods_own():
    manifest = made()
    assert manifest["kind"] == "ResourceClaimTemplate"
    assert manifest["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1


def test_pods_share_one_claim():
    manifest = made(across="pods", consumers=256, sharing=dra.TimeSlicing(interval="Short"))
    assert manifest["kind"] == "ResourceClaim"
    (config,) = manifest["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"]["sharing"]["timeSlicingConfig"] == {"interval": "Short"}


def test_claims_take_parts():
    exactly = made(memory="20Gi", shares=2)["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly["capacity"]["requests"] == {"memory": "20Gi", "shares": "2"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"across": "nodes"}, {"across": "wrong-type"}),
        ({"sharing": "mps"}, {"sharing": "wrong-type"}),
        ({"shares": 0}, {"shares": "wrong-type"}),
        ({"consumers": 2}, {"consumers": "sharing-conflict"}),
        ({"across": "pods", "consumers": 0}, {"consumers": "wrong-type"}),
        ({"across": "pods", "consumers": 257}, {"consumers": "too-many-consumers"}),
        ({"across": "pods", "memory": "20Gi"}, {"across": "sharing-conflict"}),
        ({"memory": "20Gi", "sharing": dra.Mps()}, {"sharing": "sharing-conflict"}),
        ({"memory": "20Gi", "driver_release": "0.4"}, {"memory": "config-needs-gate"}),
        ({"shares": 1, "driver_gates": {}}, {"shares": "config-needs-gate"}),
        ({"memory": "20 GB"}, {"memory": "wrong-type"}),
        ({"driver_release": "7.7"}, {"driver_release": "unknown-driver-release"}),
        ({"sharing": dra.TimeSlicing(interval="Longest")}, {"sharing.interval": "config-value"}),
        ({"sharing": dra.TimeSlicing(), "driver_gates": {}}, {"sharing": "config-needs-gate"}),
        ({"device_class": "mig.nvidia.com", "sharing": dra.TimeSlicing()}, {"sharing": "config-device-type"}),
        (
            {"across": "pods", "memory": "1Gi", "sharing": dra.Mps(), "consumers": 300, "select": "x"},
            {
                "across": "sharing-conflict",
                "sharing": "sharing-conflict",
                "consumers": "too-many-consumers",
                "select": "wrong-type",
            },
        ),
    ],
)
def test_what_cannot_be_is_told_at_the_argument(arguments, expected):
    assert problems(**arguments) == expected


def test_an_older_cluster_would_clear_the_part():
    assert problems(kubernetes="1.35", memory="20Gi") == {"memory": "needs-newer-kubernetes"}


def test_parts_with_the_gate_on_are_taken():
    assert made(memory="20Gi", driver_release="0.5", driver_gates={"ConsumableShares": True})
