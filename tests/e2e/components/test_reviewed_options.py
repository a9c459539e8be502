"""What a review says of an option of a resource, and what the engine does: these tests make the table in docs/pulumi.md."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import pytest

from dra_infra.answers import compare
from dra_infra.program.synth import synth
from dra_infra.review.reviews import Review
from tests.e2e.components.table_rows import assert_row, read_rows
from tests.support.lab import Lab
from tests.support.pages.problem_pages import area_of
from tools.cluster import Api
from tools.engine_cli import Result

pytestmark = pytest.mark.e2e

CONFIG_MAP = "v1/ConfigMap"
MAP = 'config_map("{name}", {{"a": "{value}"}}, name="settings", opts=ResourceOptions({options}))\n'
LABELS = 'config_map("settings", {{}}, name="settings", labels={{"a": "{value}"}}, opts=ResourceOptions({options}))\n'
HOME = 'home = config_map("home", {"a": "old"}, name="home")\n'
TEAM = 'team = pulumi.ComponentResource("example:index:Team", "team")\n'


def settings(value: str = "1", options: str = "", name: str = "settings") -> str:
    return MAP.format(name=name, value=value, options=options)


def labelled(value: str = "1", options: str = "") -> str:
    return LABELS.format(value=value, options=options)


@dataclass(frozen=True)
class Case:
    """A change of a program.

    Attributes:
        base: What is up.
        head: What is reviewed, and then brought up.
        actions: Of the review.
        code: Of the review's problem, for which `pulumi up` fails; empty where it works.
        refusal: What `pulumi up` says then.
        is_kept: Whether the object of the base is there afterwards, as it was made.
        data: Of the object afterwards; None where there is none.
    """

    base: str
    head: str
    actions: tuple[str, ...]
    code: str = ""
    refusal: str = ""
    is_kept: bool = True
    data: str | None = "1"


TAKEN = "already exists"
UNABLE_TO_REPLACE = "unable to replace resource"
UNABLE_TO_DELETE = "cannot be deleted"
BEFORE = "delete_before_replace"
CASES = {
    "`aliases`: the old place of an object that moves below a parent": Case(
        settings(),
        TEAM + settings(options="parent=team, aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]"),
        (),
    ),
    "`aliases` of the parent, which is renamed": Case(
        'team = pulumi.ComponentResource("example:index:Team", "old")\n' + settings(options="parent=team"),
        'team = pulumi.ComponentResource("example:index:Team", "new", opts=ResourceOptions(\n'
        '    aliases=[pulumi.Alias(name="old")]))\n' + settings(options="parent=team"),
        (),
    ),
    "`aliases`: by a transform": Case(
        settings(),
        "def with_alias(args):\n"
        '    aliases = [pulumi.Alias(name="settings")]\n'
        "    return pulumi.ResourceTransformResult(args.props, ResourceOptions.merge(args.opts, ResourceOptions(aliases=aliases)))\n"
        + settings(name="renamed", options="transforms=[with_alias]"),
        (),
    ),
    "`aliases`: one object claimed by two resources": Case(
        settings(),
        settings()
        + settings(name="two", options='aliases=[pulumi.Alias(name="settings")]').replace(
            'name="settings", opts', 'name="two", opts'
        ),
        (),
        "alias-taken",
        "Duplicate resource",
    ),
    "`ignore_changes`: of what changes": Case(settings(), settings("2", 'ignore_changes=["data"]'), ()),
    "`ignore_changes`: another change replaces the object": Case(
        settings(),
        settings("2", 'ignore_changes=["data"]').replace('name="settings", opts', 'name="other", opts'),
        ("replaced",),
        is_kept=False,
        data=None,
    ),
    "`protect`: the resource goes": Case(
        settings(options="protect=True"), "", ("deleted",), "resource-protected", UNABLE_TO_DELETE
    ),
    "`protect`: the resource is replaced": Case(
        settings(options="protect=True"),
        settings("2", "protect=True"),
        ("replaced",),
        "resource-protected",
        UNABLE_TO_REPLACE,
    ),
    "`protect`: taken away while the resource is replaced": Case(
        settings(options="protect=True"), settings("2"), ("replaced",), is_kept=False, data="2"
    ),
    "`retain_on_delete`: the resource goes": Case(
        settings(options="retain_on_delete=True"), "", ("retained",)
    ),
    "`retain_on_delete`: the resource is replaced under its name": Case(
        settings(options="retain_on_delete=True"),
        settings("2", "retain_on_delete=True"),
        ("replaced",),
        "name-taken",
        TAKEN,
    ),
    "`replace_on_changes` with `delete_before_replace`": Case(
        labelled(),
        labelled("2", f'replace_on_changes=["metadata.labels"], {BEFORE}=True'),
        ("replaced",),
        is_kept=False,
        data=None,
    ),
    "`replace_on_changes` alone: the name is kept": Case(
        labelled(),
        labelled("2", 'replace_on_changes=["metadata.labels"]'),
        ("replaced",),
        "name-taken",
        TAKEN,
        data=None,
    ),
    "`delete_before_replace=False`: the name is kept": Case(
        settings(), settings("2", f"{BEFORE}=False"), ("replaced",), "name-taken", TAKEN
    ),
    "`deleted_with`: both go": Case(
        HOME + settings(options="deleted_with=home"), "", ("deleted", "deleted"), is_kept=True
    ),
    "`depends_on`: both change": Case(
        HOME + settings(options="depends_on=[home]"),
        HOME.replace('"old"', '"new"') + settings("2", "depends_on=[home]"),
        ("replaced", "replaced"),
        is_kept=False,
        data="2",
    ),
    "`custom_timeouts`: the resource is replaced": Case(
        settings(),
        settings("2", 'custom_timeouts=pulumi.CustomTimeouts(create="3m")'),
        ("replaced",),
        is_kept=False,
        data="2",
    ),
}
TABLE = "options in a review"


@pytest.mark.parametrize(("title", "case"), CASES.items(), ids=CASES.keys())
def test_the_engine_does_what_the_review_says(lab: Lab, cluster_api: Api, title: str, case: Case) -> None:
    lab.up(case.base)
    base = synth(lab.stack.directory, stack=lab.stack.name)
    (before,) = maps(cluster_api, lab, "settings")
    lab.write(case.head)

    review = compare(base, synth(lab.stack.directory, stack=lab.stack.name), base_label="base")
    up = lab.stack.up()

    changed = [each for each in review.changes if each.action != "created"]
    assert tuple(each.action for each in changed) == case.actions
    assert [each.code for each in review.problems if each.severity == "error"] == (
        [case.code] if case.code else []
    )
    assert up.exit_code == (1 if case.code else 0), up.text
    assert case.refusal in up.text
    after = maps(cluster_api, lab, "settings")
    assert [each["metadata"]["uid"] == before["metadata"]["uid"] for each in after] in (
        ([case.is_kept], []) if not case.is_kept else ([True],)
    )
    assert [each.get("data", {}).get("a") for each in after] in ([case.data], [])
    kept = {each["metadata"]["name"] for each in cluster_api.list(CONFIG_MAP, namespace=lab.namespace)}
    assert_row(TABLE, (title, said_by(review, lab.namespace), done_by(up, case.refusal, kept)), CASES)


def test_the_table_has_a_row_for_each_case_and_no_other() -> None:
    assert [*read_rows(TABLE)] == [*CASES]


def said_by(review: Review, namespace: str) -> str:
    """What the review says of the objects that were up: their changes, problems and notes."""
    objects = [each for each in review.changes if each.action != "created"]
    changes = [f"{each.ref.kind} {each.ref.name}: {each.action}" for each in objects]
    problems = [
        f"[`{each.code}`](errors/{area_of(each.code)}.md#{each.code}): {each.message}"
        for each in review.problems
        if each.severity == "error"
    ]
    notes = [each.removesuffix(".") for each in review.notes]
    sentences = [*(changes or ["no change"]), *problems, *notes]
    return "; ".join(sentences).replace(f" {namespace}/", " ")


STEPS = {
    ("create",): "creates",
    ("update",): "updates",
    ("delete",): "deletes",
    ("create-replacement", "replace", "delete-replaced"): "replaces, new object first:",
    ("delete-replaced", "replace", "create-replacement"): "replaces, old object first:",
    ("same",): "keeps",
}


def done_by(up: Result, refusal: str, kept: Set[str]) -> str:
    """What the engine did with the objects.

    Args:
        up: The update, whose log of events says what was done.
        refusal: What it says where it fails.
        kept: Names of the objects in the cluster afterwards: the log calls it a deletion, too, where the engine sends none.
    """
    if refusal:
        return f"fails: `{refusal}`"
    objects = dict.fromkeys(each.urn for each in up.steps if each.type == "kubernetes:core/v1:ConfigMap")
    done = []
    for urn in objects:
        operations = tuple(each.operation for each in up.steps if each.urn == urn)
        name = urn.rpartition("::")[2]
        is_left = operations == ("delete",) and name in kept
        done.append(f"{'lets go of' if is_left else STEPS[operations]} ConfigMap {name}")
    return "; ".join(done)


def maps(api: Api, lab: Lab, name: str) -> list[dict]:
    found = api.list(CONFIG_MAP, namespace=lab.namespace)
    return [each for each in found if each["metadata"]["name"] == name]


def test_two_resources_for_one_object_are_refused(lab: Lab) -> None:
    lab.write(settings() + settings(name="two"))

    problems = synth(lab.stack.directory, stack=lab.stack.name).problems
    up = lab.stack.up()

    assert [each.code for each in problems] == ["duplicate-object"]
    assert up.exit_code == 1
    assert "already exists" in up.text
