from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.codes import CODES
from dra_infra.policies.pack import REMEDIED, SETTINGS, policies
from dra_infra.program.surroundings import SECRET_SIGNATURE, SIGNATURE_KEY, UNKNOWN_VALUE
from tests.unit.policies.engine import Engine

API = "resource.k8s.io/v1"
H100 = {
    "apiVersion": API,
    "kind": "DeviceClass",
    "metadata": {"name": "h100"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]},
}
UNGUARDED = 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'
GUARD = 'has(device.attributes["gpu.nvidia.com"].architecture)'


def claim(name: str = "gpus", **exactly: Any) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "h100", **exactly}}
    return written(name, request)


def written(name: str, request: Any) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": [request]}},
    }


def selected(expression: str) -> dict[str, Any]:
    return claim(selectors=[{"cel": {"expression": expression}}])


def pod(claim_name: str = "gpus") -> dict[str, Any]:
    container = {"name": "a", "image": "registry.example/a:1", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {
            "containers": [container],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim_name}],
        },
    }


def secret(value: Any) -> dict[str, Any]:
    return {SIGNATURE_KEY: SECRET_SIGNATURE, "value": value}


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.configure({})
    engine.send(H100)
    return engine


def test_there_is_a_policy_for_each_code_of_a_problem_and_one_for_the_settings(engine: Engine) -> None:
    names = {each.name for each in engine.analyzer.GetAnalyzerInfo(None, None).policies}
    assert names == {SETTINGS, *(code for code, text in CODES.items() if not text.startswith("danger:"))}
    assert set(REMEDIED) <= names
    assert all(policies().values())


def test_a_program_without_problems_has_no_findings(engine: Engine) -> None:
    engine.send(claim())
    assert engine.findings() == []


def test_an_error_is_mandatory_and_a_warning_advisory(engine: Engine) -> None:
    engine.send(claim("wrong", count=-1))
    engine.send(selected(UNGUARDED))
    assert {each[:2] for each in engine.findings()} == {
        ("mandatory", "count-below-one"),
        ("advisory", "cel-unguarded-read"),
    }
    assert all(urn.endswith(("::wrong", "::gpus")) for urn in engine.urns_found())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"count-below-one": "advisory"}, {"advisory"}),
        ({"count-below-one": "disabled"}, set()),
        ({"count-below-one": "remediate"}, {"mandatory"}),
    ],
)
def test_a_level_counts_for_its_code(engine: Engine, config: Any, expected: set[str]) -> None:
    engine.configure(config)
    engine.send(claim(count=-1))
    assert {level for level, _, _ in engine.findings()} == expected


@pytest.mark.parametrize(
    "config", [{"cel-unguarded-read": {"warnings": "mandatory"}}, {"settings": {"strict": True}}]
)
def test_a_warning_is_mandatory_where_the_configuration_says_so(engine: Engine, config: Any) -> None:
    engine.configure(config)
    engine.send(selected(UNGUARDED))
    assert [each[:2] for each in engine.findings()] == [("mandatory", "cel-unguarded-read")]


def test_a_read_is_guarded(engine: Engine) -> None:
    engine.configure({"cel-unguarded-read": "remediate"})
    assert engine.send(selected(f"{UNGUARDED} && device.driver == 'gpu.nvidia.com'")) == [
        "cel-unguarded-read"
    ]
    expression = engine.last["spec"]["devices"]["requests"][0]["exactly"]["selectors"][0]["cel"]["expression"]
    assert expression == f"{GUARD} && {UNGUARDED} && device.driver == 'gpu.nvidia.com'"
    assert engine.findings() == []


def test_a_read_whose_guard_has_no_certain_place_stays(engine: Engine) -> None:
    engine.configure({"cel-unguarded-read": "remediate"})
    assert engine.send(selected(f"(device.driver == 'x' || {UNGUARDED})")) == []
    assert [each[:2] for each in engine.findings()] == [("advisory", "cel-unguarded-read")]


