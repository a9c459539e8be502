from __future__ import annotations

from collections import Counter
from itertools import product as combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dra_infra as dra
from dra_infra.catalog.drivers import drivers, read_pins
from dra_infra.catalog.gpus import find_products
from dra_infra.catalog.mig import ENGINES, find_mig_profile, mig_products, mig_profiles_of
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.specs.claims import compile_claim
from dra_infra.specs.mig_partitions import MigRequests, compile_mig_partition, smallest_profiles
from dra_infra.specs.mig_profiles import MigWish

H100 = "NVIDIA H100 80GB HBM3"
A100 = "NVIDIA A100-SXM4-40GB"


def compiled(*, target: Any = None, driver: str = "newest", gates: Any = None, **wish: Any) -> MigRequests:
    return compile_mig_partition(MigWish(**wish), target=target, pins=read_pins(driver), gates=gates)


def outcome(**arguments: Any) -> tuple[MigRequests | None, set[tuple[str, str]]]:
    """What is compiled, or the paths and codes of what is wrong."""
    try:
        return compiled(**arguments), set()
    except InvalidSpecError as refusal:
        return None, {(problem.path, problem.code) for problem in refusal.problems}


def problems_of(**arguments: Any) -> tuple[Problem, ...]:
    with pytest.raises(InvalidSpecError) as caught:
        compiled(**arguments)
    return caught.value.problems


def only(**arguments: Any) -> Problem:
    (problem,) = problems_of(**arguments)
    return problem


def found(**arguments: Any) -> set[tuple[str, str]]:
    return {(problem.path, problem.code) for problem in problems_of(**arguments)}


# What a partition asks for


def test_a_profile_is_one_device_of_the_drivers_own_class():
    requests, constraints = compiled(profile="1g.10gb")
    assert constraints == ()
    (request,) = requests
    assert (request.name, request.device_class, request.count) == ("mig", "mig.nvidia.com", 1)
    assert repr(request.select) == 'gpu.profile == "1g.10gb"'


def test_the_selector_is_guarded_so_that_a_device_without_a_profile_does_not_block_scheduling():
    (request,) = compiled(profile="1g.10gb", gpu="H100", select=dra.gpu.memory >= "9Gi").requests
    assert request.select is not None
    assert request.select.problems() == ()


def test_a_list_of_profiles_is_a_request_each():
    requests, constraints = compiled(profiles=["3g.40gb", "1g.10gb", "1g.10gb"])
    assert [(each.name, each.count) for each in requests] == [("mig-0", 1), ("mig-1", 1), ("mig-2", 1)]
    assert constraints == ()


def test_counts_are_of_one_request_per_profile():
    requests, _ = compiled(profiles={"3g.40gb": 1, "1g.10gb": 4})
    assert [(each.name, each.count) for each in requests] == [("mig-0", 1), ("mig-1", 4)]


def test_requests_have_the_names_that_are_given():
    requests, _ = compiled(profiles={"train": "3g.40gb", "infer": "1g.10gb"})
    assert [(each.name, repr(each.select)) for each in requests] == [
        ("train", 'gpu.profile == "3g.40gb"'),
        ("infer", 'gpu.profile == "1g.10gb"'),
    ]


def test_one_gpu_is_one_parent_for_all_requests():
    _, (constraint,) = compiled(profiles={"1g.10gb": 7}, same_gpu=True)
    assert constraint == dra.MatchAttribute(dra.gpu.parent_uuid)


def test_one_device_needs_no_constraint_to_be_on_one_gpu():
    assert compiled(profile="1g.10gb", same_gpu=True).constraints == ()


def test_class_selector_and_tolerations_are_those_that_are_given():
    toleration = dra.Toleration(key="gpu.nvidia.com/xid")
    (request,) = compiled(
        profile="1g.10gb",
        device_class=dra.class_ref("small"),
        select=dra.gpu.architecture == "Hopper",
        tolerations=[toleration],
    ).requests
    assert request.device_class == dra.class_ref("small")
    assert repr(request.select) == '(gpu.profile == "1g.10gb") & (gpu.architecture == "Hopper")'
    assert request.tolerations == [toleration]


