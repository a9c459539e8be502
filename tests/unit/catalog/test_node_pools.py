from __future__ import annotations

from decimal import Decimal

import pytest
import yaml

from dra_infra.catalog import load_fleet
from dra_infra.catalog.fleets import load_node
from dra_infra.catalog.node_pools import price_pools, read_prices
from dra_infra.errors import FleetError
from dra_infra.fleet import Billing
from dra_infra.kubernetes.api import NodeTaint

POOLS = """
pools:
  - name: a3
    nodes: hgx-h100 mig=1g.10gb*7
    min: 1
    max: 3
    count: 2
    price: 98.320
    per: hour
    labels: {team: research}
    taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
    allocatable: {cpu: 96}
  - {name: burst, nodes: l4 devices=1, min: 0, max: 12, price: "0.70"}
  - {name: rack, nodes: gb200-nvl72, max: 2}
nodeGroups:
  - {kind: t4, count: 1}
currency: USD
teamLabel: example.com/team
"""


@pytest.fixture
def write(tmp_path):
    def write(content, name="fleet.yaml"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(path)

    return write


@pytest.fixture
def refused(write):
    def refused(*pools, **others):
        path = write({"pools": list(pools), **others})
        with pytest.raises(FleetError) as caught:
            load_fleet(path)
        return [(problem.path.removeprefix(f"{path}."), problem.code) for problem in caught.value.problems]

    return refused


def test_prices_that_say_no_time_beside_those_for_a_day_are_named(write):
    def notes(per):
        timed = {"name": "b", "nodes": "l4", "max": 3, "price": 24, "per": per}
        fleet = load_fleet(write({"pools": [{"name": "a", "nodes": "l4", "max": 3, "price": 1}, timed]}))
        assert fleet.billing.per == per
        return [each for each in fleet.notes if each.startswith("prices ")]

    assert notes("day") == ["prices of a say no time, and count per day as those of others do"]
    assert notes("hour") == []


def test_a_fleet_has_the_nodes_that_its_pools_have_now(write):
    fleet = load_fleet(write(POOLS))
    assert [node.name for node in fleet.nodes] == ["a3-0", "a3-1", "t4-0"]
    assert {each.spec.node_name for each in fleet.slices} == {"a3-0", "a3-1", "t4-0"}
    node = fleet.nodes[0]
    assert (node.labels["team"], node.allocatable["cpu"]) == ("research", "96")
    assert node.taints == (NodeTaint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),)
    assert fleet.billing == Billing(currency="USD", per="hour", team_label="example.com/team")
    assert [(pool.name, pool.machine, pool.now, pool.most, pool.price) for pool in fleet.pools] == [
        ("a3", "hgx-h100", 2, 3, Decimal("98.32")),
        ("burst", "l4", 0, 12, Decimal("0.70")),
        ("rack", "gb200-nvl72", 0, 2, None),
    ]


def test_a_grown_fleet_has_the_nodes_that_come_with_their_slices(write):
    fleet = load_fleet(write(POOLS)).grown((1, 2, 1))
    assert fleet.name.endswith("with a3 x 3, burst x 2, rack x 1")
    names = [node.name for node in fleet.nodes]
    assert names == sorted(names)
    assert names[:5] == ["a3-0", "a3-1", "a3-2", "burst-00", "burst-01"]
    assert len(names) == 3 + 2 + 18 + 1
    assert {each.spec.node_name for each in fleet.slices} == set(names)
    of_rack = {node.labels["nvidia.com/gpu.clique"] for node in fleet.nodes if node.name.startswith("rack")}
    assert len(of_rack) == 1


def test_a_fleet_at_its_limits_is_the_file_with_as_many_nodes_from_the_start(write):
    pools = {"pools": [{"name": "a3", "nodes": "hgx-h100", "min": 0, "max": 3}]}
    groups = {"nodeGroups": [{"name": "a3", "kind": "hgx-h100", "count": 3}]}
    assert (
        load_fleet(write(pools)).at_limits.to_manifests()
        == load_fleet(write(groups, "groups.yaml")).to_manifests()
    )


