"""Each code of the migration of old DRA, on a row of the table."""

from __future__ import annotations

import pytest

from dra_infra.migration.old_dra.conversion import migrate_old_dra
from tests.contract.problem_pages import pages
from tests.unit.migration.old_dra_cases import case

ROWS = {
    "admin-access-label": "v1beta1-admin",
    "class-not-known": "classic-unknown-class",
    "classic-shape": "classic-count",
    "driver-not-known": "classic-foreign-driver",
    "imex-channel": "imex",
    "mig-joined": "classic-mig-joined",
    "mig-parent-not-known": "classic-mig-without-pods",
    "obsolete-object": "classic-scheduling",
    "old-config": "middle-age-config",
    "old-field-removed": "v1alpha3-controller",
    "old-shape": "v1-flat",
    "old-version": "v1beta2",
    "parameter-lost": "classic-index",
    "parameter-not-known": "article-shared",
    "parameter-rewritten": "article-mig-profile",
    "parameters-not-known": "classic-missing-parameters",
    "parameters-not-used": "classic-mig-without-pods",
    "parameters-written": "classic-selector",
    "pod-claim-source": "pod-source",
    "selector-not-rewritten": "invented-model",
    "selector-rewritten": "invented-memory",
    "two-shapes": "v1-two-values",
}
"""A row of the table with a remark of each code."""


@pytest.mark.parametrize("code", ROWS)
def test_a_row_has_a_remark_of_each_code(code: str):
    found = migrate_old_dra(case(ROWS[code]).input)
    assert code in {each.code for migrated in found.values() for each in migrated.remarks}


def test_every_code_of_the_page_has_a_row():
    [page] = [each for each in pages() if each.area == "old-dra"]
    assert {code for code, _ in page.sections} <= ROWS.keys()
