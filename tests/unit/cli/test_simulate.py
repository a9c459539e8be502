from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.cli.app import app
from dra_infra.cli.simulate import describe
from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.scheduler.fleet import Fleet
from dra_infra.placement.placement import Placement, Reason, WorkloadPlacement


def test_room_for_all_at_once_is_doubted_only_where_each_fits_alone():
    def lines(*verdicts):
        workloads = tuple(
            WorkloadPlacement(
                owner=ObjectRef(kind="Job", name=f"j{index}", namespace="ml"),
                replicas=1,
                verdict=verdict,
                reasons=(Reason(code="too-few-nodes", message="0 of 1 pods fit"),),
            )
            for index, verdict in enumerate(verdicts)
        )
        return "\n".join(describe(Placement(fleet=Fleet(name="f"), workloads=workloads, together=False)))

    assert "placed alone" in lines("fits", "fits")
    assert "placed alone" not in lines("does-not-fit")


CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "any"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "four", "namespace": "ml"},
    "spec": {
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any", "count": 4}}]}
        }
    },
}
SERVING = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "serving", "namespace": "ml"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "serving"}},
        "template": {
            "metadata": {"labels": {"app": "serving"}},
            "spec": {
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "four"}],
                "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
            },
        },
    },
}


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    file = tmp_path / "serving.yaml"
    file.write_text(yaml.safe_dump_all([CLASS, TEMPLATE, SERVING]))
    return file


def simulate(*arguments: object):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)], standalone_mode=False)


def answer(*arguments: object):
    result = simulate(*arguments, "--json")
    return result.return_value, json.loads(result.stdout)


def test_manifests_are_placed_as_programs_are(manifests):
    result = simulate(manifests, "--fleet", "hgx-h100")
    assert result.return_value == 0, result.output
    assert "✓ Deployment ml/serving" in result.stdout
    assert any(line.split() == ["any", "8", "0", "-"] for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("options", "fits", "more"),
    [
        ((), True, 2),
        (("--scale", "deployment/serving=4"), True, 0),
        (("--scale", "deployment/serving=5"), False, 0),
        (("--scale", "deployment/serving=5", "--add", "hgx-h100"), True, 1),
        (("--drain", "hgx-h100-0"), True, 0),
        (("--remove", "hgx-h100-*"), False, 0),
        (("--fail", "hgx-h100-0/gpu-[0-4]"), True, 0),
        (("--fail", "*/gpu-[0-4]"), False, 0),
    ],
)
def test_what_ifs_change_the_answer(manifests, options, fits, more):
    code, found = answer(manifests, "--fleet", "hgx-h100 x 2", *options)
    (workload,) = found["workloads"]
    assert (workload["verdict"] == "fits", workload["more_pods"]) == (fits, more)
    assert code == (0 if fits else 1)
    assert len([note for note in found["notes"] if note.startswith("what if: ")]) == len(options) // 2


def test_headroom_is_told_before_and_after(manifests):
    _, found = answer(manifests, "--fleet", "hgx-h100 x 2", "--kubernetes", "1.36")
    assert found["kubernetes"] == "1.36"
    rooms = {each["name"]: each for each in found["headroom"]}
    assert rooms["any"]["before"] == {
        "claims": 16,
        "largest": 8,
        "per_node": [{"claims": 8, "nodes": 2}],
    }
    assert rooms["any"]["after"] == {"claims": 8, "largest": 8, "per_node": [{"claims": 8, "nodes": 1}]}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--scale", "deployment/serving=-1"), "scale-number"),
        (("--scale", "daemonset/serving=2"), "scale-unknown"),
        (("--remove", "nope"), "what-if-node"),
        (("--fail", "hgx-h100-0/gpu-8"), "what-if-device"),
        (("--kubernetes", "1.99"), "unknown-kubernetes"),
        (("--gate", "Nope=true"), "unknown-gate"),
        (("--driver", "99"), "unknown-driver-release"),
    ],
)
def test_mistakes_of_a_what_if_are_told_with_their_code(manifests, options, code):
    result = simulate(manifests, "--fleet", "hgx-h100", *options)
    assert isinstance(result.exception, ProblemsError)
    assert code in [problem.code for problem in result.exception.problems]


def test_an_older_driver_publishes_an_older_fleet(manifests):
    _, found = answer(manifests, "--fleet", "hgx-h100", "--driver", "25.8")
    assert "driver=25.8" in found["fleet"]