def test_a_pool_without_nodes_brings_its_classes_and_one_of_its_nodes_can_be_had(write):
    path = write({"pools": [{"name": "a3", "nodes": "hgx-h100", "min": 0, "max": 3}]})
    fleet = load_fleet(path)
    assert fleet.nodes == ()
    assert "gpu.nvidia.com" in {each.metadata.name for each in fleet.classes}
    assert load_node(path, "a3-1").slices


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ({"name": "a"}, [("pools[0]", "node-pool")]),
        ("a", [("pools[0]", "node-pool")]),
        ({"nodes": "hgx-h900"}, [("pools[0].nodes", "fleet-unknown")]),
        ({"nodes": "hgx-h100 x 2"}, [("pools[0].nodes", "node-pool")]),
        ({"nodes": "hgx-h100, l4"}, [("pools[0].nodes", "node-pool")]),
        ({"max": None}, [("pools[0].max", "node-pool")]),
        ({"max": 0}, [("pools[0].max", "node-pool")]),
        ({"min": 5}, [("pools[0].max", "node-pool")]),
        ({"count": 5}, [("pools[0].max", "node-pool")]),
        ({"min": -1}, [("pools[0].min", "node-pool")]),
        ({"min": 1.5}, [("pools[0].min", "node-pool")]),
        ({"max": 10**9}, [("pools[0].max", "node-pool")]),
        ({"nodes": "gb200-nvl72", "max": 6_000}, [('fleet "PATH"', "fleet-too-large")]),
        ({"price": "cheap"}, [("pools[0].price", "node-pool")]),
        ({"price": -1}, [("pools[0].price", "node-pool")]),
        ({"price": True}, [("pools[0].price", "node-pool")]),
        ({"price": 10**10}, [("pools[0].price", "node-pool")]),
        ({"price": "1 000"}, [("pools[0].price", "node-pool")]),
        ({"per": "fortnight"}, [("pools[0].per", "node-pool")]),
        ({"name": "A3"}, [("pools[0].name", "fleet-object")]),
        ({"prize": 3}, [("pools[0].prize", "fleet-object")]),
    ],
)
def test_what_is_wrong_with_a_pool_is_said_of_its_field(refused, tmp_path, pool, expected):
    if isinstance(pool, dict) and pool != {"name": "a"}:
        pool = {"name": "a3", "nodes": "hgx-h100", "min": 1, "max": 4, **pool}
        pool = {key: value for key, value in pool.items() if value is not None}
    path = f'fleet "{str(tmp_path / "fleet.yaml")[:80]}"'
    assert refused(pool) == [(where.replace('fleet "PATH"', path), code) for where, code in expected]


@pytest.mark.parametrize(
    ("others", "where"),
    [
        ({"currency": "U S"}, "currency"),
        ({"currency": "DOLLARSANDCENTS"}, "currency"),
        ({"currency": 3}, "currency"),
        ({"teamLabel": "a b"}, "teamLabel"),
        ({"nodeGroups": [{"kind": "t4", "name": "a3"}]}, "pools"),
    ],
)
def test_what_is_wrong_beside_the_pools_is_said(refused, others, where):
    assert refused({"name": "a3", "nodes": "hgx-h100", "max": 4}, **others) == [(where, "node-pool")]


def test_prices_for_two_times_cannot_be_added(refused):
    pools = [{"name": per, "nodes": "l4", "max": 1, "price": 1, "per": per} for per in ("hour", "month")]
    assert refused(*pools) == [("pools", "node-pool")]


def test_prices_of_the_file_beside_it_count_before_those_of_the_fleet_file(write):
    write('{"a3": "90.10", "l4": 0.1, "other": 3}', "prices.json")
    fleet = load_fleet(write(f"{POOLS}prices: prices.json\n"))
    assert [str(pool.price) for pool in fleet.pools] == ["90.10", "0.1", "None"]
    given = price_pools(fleet, read_prices(b'{"gb200-nvl72": 1, "burst": "2.5"}', "--prices"))
    assert [str(pool.price) for pool in given.pools] == ["90.10", "2.5", "1"]