def test_a_named_gpu_leaves_those_of_its_products_that_have_the_profile():
    (small,) = compiled(profile="1g.10gb", gpu="h100").requests
    (large,) = compiled(profile="1g.12gb", gpu="h100").requests
    assert 'one_of("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe")' in repr(small.select)
    assert '(gpu.product == "NVIDIA H100 NVL")' in repr(large.select)


def test_profiles_of_which_only_the_names_are_known_can_be_asked_for():
    assert compiled(profile="1g.16gb").requests
    assert compiled(profiles={"1g.16gb": 9}, same_gpu=True).requests


@pytest.mark.parametrize("profile", ["1g.10gb+me", "1g.24gb-me", "1g.24gb+me.all", "2g.48gb+gfx"])
def test_profiles_with_extensions_can_be_asked_for(profile):
    assert repr(compiled(profile=profile).requests[0].select) == f'gpu.profile == "{profile}"'


# Names that depend on the kernel driver


@pytest.mark.parametrize(
    ("written", "other"), [("3g.95gb", "3g.93gb"), ("4g.93gb", "4g.95gb"), ("7g.186gb", "7g.189gb")]
)
def test_a_profile_is_found_under_the_names_of_older_and_newer_kernel_drivers(written, other):
    (request,) = compiled(profile=written).requests
    assert repr(request.select) == f'gpu.profile.one_of("{written}", "{other}")'


def test_a_name_that_other_gpus_use_otherwise_counts_on_its_own_product_alone():
    (request,) = compiled(profile="1g.24gb").requests
    assert repr(request.select) == (
        '(gpu.profile == "1g.24gb") | ((gpu.product == "NVIDIA GB200") & (gpu.profile == "1g.23gb"))'
    )


def test_on_a_named_gpu_both_names_count():
    (request,) = compiled(profile="1g.23gb", gpu="GB200").requests
    assert 'gpu.profile.one_of("1g.23gb", "1g.24gb")' in repr(request.select)


# At least


def test_at_least_is_the_smallest_profile_of_each_gpu_small_ones_first():
    (request,) = compiled(memory="15Gi", gpu="A100").requests
    assert [(each.name, each.count) for each in request.first_available] == [("1g-20gb", 1), ("3g-20gb", 1)]
    assert repr(request.first_available[0].select) == (
        'gpu.product.one_of("NVIDIA A100 80GB PCIe", "NVIDIA A100-SXM4-80GB") & (gpu.profile == "1g.20gb") '
        '& (gpu.memory >= "15Gi")'
    )


def test_one_size_that_does_for_all_needs_no_alternatives():
    (request,) = compiled(memory="20Gi", compute=2, gpu="H200", count=3).requests
    assert (request.name, request.count, request.first_available) == ("mig", 3, ())
    assert '(gpu.profile == "2g.35gb") & (gpu.memory >= "20Gi")' in repr(request.select)


def test_compute_alone_looks_at_no_memory():
    (request,) = compiled(compute=3, gpu="H100-80GB").requests
    assert repr(request.select).endswith('& (gpu.profile == "3g.40gb")')


def test_memory_that_is_not_known_may_be_less_than_the_name_says_and_the_next_size_follows():
    # 144 GB GH200: nobody says how much of 18 GB NVML reports for 1g.18gb.
    (request,) = compiled(memory="17Gi", gpu="GH200-144GB").requests
    assert [each.name for each in request.first_available] == ["1g-18gb", "1g-36gb"]
    assert all("gpu.memory >=" in repr(each.select) for each in request.first_available)


def test_neighbours_share_a_place_where_there_are_more_sizes_than_alternatives():
    (request,) = compiled(memory="20Gi", compute=2).requests
    assert [each.name for each in request.first_available] == [
        "2g-24gb",
        "4g-24gb",
        "2g-35gb",
        "2g-36gb",
        "3g-40gb",
        "7g-40gb",
        "2g-45gb",
        "2g-47gb-to-2g-70gb",
    ]


