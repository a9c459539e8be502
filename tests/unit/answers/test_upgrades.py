"""Upgrades: what differs between two releases for some objects, what is said of it, and what is never said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.answers.reviewing import compare as review_sides
from dra_infra.answers.scene import Scene
from dra_infra.answers.upgrading import check_order, make_scenes, read_upgrade, upgrade
from dra_infra.catalog import load_fleet
from dra_infra.catalog.snapshots import snapshot_of
from dra_infra.errors import InvalidSpecError
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.placement.running import Running
from dra_infra.program_objects import ProgramRelease
from dra_infra.review import Review, render_html, render_json, render_junit, render_sarif, render_text
from dra_infra.review import render_markdown as render_review
from dra_infra.upgrades.differences import Difference, Upgrade
from dra_infra.upgrades.reports import describe_upgrade, render_markdown
from tests.support.review.json_schema import find_violations
from tests.unit.answers.objects import FLEET, a_class, a_pod, a_program, a_template

CLASS = "gpu.example.com"


def compare(
    *manifests: dict[str, Any],
    older: str = "1.34",
    newer: str = "1.37",
    fleet: str | None = FLEET,
    gates: Mapping[str, bool] | None = None,
    **settings: Any,
) -> Upgrade:
    written = gates or {}
    program = a_program(*manifests, kubernetes=older, gates=written, **settings)
    scene = Scene.of(program, fleet=load_fleet(fleet, kubernetes=older) if fleet else None)
    return upgrade(make_scenes(scene, newer, written))


def codes(found: Upgrade, level: str = "") -> set[str]:
    return {each.code for each in found.differences if not level or each.level == level}


def of_code(found: Upgrade, code: str) -> list[Difference]:
    return [each for each in found.differences if each.code == code]


def a_claim(name: str = "shared", **request: Any) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": CLASS, **request}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": requests}},
    }


def with_request(manifest: dict[str, Any], **request: Any) -> dict[str, Any]:
    manifest["spec"]["spec"]["devices"]["requests"][0]["exactly"].update(request)
    return manifest


TOLERATION = {"key": "bad", "operator": "Exists", "effect": "NoExecute"}
RULE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1alpha3",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "bad"},
    "spec": {
        "deviceSelector": {"driver": CLASS},
        "taint": {"key": "bad", "value": "1", "effect": "NoExecute"},
    },
}


def test_nothing_changes_is_said_of_what_was_compared_alone() -> None:
    found = compare(a_template(), a_pod(), older="1.36")
    assert codes(found, "breaks") == codes(found, "changes") == set()
    assert found.headline == "nothing changes for you in what was compared"
    assert {each.area for each in found.compared} >= {"objects", "placement", "selectors", "gates"}
    assert found.not_compared
    assert not found.is_blocked("changes")


def test_without_hardware_placement_is_named_as_not_compared() -> None:
    found = compare(a_template(), a_pod(), fleet=None)
    assert "placement" in {each.what for each in found.not_compared}
    assert "placement" not in {each.area for each in found.compared}
    assert of_code(found, "upgrade-placement-differs") == []


@pytest.mark.parametrize(("older", "newer"), [("1.37", "1.34"), ("1.36", "1.36")])
def test_downgrades_are_refused_with_the_way_up(older: str, newer: str) -> None:
    with pytest.raises(InvalidSpecError) as raised:
        check_order(older, newer)
    (problem,) = raised.value.problems
    assert (problem.code, problem.path) == ("upgrade-order", "--to")
    assert problem.hint


def test_a_field_that_the_older_server_drops_cannot_be_applied_again() -> None:
    found = compare(a_claim(capacity={"requests": {"memory": "10Gi"}}))
    (refused,) = of_code(found, "upgrade-apply-refused")
    (field,) = of_code(found, "upgrade-field-differs")
    assert (refused.level, refused.path) == ("breaks", "spec")
    assert "immutable" in refused.after
    assert field.path == "spec.devices.requests[0].exactly.capacity"
    assert any("new name" in each.what for each in found.steps if each.when == "after")
    assert found.is_blocked()


def test_a_toleration_that_was_ignored_takes_effect() -> None:
    found = compare(with_request(a_template(), tolerations=[TOLERATION]), fleet=None)
    (field,) = of_code(found, "upgrade-field-differs")
    assert (field.before, field.after) == ("stored and ignored", "kept, and in effect")
    assert of_code(found, "upgrade-apply-refused") == []


def test_a_gate_that_is_on_before_leaves_no_difference() -> None:
    gates = {"DRADeviceTaints": True}
    found = compare(with_request(a_template(), tolerations=[TOLERATION]), fleet=None, gates=gates)
    assert of_code(found, "upgrade-field-differs") == []


def test_an_object_that_only_the_newer_server_accepts_is_created_after_the_upgrade() -> None:
    claim = a_claim(derivedAttributes=[{"name": "a/b", "expression": "1"}])
    found = compare(claim)
    assert of_code(found, "upgrade-accepted")
    assert of_code(found, "upgrade-refused") == []
    assert any(each.when == "after" and "only 1.37" in each.what for each in found.steps)


def test_an_object_that_only_the_older_server_accepts_breaks() -> None:
    rule = {**RULE, "spec": {**RULE["spec"], "deviceSelector": {"deviceClassName": CLASS}}}
    found = compare(rule)
    (refused,) = of_code(found, "upgrade-refused")
    assert refused.level == "breaks"
    assert str(refused.subject) == "DeviceTaintRule bad"
    # What is stored of it loses the field.
    assert [each.path for each in of_code(found, "upgrade-field-lost")]


def test_what_both_refuse_is_not_called_the_same() -> None:
    found = compare(a_template(count=-1))
    assert any(each.reason == "both releases refuse it" for each in found.not_compared)


def test_taints_of_rules_move_pods_once_the_gate_is_on() -> None:
    found = compare(RULE, a_template(), a_pod())
    (moved,) = of_code(found, "upgrade-placement-differs")
    assert moved.level == "breaks"
    assert moved.before.startswith("fits")
    assert "taint" in moved.after
    assert of_code(found, "upgrade-joint-differs")


def test_versions_in_etcd_are_written_again_by_one_command() -> None:
    found = compare(a_template(), RULE, fleet=None)
    stored = {each.path: (each.before, each.after) for each in of_code(found, "upgrade-stored-version")}
    assert stored["resourceclaimtemplates.resource.k8s.io"] == ("v1beta2", "v1")
    assert stored["devicetaintrules.resource.k8s.io"] == ("v1alpha3", "v1beta2")
    commands = [each.command for each in found.steps if "kubectl" in each.command]
    assert len(commands) == 1
    assert all(plural in commands[0] for plural in stored)
    assert of_code(compare(a_template(), older="1.35", fleet=None), "upgrade-stored-version") == []


def test_gates_of_the_cluster_that_the_newer_release_locks_or_lacks_are_named() -> None:
    found = compare(older="1.36", fleet=None, gates={"DRAExtendedResource": False})
    (gate,) = [each for each in of_code(found, "upgrade-gate") if each.path == "DRAExtendedResource"]
    assert gate.level == "breaks"
    assert "DRAExtendedResource=false" in gate.message
    allowed = compare(older="1.36", fleet=None, gates={"DRAExtendedResource": True})
    (gate,) = [each for each in of_code(allowed, "upgrade-gate") if each.path == "DRAExtendedResource"]
    assert gate.level == "note"


def test_alerts_that_ask_for_an_old_name_break() -> None:
    rule: dict[str, Any] = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "dra", "namespace": "ml"},
        "spec": {"groups": [{"rules": [{"expr": "resourceclaim_controller_creates_total > 0"}]}]},
    }
    broken = [each for each in of_code(compare(rule, older="1.36"), "upgrade-metric") if each.subject]
    assert [each.level for each in broken] == ["breaks"]
    rule["spec"]["groups"][0]["rules"][0]["expr"] += (
        " or dynamic_resource_allocation_resourceclaim_creates_total > 0"
    )
    assert not [each for each in of_code(compare(rule, older="1.36"), "upgrade-metric") if each.subject]


def test_claims_that_count_under_the_keys_of_extended_resources_are_named() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": {"requests.example.com/gpu": "4", "pods": "9"}},
    }
    device_class = a_class("big", "true", "example.com/gpu")
    (differs,) = of_code(compare(quota, device_class, older="1.35"), "upgrade-quota")
    assert differs.path == "spec.hard[requests.example.com/gpu]"
    assert (differs.before, differs.after) == ("pods count, claims do not", "pods and claims count")
    assert of_code(compare(quota, device_class, older="1.36"), "upgrade-quota") == []


def test_a_selector_that_only_one_release_can_evaluate_is_named() -> None:
    text = 'device.attributes["gpu.example.com"].?index.orValue(0) >= 0'
    found = compare(a_class("big", text))
    assert {each.area for each in of_code(found, "upgrade-selector-differs")} <= {"selectors"}
    (compared,) = [each for each in found.compared if each.area == "selectors"]
    assert "devices" in compared.what


def test_costs_of_selectors_are_compared() -> None:
    texts = [
        'device.attributes["gpu.example.com"].all(key, key.startsWith("a"))',
        '"a".format([]) == "a" || ["b"].exists(x, x == "c")',
        'cidr("10.0.0.0/8").containsIP("10.1.2.3")',
    ]
    found = [
        each
        for text in texts
        for older in SUPPORTED_MINORS[:-1]
        for each in of_code(compare(a_class("c", text), older=older, fleet=None), "upgrade-selector-differs")
    ]
    assert {each.level for each in found} <= {"note"}


def test_a_driver_that_reads_an_old_version_is_named() -> None:
    found = compare(older="1.36", fleet=None, driver="25.3")
    (driver,) = of_code(found, "upgrade-driver")
    assert driver.level == "breaks"
    assert "v1beta1" in driver.message
    assert of_code(compare(older="1.36", fleet=None), "upgrade-driver") == []


def test_charts_are_held_to_what_they_document() -> None:
    operator = ProgramRelease(
        urn="urn:pulumi:dev::app::t::op",
        name="op",
        namespace="gpu",
        chart="gpu-operator",
        version="v26.7.0",
    )
    found = compare(older="1.36", fleet=None, releases=(operator,))
    assert of_code(found, "upgrade-driver") == []
    assert any("op" in each.what for each in found.compared if each.area == "drivers")


def running_scene(older: str) -> Scene:
    """A snapshot of a pod with a device, and of a rule that taints it."""
    fleet = load_fleet(FLEET, kubernetes=older)
    slice_ = fleet.slices[0]
    device = next(each.name for each in slice_.spec.devices or ())
    result = {"request": "gpu", "driver": slice_.spec.driver, "pool": slice_.spec.pool.name, "device": device}
    claim = a_claim("held")
    claim["status"] = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "train", "uid": "1"}],
    }
    pod = a_pod()
    pod["metadata"]["uid"] = "1"
    pod["spec"]["nodeName"] = slice_.spec.node_name
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "held"}]
    pod["status"] = {"phase": "Running"}
    cluster = snapshot_of([*fleet.to_manifests(), claim, pod, RULE])
    program = a_program(kubernetes=older)
    return Scene.of(program, fleet=cluster.fleet, running=Running.of(cluster, program))


def test_pods_that_only_the_newer_release_evicts_are_named() -> None:
    found = upgrade(make_scenes(running_scene("1.35"), "1.37", {}))
    (evicted,) = of_code(found, "upgrade-evicts")
    assert (evicted.level, str(evicted.subject)) == ("breaks", "Pod ml/train")
    assert "evictions" in {each.area for each in found.compared}


def test_a_snapshot_alone_is_compared(tmp_path: Path) -> None:
    fleet = load_fleet(FLEET, kubernetes="1.36")
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([*fleet.to_manifests(), a_template(), a_pod()]))
    found = upgrade(read_upgrade(None, older="1.36", newer="1.37", snapshot=file))
    assert found.headline == "nothing changes for you in what was compared"
    areas = {each.area for each in found.compared}
    assert {"objects", "placement", "evictions"} <= areas


def test_neither_objects_nor_a_snapshot_is_no_question() -> None:
    with pytest.raises(InvalidSpecError) as raised:
        read_upgrade(None, older="1.36", newer="1.37")
    assert [each.code for each in raised.value.problems] == ["no-project"]


def test_a_release_that_there_is_not_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(a_template()))
    with pytest.raises(InvalidSpecError) as raised:
        read_upgrade(tmp_path, older="1.36", newer="1.99")
    assert [each.code for each in raised.value.problems] == ["unknown-kubernetes"]


PROGRAM = """\
import dra_infra as dra

