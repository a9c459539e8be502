"""Names of strangers in every place of a comment, as GitHub renders it: the page has the same elements whatever they are."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dra_infra.cutover.plan import Plan
from dra_infra.cutover.texts import append_markdown
from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.migration.outcomes import Remark
from dra_infra.migration.report import Entry, Report, write_markdown
from dra_infra.program_objects import NotSeen
from dra_infra.provenance import Provenance, ReviewedSide
from dra_infra.review import Review, render_markdown, review
from dra_infra.review.dangers import Danger
from dra_infra.review.engine_steps import EngineMessage, EngineOnly, EngineSide
from tests.support.rendered_markdown import REFERENCES, rendered
from tests.unit.review import conftest as samples

NAME = "somename"
"""Stands in each place for what a stranger writes."""

HOSTILE = [
    # Addresses.
    "victim@example.com", "mailto:a@b.co", "xmpp:a@b.co/room", "a.b+c@d-e.fg", "a_b@c.d", "x@y.z:/~#", "a@b.cc@d.ee",
    "noreply@forge.example/evil", "see (a@b.cc)", "_a@b.cc_", "<a@b.cc>", "write-to billing@evil.example",
    "www.evil.example", "WWW.evil.example", "(www.evil.example)", "*www.x.y", "http://evil.example", "HTTPS://evil.example/a?b=c",
    "ftp://evil.example", "<http://x.y>", "https&#58;//x.y", "&#64;octocat", "a&#64;b.cc",
    # References of GitHub and GitLab.
    "@octocat", "@org/team", "#12", "GH-12", "org/repo#1", "org/repo@0123abcd", "!1", "&1", "$1", "%1", "~bug", '%"next one"',
    "^alert#1", "*iteration:1", "[vulnerability:1]", "[epic:1]", ":tada:", "closes #1", "/close", "o/r>",
    # Markup.
    "[x](https://evil.example)", "![x](y)", "[x]: https://evil.example", "[^1]", "[^1]: note", "<img src=x>", "<!-- x", "-->",
    "</code><h1>x</h1>", "</summary></details>", "`x`", "```", "~~~", "~~x~~", "**x**", "__x__", "x\n\n# y", "# x", "=====", "-----",
    "---", "***", "- x", "+ x", "* x", "1. x", "7) x", "- [ ] x", "[x] y", "> [!NOTE]", "    x", "a | b", "|---|", "\\", "\\|", "<br>",
    "$x^2$", "$`x`$", "$$x$$", "```mermaid", "```math", "::include{file=x}", "[[_TOC_]]", "[TOC]", "{{x}}", "{+ x +}", "[- x -]",
    "#FF0000", "rgb(1,2,3)", "&lt;b&gt;", "&nbsp;", "\t", " ",
]  # fmt: skip
DANGEROUS = st.lists(
    st.sampled_from([*"@:/.-+=_*`~[](){}<>|\\#!&$^%;'\" \n\t01ax", "www.", "://", "a@b.cc", "1. ", "mailto:", "xmpp:", "é", "\u202e"]),
    min_size=1,
    max_size=12,
).map("".join)  # fmt: skip


@cache
def a_review() -> Review:
    """A review with something in each place of a comment."""
    before, after = (
        samples.a_program(
            samples.a_class(),
            samples.a_template(NAME, f"{NAME}-1", count=count),
            samples.a_workload("Deployment", NAME, samples.pod_spec(template=f"{NAME}-1"), replicas=count),
            samples.an_object("ConfigMap", f"{NAME}-{count}", None, data={"key": NAME}, resource=NAME),
            samples.an_object("ConfigMap", f"kept{count}", None, data={NAME: NAME}),
        )
        for count in (1, 2)
    )
    fleet = samples.a_fleet(samples.a_node(NAME))
    placed = [
        samples.place_first_fit(fleet, ("Deployment", NAME, count, count, samples.H100)) for count in (1, 2)
    ]
    made = review(before, after, base_label=NAME, before=placed[0], after=placed[1])
    ref = ObjectRef("Pod", NAME, NAME)
    place = Place(file=NAME, line=1)
    danger = Danger(who=ref, code="x", message=NAME, cause=NAME, hint=NAME, place=place)
    step = EngineOnly(
        why="other", urn=NAME, type=NAME, name=NAME, ref=None, steps=("create",), replacing=(NAME,)
    )
    return dataclasses.replace(
        made,
        project=NAME,
        stack=NAME,
        problems=(Problem(path=NAME, code="x", message=NAME, hint=NAME, place=place),),
        dangers=(danger,),
        rollouts=(dataclasses.replace(danger, level="note"),),
        not_known=(NotSeen(what=NAME, name=NAME, reason=NAME),),
        notes=(NAME,),
        provenance=dataclasses.replace(
            made.provenance,
            server=NAME,
            drivers=(NAME,),
            base=ReviewedSide(origin="commit", label=NAME, commit="1a2b3c4d5e6f" + "0" * 28),
        ),
        engine=EngineSide(others=(step,), warnings=(EngineMessage(severity="warning", text=NAME, urn=NAME),)),
    )


@cache
def a_report() -> Report:
    """A report of a migration with something in each place."""
    remark = Remark(outcome="lost", code="x", path=NAME, message=NAME, hint=NAME)
    problem = Problem(path=NAME, code="x", message=NAME, hint=NAME)
    entry = Entry(
        name=NAME, place=Place(file=NAME), remarks=[remark], is_changed=True, added=[NAME], problems=[problem]
    )
    provenance = Provenance(server=NAME)
    return Report(entries=[entry], others=0, kubernetes=["1.37"], provenance=provenance, notes=[NAME])


def fill(value: Any, text: str) -> Any:
    """Put *text* in the place of each name, in records inside of records too."""
    if isinstance(value, str):
        return value.replace(NAME, text)
    if isinstance(value, (tuple, list)):
        parts = [fill(each, text) for each in value]
        return (
            parts
            if isinstance(value, list)
            else type(value)(*parts)
            if hasattr(value, "_fields")
            else tuple(parts)
        )
    if isinstance(value, dict):
        return {fill(key, text): fill(each, text) for key, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            each.name: fill(getattr(value, each.name), text)
            for each in dataclasses.fields(value)
            if each.init
        }
        return dataclasses.replace(value, **changes)
    return value


def pages(text: str) -> list[str]:
    made = fill(dataclasses.replace(a_review(), before=None, after=None), text)
    report = write_markdown(fill(a_report(), text))
    plan = Plan(phases=(), refused=(text,), reasons=(text,), notes=(text,))
    return [render_markdown(made), render_markdown(made, brief=True), report, append_markdown("", plan)]


@cache
def plain_tags() -> list[list[str]]:
    return [rendered(each).tags for each in pages("word")]


def check(text: str) -> None:
    for page, tags in zip(map(rendered, pages(text)), plain_tags(), strict=True):
        assert page.tags == tags
        assert not REFERENCES.search(page.text)


def test_each_place_of_a_comment_has_a_name():
    page = render_markdown(fill(dataclasses.replace(a_review(), before=None, after=None), "word"))
    for place in (
        "### ",
        "- ❌ ",
        "- ⚠️ ",
        "- ✅ ",
        "**Rollouts**",
        "| ✅ | ",
        "- word",
        "<summary>",
        "```diff",
        "**Engine:**",
    ):
        assert place in page
    assert page.count("word") > 40


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_adds_no_element_and_no_reference(text: str):
    check(text)


@given(DANGEROUS)
@example("a@b.cc")
@settings(deadline=None, max_examples=60)
def test_no_text_adds_an_element_or_a_reference(text: str):
    check(text)


def test_what_is_copied_from_code_is_the_name():
    for text in ("billing@evil.example", "https://x.y", "www.x.y"):
        assert text in rendered(render_markdown(fill(a_review(), text))).code
