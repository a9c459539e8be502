"""Every row of the table of old DRA: what becomes of it, what is said of it, and that it stays so."""

from __future__ import annotations

import copy
import os

import pytest
import yaml

from dra_infra.advice.objects import check_object
from dra_infra.codes import CODES
from dra_infra.migration.old_dra.conversion import migrate_old_dra
from dra_infra.target import ClusterTarget
from tests.contract.documents import ROOT
from tests.unit.migration.old_dra_cases import OUTPUTS, Case, cases, made, objects_after, shown, table

PAGE = ROOT / "docs" / "old-dra.md"
MARK = "<!-- old dra -->\n"

EVERY = pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)


def test_every_row_becomes_what_is_written_down():
    now = {each.id: shown(each) for each in cases()}
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        OUTPUTS.write_text(yaml.safe_dump(now, sort_keys=False, width=160))
    assert now == yaml.safe_load(OUTPUTS.read_text()), "run `make golden`, and read what it wrote"


@EVERY
def test_what_is_lost_and_to_decide_is_said_of_the_field_that_it_was(case: Case):
    found = migrate_old_dra(case.input)
    said = {
        (index, each.path, f"{each.code} {each.outcome}")
        for index, all_ in found.items()
        for each in all_.remarks
    }
    expected = {(index, path, text) for index, paths in case.remarks.items() for path, text in paths.items()}
    assert expected - said == set()
    assert {each for each in said if not each[2].endswith("changed")} - expected == set()


@EVERY
def test_every_remark_has_a_code_and_what_is_lost_or_to_decide_a_hint(case: Case):
    for found in migrate_old_dra(case.input).values():
        assert found.remarks
        for each in found.remarks:
            assert each.code in CODES
            assert each.hint or each.outcome == "changed"


@EVERY
def test_migrating_again_changes_nothing(case: Case):
    once = objects_after(case.input, migrate_old_dra(case.input))
    twice = migrate_old_dra(once)
    assert objects_after(once, twice) == once
    assert all(found.manifest is once[index] and not found.added for index, found in twice.items())
    assert [each for found in twice.values() for each in found.remarks if each.outcome == "changed"] == []


@EVERY
def test_what_was_given_stays_as_it_was(case: Case):
    before = copy.deepcopy(case.input)
    migrate_old_dra(case.input)
    assert case.input == before


@EVERY
def test_what_was_written_breaks_no_rule_of_the_server(case: Case):
    found = [
        problem for each in made(case) for problem in check_object(each, ClusterTarget(kubernetes="1.37"))
    ]
    assert [each for each in found if each.severity == "error"] == []


def test_the_page_has_every_row():
    written = PAGE.read_text().partition(MARK)[0] + MARK + "\n" + table()
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(written)
    assert PAGE.read_text() == written, "run `make golden`, and read what it wrote"


@pytest.mark.parametrize(
    ("version", "left"), [("v1alpha3", []), ("v1beta1", ["a.example.com/deletion-protection"])]
)
def test_finalizers_of_drivers_go_from_versions_that_had_their_controllers(version: str, left: list[str]):
    spec = {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu.nvidia.com"}]}}
    names = ["a.example.com/deletion-protection", "dra.k8s.io/delete-protection"]
    metadata = {"name": "c", "namespace": "ml", "finalizers": names}
    claim = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec,
    }
    (found,) = migrate_old_dra([claim]).values()
    assert found.manifest is not None
    assert found.manifest["metadata"].get("finalizers", []) == left
    messages = " ".join(each.message for each in found.remarks)
    assert ("no controller of a driver" in messages) is (not left)
