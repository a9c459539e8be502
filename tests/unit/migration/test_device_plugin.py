"""Every row of the table of device plugins: what becomes of it, what is said of it, and that it stays so."""

from __future__ import annotations

import copy
import os

import pytest
import yaml

from dra_infra.advice.objects import check_object
from dra_infra.codes import CODES
from dra_infra.migration.estate import migrate_objects
from dra_infra.target import ClusterTarget
from tests.support.migration.device_plugin_cases import OUTPUTS, UNTOUCHED, Case, case, cases, table
from tests.support.pages.documents import ROOT
from tests.support.pages.problem_pages import pages

PAGE = ROOT / "docs" / "migration.md"
MARK = "<!-- device plugins -->\n"
ELSEWHERE = {
    "source-not-rendered": "tests/unit/sources/test_delivered_objects.py",
    "plugin-config-malformed": "test_plugin_configs.py",
    "resource-bridged": "test_bridge.py",
    "replica-not-bridged": "test_bridge.py",
    "quota-kept": "test_accounts.py",
    "mps-variable": "test_left_over_requests.py",
    "document-not-rewritten": "tests/unit/cli/test_migrate.py",
    "hardware-not-known": "tests/unit/cutover/test_sides.py",
    "kept-as-object": "tests/unit/program_writing/test_programs.py",
    "not-taken-over": "tests/unit/cli/test_migrate_program.py",
    "not-in-program": "tests/unit/cli/test_migrate_program.py",
    "values-to-claims": "test_chart_values.py",
    "not-changed-in-place": "tests/unit/answers/test_replaced.py",
    "controller-too-old": "test_controllers.py",
    "chart-not-read": "tests/unit/sources/test_chart_templates.py",
    "chart-too-old": "test_chart_releases.py",
    "values-need-template": "test_chart_values.py",
    "values-without-claims": "test_chart_values.py",
    "program-not-read": "tests/unit/cli/test_migrate.py",
    "name-filled-in": "tests/unit/cli/test_migrate.py",
    "value-not-written": "tests/unit/cli/test_migrate_inputs.py",
    "patch-not-rewritten": "tests/unit/sources/test_patches.py",
    "names-not-followed": "tests/unit/sources/test_patches.py",
    "owned-object": "tests/unit/sources/test_cluster_objects.py",
    "written-by-server": "tests/unit/sources/test_cluster_objects.py",
}
"""Codes that no row has, with the tests that have them."""

ROWS = {
    "controller-release-needed": "job-set",
    "controller-setting-needed": "training-runtime",
    "controller-setting-written": "ray",
    "devices-not-counted": "visible-devices",
    "init-container-shares": "init-container",
    "init-container-takes-more": "init-container-with-more",
    "kind-not-rewritten": "knative-service",
    "limit-range": "limit-range",
    "metric-of-resource": "autoscaler",
    "mps-replicas": "mps",
    "no-devices": "limit-zero",
    "no-shares": "time-slicing-without-shares",
    "node-label-kept": "count-label",
    "node-named": "node-name",
    "node-label-to-selector": "product-label",
    "other-device-form": "partition",
    "plugin-not-known": "plugin-not-known",
    "quantity-not-a-number": "variable",
    "queue-for-claims": "queue",
    "queue-of-resource": "queue-not-known",
    "quota-for-claims": "quota",
    "quota-of-profile": "quota-mig",
    "quota-with-scopes": "quota-scoped",
    "replica-to-share": "time-slicing",
    "resource-in-text": "text",
    "resource-not-clear": "mig-single",
    "resource-not-served": "foreign",
    "resource-to-claim": "whole-gpu",
    "runtime-class-left-out": "runtime-class",
    "several-replicas": "two-replicas",
    "toleration-written": "whole-gpu",
    "visible-devices-left-out": "runtime-class",
}
"""A row of the table with a remark of each code."""

EVERY = pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)


def test_every_row_becomes_what_is_written_down():
    now = {each.id: each.shown() for each in cases()}
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        OUTPUTS.write_text(yaml.safe_dump(now, sort_keys=False, width=160))
    assert now == yaml.safe_load(OUTPUTS.read_text()), "run `make golden`, and read what it wrote"


@EVERY
def test_what_is_lost_and_to_decide_is_said_of_the_field_that_it_was(case: Case):
    said = {
        (index, each.path, f"{each.code} {each.outcome}")
        for index, found in enumerate(case.migrate())
        for each in found.remarks
    }
    expected = {(index, path, text) for index, paths in case.remarks.items() for path, text in paths.items()}
    assert expected - said == set()
    assert {each for each in said if each[2].endswith(("lost", "decide"))} - expected == set()


@EVERY
def test_every_remark_has_a_code_and_what_is_lost_or_to_decide_a_hint(case: Case):
    for found in case.migrate():
        for each in found.remarks:
            assert each.code in CODES
            assert each.hint or each.outcome in ("changed", "kept")


@pytest.mark.parametrize("code", ROWS)
def test_a_row_has_a_remark_of_each_code(code: str):
    assert code in {each.code for found in case(ROWS[code]).migrate() for each in found.remarks}


def test_every_code_of_the_page_has_a_row_or_a_test():
    [page] = [each for each in pages() if each.area == "migration"]
    assert {code for code, _ in page.sections} == ROWS.keys() | ELSEWHERE.keys()


@EVERY
def test_migrating_again_changes_nothing(case: Case):
    once = [each for found in case.migrate() for each in (found.manifest, *found.added) if each is not None]
    twice = migrate_objects(once, case.settings)
    assert [found.manifest for found in twice] == once
    assert all(found.manifest is each and not found.added for each, found in zip(once, twice, strict=True))


@EVERY
def test_what_was_given_stays_as_it_was(case: Case):
    before = copy.deepcopy(case.input)
    case.migrate()
    assert case.input == before


@EVERY
def test_a_pod_for_which_somebody_has_to_decide_is_not_migrated_in_part(case: Case):
    for was, found in zip(case.input, case.migrate(), strict=True):
        if any(each.outcome == "decide" for each in found.remarks):
            assert found.manifest is was
            assert not found.added


@EVERY
def test_what_was_written_breaks_no_rule_of_the_server(case: Case):
    found = [
        problem for each in case.made() for problem in check_object(each, ClusterTarget(kubernetes="1.37"))
    ]
    assert [each for each in found if each.severity == "error"] == []


def test_the_page_has_every_row():
    before, mark, rest = PAGE.read_text().partition(MARK)
    behind = rest.lstrip("\n").partition("\n\n")[2]
    written = f"{before}{mark}\n{table()}\n{behind}".rstrip("\n") + "\n"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(written)
    assert PAGE.read_text() == written, "run `make golden`, and read what it wrote"


def test_rows_that_change_nothing_say_so():
    assert case("plugin-not-known").shown() == [UNTOUCHED]
