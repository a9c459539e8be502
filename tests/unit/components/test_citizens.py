"""What Pulumi users expect of any component, held against every component of the family."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pulumi
import pytest

import dra_infra as dra
from dra_infra.components.component import Component
from tests.support.components.family import FAMILY, assert_recorded, make, registered, run, with_options

URNS = Path(__file__).with_name("urns.txt")

every_component = pytest.mark.parametrize("row", FAMILY)


def test_every_component_has_a_row():
    public = {
        name
        for name in dra.__all__
        # The arguments of a new component are public before `make golden` has written them.
        if not name.endswith("Args")
        and inspect.isclass(component := getattr(dra, name))
        and issubclass(component, Component)
    }
    assert public == {made.__name__ for made, _ in FAMILY.values()}, (
        "add a row to tests/support/components/family.py"
    )


def test_urns_are_those_that_users_have_in_their_state():
    urns = {}
    for row in FAMILY:
        seen = registered(row)
        found = [f"{each.parent.split('::')[2]}${each.type}::{each.name}" for each in seen.children]
        urns[row] = [f"{row}: {seen.component.type}::{seen.component.name}", *(f"  {each}" for each in found)]
    advice = (
        "A URN has changed: without an alias every user's `pulumi up` deletes the object and makes another, and GPU "
        "workloads lose their claims. Keep the URN, or register the child with "
        "`aliases=[pulumi.Alias(name=..., type_=..., parent=...)]` of what it was, add a test that the old URN is among "
        f"the aliases, say so in CHANGELOG.md, and write the new one into {URNS.name}."
    )
    assert_recorded(URNS, urns, advice)


@every_component
def test_children_have_the_component_as_parent_and_the_component_the_one_that_is_given(row: str):
    def options() -> dict[str, Any]:
        return {"parent": pulumi.ComponentResource("acme:index:Team", "team")}

    seen = with_options(row, options)
    assert seen.component.parent.endswith("::acme:index:Team::team")
    assert {each.parent.rpartition("::")[2] for each in seen.children} == {"it"}
    assert all("acme:index:Team$dra-infra:index:" in each.parent for each in seen.children)


@every_component
@pytest.mark.parametrize("form", ["provider", "providers as list", "providers as dict"])
def test_children_use_the_provider_that_is_given(row: str, form: str):
    def options() -> dict[str, Any]:
        import pulumi_kubernetes as k8s

        other = k8s.Provider("other", kubeconfig="{}")
        given = {"provider": other, "providers as list": [other], "providers as dict": {"kubernetes": other}}[
            form
        ]
        return {form.partition(" ")[0]: given}

    seen = with_options(row, options)
    assert all("::pulumi:providers:kubernetes::other" in each.provider for each in seen.children)


@every_component
def test_children_use_the_provider_of_the_parent(row: str):
    def options() -> dict[str, Any]:
        import pulumi_kubernetes as k8s

        other = k8s.Provider("other", kubeconfig="{}")
        of_team = pulumi.ResourceOptions(providers=[other])
        return {"parent": pulumi.ComponentResource("acme:index:Team", "team", opts=of_team)}

    seen = with_options(row, options)
    assert all("::pulumi:providers:kubernetes::other" in each.provider for each in seen.children)


@every_component
def test_children_are_protected_with_the_component(row: str):
    seen = with_options(row, lambda: {"protect": True})
    assert {each.protect for each in [seen.component, *seen.children]} == {True}


@every_component
def test_options_that_the_engine_hands_on_reach_it(row: str):
    def options() -> dict[str, Any]:
        team = pulumi.CustomResource("acme:index:Team", "team")
        return {"retain_on_delete": True, "deleted_with": team, "depends_on": [team]}

    component = with_options(row, options).component
    assert component.retainOnDelete
    assert component.deletedWith.endswith("::team")
    assert [each.rpartition("::")[2] for each in component.dependencies] == ["team"]


@every_component
def test_how_objects_are_replaced_is_not_an_option_of_the_component(row: str):
    options = {
        "replace_on_changes": ["spec"],
        "delete_before_replace": True,
        "additional_secret_outputs": ["spec"],
    }
    for child in with_options(row, lambda: options).children:
        assert not child.replaceOnChanges
        assert not child.deleteBeforeReplace
        assert not child.additionalSecretOutputs


@every_component
def test_an_alias_of_the_component_stays_with_the_component(row: str):
    seen = with_options(
        row, lambda: {"aliases": [pulumi.Alias(name="old"), "urn:pulumi:s::p::acme:index:Team::it"]}
    )
    specs = [each.spec.name or each.urn for each in seen.component.aliases]
    assert specs == ["old", "urn:pulumi:s::p::acme:index:Team::it"]
    assert not any(each.aliases for each in seen.children)


@every_component
def test_transformations_see_the_component_and_its_children(row: str):
    seen: list[str] = []

    def look(args: pulumi.ResourceTransformationArgs) -> None:
        seen.append(args.type_)

    requests = with_options(row, lambda: {"transformations": [look]})
    assert sorted(seen) == sorted(each.type for each in [requests.component, *requests.children])


@every_component
def test_what_depends_on_the_component_waits_for_its_children(row: str):
    def body() -> None:
        component = make(row)
        pulumi.ComponentResource(
            "acme:index:Team", "team", opts=pulumi.ResourceOptions(depends_on=[component])
        )

    _, seen = run(body)
    (team,) = [each for each in seen.requests if each.name == "team"]
    children = {(each.type, each.name) for each in seen.children}
    waited = {(urn.split("::")[2].rpartition("$")[2], urn.rpartition("::")[2]) for urn in team.dependencies}
    assert children <= waited


def test_the_tests_that_the_page_names_exist():
    root = Path(__file__).parents[3]
    page = (root / "docs/pulumi.md").read_text()
    files = set(re.findall(r"`((?:[\w/]+/)?test_\w+\.py)`", page))
    tests = set(re.findall(r"`(test_\w+)`", page))
    sources = [each if "/" in each else f"tests/e2e/components/{each}" for each in files]
    text = "".join(each.read_text() for each in (root / "tests/e2e/components").glob("test_*.py"))
    assert tests
    assert [each for each in sources if not (root / each).is_file()] == []
    assert [each for each in tests if f"def {each}(" not in text] == []
