from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dra_infra.documents.yaml import write_manifest
from dra_infra.review import diff

manifests = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.recursive(
        st.integers(0, 3) | st.sampled_from(["x", "y\nz\n", ""]),
        lambda below: (
            st.lists(below, max_size=6) | st.dictionaries(st.sampled_from("klm"), below, max_size=3)
        ),
        max_leaves=20,
    ),
    max_size=8,
)


def apply(hunks, before):
    """Put the hunks into the text of *before*, as a patch would be."""
    old = write_manifest(before).splitlines()
    result = []
    position = 0
    for hunk in hunks:
        expected = [line[1:] for line in hunk.lines if line[0] != "+"]
        while old[position : position + len(expected)] != expected:
            result.append(old[position])
            position += 1
        result += [line[1:] for line in hunk.lines if line[0] != "-"]
        position += len(expected)
    return result + old[position:]


@given(manifests, manifests)
def test_the_hunks_lead_from_before_to_after(before, after):
    whole = diff.diff_manifests(before, after, context=100)
    assert apply(whole, before) == write_manifest(after).splitlines()


@given(manifests, manifests)
def test_short_context_leaves_out_only_lines_that_stay(before, after):
    whole = diff.diff_manifests(before, after, context=100)
    short = diff.diff_manifests(before, after)
    changed = [line for hunk in whole for line in hunk.lines if line[0] != " "]
    assert [line for hunk in short for line in hunk.lines if line[0] != " "] == changed


@given(manifests)
def test_an_object_does_not_differ_from_itself(manifest):
    assert diff.diff_manifests(manifest, dict(reversed(manifest.items()))) == ()


def test_distant_changes_are_hunks_of_their_own_named_by_field():
    before = {"spec": {f"f{number:02}": number for number in range(30)}}
    after = {"spec": before["spec"] | {"f02": "x", "f25": "x"}}
    hunks = diff.diff_manifests(before, after)
    assert [hunk.path for hunk in hunks] == ["spec.f02", "spec.f25"]
    assert hunks[1].lines == (
        "   f22: 22",
        "   f23: 23",
        "   f24: 24",
        "-  f25: 25",
        "+  f25: x",
        "   f26: 26",
        "   f27: 27",
        "   f28: 28",
    )


def test_a_field_in_a_list_is_named_by_position():
    before = {"spec": {"requests": [{"name": "a"}, {"name": "b", "count": 1}]}}
    after = {"spec": {"requests": [{"name": "a"}, {"name": "b", "count": 2}]}}
    assert diff.diff_manifests(before, after)[0].path == "spec.requests[1].count"


def test_a_field_that_goes_is_named_too():
    assert diff.diff_manifests({"a": 1, "b": {"c": 2}}, {"a": 1})[0].path == "b"


def test_an_object_that_appears_is_all_new_lines():
    (hunk,) = diff.diff_manifests(None, {"kind": "Job", "apiVersion": "batch/v1"})
    assert hunk.lines == ("+apiVersion: batch/v1", "+kind: Job")


def test_a_value_of_a_megabyte_is_cut():
    (hunk,) = diff.diff_manifests({"a": ""}, {"a": "x" * 1_000_000})
    assert max(map(len, hunk.lines)) < diff.MAX_LINE + 50
    assert hunk.lines[1].endswith("… (999,603 more characters)")


def test_texts_too_long_to_compare_line_by_line_still_lead_to_after():
    before = {"a": 1, "data": [f"old {number}" for number in range(3000)], "z": 1}
    after = {"a": 1, "data": [f"new {number}" for number in range(3000)], "z": 1}
    hunks = diff.diff_manifests(before, after)
    assert apply(hunks, before) == write_manifest(after).splitlines()
    assert hunks[0].lines[0] == " a: 1"


def test_half_of_a_character_pair_is_spelled_out():
    """JSON can hold one, and the diff is written as YAML, which cannot."""
    (hunk,) = diff.diff_manifests({"kind": "a"}, {"kind": "\ud800", "list": ["\udfff", 1]})
    assert [line for line in hunk.lines if line.startswith("+")] == [
        "+kind: \\ud800",
        "+list:",
        "+- \\udfff",
        "+- 1",
    ]
