from __future__ import annotations

from collections import Counter
from itertools import product as combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog.mig import (
    ENGINES,
    find_mig_profile,
    fitting_parts,
    memory_slices_of,
    mig_products,
    mig_profiles_of,
    placements_of,
)
from dra_infra.catalog.records import gpu_products
from dra_infra.catalog.vocabulary import mig_profiles, product_names

A100 = "NVIDIA A100-SXM4-40GB"
H100 = "NVIDIA H100 80GB HBM3"
B200 = "NVIDIA B200"
A30 = "NVIDIA A30"
RTX = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
SLICES = {7: 8, 4: 4}

# Maximal mixes of a 7-slice GPU, as NVIDIA's MIG User Guide lists them; 1G is the 1g with double memory.
MIXES = """
7g / 4g 3g / 4g 2g 1g / 4g 1g 1g 1g / 3g 3g / 3g 2g 2g / 3g 2g 1g 1g / 3g 1g 1g 1g 1g / 2g 2g 2g 1g /
2g 2g 1g 1g 1g / 2g 1g 1g 1g 1g 1g / 1g 1g 1g 1g 1g 1g 1g /
1G 1G 1G 1G / 1G 1G 1G 2g / 1G 1G 1G 1g 1g / 1G 1G 2g 2g / 1G 1G 2g 1g 1g / 1G 1G 3g / 1G 1G 4g /
1G 1G 1g 1g 1g 1g / 1G 2g 2g 2g / 1G 2g 2g 1g 1g / 1G 2g 3g / 1G 2g 4g / 1G 2g 1g 1g 1g 1g / 1G 3g 1g 1g /
1G 4g 1g 1g / 1G 1g 1g 1g 1g 1g 1g
"""
SHAPES = {"1g": "1g.5gb", "1G": "1g.10gb", "2g": "2g.10gb", "3g": "3g.20gb", "4g": "4g.20gb", "7g": "7g.40gb"}


def profile(product, name):
    found = find_mig_profile(name, product)
    assert found is not None
    return found


def by_brute_force(names, product):
    """Whether some choice of starts puts the instances beside one another, by trying them all."""
    profiles = [profile(product, name) for name in names]
    gpu = mig_profiles_of(product)
    if sum(each.compute_slices for each in profiles) > max(each.compute_slices for each in gpu):
        return False
    if any(Counter(names)[each.name] > each.max_instances for each in profiles):
        return False
    for engine in ENGINES:
        totals = [getattr(each, engine) for each in gpu]
        if None not in totals and sum(getattr(each, engine) for each in profiles) > max(totals):
            return False
    for starts in combinations(*(each.placements for each in profiles)):
        taken = [
            number
            for each, start in zip(profiles, starts, strict=True)
            for number in range(start, start + each.memory_slices)
        ]
        if len(taken) == len(set(taken)):
            return True
    return False


@st.composite
def sets_of_profiles(draw):
    product = draw(st.sampled_from(mig_products()))
    names = [each.name for each in mig_profiles_of(product)]
    return draw(st.lists(st.sampled_from(names), max_size=6)), product


@given(sets_of_profiles())
@settings(max_examples=300, deadline=None)
def test_sets_fit_where_a_search_of_all_placements_finds_one(drawn):
    names, product = drawn
    placements = placements_of(names, product)
    assert (placements is not None) == by_brute_force(names, product)
    if placements is None:
        return
    assert [each.profile for each in placements] == names
    for each in placements:
        assert each.start in profile(product, each.profile).placements
        assert each.size == profile(product, each.profile).memory_slices
    taken = [number for each in placements for number in range(each.start, each.start + each.size)]
    assert len(taken) == len(set(taken))
    assert set(taken) <= set(range(memory_slices_of(product)))


@given(sets_of_profiles())
@settings(max_examples=100)
def test_fitting_parts_are_the_largest_that_fit(drawn):
    names, product = drawn
    parts = fitting_parts(names, product)
    for part in parts:
        assert placements_of(part, product) is not None
        left = Counter(names) - Counter(part)
        assert not any(placements_of([*part, name], product) for name in left)
    if placements_of(names, product):
        assert [sorted(part) for part in parts] == ([sorted(names)] if names else [])


def test_maximal_mixes_are_those_of_the_reference():
    wanted = {tuple(sorted(SHAPES[shape] for shape in mix.split())) for mix in MIXES.split("/")}
    every = [
        each.name for each in mig_profiles_of(A100) if not each.attributes for _ in range(each.max_instances)
    ]
    assert len(wanted) == 28
    assert {tuple(sorted(part)) for part in fitting_parts(every, A100)} == wanted


def test_large_instances_are_placed_first_and_low_unless_that_leaves_no_room():
    assert placements_of(["1g.5gb", "3g.20gb"], A100) == (("1g.5gb", 4, 1), ("3g.20gb", 0, 4))
    beside = placements_of(["3g.20gb", *["1g.5gb"] * 4], A100)
    assert beside is not None
    assert [each.start for each in beside] == [4, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("product", "names", "fits"),
    [
        (A100, ["1g.5gb+me", *["1g.5gb"] * 6], True),
        (A100, ["1g.5gb+me", "1g.5gb+me"], False),
        (A100, ["7g.40gb", "1g.5gb"], False),
        (A100, ["1g.5gb"] * 8, False),
        (A100, ["1g.5gb"] * 100_000, False),
        (A30, ["2g.12gb", "2g.12gb+me"], True),
        (A30, ["2g.12gb+me", "1g.6gb+me"], False),
        (RTX, ["1g.24gb"] * 4, True),
        (RTX, ["2g.48gb", "1g.24gb-me", "1g.24gb+gfx"], True),
        (RTX, ["2g.48gb+me.all"] * 2, False),
    ],
)
def test_sets_that_people_ask_for(product, names, fits):
    assert (placements_of(names, product) is not None) == fits


