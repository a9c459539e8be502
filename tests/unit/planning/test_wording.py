from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.planning.wording import compress_names, count_of, join_words, show_hidden


@pytest.mark.parametrize(
    ("number", "said"), [(0, "no pods"), (1, "1 pod"), (2, "2 pods"), (1234, "1,234 pods")]
)
def test_counts_are_words(number, said):
    assert count_of(number, "pod") == said


def test_long_lists_are_cut():
    assert [join_words("a"), join_words("ab"), join_words("abcdefg")] == [
        "a",
        "a and b",
        "a, b, c, d and 3 more",
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["gpu-0", "gpu-1", "gpu-2", "gpu-3"], "gpu-0..3"),
        (["gpu-0", "gpu-2", "gpu-3"], "gpu-0, gpu-2..3"),
        (["gpu-3", "gpu-2"], "gpu-3, gpu-2"),
        (["gpu-0"], "gpu-0"),
        (["gpu-00", "gpu-01"], "gpu-00, gpu-01"),
        (["gpu-0-mig-1g10gb-19-3", "gpu-0-mig-1g10gb-19-4"], "gpu-0-mig-1g10gb-19-3, gpu-0-mig-1g10gb-19-4"),
        (["a", "b"], "a, b"),
        ([f"gpu-{index}" for index in range(0, 20, 2)], "gpu-0, gpu-2, gpu-4, gpu-6, gpu-8, gpu-10, 4 more"),
    ],
)
def test_names_that_count_up_become_ranges(names, said):
    assert compress_names(names) == said


@given(st.text())
def test_no_character_that_steers_a_terminal_is_left(text):
    shown = show_hidden(text)
    assert not any(
        unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Co", "Cs") for character in shown
    )


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_what_can_be_seen_stays(text):
    assert show_hidden(text) == text


def test_hidden_characters_are_spelled_out():
    assert show_hidden("a\x1b[31m\u202eb\nc\td") == "a\\u001b[31m\\u202eb\\nc\\td"
