"""Every alert fires when it should and is silent when nothing is wrong, by Prometheus' own engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.specs.metrics import alerts
from dra_infra.target import ClusterTarget, Release
from tests.e2e.monitoring.alert_cases import CASES, Case, to_input
from tests.e2e.monitoring.conftest import Tool, objects_of

pytestmark = pytest.mark.e2e

RUNBOOKS = "https://wiki.example.com/gpus"
AT = "30m"


def rules_of(minor: str, folder: Path, **arguments: Any) -> tuple[Path, dict[str, dict[str, Any]]]:
    """A file with the rules of a minor, and the rules by alert."""
    groups = objects_of(minor, runbooks=RUNBOOKS, **arguments)["PrometheusRule"]["spec"]["groups"]
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": groups}))
    return file, {rule["alert"]: rule for group in groups for rule in group["rules"]}


def expected(alert: str, case: Case) -> list[dict[str, Any]]:
    known = alerts()[alert]
    told = {
        "summary": known.summary,
        "description": case.description,
        "runbook_url": f"{RUNBOOKS}#{alert.lower()}",
    }
    return [{"exp_labels": {**case.labels, "severity": known.severity}, "exp_annotations": told}]


def test_of(alert: str, series: list[dict[str, str]], expecting: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "interval": "1m",
        "input_series": series,
        "alert_rule_test": [{"eval_time": AT, "alertname": alert, "exp_alerts": expecting}],
    }


test_of.__test__ = False  # type: ignore[attr-defined]


def run(promtool: Tool, folder: Path, tests: list[dict[str, Any]]) -> tuple[int, str]:
    file = folder / "tests.yaml"
    file.write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests})
    )
    said = promtool("test", "rules", file)
    return said.returncode, said.stdout


def release_of(minor: str) -> Release:
    return ClusterTarget(kubernetes=minor).releases[0]


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_every_alert_fires_and_is_silent(minor: str, promtool: Tool, tmp_path: Path) -> None:
    _, rules = rules_of(minor, tmp_path)
    release = release_of(minor)
    firing = [
        test_of(alert, to_input(CASES[alert].fires, release), expected(alert, CASES[alert]))
        for alert in rules
    ]
    silent = [
        test_of(alert, to_input(series, release), [])
        for alert in rules
        for series in CASES[alert].silent.values()
    ]
    assert len(silent) >= len(firing) >= 12
    code, said = run(promtool, tmp_path, [*firing, *silent])
    assert code == 0, said


def test_all_alerts_stand_in_the_newest_minor_and_have_a_case(tmp_path: Path) -> None:
    _, rules = rules_of("1.37", tmp_path)
    assert rules.keys() == alerts().keys() == CASES.keys()


def test_alerts_of_gates_that_are_off_are_left_out(tmp_path: Path) -> None:
    _, rules = rules_of("1.34", tmp_path)
    assert alerts().keys() - rules.keys() == {"KubeDRADevicesEvicting", "KubeDRABindingFailing"}


@pytest.mark.parametrize("alert", CASES)
def test_what_should_fire_is_missed_when_the_rule_says_something_else(
    alert: str, promtool: Tool, tmp_path: Path
) -> None:
    file, rules = rules_of("1.37", tmp_path)
    # Nothing is left of what it finds.
    rule = {**rules[alert], "expr": f"({rules[alert]['expr']}) unless on() vector(1)"}
    file.write_text(yaml.safe_dump({"groups": [{"name": "changed", "rules": [rule]}]}))
    series = to_input(CASES[alert].fires, release_of("1.37"))
    code, said = run(promtool, tmp_path, [test_of(alert, series, expected(alert, CASES[alert]))])
    assert code != 0
    assert f"alertname: {alert}" in said


def test_a_threshold_and_a_severity_of_ones_own_count(promtool: Tool, tmp_path: Path) -> None:
    alert = "KubeDRAClaimQueueLong"
    rules_of("1.37", tmp_path, thresholds={alert: 500}, severities={alert: "critical"})
    release = release_of("1.37")
    case = CASES[alert]
    many = (("claim_queue", 'name="resource_claim", instance="m1"', "501x40"),)
    told = expected(alert, case)[0]
    told["exp_labels"]["severity"] = "critical"
    told["exp_annotations"]["description"] = case.description.replace("101", "501")
    tests = [
        test_of(alert, to_input(many, release), [told]),
        test_of(alert, to_input(case.fires, release), []),
    ]
    code, said = run(promtool, tmp_path, tests)
    assert code == 0, said


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_promtool_finds_nothing_to_say_of_the_rules(minor: str, promtool: Tool, tmp_path: Path) -> None:
    file, rules = rules_of(minor, tmp_path)
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", file)
    assert said.returncode == 0, said.stdout
    assert f"{len(rules)} rules found" in said.stdout