def test_sizes_of_which_too_few_fit_one_gpu_are_left_out():
    (request,) = compiled(memory="60Gi", count=2, same_gpu=True, gpu="H200").requests
    assert '"3g.71gb"' in repr(request.select)
    assert only(memory="60Gi", count=2, same_gpu=True, gpu="H100-80GB").code == "mig-none-large-enough"


sizes = st.fixed_dictionaries(
    {
        "memory": st.one_of(st.none(), st.integers(1, 300).map(lambda gibibytes: f"{gibibytes}Gi")),
        "compute": st.one_of(st.none(), st.integers(1, 7)),
    }
).filter(lambda size: any(size.values()))


@given(sizes, st.integers(1, 4), st.booleans())
@settings(max_examples=200)
def test_ladders_are_as_long_as_the_api_takes_and_each_gpu_comes_by_its_smallest_sizes_first(
    size, count, same_gpu
):
    places = smallest_profiles(
        size["memory"], size["compute"], mig_products(), count=count, same_gpu=same_gpu
    )
    assert len(places) <= 8
    order = {name: index for index, place in enumerate(places) for name in place}
    for product in mig_products():
        own = [each for each in mig_profiles_of(product) if each.name in order]
        # No two sizes of one GPU share a place, and less memory never comes behind more.
        assert len({order[each.name] for each in own}) == len(own)
        by_place = sorted(own, key=lambda each: order[each.name])
        assert [each.memory_slices for each in by_place] == sorted(each.memory_slices for each in own)


@given(sizes)
@settings(max_examples=100)
def test_each_gpu_with_a_profile_that_is_known_to_be_large_enough_has_a_place(size):
    gibibytes = int(size["memory"].removesuffix("Gi")) if size["memory"] else 0
    places = smallest_profiles(size["memory"], size["compute"], mig_products(), count=1, same_gpu=False)
    names = {name for place in places for name in place}
    for product in mig_products():
        enough = [
            each
            for each in mig_profiles_of(product)
            if not each.attributes
            and each.compute_slices >= (size["compute"] or 1)
            and each.memory_mib is not None
            and each.memory_mib >= gibibytes * 1024
        ]
        if enough:
            least = min(each.memory_slices for each in enough)
            assert any(
                each.name in names for each in mig_profiles_of(product) if each.memory_slices <= least
            ), product


# What cannot be


def test_without_an_argument_nothing_is_asked_for():
    assert found() == {("profile", "missing-argument")}
    assert found(profiles=[]) == {("profiles", "missing-argument")}


def test_profiles_sizes_and_counts_exclude_each_other():
    assert found(profile="1g.10gb", profiles=["1g.10gb"], memory="9Gi", compute=1) == {
        ("profiles", "arguments-exclude"),
        ("memory", "arguments-exclude"),
        ("compute", "arguments-exclude"),
    }
    assert found(profiles=["1g.10gb"], count=2) == {("count", "arguments-exclude")}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("profile", 1),
        ("profiles", "1g.10gb"),
        ("profiles", 7),
        ("memory", 20),
        ("memory", "20 GB"),
        ("memory", "-1Gi"),
        ("compute", "2"),
        ("compute", True),
    ],
)
def test_what_decides_the_devices_is_checked_for_its_type(argument, value):
    assert found(**{argument: value}) == {(argument, "wrong-type")}


@pytest.mark.parametrize(
    ("argument", "value", "code"),
    [
        ("count", "2", "wrong-type"),
        ("count", True, "wrong-type"),
        ("count", "all", "wrong-type"),
        ("count", 0, "count-below-one"),
        ("count", 33, "too-many-devices"),
        ("gpu", 100, "wrong-type"),
        ("gpu", "H1000", "product-not-known"),
        ("gpu", "L40S", "mig-not-supported"),
        ("same_gpu", "yes", "wrong-type"),
        ("same_gpu", None, "wrong-type"),
        ("dynamic", "yes", "wrong-type"),
        ("select", "gpu.memory", "wrong-type"),
        ("device_class", 7, "wrong-type"),
        ("device_class", "Not A Class", "invalid-name"),
        ("device_class", "gpu.nvidia.com", "attribute-of-other-device"),
        ("tolerations", "all", "wrong-type"),
    ],
)
def test_the_other_arguments_are_checked_at_their_own_paths(argument, value, code):
    assert found(profile="1g.10gb", **{argument: value}) == {(argument, code)}
    size = {} if argument == "gpu" else {"gpu": "H100-80GB"}
    assert found(memory="9Gi", **{argument: value, **size}) == {(argument, code)}