def test_a_request_gets_exactly(engine: Engine) -> None:
    engine.configure({"unknown-field": "remediate"})
    assert engine.send(written("gpus", {"name": "gpu", "deviceClassName": "h100", "count": 2})) == [
        "unknown-field"
    ]
    assert engine.last["spec"] == claim(count=2)["spec"]
    assert engine.findings() == []


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
def test_the_version_of_an_object_stays(engine: Engine, version: str) -> None:
    engine.configure({"unknown-field": "remediate", "settings": {"kubernetes": "1.37"}})
    manifest = written("gpus", {"name": "gpu", "deviceClassName": "h100", "count": 2})
    engine.send({**manifest, "apiVersion": f"resource.k8s.io/{version}"})
    assert engine.last == {**claim(count=2), "apiVersion": f"resource.k8s.io/{version}"}


def test_a_request_that_says_two_things_stays(engine: Engine) -> None:
    engine.configure({"unknown-field": "remediate"})
    request = {"name": "gpu", "deviceClassName": "a100", "exactly": {"deviceClassName": "h100"}}
    assert engine.send(written("gpus", request)) == []
    assert ("mandatory", "unknown-field") in {each[:2] for each in engine.findings()}


def test_nothing_is_remedied_that_nobody_asked_for(engine: Engine) -> None:
    assert engine.send(selected(UNGUARDED)) == []
    assert engine.last == selected(UNGUARDED)


def test_secrets_and_unknown_values_survive_a_remedy(engine: Engine) -> None:
    engine.configure({"unknown-field": "remediate"})
    manifest = written("gpus", {"name": "gpu", "deviceClassName": "h100"})
    manifest["metadata"]["labels"] = {"owner": secret("planted"), "id": UNKNOWN_VALUE}
    assert engine.send(manifest) == ["unknown-field"]
    assert engine.last["metadata"] == manifest["metadata"]


def test_a_spec_that_is_not_known_is_not_remedied(engine: Engine) -> None:
    engine.configure({"unknown-field": "remediate"})
    assert engine.send(written("gpus", {"name": "gpu", "deviceClassName": UNKNOWN_VALUE})) == []


@pytest.mark.parametrize(
    ("value", "why"), [(UNKNOWN_VALUE, "known only after `pulumi up`"), (secret(-1), "secret")]
)
def test_a_value_that_is_not_seen_is_not_decided(engine: Engine, value: Any, why: str) -> None:
    engine.send(claim(count=value))
    ((level, policy, text),) = engine.findings()
    assert (level, policy) == ("advisory", "object-not-complete")
    assert f"spec.devices.requests[0].exactly.count is {why}: " in text


def test_labels_and_environments_that_are_secret_are_nobodys_business(engine: Engine) -> None:
    engine.send(claim())
    holder = pod()
    holder["metadata"]["labels"] = {"owner": secret("planted")}
    holder["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": secret("planted")}]
    engine.send(holder)
    assert engine.findings() == []


def test_a_secret_setting_is_not_shown(engine: Engine) -> None:
    engine.configure({}, {"project:token": "planted-setting"}, ["project:token"])
    engine.send(claim("planted-setting", count=-1))
    assert "planted-setting" not in str(engine.findings())


def test_pods_are_placed_on_the_fleet_of_the_stack_or_of_the_pack(engine: Engine) -> None:
    engine.send(claim(count=9))
    engine.send(pod())
    assert engine.findings() == []
    for config, stack in (({}, {"dra-infra:fleet": "hgx-h100"}), ({"settings": {"fleet": "hgx-h100"}}, {})):
        engine.configure(config, stack)
        ((level, policy, text),) = engine.findings()
        assert (level, policy) == ("mandatory", "does-not-fit")
        assert text.startswith("Pod ml/train: does not fit hgx-h100 x 1: ")
    assert engine.urns_found() == ["urn:pulumi:dev::project::kubernetes:core/v1:Pod::train"]


