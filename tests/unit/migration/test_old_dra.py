"""Every row of the table of old DRA: what becomes of it, what is said of it, and that it stays so."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest
import yaml

from dra_infra.advice.objects import check_object
from dra_infra.codes import CODES
from dra_infra.migration.old_dra.conversion import migrate_old_dra
from dra_infra.migration.outcomes import Migrated
from dra_infra.target import ClusterTarget
from tests.support.migration.old_dra_cases import OUTPUTS, Case, cases, made, objects_after, shown, table
from tests.support.pages.documents import ROOT

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
    expected = {
        (index, path, text)
        for index, paths in case.remarks.items()
        for path, texts in paths.items()
        for text in texts.split(", ")
    }
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


def classic(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name} if kind.endswith("Class") else {"name": name, "namespace": "ml"}
    return {"apiVersion": "resource.k8s.io/v1alpha2", "kind": kind, "metadata": metadata, **fields}


def of_nvidia(kind: str, **spec: Any) -> dict[str, Any]:
    return classic(kind, "p", apiVersion="gpu.resource.nvidia.com/v1alpha1", spec=spec)


def reference(to: dict[str, Any]) -> dict[str, str]:
    group = to["apiVersion"].partition("/")[0]
    return {"apiGroup": group, "kind": to["kind"], "name": "p"}


def claim(device_class: str, parameters: dict[str, Any]) -> dict[str, Any]:
    spec = {"resourceClassName": device_class, "parametersRef": reference(parameters)}
    return classic("ResourceClaim", "c", spec=spec)


def asked_by(found: Migrated) -> list[dict[str, Any]]:
    assert found.manifest is not None
    return [each["exactly"] for each in found.manifest["spec"]["devices"]["requests"]]


def test_parameters_of_a_device_class_that_is_there_ask_for_gpus_of_it():
    there = classic("DeviceClass", "mine", apiVersion="resource.k8s.io/v1", spec={})
    parameters = of_nvidia("GpuClaimParameters", count=2)
    found = migrate_old_dra([there, parameters, claim("mine", parameters)])
    (asked,) = asked_by(found[2])
    assert (asked["deviceClassName"], asked["count"], len(asked["selectors"])) == ("mine", 2, 1)
    assert 'type == "gpu"' in asked["selectors"][0]["cel"]["expression"]
    assert [(each.path, each.code) for each in found[2].remarks] == [("spec", "classic-shape")]


def test_requests_of_another_driver_than_that_of_the_class_ask_for_the_class_that_it_ships():
    asked = [{"namedResources": {"selector": "true"}}]
    drivers = [
        {"driverName": each, "requests": asked}
        for each in ("gpu.resource.example.com", "gpu.resource.nvidia.com", "acme.example.org")
    ]
    known, more = (
        classic("ResourceClaimParameters", "p", driverRequests=each) for each in (drivers[:2], drivers)
    )
    found = migrate_old_dra([known, claim("gpu.example.com", known)])
    classes = [each["deviceClassName"] for each in asked_by(found[1])]
    assert classes == ["gpu.example.com", "gpu.nvidia.com"]
    (told,) = migrate_old_dra([more, claim("gpu.example.com", more)])[0].remarks
    assert (told.path, told.code) == ("driverRequests", "parameter-not-known")


@pytest.mark.parametrize(
    ("driver", "more", "told"),
    [
        ("gpu.resource.nvidia.com", {"memory": "40Gi"}, ("spec", "parameter-not-known")),
        ("acme.example.org", {}, ("", "parameters-not-used")),
    ],
)
def test_class_parameters_with_more_than_a_selector_or_of_another_driver_are_no_filter(
    driver: str, more: dict[str, str], told: tuple[str, str]
):
    parameters = of_nvidia("GpuClassParameters", selector={"architecture": "hopper"}, **more)
    objects = [
        parameters,
        classic("ResourceClass", "fast", driverName=driver, parametersRef=reference(parameters)),
    ]
    found = migrate_old_dra(objects)
    assert objects_after(objects, found) == objects
    assert [[(each.path, each.code) for each in done.remarks] for done in found.values()] == [
        [told],
        [("parametersRef", "parameters-not-known")],
    ]
