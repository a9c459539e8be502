from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.errors import Problem
from dra_infra.program_objects import ComponentRef, NotSeen, Program, ProgramObject
from dra_infra.review import render_markdown, review
from dra_infra.review.markdown_report import BUDGET, marker_of
from tests.support.rendered_markdown import REFERENCES, rendered

EMPTY = "<!-- -->"
"""The comment of HTML that parts addresses in code."""

OUR_TAGS = {"<code>", "</code>", "<details>", "</details>", "<summary>", "</summary>", "<b>", "</b>", "<br>"} | {
    "<sub>", "</sub>"
}  # fmt: skip
"""All HTML that a comment may hold; whatever else it holds came from a name."""

ELEMENTS = {"h3", "p", "ul", "li", "strong", "em", "pre", "code", "details", "summary", "b", "br", "sub"} | {
    "table", "thead", "tbody", "tr", "th", "td"
}  # fmt: skip
"""All elements that a comment is made of."""

hostile = st.one_of(
    st.text(st.characters(), max_size=30),
    st.sampled_from(["```", "````\n```diff", "</details>", "<script>", "| a |", "-->", "@everyone", "#1", "www.x.y", "\u202e", "\x1b[31m", "\ud800", "- [ ] x", "\n---\n", "&lt;", "![x](y)", "http://x.y", "a@b.c"]),
    st.sampled_from(["very much of x", "very much of `", "very much of <b>", "very much of |", "very much of \u202e"]),
    st.text("`~<>|*_[]()-\n \\", max_size=30),
)  # fmt: skip


def expand(text):
    """What a strategy stands for: more than any comment may have, which would fill Hypothesis' messages."""
    unit = text.removeprefix("very much of ")
    return unit * (2 * BUDGET // len(unit)) if unit and unit != text else text


def program(names, data, problems=(), not_seen=()):
    objects = tuple(
        ProgramObject(
            urn=f"urn:pulumi:s::p::kubernetes:core/v1:ConfigMap::{number}",
            manifest={
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name},
                "data": {"k": text},
            },
            component=ComponentRef(name, name),
        )
        for number, (name, text) in enumerate(zip(names, data, strict=False))
    )
    return Program(project="p", stack="s", objects=objects, problems=problems, not_seen=not_seen)


def lines_outside_fences(text):
    """Lines that are read as Markdown, by CommonMark's rule for fences; fails on a fence that stays open."""
    outside = []
    fence = None
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,})(.*)$", line)
        if fence is None and found:
            fence = len(found[1])
        elif fence is not None and found and len(found[1]) >= fence and not found[2].strip():
            fence = None
        elif fence is None:
            outside.append(line)
    assert fence is None, "a fence stays open"
    return outside


@settings(deadline=None, max_examples=60)
@given(
    st.lists(hostile, max_size=6),
    st.lists(hostile, max_size=6),
    st.lists(hostile, max_size=6),
    hostile,
    st.integers(7000, 12_000),
)
def test_hostile_texts_never_break_out_of_their_place(names, before, after, label, budget):
    names, before, after = ([expand(text) for text in texts] for texts in (names, before, after))
    label = expand(label)
    problems = tuple(Problem(path=name, code="x", message=name, hint=name) for name in names)
    not_seen = tuple(NotSeen(what="invoke", name=name, reason=name) for name in names)
    result = review(program(names, before), program(names, after, problems, not_seen), base_label=label)
    text = render_markdown(result, budget=budget)
    assert len(text.encode()) <= budget
    outside = lines_outside_fences(text)
    assert sum(line.startswith("<details>") for line in outside) == sum(
        line == "</details>" for line in outside
    )
    assert set(re.findall(r"<[^>]*>", "\n".join(outside[1:]))) <= OUR_TAGS | {EMPTY}
    check_markup(text)
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert render_markdown(result, budget=budget) == text


def check_markup(text):
    """What GitHub's renderer makes of *text*: our elements only, every fold closed, no link, picture or heading from a name."""
    page = rendered(text)
    assert page.elements <= ELEMENTS
    assert page.tags.count("h3") == 1
    for name in page.elements - {"br"}:
        assert page.tags.count(name) == page.tags.count(f"/{name}"), name