def test_the_pack_wins_over_the_stack(engine: Engine) -> None:
    engine.configure({"settings": {"fleet": "hgx-h100 x 2"}}, {"dra-infra:fleet": "no-such-fleet"})
    engine.send(claim(count=8))
    engine.send(pod())
    assert engine.findings() == []


def test_pods_that_find_no_order_together_are_reported(engine: Engine) -> None:
    engine.configure({"settings": {"fleet": "hgx-h100"}})
    for name in ("one", "two"):
        engine.send(claim(name, count=8))
        holder = pod(name)
        holder["metadata"] = {"name": name, "namespace": "ml"}
        engine.send(holder)
    assert [each[:2] for each in engine.findings()] == [("mandatory", "never-fit-at-once")]


def test_a_snapshot_is_the_hardware(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": load_fleet("hgx-h100").to_manifests()})
    )
    engine.configure({"settings": {"snapshot": str(file)}})
    engine.send(claim(count=8))
    engine.send(pod())
    assert engine.findings() == []
    engine.send(claim(count=9))
    assert [each[:2] for each in engine.findings()] == [("mandatory", "does-not-fit")]


@pytest.mark.parametrize(
    ("settings", "code", "text"),
    [
        ({"kubernetes": "1.12"}, "unknown-kubernetes", "1.12"),
        ({"fleet": "hgx-h1000"}, "fleet-unknown", "hgx-h1000"),
        ({"fleet": "fleet.yaml"}, "fleet-unreadable", "write the whole path"),
        ({"snapshot": "/nowhere/cluster.yaml"}, "fleet-unreadable", "/nowhere/cluster.yaml"),
        ({"gates": {"DRANoSuchGate": True}}, "unknown-gate", "DRANoSuchGate"),
        ({"gates": "DRADeviceTaints=true"}, "wrong-type", "is not a mapping of gates to true or false"),
        ({"driver": "1.0"}, "unknown-driver-release", "1.0"),
        ({"flete": "hgx-h100"}, "unknown-setting", "did you mean fleet?"),
        ({"kubernetes": 1.37}, "wrong-type", "1.37 is not a text"),
        ({"strict": "yes"}, "wrong-type", "'yes' is not true or false"),
    ],
)
def test_a_wrong_setting_of_the_pack_is_a_problem_with_a_code(
    engine: Engine, settings: Any, code: str, text: str
) -> None:
    engine.configure({"settings": settings})
    ((level, policy, message),) = engine.findings()
    assert (level, policy) == ("mandatory", "settings")
    assert f"[{code}]" in message
    assert text in message


def test_a_wrong_setting_of_the_stack_is_one_too(engine: Engine) -> None:
    engine.configure({}, {"dra-infra:flete": "hgx-h100"})
    ((level, policy, message),) = engine.findings()
    assert (level, policy) == ("mandatory", "settings")
    assert "[unknown-setting]" in message


def test_objects_that_a_provider_makes_are_said_to_be_unseen(engine: Engine) -> None:
    engine.send({"kind": "Release", "chart": "x"}, type_="kubernetes:helm.sh/v3:Release", name="operator")
    ((level, policy, text),) = engine.findings()
    assert (level, policy) == ("advisory", "objects-not-seen")
    assert text.startswith("kubernetes:helm.sh/v3:Release operator: nothing is said about its objects: ")


def test_what_a_component_made_has_the_name_of_the_component(engine: Engine) -> None:
    engine.send({"kind": "Group"}, type_="dra-infra:index:GpuClaim", name="trainer")
    engine.send(claim(count=-1), parent=engine.urns[-1])
    ((_, _, text),) = engine.findings()
    assert text.startswith('GpuClaim("trainer").spec.devices.requests[0].exactly.count: ')


def test_no_other_command_loads_the_pack() -> None:
    script = "import sys, dra_infra, dra_infra.__main__, dra_infra.answers; print([n for n in sys.modules if 'policies' in n or n == 'grpc'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
