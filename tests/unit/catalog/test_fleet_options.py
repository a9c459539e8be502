from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.catalog.mig import mig_profiles_of, placements_of
from dra_infra.catalog.records import fleet_kinds
from dra_infra.errors import FleetError

OPTIONS = [
    "dynamic-mig",
    "fabric-partitions",
    "vfio",
    "compute-domains",
    "shareable",
    "partitions=2",
    "devices=1",
]
OPTIONS += [
    "mig=1g.10gb*7",
    "mig=3g.40gb*1+1g.10gb*4",
    "mig=4g.24gb",
    "shares=memory",
    "shares=4",
    "nonsense",
]
DRIVERS = [
    "",
    "driver=25.3",
    "driver=25.8",
    "driver=25.12",
    "driver=0.4.1",
    "driver=0.5",
    "driver=newest",
    "driver=9",
]


def refused(text, **options):
    with pytest.raises(FleetError) as caught:
        load_fleet(text, **options)
    return caught.value.problems


def loaded(text):
    try:
        return load_fleet(text), ()
    except FleetError as refusal:
        return None, refusal.problems


def problem_of(text, **options):
    (problem,) = refused(text, **options)
    return problem


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a100-80gb mig=1g.10gb*7", "a100-80gb x 1 mig=1g.10gb*7"),
        ("hgx-h100 x 2 mig=3g.40gb+1g.10gb*4", "hgx-h100 x 2 mig=3g.40gb*1+1g.10gb*4"),
        ("hgx-h100 mig=1g.10gb+me+1g.10gb*6", "hgx-h100 x 1 mig=1g.10gb+me*1+1g.10gb*6"),
        ("hgx-h100 driver=v0.5.1 dynamic-mig", "hgx-h100 x 1 dynamic-mig"),
        ("hgx-h100 driver=25.12.0", "hgx-h100 x 1 driver=25.12"),
        ("hgx-h100 driver=newest", "hgx-h100 x 1"),
        ("l40s devices=2 vfio", "l40s x 1 devices=2 vfio"),
        ("hgx-h100 compute-domains", "hgx-h100 x 1 compute-domains"),
        ("gb200-nvl72 compute-domains", "gb200-nvl72 x 1"),
        (
            "hgx-h100 driver=0.5 fabric-partitions shares=008",
            "hgx-h100 x 1 fabric-partitions shares=8",
        ),
        ("hgx-h100 driver=0.5 shares=disabled", "hgx-h100 x 1"),
        ("example driver=0.3 partitions=2", "example x 1 driver=0.3 partitions=2"),
        ("example shareable", "example x 1 shareable"),
    ],
)
def test_options_are_read_and_written(text, name):
    fleet = load_fleet(text)
    assert fleet.name == name
    assert load_fleet(name) == fleet