def big_review(make, number):
    objects = [
        make.object("ConfigMap", f"c{index:04}", None, data={"k": "v" * 200}) for index in range(number)
    ]
    replaced = make.template("trainer", "trainer-2", count=2)
    return review(
        make.program(make.template("trainer", "trainer-1")),
        make.program(replaced, *objects),
        base_label="main",
    )


def test_a_large_review_is_cut_by_priority_and_says_so(make):
    text = render_markdown(big_review(make, 2000))
    assert len(text.encode()) <= BUDGET
    assert len(text.encode()) > BUDGET * 0.9
    assert "-          count: 1" in text
    assert "trainer-1" in text
    assert re.search(r"_Cut to the size of a comment: [\d,]+ objects not shown\.", text)
    lines_outside_fences(text)


def test_everything_is_shown_where_there_is_room(sample):
    text = render_markdown(sample)
    assert text.count("<details>") == len(sample.changes)
    assert "Cut to the size" not in text


def test_a_long_diff_is_shortened_before_an_object_is_left_out(make):
    long = make.object("ConfigMap", "c", None, data={f"k{number:04}": "v" * 50 for number in range(1000)})
    text = render_markdown(review(make.program(), make.program(long), base_label="main"), budget=5000)
    assert "# … 976 more lines" in text


def test_the_marker_comes_first_and_finds_the_comment_again(sample):
    assert render_markdown(sample).splitlines()[0] == "<!-- dra-infra review quickstart/dev -->"


@pytest.mark.parametrize("name", ["-->", "a b", "ä", "x/y"])
def test_the_marker_cannot_be_closed_from_inside(name):
    marker = marker_of(name, "dev")
    assert marker.count("-->") == 1
    assert marker.count("/") == 1


def test_a_fence_is_longer_than_any_run_of_backticks_inside(make):
    holder = make.object("ConfigMap", "c", None, data={"k": "a\n`````\nb\n"})
    assert "``````diff\n" in render_markdown(review(make.program(), make.program(holder), base_label="main"))


def test_mentions_and_numbers_do_not_become_links(make):
    result = review(make.program(), make.program(), base_label="@everyone #1 www.example.com")
    text = render_markdown(result)
    assert "@" not in text
    assert "www." not in text


@pytest.mark.parametrize(
    "text",
    ["@all", "fixes #12", "closes o/r#12", "GH-12", "a@b.example", "https://github.com/o/r/issues/1", "!12", "&12", "$12",
     "~bug", '%"next one"', ":tada:", "commit 1f3e5a7 broke", "[vulnerability:1]", "x\n/merge\n/close"],
)  # fmt: skip
def test_no_forge_finds_a_reference_in_the_finished_page(text):
    found = (Problem(path=text, code="x", message=text, hint=text),)
    result = review(program([], []), program([text], [text], found, (NotSeen(what=text, name=text, reason=text),)), base_label=text)  # fmt: skip
    markup = render_markdown(replace(result, notes=(text,)))
    page = rendered(markup.partition("\n")[2])
    assert not REFERENCES.search(page.text)
    assert page.text.count("\u200b") >= 3 or "\n" in text
    # As it was, to be copied; and no line begins with what GitLab takes for an order.
    assert text.split()[0] in page.code
    assert not any(line.lstrip().startswith("/") for line in markup.splitlines())


def test_a_name_of_a_megabyte_leaves_the_first_lines_and_the_marker(make):
    text = render_markdown(review(make.program(), make.program(), base_label="\U0010ffff" * 1_000_000))
    assert "nothing changes" in text
    assert len(text.encode()) <= BUDGET
    long = marker_of("ä" * 1_000_000, "dev")
    assert len(long) < 300
    assert long != marker_of("ä" * 999_999, "dev")


def test_the_comment_says_where_the_rest_is(make):
    text = render_markdown(big_review(make, 2000))
    *_, cut, provenance = text.split("\n\n")
    assert cut.endswith("The HTML and JSON reports have all of it._")
    assert provenance.startswith("<sub>checked for Kubernetes 1.34")
