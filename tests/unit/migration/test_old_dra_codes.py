"""Each code of the migration of old DRA, on a row of the table."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.migration.old_dra.conversion import migrate_old_dra
from tests.support.migration.old_dra_cases import case
from tests.support.pages.problem_pages import pages

ROWS = {
    "admin-access-label": "v1beta1-admin",
    "class-not-known": "classic-unknown-class",
    "classic-shape": "classic-count",
    "driver-not-known": "classic-foreign-driver",
    "kept-together": "classic-mig-without-pods",
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
    "parameters-not-used": "classic-mps-alone",
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


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"shareable": True}, "a class has no shareable"),
        ({"shareable": True, "selector": [{"index": 0}, {"index": 1}]}, "a class has no shareable"),
        ({"selector": [{"index": 0}, {"index": 1}]}, "these are 2 selectors, and not one"),
    ],
)
def test_parameters_of_a_class_that_mean_none_are_told_by_what_they_say(spec: dict[str, Any], message: str):
    group = "gpu.resource.nvidia.com"
    metadata = {"name": "odd"}
    odd = {"apiVersion": f"{group}/v1alpha1", "kind": "GpuClassParameters", "metadata": metadata}
    named = {"apiGroup": group, "kind": "GpuClassParameters", "name": "odd"}
    of_it = {"kind": "ResourceClass", "driverName": group, "metadata": metadata, "parametersRef": named}
    found = migrate_old_dra([{**odd, "spec": spec}, {"apiVersion": "resource.k8s.io/v1alpha2", **of_it}])
    assert [each.message for each in found[0].remarks if each.code == "parameter-not-known"] == [message]
