"""What a review says of an option of a resource, and what the engine does: docs/pulumi.md has the table."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dra_infra.answers import compare
from dra_infra.program.synth import synth
from tests.e2e.lab import Lab
from tools.cluster import Api

pytestmark = pytest.mark.e2e

CONFIG_MAP = "v1/ConfigMap"
MAP = 'config_map("{name}", {{"a": "{value}"}}, name="settings", opts=ResourceOptions({options}))\n'
LABELS = 'config_map("settings", {{}}, name="settings", labels={{"a": "{value}"}}, opts=ResourceOptions({options}))\n'
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
        is_kept: Whether the object of the base is there afterwards, as it was made.
        data: Of the object afterwards; None where there is none.
    """

    base: str
    head: str
    actions: tuple[str, ...]
    code: str = ""
    is_kept: bool = True
    data: str | None = "1"


BEFORE = "delete_before_replace"
CASES = {
    "aliases, by parent": Case(
        settings(),
        TEAM + settings(options="parent=team, aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]"),
        (),
    ),
    "aliases, of the parent": Case(
        'team = pulumi.ComponentResource("example:index:Team", "old")\n' + settings(options="parent=team"),
        'team = pulumi.ComponentResource("example:index:Team", "new", opts=ResourceOptions(\n'
        '    aliases=[pulumi.Alias(name="old")]))\n' + settings(options="parent=team"),
        (),
    ),
    "aliases, taken": Case(
        settings(),
        settings()
        + settings(name="two", options='aliases=[pulumi.Alias(name="settings")]').replace(
            'name="settings", opts', 'name="two", opts'
        ),
        (),
        "alias-taken",
    ),
    "ignore_changes": Case(settings(), settings("2", 'ignore_changes=["data"]'), ()),
    "ignore_changes, replaced": Case(
        settings(),
        settings("2", 'ignore_changes=["data"]').replace('name="settings", opts', 'name="other", opts'),
        ("replaced",),
        is_kept=False,
        data=None,
    ),
    "protect, deleted": Case(settings(options="protect=True"), "", ("deleted",), "resource-protected"),
    "protect, replaced": Case(
        settings(options="protect=True"),
        settings("2", "protect=True"),
        ("replaced",),
        "resource-protected",
    ),
    "protect, taken away": Case(
        settings(options="protect=True"), settings("2"), ("replaced",), is_kept=False, data="2"
    ),
    "retain_on_delete": Case(settings(options="retain_on_delete=True"), "", ("retained",)),
    "retain_on_delete, replaced": Case(
        settings(options="retain_on_delete=True"),
        settings("2", "retain_on_delete=True"),
        ("replaced",),
        "name-taken",
    ),
    "replace_on_changes": Case(
        labelled(),
        labelled("2", f'replace_on_changes=["metadata.labels"], {BEFORE}=True'),
        ("replaced",),
        is_kept=False,
        data=None,
    ),
    "replace_on_changes, under its name": Case(
        labelled(),
        labelled("2", 'replace_on_changes=["metadata.labels"]'),
        ("replaced",),
        "name-taken",
        data=None,
    ),
    "delete_before_replace=False": Case(
        settings(), settings("2", f"{BEFORE}=False"), ("replaced",), "name-taken"
    ),
    "custom_timeouts": Case(
        settings(),
        settings("2", 'custom_timeouts=pulumi.CustomTimeouts(create="3m")'),
        ("replaced",),
        is_kept=False,
        data="2",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_engine_does_what_the_review_says(lab: Lab, cluster_api: Api, case: Case) -> None:
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
    after = maps(cluster_api, lab, "settings")
    assert [each["metadata"]["uid"] == before["metadata"]["uid"] for each in after] in (
        ([case.is_kept], []) if not case.is_kept else ([True],)
    )
    assert [each.get("data", {}).get("a") for each in after] in ([case.data], [])


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
