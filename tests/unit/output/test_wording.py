from __future__ import annotations

import pytest

from dra_infra.output.wording import compress_names, count_of, join_words


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


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["hgx-h100-007", "hgx-h100-008", "hgx-h100-009", "hgx-h100-010"], "hgx-h100-007..010"),
        (["n-099", "n-100", "n-0101"], "n-099..100, n-0101"),
        (["n-9", "n-10", "n-010"], "n-9..10, n-010"),
        (["n-0", "m-1"], "n-0, m-1"),
    ],
)
def test_names_of_nodes_become_ranges_with_their_leading_zeros(names, said):
    assert compress_names(names, of_nodes=True) == said
