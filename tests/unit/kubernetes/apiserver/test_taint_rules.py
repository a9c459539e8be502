"""Taint rules as users give them to `validate` and `judge`."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.advice.objects import validate
from dra_infra.kubernetes.apiserver import judge
from dra_infra.target import ClusterTarget

SELECTOR = "DeviceTaintRule r.spec.deviceSelector"
TAINT = "DeviceTaintRule r.spec.taint"


def rule(selector: dict[str, Any] | None = None, *, version: str = "v1", **taint: Any) -> dict[str, Any]:
    spec = {"taint": {"key": "a/broken", "effect": "NoExecute", **taint}}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": spec if selector is None else {**spec, "deviceSelector": selector},
    }


def target(minor: str, version: str) -> ClusterTarget:
    return ClusterTarget(kubernetes=minor, serves=frozenset({"v1", version}))


def found(manifest: dict[str, Any], minor: str, version: str) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in validate([manifest], target(minor, version))]


@pytest.mark.parametrize(
    ("minor", "version"), [("1.37", "v1"), ("1.37", "v1beta2"), ("1.36", "v1beta2"), ("1.34", "v1alpha3")]
)
def test_rule_is_judged_in_each_version_that_a_minor_has(minor, version):
    assert found(rule({"driver": "gpu.nvidia.com"}, version=version), minor, version) == []
    refused = found(
        rule({"driver": "", "pool": "A", "device": "a.b"}, version=version, effect="x"), minor, version
    )
    assert set(refused) == {
        (f"{SELECTOR}.driver", "missing-field"),
        (f"{SELECTOR}.pool", "invalid-name"),
        (f"{SELECTOR}.device", "invalid-name"),
        (f"{TAINT}.effect", "unsupported-value"),
    } | ({(f"{SELECTOR}.driver", "invalid-name")} if minor == "1.34" else set())


def test_version_that_a_minor_does_not_have_is_told():
    assert found(rule(), "1.36", "v1") == [("DeviceTaintRule r.apiVersion", "unknown-version")]


def test_selectors_of_expressions_are_gone_since_35():
    manifest = rule({"selectors": [{"cel": {"expression": "1"}}]}, version="v1alpha3")
    at = f"{SELECTOR}.selectors"
    assert found(manifest, "1.34", "v1alpha3") == [(f"{at}[0].cel.expression", "cel-type")]
    assert found(manifest, "1.35", "v1alpha3") == [(at, "unknown-field")]


def test_effect_that_is_stored_is_not_checked_again_since_35():
    old = rule(version="v1alpha3", effect="Odd")
    new = rule(version="v1alpha3", effect="Odd", value="x")
    for minor, status in (("1.34", "invalid"), ("1.35", "accepted"), ("1.37", "accepted")):
        [release] = target(minor, "v1alpha3").releases
        assert judge(new, release, old=old).status == status


def test_time_of_a_taint_whose_effect_changes_is_the_servers_since_36():
    times = {}
    for minor in ("1.35", "1.36"):
        [release] = target(minor, "v1alpha3").releases
        old = rule(version="v1alpha3", timeAdded="2026-01-02T03:04:05Z")
        new = rule(version="v1alpha3", timeAdded="2026-01-02T04:04:05+01:00", effect="NoSchedule")
        times[minor] = judge(new, release, old=old).record.spec.taint.time_added
    assert times == {"1.35": "2026-01-02T04:04:05+01:00", "1.36": None}