def test_terms_of_one_kind_share_their_numbers_and_equal_ones_add_up():
    fleet = load_fleet("hgx-h100, hgx-h100 x 2 driver=25.12, hgx-h100 x 8")
    assert fleet.name == "hgx-h100 x 9, hgx-h100 x 2 driver=25.12"
    assert [node.name for node in fleet.nodes] == [f"hgx-h100-{number:02}" for number in range(11)]
    old = {
        slice_.spec.node_name
        for slice_ in fleet.slices
        if "resource.kubernetes.io/numaNode" not in slice_.spec.devices[0].attributes
    }
    assert old == {"hgx-h100-09", "hgx-h100-10"}


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("hgx-h100 4", "fleet-option", "write hgx-h100 x 4"),
        ("hgx-h100 dynamc-mig", "fleet-option", "did you mean dynamic-mig?"),
        ("hgx-h100 mgi=1g.10gb", "fleet-option", "did you mean mig=?"),
        ("hgx-h100 dynamic-mig=yes", "fleet-option", "write dynamic-mig alone"),
        ("hgx-h100 mig", "fleet-option", "write mig= and a value behind it"),
        ("hgx-h100 qqqq", "fleet-option", "options are driver=, devices=, mig="),
        ("hgx-h100 driver=0.4 driver=0.5", "fleet-option", "leave one of them out"),
        ("hgx-h100 driver=9.9", "unknown-driver-release", "25.12"),
        ("example driver=25.12", "unknown-driver-release", "0.4"),
        ("hgx-h100 devices=9", "fleet-option", "such as 8"),
        ("hgx-h100 devices=0", "fleet-option", "such as 8"),
        ("hgx-h100 mig=1g.10gb*x", "fleet-option", "mig=3g.40gb*1+1g.10gb*4"),
        ("hgx-h100 mig=1g.10gb*0", "fleet-option", "mig=3g.40gb*1+1g.10gb*4"),
        ("hgx-h100 mig=1g.10bg*7", "fleet-option", "did you mean 1g.10gb?"),
        ("hgx-h100 mig=1g.5gb*7", "fleet-option", "It has 1g.10gb, 1g.10gb+me, 1g.20gb"),
        ("hgx-h100 mig=1g.10gb*8", "fleet-option", "of these, 1g.10gb*7 does"),
        ("hgx-h100 mig=4g.40gb+3g.40gb+1g.10gb", "fleet-option", "4g.40gb*1+3g.40gb*1"),
        ("l40s mig=1g.10gb*7", "fleet-option", "leave mig out"),
        ("l40s dynamic-mig", "fleet-option", "leave DynamicMIG out"),
        ("hgx-h100 dynamic-mig mig=1g.10gb*7", "fleet-option", "leave one of them out"),
        ("hgx-h100 dynamic-mig vfio", "driver-gate-conflict", "PassthroughSupport: false"),
        ("hgx-h100 driver=25.8 dynamic-mig", "unknown-driver-gate", "driver 25.12 is the first"),
        ("hgx-h100 driver=25.3 vfio", "unknown-driver-gate", "none at all"),
        ("hgx-h100 driver=25.12 fabric-partitions", "unknown-driver-gate", "driver 0.5 is the first"),
        ("hgx-h100 driver=0.4 shares=memory", "unknown-driver-gate", "driver 0.5 is the first"),
        ("hgx-h100 driver=0.5 shares=0", "fleet-option", "write memory"),
        ("hgx-h100 driver=0.5 shares=some", "fleet-option", "write memory"),
        ("hgx-h100 driver=0.5 shares=1", "fleet-option", "write 2 or more"),
        ("l4 driver=0.5 fabric-partitions", "fleet-option", "whole nodes of hgx-h100"),
        ("hgx-h100 driver=0.5 devices=4 fabric-partitions", "fleet-option", "whole nodes of hgx-h100"),
        ("hgx-h100 partitions=2", "fleet-option", "leave it out"),
        ("example mig=1g.10gb*7", "fleet-option", "leave it out"),
        ("example-net partitions=2", "fleet-option", "leave it out"),
        ("example driver=0.2 partitions=2", "fleet-option", "driver: 0.3"),
        ("example driver=0.3 shareable", "fleet-option", "driver: 0.4"),
        ("example partitions=8", "fleet-option", "such as 7"),
        ("example shareable partitions=3", "fleet-option", "write 2, 4 or 5"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_write(text, code, hint):
    problem = problem_of(text)
    assert problem.code == code
    assert hint in problem.hint
    assert problem.path.startswith(f'fleet "{text}"')


def test_all_problems_of_all_terms_are_told_at_once():
    problems = refused("hgx-h100 foo driver=9 mig=1g.5gb, hgx-h1000, l4 x 0 partitions=1")
    assert sorted(problem.code for problem in problems) == [
        "fleet-count",
        "fleet-option",
        "fleet-option",
        "fleet-option",
        "fleet-unknown",
        "unknown-driver-release",
    ]


def test_kubernetes_that_is_not_supported_is_refused():
    assert problem_of("hgx-h100", kubernetes="1.20").code == "unknown-kubernetes"
    assert problem_of("hgx-h100", kubernetes="v1.33").code == "unknown-kubernetes"


def test_kubernetes_is_named_as_clusters_print_it():
    assert load_fleet("hgx-h100", kubernetes="v1.35.2+k3s1") == load_fleet("hgx-h100", kubernetes="1.35")


def test_counters_of_the_example_driver_are_refused_where_the_server_refuses_them():
    problem = problem_of("hgx-h100, example partitions=2", kubernetes="1.34")
    assert (problem.code, "1.34" in problem.message) == ("fleet-option", True)
    assert load_fleet("example", kubernetes="1.34").device_count == 8


@given(
    st.sampled_from(sorted(fleet_kinds())),
    st.sampled_from(DRIVERS),
    st.lists(st.sampled_from(OPTIONS), max_size=3),
)
@settings(deadline=None, max_examples=150)
def test_any_options_give_a_fleet_or_problems(kind, driver, options):
    text = " ".join([kind, driver, *options])
    fleet, problems = loaded(text)
    assert all(problem.hint for problem in problems)
    assert bool(problems) == (fleet is None)
    if fleet:
        assert load_fleet(fleet.name) == fleet
        assert fleet.device_count > 0


@given(st.sampled_from([kind for kind in fleet_kinds().values() if mig_profiles_of(kind.gpu)]), st.data())
@settings(deadline=None, max_examples=60)
def test_any_layout_of_mig_is_published_whole_or_refused(kind, data):
    names = st.sampled_from([profile.name for profile in mig_profiles_of(kind.gpu)])
    wanted = data.draw(st.dictionaries(names, st.integers(1, 3), min_size=1, max_size=3))
    name = next(name for name, each in fleet_kinds().items() if each is kind)
    text = f"{name} devices=1 mig={'+'.join(f'{profile}*{count}' for profile, count in wanted.items())}"
    fleet, problems = loaded(text)
    fits = (
        placements_of([profile for profile in wanted for _ in range(wanted[profile])], kind.gpu) is not None
    )
    assert [problem.code for problem in problems] == ([] if fits else ["fleet-option"])
    if fleet is None:
        return
    devices = [
        device for each in fleet.slices for device in each.spec.devices if each.spec.driver == kind.driver
    ]
    published = [device.attributes["profile"].string for device in devices]
    nodes = len(fleet.nodes)
    assert sorted(published) == sorted(profile for profile in wanted for _ in range(wanted[profile] * nodes))