def test_compute_starts_at_one():
    assert found(compute=0) == {("compute", "count-below-one")}


def test_problems_of_several_profiles_are_named_where_they_are_written():
    assert found(profiles=["1g.10gb", "1g.10bg", 3]) == {("profiles[2]", "wrong-type")}
    assert found(profiles=["1g.10gb", "1g.10bg"]) == {("profiles[1]", "mig-profile-not-known")}
    assert found(profiles={"1g.10gb": 0, "Train": "3g.40gb", 3: 1}) == {
        ("profiles['1g.10gb']", "count-below-one"),
        ("profiles['Train']", "invalid-name"),
        ("profiles[3]", "wrong-type"),
    }


def test_a_claim_holds_thirty_two_devices():
    assert compiled(profiles={"1g.10gb": 16, "1g.12gb": 16}).requests
    assert found(profiles={"1g.10gb": 16, "1g.12gb": 17}) == {("profiles", "too-many-devices")}
    assert found(profiles=["1g.10gb"] * 33) == {("profiles", "too-many-devices")}


@pytest.mark.parametrize(
    ("profile", "meant"),
    [("1g.10bg", "1g.10gb"), ("1G.10GB", "1g.10gb"), ("1g.10gb.me", "1g.10gb+me"), ("1c.2g.20gb", "2g.20gb")],
)
def test_a_misspelt_profile_gets_the_nearest_one(profile, meant):
    problem = only(profile=profile)
    assert (problem.path, problem.code) == ("profile", "mig-profile-not-known")
    assert problem.hint == f"did you mean {meant!r}?"


def test_a_profile_that_the_gpu_does_not_have_names_those_that_it_has():
    problem = only(profile="1g.5gb", gpu="H100-80GB")
    assert (problem.path, problem.code) == ("profile", "mig-profile-not-known")
    assert problem.hint.startswith("did you mean '1g.10gb'? H100-80GB has ")
    assert [each.name for each in mig_profiles_of(H100)] == problem.hint.partition(" has ")[2].split(", ")


def test_an_extension_that_a_profile_does_not_have_is_refused():
    assert only(profile="3g.40gb+me").code == "mig-profile-not-known"
    assert only(profile="1g.10gb+gfx", gpu="H100").code == "mig-profile-not-known"


def test_a_misspelt_gpu_gets_the_nearest_one():
    problem = only(profile="1g.10gb", gpu="H10")
    assert (problem.path, problem.code, problem.hint) == ("gpu", "product-not-known", 'did you mean "H100"?')


def test_more_than_the_largest_profile_has_is_refused_with_the_largest():
    problem = only(memory="100Gi", gpu="H100-80GB")
    assert (problem.path, problem.code) == ("memory", "mig-none-large-enough")
    assert "7g.80gb" in problem.hint
    assert found(compute=8) == {("compute", "mig-none-large-enough")}
    assert found(compute=5, gpu="A30") == {("compute", "mig-none-large-enough")}
    assert found(memory="30Gi", count=3, same_gpu=True, gpu="H100-80GB") == {
        ("count", "mig-none-large-enough")
    }


# One GPU


def test_a_set_that_does_not_fit_one_gpu_is_refused_with_the_parts_that_do():
    problem = only(profiles=["4g.40gb", "3g.40gb", "1g.10gb"], gpu="H100-80GB", same_gpu=True)
    assert (problem.path, problem.code) == ("profiles", "mig-not-placeable")
    assert f"4g.40gb*1+3g.40gb*1 (memory slices 0-3, 4-7 of {H100})" in problem.hint
    assert compiled(profiles=["4g.40gb", "3g.40gb", "1g.10gb"], gpu="H100-80GB").requests