def test_nothing_fits_everywhere():
    assert placements_of([], A30) == ()
    assert fitting_parts([], A30) == ()


@pytest.mark.parametrize("call", [placements_of, fitting_parts])
@pytest.mark.parametrize(
    ("names", "product"), [(["1g.5gb"], H100), ([], "NVIDIA L40S"), (["nonsense"], A100)]
)
def test_what_is_not_known_is_an_error_and_no_answer(call, names, product):
    with pytest.raises(KeyError):
        call(names, product)


def test_products_are_those_that_can_mig():
    assert set(mig_products()) <= set(product_names())
    assert set(mig_products()) == {name for name, each in gpu_products().items() if each.mig_capable}
    for product in mig_products():
        assert memory_slices_of(product) == SLICES[gpu_products()[product].mig_slices]
        assert (
            max(each.compute_slices for each in mig_profiles_of(product))
            == gpu_products()[product].mig_slices
        )
    assert mig_profiles_of("NVIDIA L40S") == ()
    assert memory_slices_of("NVIDIA L40S") == 0


@pytest.mark.parametrize("product", mig_products())
def test_profiles_are_well_formed(product):
    profiles = mig_profiles_of(product)
    slices = memory_slices_of(product)
    assert {each.name for each in profiles} <= set(mig_profiles())
    assert (
        len({each.gi_profile_id for each in profiles})
        == len({each.name for each in profiles})
        == len(profiles)
    )
    for each in profiles:
        assert each.name.startswith(f"{each.compute_slices}g.")
        assert each.name.endswith("".join(each.attributes))
        assert all(start + each.memory_slices <= slices for start in each.placements)
        missing = {name for name in ("memory_mib", *ENGINES) if getattr(each, name) is None}
        assert missing == set(each.uncertain) - {"placements"}
        if each.memory_mib:
            share = (gpu_products()[product].memory_mib or 0) * each.memory_slices / slices
            assert 0.85 * share < each.memory_mib <= share


@pytest.mark.parametrize("product", mig_products())
def test_as_many_instances_fit_as_the_profile_says(product):
    for each in mig_profiles_of(product):
        assert placements_of([each.name] * each.max_instances, product) is not None
        assert placements_of([each.name] * (each.max_instances + 1), product) is None


@pytest.mark.parametrize(
    ("product", "partitions"), [(A100, 25), (H100, 25), (B200, 25), (A30, 13), (RTX, 30)]
)
def test_partitions_per_gpu(product, partitions):
    assert sum(len(each.placements) for each in mig_profiles_of(product)) == partitions


@pytest.mark.parametrize(
    ("product", "name", "numbers"),
    [
        (A100, "3g.20gb", (9, 3, 4, (0, 4), 2, 20096, 42, 3, 2, 0, 0, 0)),
        (A100, "1g.5gb+me", (20, 1, 1, (0, 1, 2, 3, 4, 5, 6), 1, 4864, 14, 1, 1, 0, 1, 1)),
        (H100, "1g.20gb", (15, 1, 2, (0, 2, 4, 6), 4, 20096, 26, 1, 1, 0, 1, 0)),
        (H100, "7g.80gb", (0, 7, 8, (0,), 1, 81152, 132, 8, 7, 0, 7, 1)),
        ("NVIDIA H100 PCIe", "1g.20gb", (15, 1, 2, (0, 2, 4, 6), 4, 20096, 14, 1, 1, 0, 1, 0)),
        ("NVIDIA H100 PCIe", "7g.80gb", (0, 7, 8, (0,), 1, 81152, 114, 8, 7, 0, 7, 1)),
        (A30, "1g.6gb+me", (21, 1, 1, (0, 1, 2, 3), 1, 5952, 14, 1, 1, 0, 1, 1)),
        (B200, "2g.45gb", (14, 2, 2, (0, 2, 4), 3, None, None, 3, None, 0, None, 0)),
        (RTX, "1g.24gb-me", (67, 1, 1, (0, 1, 2, 3), 4, 24192, 46, None, 0, 0, 0, 0)),
        (RTX, "2g.48gb+gfx", (35, 2, 2, (0, 2), 2, 48512, 94, None, None, None, None, None)),
    ],
)
def test_facts_of_profiles(product, name, numbers):
    assert profile(product, name)[1:13] == numbers


def test_what_is_not_known_is_none_and_named():
    assert profile(B200, "7g.180gb").uncertain == (
        "decoders",
        "jpeg_engines",
        "memory_mib",
        "multiprocessors",
        "ofa_engines",
    )
    assert profile(RTX, "4g.96gb").uncertain[0] == "placements"
    assert profile(A100, "7g.40gb").uncertain == ()


def test_older_names_are_known_under_the_name_that_was_asked_for():
    older = [profile("NVIDIA GB200", each) for each in ("3g.93gb", "4g.93gb")]
    assert [(each.name, each.gi_profile_id) for each in older] == [("3g.93gb", 9), ("4g.93gb", 5)]
    assert placements_of(["3g.93gb", "3g.95gb"], "NVIDIA GB200") is not None
    assert [each.name for each in mig_profiles_of("NVIDIA GB200") if each.older_name] == [
        "1g.24gb",
        "1g.24gb+me",
        "3g.95gb",
        "4g.95gb",
        "7g.189gb",
    ]
