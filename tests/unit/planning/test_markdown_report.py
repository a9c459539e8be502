from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.errors import Problem
from dra_infra.model.program import NotSeen, Program, ProgramObject
from dra_infra.planning import render_markdown, review
from dra_infra.planning.markdown_report import BUDGET, marker_of

hostile = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["```", "````\n```diff", "</details>", "<script>", "| a |", "-->", "@everyone", "#1", "www.x.y", "\u202e"]),
    st.text("`~<>|*_[]()-\n \\", max_size=30),
)  # fmt: skip


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
            component=name,
        )
        for number, (name, text) in enumerate(zip(names, data, strict=False))
    )
    return Program(project="p", stack="s", objects=objects, problems=problems, not_seen=not_seen)


def lines_outside_fences(text):
    """Lines that are read as Markdown, by CommonMark's rule for fences; fails on a fence that stays open."""
    outside, fence = [], None
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
    st.integers(2000, 6000),
)
def test_hostile_texts_never_break_out_of_their_place(names, before, after, label, budget):
    problems = tuple(Problem(path=name, code="x", message=name, hint=name) for name in names)
    not_seen = tuple(NotSeen(what="invoke", name=name, reason=name) for name in names)
    result = review(program(names, before), program(names, after, problems, not_seen), base_label=label)
    text = render_markdown(result, budget=budget)
    assert len(text.encode()) <= budget
    outside = lines_outside_fences(text)
    assert sum(line.startswith("<details>") for line in outside) == sum(
        line == "</details>" for line in outside
    )
    tags = set(re.findall(r"<[^>]*>", "\n".join(outside[1:])))
    assert tags <= {
        "<code>",
        "</code>",
        "<details>",
        "</details>",
        "<summary>",
        "</summary>",
        "<b>",
        "</b>",
        "<br>",
    }


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
