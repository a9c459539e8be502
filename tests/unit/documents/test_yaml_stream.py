"""Documents that are read many at a time are those that are read one by one."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.documents import yaml_stream
from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.documents.yaml_stream import read_parts, split_documents

LINES = [
    "a: b",
    "- x",
    "---",
    "...",
    "--- c: d",
    "# e",
    "%YAML 1.1",
    "",
    "f: [",
    "]",
    "'g",
    "\t",
    "{",
    '{"h": 1}',
    "é: \u2028---",
]
texts = st.lists(st.sampled_from(LINES), max_size=14).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda end: end.join(lines))
)


def one_by_one(text: str) -> list[tuple[int, int, Any]]:
    found: list[tuple[int, int, Any]] = []
    for start, end in split_documents(text):
        try:
            for each in read_documents(text[start:end]):
                found.append((start, end, each.data))  # noqa: PERF401  (what was read before an error counts)
        except RefusedYamlError as error:
            found.append((start, end, (error.code, error.line)))
    return found


def many(text: str) -> list[tuple[int, int, Any]]:
    return [
        (
            each.start,
            each.end,
            (each.data.code, each.data.line) if isinstance(each.data, RefusedYamlError) else each.data,
        )
        for each in read_parts(text)
    ]


@pytest.mark.draws
@pytest.mark.parametrize("batch", [1, 12, 1 << 18])
def test_how_many_are_read_at_once_changes_nothing(batch: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yaml_stream, "_BATCH", batch)

    @settings(max_examples=300)
    @given(texts)
    def same(text: str) -> None:
        assert many(text) == one_by_one(text)

    same()


@given(texts)
def test_nothing_of_a_text_is_lost_between_documents(text: str):
    pieces = list(split_documents(text))
    between = [text[end:start] for (_, end), (start, _) in itertools.pairwise(pieces)]
    assert set(between) <= {"", "..."}
    assert (pieces[0][0], pieces[-1][1]) == (0, len(text)) or text.startswith("...")


def test_lines_count_from_the_beginning_of_the_text():
    parts = list(read_parts("# x\na: 1\n---\nb: 2\n...\n---\n- c: [\n---\nd: 4\n"))
    assert [(each.line, isinstance(each.data, RefusedYamlError)) for each in parts] == [
        (0, False),
        (2, False),
        (5, True),
        (7, False),
    ]