def test_a_count_that_does_not_fit_one_gpu_is_refused_where_it_is_written():
    assert compiled(profile="1g.10gb", count=7, same_gpu=True).constraints
    assert found(profile="1g.10gb", count=8, same_gpu=True) == {("count", "mig-not-placeable")}
    # On the 40 GB model the profile takes two memory slices.
    assert found(profile="1g.10gb", count=7, same_gpu=True, gpu="A100-40GB") == {
        ("count", "mig-not-placeable")
    }


def test_profiles_that_no_gpu_has_both_are_refused_with_the_gpus_that_have_them():
    problem = only(profiles=["3g.40gb", "3g.20gb"], same_gpu=True)
    assert (problem.path, problem.code) == ("profiles", "mig-not-placeable")
    assert A100 in problem.hint.partition("3g.20gb is of ")[2]
    assert compiled(profiles=["3g.40gb", "3g.20gb"]).requests


def fits_by_brute_force(names: list[str], product: str) -> bool:
    """Whether some choice of starts puts the instances beside one another, by trying them all."""
    profiles = [each for name in names if (each := find_mig_profile(name, product))]
    gpu = mig_profiles_of(product)
    counts = Counter(each.gi_profile_id for each in profiles)
    if len(profiles) < len(names) or any(
        counts[each.gi_profile_id] > each.max_instances for each in profiles
    ):
        return False
    if sum(each.compute_slices for each in profiles) > max(each.compute_slices for each in gpu):
        return False
    for engine in ENGINES:
        there = [getattr(each, engine) for each in gpu]
        if None not in there and sum(getattr(each, engine) for each in profiles) > max(there):
            return False
    for starts in combinations(*(each.placements for each in profiles)):
        taken = [
            start + offset
            for each, start in zip(profiles, starts, strict=True)
            for offset in range(each.memory_slices)
        ]
        if len(taken) == len(set(taken)):
            return True
    return False


short_names = st.sampled_from(["A100", "A100-40GB", "A30", "H100", "H200", "GB200", "B200", "RTX PRO 6000"])


@st.composite
def sets_of_profiles(draw):
    gpu = draw(short_names)
    products = [each for each in find_products(gpu) if each in mig_products()]
    names = sorted({each.name for product in products for each in mig_profiles_of(product)})
    return gpu, products, draw(st.lists(st.sampled_from(names), min_size=2, max_size=6))


@given(sets_of_profiles())
@settings(max_examples=300)
def test_a_set_is_refused_exactly_where_no_gpu_has_room_for_it(drawn):
    gpu, products, names = drawn
    fits = any(fits_by_brute_force(names, product) for product in products)
    asked, problems = outcome(profiles=names, gpu=gpu, same_gpu=True)
    assert problems == (set() if fits else {("profiles", "mig-not-placeable")})
    assert fits == (asked is not None and len(asked.constraints) == 1)


# Drivers and clusters


def test_dynamic_mig_needs_a_release_that_has_it():
    assert found(profile="1g.10gb", dynamic=True, driver="25.8") == {("dynamic", "unknown-driver-gate")}
    assert compiled(profile="1g.10gb", dynamic=False, driver="25.8").requests
    assert compiled(profile="1g.10gb", dynamic=True, driver="25.12").requests


def test_dynamic_mig_needs_a_cluster_with_partitionable_devices():
    old = dra.ClusterTarget(kubernetes="1.35")
    problem = only(profile="1g.10gb", dynamic=True, target=old)
    assert (problem.path, problem.code) == ("dynamic", "needs-newer-kubernetes")
    assert compiled(profile="1g.10gb", dynamic=False, target=old).requests
    assert compiled(profile="1g.10gb", dynamic=True, target=dra.ClusterTarget(kubernetes="1.36")).requests
    with_gate = dra.ClusterTarget(kubernetes="1.35", gates={"DRAPartitionableDevices": True})
    assert compiled(profile="1g.10gb", dynamic=True, target=with_gate).requests