def test_a_note_names_prices_that_are_for_no_pool_or_machine(write):
    write('{"h1000": 5, "burst": 1}', "prices.json")
    fleet = load_fleet(write(f"{POOLS}prices: prices.json\n"))
    [note] = [each for each in fleet.notes if each.startswith("prices: ")]
    assert note == (
        "prices: h1000 is no pool or machine of this fleet; did you mean hgx-h100? "
        "There are a3, hgx-h100, burst, l4, rack and gb200-nvl72"
    )
    plain = load_fleet(write(POOLS))
    [slip] = price_pools(plain, {"zzz": Decimal(5), "burst": Decimal(1)}).notes
    assert slip.startswith("prices: zzz is no pool or machine of this fleet; there are a3,")
    many = price_pools(plain, {f"x{index}": Decimal(1) for index in range(300)}).notes
    assert many[0].startswith(
        "prices: x0, x1, x2, x3 and 296 more are no pools or machines of this fleet; there are a3,"
    )
    assert price_pools(plain, {"a3": Decimal(1), "l4": Decimal(2)}).notes == ()


@pytest.mark.parametrize(
    "name", ["../prices.json", "/etc/hostname", "none.json", ".", 3, "a\0b", "link.json"]
)
def test_a_fleet_file_names_prices_in_its_own_folder_alone(write, tmp_path, name):
    (tmp_path.parent / "prices.json").write_text('{"a3": 1}')
    (tmp_path / "link.json").symlink_to(tmp_path.parent / "prices.json")
    path = write({"pools": [{"name": "a3", "nodes": "l4", "max": 1}], "prices": name})
    with pytest.raises(FleetError) as caught:
        load_fleet(path)
    (problem,) = caught.value.problems
    assert problem.path == f"{path}.prices"
    assert problem.code in ("node-pool", "prices-unreadable")


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b'{"a": 1}' + b" " * (1 << 20), b'{"a": NaN}'])
def test_prices_that_are_no_object_are_refused(data):
    with pytest.raises(FleetError) as caught:
        read_prices(data, "--prices")
    assert [(each.path, each.code) for each in caught.value.problems] == [("--prices", "prices-unreadable")]


def test_prices_for_a_fleet_without_pools_are_refused():
    with pytest.raises(FleetError) as caught:
        price_pools(load_fleet("t4"), {"t4": Decimal(1)})
    assert [(each.path, each.code) for each in caught.value.problems] == [("--prices", "node-pool")]


def test_prices_for_pools_that_were_left_out_are_refused_with_the_reason(tmp_path):
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {"requirements": []}}},
    }
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(pool))
    with pytest.raises(FleetError) as caught:
        price_pools(load_fleet(str(tmp_path / "fleet.yaml")), {"gpu": Decimal(1)})
    (problem,) = caught.value.problems
    assert problem.message.endswith(
        "has no node pools; node pool gpu is left out: its requirements name no machine that is known here, and it has no node"
    )


def test_a_number_that_is_null_counts_as_left_out(write, refused):
    pool = {
        "name": "a3",
        "nodes": "hgx-h100",
        "min": None,
        "max": 4,
        "count": None,
        "price": None,
        "per": None,
    }
    assert load_fleet(write({"pools": [pool]})).pools[0].now == 0
    assert refused({**pool, "max": None}) == [("pools[0].max", "node-pool")]


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("98.32", "98.32 USD an hour"),
        ("1", "1.00 USD an hour"),
        ("0.0125", "0.0125 USD an hour"),
        ("1234.5", "1,234.50 USD an hour"),
    ],
)
def test_money_is_told_with_the_decimals_that_it_has(amount, shown):
    assert Billing(currency="USD").show(Decimal(amount)) == shown


def test_money_is_told_without_a_currency_and_for_other_times():
    assert Billing(per="month").show(Decimal(3)) == "3.00 a month"
