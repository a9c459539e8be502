from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.review.changes import compare_programs

names = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


def changes(make, before, after):
    return compare_programs(make.program(*before), make.program(*after))


def actions(make, before, after):
    return [(change.action, str(change.ref)) for change in changes(make, before, after)]


@given(
    st.lists(
        st.tuples(names, names, st.dictionaries(names, names, max_size=3)), unique_by=lambda item: item[0]
    )
)
def test_equal_programs_have_no_changes(items):
    objects = tuple(
        ProgramObject(
            urn=f"urn:pulumi:s::p::kubernetes:core/v1:ConfigMap::{name}",
            manifest={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": space}, "data": data},
        )
        for name, space, data in items
    )  # fmt: skip
    program = Program(project="p", stack="s", objects=objects)
    assert compare_programs(program, replace(program, objects=tuple(reversed(objects)))) == ()


def test_an_object_of_only_one_side_is_created_or_deleted(make):
    job, other = make.workload("Job", "a", make.pod_spec()), make.workload("Job", "b", make.pod_spec())
    assert actions(make, [job], [other]) == [("deleted", "Job ml/a"), ("created", "Job ml/b")]


def test_the_worst_comes_first(make):
    before = [
        make.workload("Deployment", "changed", make.pod_spec()),
        make.workload("Job", "deleted", make.pod_spec()),
        make.workload("Job", "replaced", make.pod_spec()),
    ]
    after = [
        make.workload("Deployment", "changed", make.pod_spec(), replicas=2),
        make.workload("Job", "replaced", make.pod_spec(image="other")),
        make.workload("Job", "created", make.pod_spec()),
    ]
    assert [action for action, _ in actions(make, before, after)] == [
        "replaced",
        "deleted",
        "changed",
        "created",
    ]


def test_a_template_whose_name_follows_its_content_is_replaced_new_one_first(make):
    (change,) = changes(
        make, [make.template("trainer", "trainer-11111111", count=1)], [make.template("trainer", "trainer-22222222", count=2)]
    )  # fmt: skip
    assert (change.action, change.order, change.replacing) == ("replaced", "create-first", ("metadata.name",))
    assert (str(change.old_ref), str(change.component)) == (
        "ResourceClaimTemplate ml/trainer-11111111",
        'GpuClaimTemplate("trainer")',
    )


def test_a_delete_first_claim_under_the_same_name_is_replaced_old_one_first(make):
    before = make.claim("pair", "pair", count=1)
    after = make.claim("pair", "pair", count=2, replacement="delete-first")
    (change,) = changes(make, [before], [after])
    assert (change.action, change.order, change.replacing, change.refused) == (
        "replaced",
        "delete-first",
        ("spec",),
        (),
    )


def test_a_claim_under_the_same_name_is_an_update_that_is_refused(make):
    (change,) = changes(make, [make.claim("pair", "pair", count=1)], [make.claim("pair", "pair", count=2)])
    assert (change.action, change.refused) == ("changed", ("spec",))


def test_labels_of_a_claim_change_in_place(make):
    before = make.claim("pair", "pair")
    manifest = make.copy(before.manifest)
    manifest["metadata"]["labels"] = {"team": "ml"}
    (change,) = changes(make, [before], [replace(before, manifest=manifest)])
    assert (change.action, change.refused) == ("changed", ())


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Job", "spec.template"),
        ("Job", "spec.parallelism"),
        ("Job", "spec.completions"),
        ("Deployment", "spec.selector"),
        ("DaemonSet", "spec.selector"),
        ("StatefulSet", "spec.serviceName"),
    ],
)
def test_fields_of_the_providers_list_replace_and_delete_first(make, kind, path):
    before = make.workload(kind, "work", make.pod_spec())
    manifest = make.copy(before.manifest)
    manifest["spec"][path.removeprefix("spec.")] = {"new": "value"}
    (change,) = changes(make, [before], [replace(before, manifest=manifest)])
    assert (change.action, change.order, change.replacing) == ("replaced", "delete-first", (path,))


@pytest.mark.parametrize(
    ("kind", "field"), [("Job", "backoffLimit"), ("Deployment", "template"), ("StatefulSet", "replicas")]
)
def test_other_fields_of_workloads_change_in_place(make, kind, field):
    before = make.workload(kind, "work", make.pod_spec())
    manifest = make.copy(before.manifest)
    manifest["spec"][field] = {"new": "value"}
    assert actions(make, [before], [replace(before, manifest=manifest)]) == [("changed", f"{kind} ml/work")]


@pytest.mark.parametrize(
    ("kind", "field"), [("ConfigMap", "data"), ("Secret", "stringData"), ("Secret", "type")]
)
def test_data_of_config_maps_and_secrets_replaces(make, kind, field):
    before = make.object(kind, "settings", None, **{field: "a"})
    after = make.object(kind, "settings", None, **{field: "b"})
    (change,) = changes(make, [before], [after])
    assert (change.action, change.replacing) == ("replaced", (field,))