def test_the_gates_of_the_driver_say_whether_it_is_dynamic():
    old = dra.ClusterTarget(kubernetes="1.35")
    assert found(profile="1g.10gb", gates={"DynamicMIG": True}, target=old) == {
        ("dynamic", "needs-newer-kubernetes")
    }
    assert found(profile="1g.10gb", gates={"AllAlpha": True}, target=old) == {
        ("dynamic", "needs-newer-kubernetes")
    }
    assert compiled(profile="1g.10gb", gates={}, target=old).requests


@pytest.mark.parametrize(("dynamic", "gates"), [(True, {}), (False, {"DynamicMIG": True})])
def test_gates_that_say_otherwise_are_named(dynamic, gates):
    assert ("dynamic", "arguments-exclude") in found(profile="1g.10gb", dynamic=dynamic, gates=gates)


@pytest.mark.parametrize(
    "select",
    [dra.gpu.uuid == "MIG-1", dra.capacity("gpu.nvidia.com/memorySlice0") >= "1"],
)
def test_what_only_static_devices_have_is_not_read_under_dynamic_mig(select):
    arguments = {"profile": "1g.10gb", "select": select}
    assert found(dynamic=True, **arguments) == {("select", "attribute-of-other-device")}
    assert compiled(dynamic=False, **arguments).requests
    assert compiled(**arguments).requests


def test_what_a_release_does_not_publish_of_dynamic_devices_is_not_read_there():
    arguments = {"profile": "1g.10gb", "dynamic": True, "select": dra.gpu.addressing_mode == "HMM"}
    assert found(driver="25.12", **arguments) == {("select", "attribute-of-other-device")}
    assert compiled(driver="0.4", **arguments).requests


def test_tolerations_and_alternatives_need_their_gates():
    old = dra.ClusterTarget(kubernetes="1.35", gates={"DRAPrioritizedList": False})
    assert found(memory="20Gi", target=old) == {("memory", "needs-newer-kubernetes")}
    assert found(profile="1g.10gb", tolerations=[dra.Toleration()], target=old) == {
        ("tolerations", "needs-newer-kubernetes")
    }


# Everything that is emitted is valid


@st.composite
def wishes(draw):
    gpu = draw(st.one_of(st.none(), short_names))
    products = [each for each in (find_products(gpu) if gpu else mig_products()) if each in mig_products()]
    names = st.sampled_from(
        sorted(
            {
                name
                for product in products
                for each in mig_profiles_of(product)
                for name in (each.name, each.older_name)
                if name
            }
        )
    )
    way = draw(
        st.one_of(
            st.fixed_dictionaries({"profile": names}, optional={"count": st.integers(1, 8)}),
            st.fixed_dictionaries({"profiles": st.lists(names, min_size=1, max_size=5)}),
            st.fixed_dictionaries(
                {"profiles": st.dictionaries(names, st.integers(1, 6), min_size=1, max_size=3)}
            ),
            st.tuples(sizes, st.integers(1, 3)).map(lambda drawn: {**drawn[0], "count": drawn[1]}),
        )
    )
    return {**way, "gpu": gpu, "same_gpu": draw(st.booleans())}


@given(
    wishes(), st.sampled_from(SUPPORTED_MINORS), st.sampled_from(list(drivers()["gpu.nvidia.com"].by_line))
)
@settings(max_examples=150, deadline=None)
def test_what_is_compiled_is_valid_and_free_of_advice_on_every_minor_and_release(wish, minor, line):
    target = dra.ClusterTarget(kubernetes=minor)
    asked, problems = outcome(**wish, target=target, driver=line)
    if asked is None:
        assert {code for _, code in problems} <= {"mig-not-placeable", "mig-none-large-enough"}
        return
    spec = compile_claim(asked.requests, asked.constraints, target=target)
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "partition"},
        "spec": spec.to_manifest(),
    }
    assert dra.validate([claim], target, driver=line) == ()