dra.GpuMonitoring("watch", namespace="monitoring")
"""


def test_a_program_is_run_for_both_releases(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    found = upgrade(read_upgrade(tmp_path, older="1.36", newer="1.37"))
    written = of_code(found, "upgrade-program-differs")
    assert {each.subject.kind for each in written if each.subject} == {"ConfigMap", "PrometheusRule"}
    assert {each.level for each in written} == {"note"}
    assert {each.level for each in of_code(found, "upgrade-metric") if each.subject} == {"breaks"}


def test_advice_that_holds_for_one_release_only_is_a_note() -> None:
    found = compare(RULE, fleet=None)
    assert {each.level for each in of_code(found, "upgrade-advice")} <= {"note"}
    assert codes(found) <= {
        "upgrade-advice",
        "upgrade-field-differs",
        "upgrade-gate",
        "upgrade-metric",
        "upgrade-stored-version",
    }


def test_a_stored_object_that_cannot_be_written_again_is_named() -> None:
    # 1.34 takes 65 characters of a name that 1.37 checks whenever the object is written.
    scene = Scene.of(a_program(kubernetes="1.36"))
    broken = a_claim("Upper")
    scenes = make_scenes(replace(scene, running=Running.of(snapshot_of([broken]))), "1.37", {})
    found = upgrade(scenes)
    (refused,) = of_code(found, "upgrade-write-refused")
    assert refused.level == "breaks"


def test_every_level_closes_its_gate_and_those_of_the_levels_after_it() -> None:
    found = compare(with_request(a_template(), tolerations=[TOLERATION]), fleet=None)
    assert [found.is_blocked(each) for each in ("breaks", "changes", "note", "never")] == [
        False,
        True,
        True,
        False,
    ]


def test_minors_between_both_are_passed() -> None:
    assert [each.minor for each in compare(fleet=None).through] == ["1.35", "1.36"]
    assert compare(older="1.36", fleet=None).through == ()


def test_text_and_markdown_have_every_difference_and_what_was_not_compared() -> None:
    found = compare(a_claim(capacity={"requests": {"memory": "10Gi"}}))
    text, page = "\n".join(describe_upgrade(found)), render_markdown(found)
    for each in found.differences:
        assert each.code in text
        assert each.code in page
    assert "Not compared, so nothing is said about it" in text
    assert "1. " in text


def reviewed(older: str, newer: str, *manifests: dict[str, Any]) -> Review:
    base, head = (a_program(*manifests, kubernetes=minor) for minor in (older, newer))
    return review_sides(base, head, base_label="main", fleet=load_fleet(FLEET))


def test_a_review_of_another_release_has_a_section_on_the_upgrade() -> None:
    claim = a_claim(capacity={"requests": {"memory": "10Gi"}})
    found = reviewed("1.34", "1.37", claim)
    assert found.upgrade is not None
    assert found.grade == "danger"
    assert not found.is_blocked("problem")
    assert found.is_blocked("danger")
    assert "with 1.37 1 thing breaks" in found.findings
    data = json.loads(render_json(found))
    assert data["upgrade"]["verdict"] == "breaks"
    schema = json.loads((files("dra_infra.review") / "schemas/review-v1.json").read_text(encoding="utf-8"))
    assert list(find_violations(data, schema, closed=True)) == []
    for render in (render_text, render_html, render_review, render_sarif, render_junit):
        assert "upgrade-apply-refused" in render(found)
    assert "upgrade-gate" not in render_text(found, brief=True)


def test_a_review_of_the_same_release_has_no_such_section() -> None:
    found = reviewed("1.37", "1.37", a_template())
    assert found.upgrade is None
    assert json.loads(render_json(found))["upgrade"] is None


def test_a_review_of_an_older_release_says_that_nothing_was_compared() -> None:
    found = reviewed("1.37", "1.36", a_template())
    assert found.upgrade is None
    assert any("downgrades are not compared" in note for note in found.notes)
