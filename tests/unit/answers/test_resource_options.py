"""What reviews say of options of resources: docs/pulumi.md has the table, tests/e2e/components the same on the real engine."""

from __future__ import annotations

from collections.abc import Callable

import pulumi
import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.answers import compare
from dra_infra.program.program_json import program_from_json, program_to_json, write_json
from dra_infra.program.synth import synth_function
from dra_infra.review import Review

Options = pulumi.ResourceOptions


def review(base: Callable[[], object], head: Callable[[], object]) -> Review:
    return compare(synth_function(base), synth_function(head), base_label="main")


def actions(result: Review) -> list[tuple[str, str]]:
    return [(each.action, str(each.ref)) for each in result.changes]


def codes(result: Review) -> list[str]:
    return [each.code for each in result.problems if each.severity == "error"]


def config(value: str = "1", *, name: str = "settings", resource: str = "settings", **options: object):
    return k8s.core.v1.ConfigMap(
        resource, metadata={"name": name, "namespace": "ml"}, data={"a": value}, opts=Options(**options)
    )


def deployment(replicas: int = 2, image: str = "i", *, labels: str = "b", **options: object):
    return k8s.apps.v1.Deployment(
        "web",
        metadata={"name": "web", "namespace": "ml"},
        spec={
            "replicas": replicas,
            "selector": {"match_labels": {"a": labels}},
            "template": {
                "metadata": {"labels": {"a": labels}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
        opts=Options(**options),
    )


def volume(**options: object):
    return k8s.core.v1.PersistentVolumeClaim(
        "data",
        metadata={"name": "data", "namespace": "ml"},
        spec={"access_modes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        opts=Options(**options),
    )


class Team(pulumi.ComponentResource):
    def __init__(self, name: str, opts: pulumi.ResourceOptions | None = None):
        super().__init__("example:ml:Team", name, {}, opts)


def nothing() -> None:
    """A program without resources."""


# aliases


@pytest.mark.parametrize(
    "alias",
    [
        pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE),
        "urn:pulumi:test::test::kubernetes:core/v1:PersistentVolumeClaim::data",
        "urn:pulumi:test::test::kubernetes:core/v2:PersistentVolumeClaim::data",
    ],
)
def test_an_alias_keeps_an_object_that_gets_a_parent(alias):
    result = review(volume, lambda: volume(parent=Team("ml"), aliases=[alias]))
    assert (actions(result), result.dangers, codes(result)) == ([], (), [])
    assert result.notes == (
        "aliases: PersistentVolumeClaim ml/data keeps the object of the base; only its URN changes.",
    )


def test_without_an_alias_the_object_is_another_one():
    result = review(volume, lambda: volume(parent=Team("ml")))
    assert {action for action, _ in actions(result)} == {"deleted", "created"}


def test_an_object_of_a_component_inherits_its_alias():
    def template(**options):
        dra.GpuClaimTemplate(
            "t", device_class="gpu.nvidia.com", count=8, namespace="ml", opts=Options(**options)
        )

    aliases = [pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]
    result = review(template, lambda: template(parent=Team("ml"), aliases=aliases))
    assert (actions(result), result.dangers, result.unchanged) == ([], (), 1)


def test_a_renamed_component_takes_children_along_that_begin_with_its_name():
    def team(name, **options):
        holder = Team(name, Options(**options))
        inner = Team(f"{name}-inner", Options(parent=holder))
        config(resource=f"{name}-inner-settings", parent=inner)

    result = review(lambda: team("old"), lambda: team("new", aliases=[pulumi.Alias(name="old")]))
    assert actions(result) == []
    assert codes(result) == []


def test_an_alias_of_a_type_keeps_children():
    class Renamed(pulumi.ComponentResource):
        def __init__(self, name):
            aliases = [pulumi.Alias(type_="example:ml:Team")]
            super().__init__("example:ml:Group", name, {}, Options(aliases=aliases))

    result = review(lambda: config(parent=Team("x")), lambda: config("2", parent=Renamed("x")))
    assert actions(result) == [("replaced", "ConfigMap ml/settings")]


def test_an_alias_that_names_nothing_of_the_base_does_nothing():
    result = review(nothing, lambda: volume(aliases=[pulumi.Alias(name="other")]))
    assert [action for action, _ in actions(result)] == ["created"]


def test_two_resources_cannot_be_one_of_the_base():
    def head():
        for name in ("left", "right"):
            config(name=name, resource=name, aliases=[pulumi.Alias(name="settings")])

    assert codes(review(config, head)) == ["alias-taken"]


def test_an_alias_that_is_a_resource_of_the_program_is_refused():
    def head():
        config()
        config(name="other", resource="other", aliases=[pulumi.Alias(name="settings")])

    assert codes(review(config, head)) == ["alias-taken"]


def test_a_transform_may_add_an_alias():
    def add(args):
        args.opts.aliases = [pulumi.Alias(name="settings")]
        return pulumi.ResourceTransformResult(args.props, args.opts)

    assert actions(review(config, lambda: config(resource="renamed", transforms=[add]))) == []


# ignore_changes


def test_what_is_ignored_stays_as_it_was():
    ignored = {"ignore_changes": ["spec.replicas"]}
    result = review(lambda: deployment(2), lambda: deployment(40, **ignored))
    assert (actions(result), result.summary) == ([], "nothing changes")
    assert "ignore_changes: spec.replicas of Deployment ml/web stays as at the base." in result.notes


def test_other_changes_of_the_object_count_beside_what_is_ignored():
    result = review(lambda: deployment(2), lambda: deployment(40, "new", ignore_changes=["spec.replicas"]))
    ((_, diff),) = [(each.path, each.lines) for each in result.changes[0].diff]
    assert not any("replicas" in line for line in diff)


def test_an_object_that_is_replaced_gets_what_the_program_says():
    ignored = {"ignore_changes": ["spec.replicas"]}
    result = review(lambda: deployment(2), lambda: deployment(40, labels="c", **ignored))
    assert [each.action for each in result.changes] == ["replaced"]
    assert any("replicas: 40" in line for hunk in result.changes[0].diff for line in hunk.lines)


def test_a_new_object_gets_what_the_program_says():
    result = review(nothing, lambda: deployment(40, ignore_changes=["spec.replicas"]))
    assert any("replicas: 40" in line for hunk in result.changes[0].diff for line in hunk.lines)


@pytest.mark.parametrize(
    "path", ["spec.template.spec.containers[0].image", "spec.template.spec.containers[*].image", "spec", "*"]
)
def test_paths_are_those_of_the_engine(path):
    assert actions(review(deployment, lambda: deployment(image="new", ignore_changes=[path]))) == []


# protect


@pytest.mark.parametrize("make", [volume, deployment, config])
def test_a_protected_object_is_not_deleted(make):
    result = review(lambda: make(protect=True), nothing)
    assert codes(result) == ["resource-protected"]
    assert result.is_blocked()


def test_a_protected_object_is_not_replaced_while_both_sides_protect_it():
    result = review(lambda: config(protect=True), lambda: config("2", protect=True))
    assert codes(result) == ["resource-protected"]


def test_protection_may_go_together_with_a_replacement():
    result = review(lambda: config(protect=True), lambda: config("2"))
    assert codes(result) == []
    assert any(note.startswith("protect is taken away from ConfigMap ml/settings") for note in result.notes)


def test_a_protected_object_changes_in_place():
    result = review(lambda: deployment(2, protect=True), lambda: deployment(3, protect=True))
    assert (actions(result), codes(result)) == ([("changed", "Deployment ml/web")], [])


def test_objects_inherit_the_protection_of_their_component():
    def protected(count):
        options = Options(protect=True)
        dra.GpuClaimTemplate("t", device_class="gpu.nvidia.com", count=count, namespace="ml", opts=options)

    assert codes(review(lambda: protected(4), lambda: protected(8))) == ["resource-protected"]


def test_a_protected_resource_of_another_provider_is_not_deleted_either():
    class Disk(pulumi.CustomResource):
        def __init__(self, name):
            super().__init__("cloud:index:Disk", name, {}, Options(protect=True))

    result = review(lambda: Disk("d"), nothing)
    assert [(each.path, each.code) for each in result.problems] == [
        ("cloud:index:Disk d", "resource-protected")
    ]


def test_a_component_shows_by_its_protected_objects():
    result = review(lambda: config(parent=Team("ml", Options(protect=True))), nothing)
    assert [each.path for each in result.problems] == ["ConfigMap ml/settings"]


def test_an_alias_keeps_what_is_protected():
    moved = lambda: volume(protect=True, parent=Team("t"), aliases=[pulumi.Alias(parent=None)])  # noqa: E731
    assert codes(review(lambda: volume(protect=True), moved)) == []


# retain_on_delete


def test_what_is_retained_is_not_called_deleted():
    result = review(lambda: volume(retain_on_delete=True), nothing)
    assert (actions(result), result.dangers) == ([("retained", "PersistentVolumeClaim ml/data")], ())
    assert result.counts["retained"] == 1
    assert "retain_on_delete: PersistentVolumeClaim ml/data leaves the stack and stays in the cluster." in (
        result.notes
    )


def test_retention_counts_as_the_base_has_it():
    assert actions(review(volume, nothing)) == [("deleted", "PersistentVolumeClaim ml/data")]


def test_an_object_that_is_retained_under_its_name_cannot_be_made_anew():
    retained = {"retain_on_delete": True}
    assert codes(review(lambda: config(**retained), lambda: config("2", **retained))) == ["name-taken"]


def test_protection_comes_before_retention():
    assert codes(review(lambda: volume(protect=True, retain_on_delete=True), nothing)) == [
        "resource-protected"
    ]


# replace_on_changes and delete_before_replace


def test_a_change_may_replace_what_would_change_in_place():
    options = {"replace_on_changes": ["spec.replicas"], "delete_before_replace": True}
    (change,) = review(deployment, lambda: deployment(3, **options)).changes
    assert (change.action, change.replacing, change.order) == ("replaced", ("spec.replicas",), "delete-first")


def test_another_field_changes_in_place():
    (change,) = review(deployment, lambda: deployment(3, replace_on_changes=["spec.template"])).changes
    assert change.action == "changed"


@pytest.mark.parametrize("path", ["*", "spec", "spec.template.spec.containers[*].image"])
def test_paths_of_replacements_are_those_of_the_engine(path):
    (change,) = review(deployment, lambda: deployment(image="new", replace_on_changes=[path])).changes
    assert (change.action, change.replacing) == ("replaced", (path,))


def test_a_new_object_cannot_come_before_the_old_one_of_its_name():
    result = review(deployment, lambda: deployment(3, replace_on_changes=["spec.replicas"]))
    assert (codes(result), result.changes[0].order) == (["name-taken"], "create-first")


def test_the_provider_deletes_first_unless_it_is_told_otherwise():
    assert codes(review(config, lambda: config("2"))) == []
    assert codes(review(config, lambda: config("2", delete_before_replace=False))) == ["name-taken"]


# depends_on, deleted_with, custom_timeouts


def test_what_waits_is_told():
    def both(value):
        deployment(int(value), depends_on=[config(value)])

    result = review(lambda: both("1"), lambda: both("2"))
    assert "depends_on: Deployment ml/web waits for ConfigMap ml/settings." in result.notes


def test_what_goes_with_another_is_told():
    def both():
        config(deleted_with=k8s.core.v1.Namespace("ml", metadata={"name": "ml"}))

    result = review(both, nothing)
    assert "deleted_with: ConfigMap ml/settings is not deleted by itself, it goes with Namespace ml." in (
        result.notes
    )


def test_how_long_the_engine_waits_is_told_of_steps_that_it_makes():
    options = {"custom_timeouts": pulumi.CustomTimeouts(create="30m", update="5m")}
    result = review(deployment, lambda: deployment(3, **options))
    assert [note for note in result.notes if "custom_timeouts" in note] == [
        "custom_timeouts: `pulumi up` waits up to 5m for the update of Deployment ml/web."
    ]


def test_one_sentence_is_for_all_objects_of_which_it_is_true():
    def all_of(value):
        for name in ("one", "two"):
            config(value, name=name, resource=name, ignore_changes=["data"])

    result = review(lambda: all_of("1"), lambda: all_of("2"))
    assert result.notes == (
        "ignore_changes: data of ConfigMap ml/one and ConfigMap ml/two stays as at the base.",
    )


def test_options_come_through_the_process_that_ran_the_program():
    def program():
        aliases = [pulumi.Alias(name="old", parent=pulumi.ROOT_STACK_RESOURCE)]
        timeouts = pulumi.CustomTimeouts(create="3m")
        team = Team("ml", Options(aliases=aliases, protect=True))
        volume(parent=team, ignore_changes=["spec"], custom_timeouts=timeouts, delete_before_replace=False)

    made = synth_function(program)
    read = program_from_json(write_json(program_to_json(made)))
    assert made.options
    assert (read.options, read.resources) == (made.options, made.resources)
