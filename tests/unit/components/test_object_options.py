"""Options of a component that mean its objects: what is taken over, imported, ignored, waited for."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from dra_infra.program.surroundings import fields_to_plain
from tests.support.components.family import CLAIMS, FAMILY, OBJECTS, make, registered, run, with_options

TEMPLATE = "kubernetes:resource.k8s.io/v1:ResourceClaimTemplate"

every_component = pytest.mark.parametrize("row", FAMILY)
every_object = pytest.mark.parametrize("row", OBJECTS)


@every_component
def test_changes_to_ignore_and_timeouts_are_those_of_the_objects(row: str):
    timeouts = pulumi.CustomTimeouts(create="5m", delete="20m")
    seen = with_options(row, lambda: {"ignore_changes": ["metadata.labels"], "custom_timeouts": timeouts})
    assert not seen.component.ignoreChanges
    assert not seen.component.customTimeouts.create
    for child in seen.children:
        own = ["allowNullValues"] if child.type.endswith(":Release") else []
        assert list(child.ignoreChanges) == [*own, "metadata.labels"]
        assert (child.customTimeouts.create, child.customTimeouts.delete) == ("5m", "20m")


@every_component
def test_an_alias_with_the_type_of_a_child_is_an_alias_of_that_child_at_the_place_of_the_component(row: str):
    type_ = registered(row).main[-1].type
    seen = with_options(row, lambda: {"aliases": [pulumi.Alias(name="by-hand", type_=type_)]})
    assert not seen.component.aliases
    for child in seen.children:
        found = [(each.spec.name, each.spec.type, each.spec.noParent) for each in child.aliases]
        assert found == ([("by-hand", type_, True)] if child.type == type_ else [])


def test_an_alias_of_a_component_below_another_is_at_the_place_of_that_component():
    def options() -> dict[str, Any]:
        team = pulumi.ComponentResource("acme:index:Team", "team")
        return {"parent": team, "aliases": [pulumi.Alias(name="by-hand", type_=TEMPLATE)]}

    (child,) = with_options("GpuClaimTemplate", options).children
    (alias,) = child.aliases
    assert alias.spec.parentUrn.endswith("::acme:index:Team::team")


def test_an_alias_may_be_a_urn_and_of_another_version_and_name_its_own_parent():
    urn = f"urn:pulumi:dev::shop::kubernetes:yaml:ConfigFile${TEMPLATE}::ml/trainer"
    older = TEMPLATE.replace("/v1:", "/v1beta1:")
    elsewhere = pulumi.Alias(type_=older, parent="urn:pulumi:dev::shop::acme:index:Team::team")
    (child,) = with_options("GpuClaimTemplate", lambda: {"aliases": [urn, elsewhere]}).children
    first, second = child.aliases
    assert first.urn == urn
    assert (second.spec.type, second.spec.parentUrn) == (older, "urn:pulumi:dev::shop::acme:index:Team::team")


def test_what_a_user_puts_below_a_component_gets_nothing_of_its_object():
    def body() -> None:
        import pulumi_kubernetes as k8s

        opts = pulumi.ResourceOptions(import_="ml/it", ignore_changes=["spec"])
        claim = make("GpuClaimTemplate", object_name="it", namespace="ml", opts=opts)
        k8s.core.v1.ConfigMap("beside", opts=pulumi.ResourceOptions(parent=claim))

    _, seen = run(body)
    assert {each.name: (each.importId, list(each.ignoreChanges)) for each in seen.children} == {
        "it": ("ml/it", ["spec"]),
        "beside": ("", []),
    }


@pytest.mark.parametrize("row", [row for row in FAMILY if row != "GpuPlatform"])
def test_an_id_to_import_is_that_of_what_the_component_is_about(row: str):
    more = {"object_name": "there"} if row in OBJECTS else {}
    id_ = "there" if row == "GpuDeviceClass" else "ml/there"
    seen = registered(row, opts=pulumi.ResourceOptions(import_=id_), **more)
    assert not seen.component.importId
    assert {each.importId for each in seen.main} == {id_}
    assert {each.importId for each in seen.children if each not in seen.main} <= {""}


@every_object
def test_what_is_imported_is_taken_over_from_whoever_made_it(row: str):
    id_ = "there" if row == "GpuDeviceClass" else "ml/there"

    def body() -> None:
        annotations = {"owner": pulumi.Output.from_input("ml")}
        make(row, object_name="there", annotations=annotations, opts=pulumi.ResourceOptions(import_=id_))

    _, seen = run(body)
    for child in seen.children:
        annotations = fields_to_plain(child.object)["metadata"]["annotations"]
        assert annotations == {"owner": "ml", "pulumi.com/patchForce": "true"}


@pytest.mark.parametrize("row", CLAIMS)
def test_an_import_must_name_the_object_that_the_component_makes(row: str):
    program, _ = run(lambda: make(row, namespace="ml", opts=pulumi.ResourceOptions(import_="ml/there")))
    (problem,) = program.problems
    assert (problem.code, problem.path.rpartition(".opts.")[2]) == ("import-of-another-name", "import_")
    assert problem.hint == 'write object_name="there"'


def test_an_import_must_name_the_namespace():
    opts = pulumi.ResourceOptions(import_="there")
    program, _ = run(lambda: make("GpuClaim", object_name="there", namespace="ml", opts=opts))
    assert [(each.code, each.hint) for each in program.problems] == [
        ("import-of-another-name", 'write import_="namespace/name"')
    ]


@every_object
def test_an_alias_of_a_kind_that_the_component_does_not_make_is_a_problem(row: str):
    aliases = [pulumi.Alias(name="by-hand", type_="kubernetes:batch/v1:Job")]
    program, _ = run(lambda: make(row, opts=pulumi.ResourceOptions(aliases=aliases)))
    (problem,) = program.problems
    assert (problem.code, problem.path.rpartition(".opts.")[2]) == ("alias-of-another-kind", "aliases")


@pytest.mark.parametrize("row", CLAIMS)
@pytest.mark.parametrize(
    "path", ["spec", "spec.devices", '["spec"].devices', "*", "metadata", "metadata.name"]
)
def test_what_a_name_is_made_of_cannot_be_left_out_of_changes(row: str, path: str):
    opts = pulumi.ResourceOptions(ignore_changes=["metadata.labels", path])
    program, _ = run(lambda: make(row, opts=opts))
    (problem,) = program.problems
    assert (problem.code, problem.path.rpartition(".opts.")[2]) == ("ignored-content", "ignore_changes")
    assert repr(path) in problem.message
    assert registered(row, object_name="mine", opts=opts).children