def test_another_namespace_replaces_new_one_first(make):
    before = make.object("ConfigMap", "settings", None, data={})
    after = make.object("ConfigMap", "settings", None, data={}, namespace="other")
    (change,) = changes(make, [before], [after])
    assert (change.action, change.order, change.replacing) == (
        "replaced",
        "create-first",
        ("metadata.namespace",),
    )


def test_the_image_of_a_pod_replaces_it(make):
    (change,) = changes(make, [make.pod("p", make.pod_spec())], [make.pod("p", make.pod_spec(image="new"))])
    assert (change.action, change.replacing) == ("replaced", ("spec.containers[0].image",))


def test_the_node_selector_of_a_pod_replaces_it(make):
    after = make.pod("p", make.pod_spec(nodeSelector={"a": "b"}))
    (change,) = changes(make, [make.pod("p", make.pod_spec())], [after])
    assert change.replacing == ("spec.nodeSelector",)


def test_the_claims_of_a_pod_are_not_in_the_providers_list_and_refused(make):
    before, after = make.pod("p", make.pod_spec(claim="a")), make.pod("p", make.pod_spec(claim="b"))
    (change,) = changes(make, [before], [after])
    assert (change.action, change.refused) == ("changed", ("spec.resourceClaims",))


def test_the_claims_of_a_pod_that_is_replaced_anyway_are_not_refused(make):
    before, after = (
        make.pod("p", make.pod_spec(claim="a")),
        make.pod("p", make.pod_spec(claim="b", image="new")),
    )
    (change,) = changes(make, [before], [after])
    assert (change.action, change.refused) == ("replaced", ())


def test_another_version_of_the_same_type_is_the_same_resource(make):
    before = make.claim("pair", "pair")
    old = replace(
        before,
        urn=before.urn.replace("io/v1:", "io/v1beta2:"),
        manifest={**before.manifest, "apiVersion": "resource.k8s.io/v1beta2"},
    )
    assert actions(make, [old], [before]) == [("changed", "ResourceClaim ml/pair")]


def test_an_object_under_another_parent_is_another_resource(make):
    before = make.claim("pair", "pair")
    moved = replace(before, urn=before.urn.replace("quickstart::", "quickstart::team:index:Team$"))
    assert [change.action for change in changes(make, [before], [moved])] == ["deleted", "created"]


def test_an_object_that_pulumi_names_is_replaced_new_one_first(make):
    before = make.workload("Job", "", make.pod_spec())
    after = make.workload("Job", "", make.pod_spec(image="new"))
    (change,) = changes(make, [before], [after])
    assert (change.action, change.order, change.ref.name) == ("replaced", "create-first", UNKNOWN)


def _autonamed(made: ProgramObject, name: str) -> ProgramObject:
    metadata = {**made.manifest["metadata"], "name": name, "annotations": {"pulumi.com/autonamed": "true"}}
    return replace(made, manifest={**made.manifest, "metadata": metadata})


def test_an_object_called_by_its_resource_is_matched_by_urn_and_replaced_new_one_first(make):
    before = _autonamed(make.workload("Job", "train", make.pod_spec()), "train-*")
    after = _autonamed(make.workload("Job", "train", make.pod_spec(image="new")), "train-*")
    assert changes(make, [before], [before]) == ()
    (change,) = changes(make, [before], [after])
    assert (change.action, change.order, str(change.ref)) == ("replaced", "create-first", "Job ml/train-*")


def test_another_object_of_its_name_replaces_no_unnamed_object(make):
    before = _autonamed(make.workload("Job", "train", make.pod_spec()), "train-*")
    after = _autonamed(make.workload("Job", "train", make.pod_spec()), "train-*-0a1b2c3d")
    assert [change.action for change in changes(make, [before], [after])] == ["changed"]
    named = make.workload("Job", "train", make.pod_spec())
    assert [change.action for change in changes(make, [before], [named])] == ["replaced"]


def test_helm_changes_in_place_what_the_provider_would_replace():
    def config_map(text: str, chart: str) -> Program:
        metadata = {"name": "values", "namespace": "gpu"}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": text}}
        urn = "urn:pulumi:s::p::kubernetes:v1:ConfigMap::values"
        return Program(
            project="p", stack="s", objects=(ProgramObject(urn=urn, manifest=manifest, chart=chart),)
        )

    def action(chart: str) -> str:
        (change,) = compare_programs(config_map("1", chart), config_map("2", chart))
        return change.action

    assert action("") == "replaced"
    assert action("gpu-operator") == "changed"
