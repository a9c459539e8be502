"""Where pods that have a node let others go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.api import LabelSelector, Namespaces, Node, NodeTaint
from dra_infra.kubernetes.scheduler import PlacedPods, read_shape
from dra_infra.kubernetes.scheduler.pod_shapes import find_host_ports
from tests.support.growth import takes_linear_time

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "zone"


def a_node(name, zone=None, **rest):
    labels = {HOST: name} | ({ZONE: zone} if zone else {})
    return Node(name=name, labels=labels, **rest)


NODES = [a_node("n0", "a"), a_node("n1", "a"), a_node("n2", "b"), a_node("n3")]


def a_term(key=HOST, app="web", **rest):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **rest}


def a_spread(key=ZONE, app="web", skew=1, **rest):
    selector = {"matchLabels": {"app": app}}
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **rest,
    }


def a_pod(app="web", namespace="ml", *, near=(), apart=(), spread=(), labels=None, **rest):
    spec = rest | ({"topologySpreadConstraints": list(spread)} if spread else {})
    affinity = {
        name: {REQUIRED: list(terms)}
        for name, terms in (("podAffinity", near), ("podAntiAffinity", apart))
        if terms
    }
    is_daemon = spec.pop("is_daemon", False)
    is_going = spec.pop("is_going", False)
    return read_shape(
        spec | {"affinity": affinity},
        namespace,
        {"app": app} | (labels or {}),
        is_daemon=is_daemon,
        is_going=is_going,
    )


def open_to(shape, *placed, nodes=NODES, namespaces=None):
    board = PlacedPods(nodes, namespaces)
    for other, node in placed:
        board.add(other, node)
    return list(board.open_nodes(shape, range(len(nodes))))


def test_anti_affinity_keeps_away_from_the_place_of_a_pod():
    assert open_to(a_pod(apart=[a_term()]), (a_pod(), 0)) == [1, 2, 3]
    assert open_to(a_pod(apart=[a_term(ZONE)]), (a_pod(), 0)) == [2, 3]
    assert open_to(a_pod(apart=[a_term()]), (a_pod("db"), 0)) == [0, 1, 2, 3]


def test_the_anti_affinity_of_a_pod_that_runs_keeps_others_away():
    running = a_pod("db", apart=[a_term(ZONE)])
    assert open_to(a_pod(), (running, 0)) == [2, 3]
    assert open_to(a_pod("db"), (running, 0)) == [0, 1, 2, 3]


def test_anti_affinity_is_about_its_own_namespace_unless_it_says_otherwise():
    other = a_pod(namespace="web")
    red = Namespaces([{"kind": "Namespace", "metadata": {"name": "web", "labels": {"team": "red"}}}])
    assert open_to(a_pod(apart=[a_term()]), (other, 0)) == [0, 1, 2, 3]
    assert open_to(a_pod(apart=[a_term(namespaces=["web"])]), (other, 0)) == [1, 2, 3]
    assert open_to(a_pod(apart=[a_term(namespaceSelector={})]), (other, 0)) == [1, 2, 3]
    by_team = a_term(namespaceSelector={"matchLabels": {"team": "red"}})
    assert open_to(a_pod(apart=[by_team]), (other, 0), namespaces=red) == [1, 2, 3]
    assert open_to(a_pod(apart=[by_team]), (other, 0)) == [0, 1, 2, 3]
    by_name = a_term(namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "web"}})
    assert open_to(a_pod(apart=[by_name]), (other, 0)) == [1, 2, 3]


def test_affinity_goes_to_the_place_of_a_pod():
    assert open_to(a_pod("db", near=[a_term(ZONE)]), (a_pod(), 0)) == [0, 1]
    assert open_to(a_pod("db", near=[a_term(ZONE)])) == []
    board = PlacedPods(NODES)
    assert "no pod that it names" in board.refusal(a_pod("db", near=[a_term(ZONE)]), 0)
    assert "label zone" in board.refusal(a_pod("db", near=[a_term(ZONE)]), 3)


def test_one_pod_has_to_meet_all_terms_of_affinity():
    both = a_pod(
        "job",
        near=[a_term(ZONE), a_term(ZONE, labels="x") | {"labelSelector": {"matchLabels": {"tier": "x"}}}],
    )
    assert open_to(both, (a_pod(), 0), (a_pod("db", labels={"tier": "x"}), 0)) == []
    assert open_to(both, (a_pod(labels={"tier": "x"}), 0)) == [0, 1]


def test_the_first_of_a_series_that_wants_to_be_together_goes_anywhere_with_the_label():
    together = a_pod(near=[a_term(ZONE)])
    assert open_to(together) == [0, 1, 2]
    assert open_to(together, (together, 2)) == [2]
    # A pod that matches on a node without the label does not count as the first.
    assert open_to(together, (together, 3)) == [0, 1, 2]


def test_label_keys_of_a_term_narrow_it_to_pods_like_this_one():
    old, new = ({"app": "web", "hash": name} for name in ("old", "new"))
    term = a_term(matchLabelKeys=["hash"])
    placed = (read_shape({}, "ml", old), 0)
    coming = read_shape({"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}, "ml", new)
    assert open_to(coming, placed) == [0, 1, 2, 3]
    term = a_term(mismatchLabelKeys=["hash"])
    coming = read_shape({"affinity": {"podAntiAffinity": {REQUIRED: [term]}}}, "ml", new)
    assert open_to(coming, placed) == [1, 2, 3]


def test_spreading_allows_as_many_more_as_max_skew_says():
    web = a_pod(spread=[a_spread()])
    assert open_to(web) == [0, 1, 2]
    assert open_to(web, (web, 0)) == [2]
    assert open_to(web, (web, 0), (web, 2)) == [0, 1, 2]
    assert open_to(a_pod(spread=[a_spread(skew=2)]), (web, 0)) == [0, 1, 2]
    assert open_to(a_pod(spread=[a_spread(whenUnsatisfiable="ScheduleAnyway")]), (web, 0)) == [0, 1, 2, 3]


def test_spreading_counts_pods_of_its_namespace_that_stay():
    web = a_pod(spread=[a_spread()])
    assert open_to(web, (a_pod(namespace="other"), 0)) == [0, 1, 2]
    assert open_to(web, (a_pod(is_going=True), 0)) == [0, 1, 2]
    assert open_to(a_pod(spread=[a_spread(labelSelector={})]), (web, 0), (web, 0)) == [0, 1, 2]


def test_too_few_domains_count_as_an_empty_one():
    web = a_pod(spread=[a_spread(minDomains=3)])
    assert open_to(web, (web, 0), (web, 2)) == []
    assert open_to(a_pod(spread=[a_spread(minDomains=2)]), (web, 0), (web, 2)) == [0, 1, 2]


def test_spreading_looks_at_nodes_that_affinity_and_taints_leave_as_told():
    nodes = [a_node("n0", "a"), a_node("n1", "b", taints=(NodeTaint(key="gpu"),))]
    web = (a_pod(), 0)
    assert open_to(a_pod(spread=[a_spread()]), web, nodes=nodes) == [1]
    assert open_to(a_pod(spread=[a_spread(nodeTaintsPolicy="Honor")]), web, nodes=nodes) == [0, 1]
    in_a = {"nodeSelector": {"zone": "a"}}
    assert open_to(a_pod(spread=[a_spread()], **in_a), web, nodes=nodes) == [0, 1]
    assert open_to(a_pod(spread=[a_spread(nodeAffinityPolicy="Ignore")], **in_a), web, nodes=nodes) == [1]


def test_a_daemon_is_spread_over_the_one_node_that_it_is_bound_to():
    daemon = a_pod(spread=[a_spread(HOST)], is_daemon=True)
    assert open_to(daemon, (daemon, 0), (daemon, 1)) == [0, 1, 2, 3]
    assert open_to(a_pod(spread=[a_spread(HOST, minDomains=2)], is_daemon=True), (daemon, 0)) == [1, 2, 3]


def ports(*written, kind="containers", **rest):
    return {kind: [{"ports": list(written), **rest}]}


def test_host_ports_are_taken_once_per_node():
    pod = a_pod("x", **ports({"containerPort": 80, "hostPort": 8080}))
    assert open_to(pod, (pod, 1)) == [0, 2, 3]
    board = PlacedPods(NODES)
    board.add(pod, 1)
    assert board.refusal(pod, 1) == "host port 8080/TCP is taken"
    assert not board.refusal(pod, 0)


@pytest.mark.parametrize(
    ("one", "other", "conflicts"),
    [
        ({}, {}, True),
        ({"protocol": "UDP"}, {}, False),
        ({"hostIP": "10.0.0.1"}, {}, True),
        ({}, {"hostIP": "10.0.0.1"}, True),
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"hostPort": 81}, {}, False),
    ],
)
def test_host_ports_conflict_by_address_and_protocol(one, other, conflicts):
    first, second = (
        a_pod("x", **ports({"hostPort": 80, "containerPort": 1} | each)) for each in (one, other)
    )
    assert (0 not in open_to(first, (second, 0))) is conflicts


def test_ports_of_containers_that_last_count_and_in_the_hosts_network_all():
    assert find_host_ports(ports({"containerPort": 80})) == ()
    assert [str(each) for each in find_host_ports(ports({"containerPort": 80}) | {"hostNetwork": True})] == [
        "80/TCP"
    ]
    assert find_host_ports(ports({"hostPort": 80}, kind="initContainers")) == ()
    sidecar = ports({"hostPort": 80}, kind="initContainers", restartPolicy="Always")
    assert [str(each) for each in find_host_ports(sidecar)] == ["80/TCP"]


def test_pods_that_ask_for_nothing_are_free_until_one_that_runs_minds_them():
    board = PlacedPods(NODES)
    assert board.is_free(a_pod())
    assert not board.is_free(a_pod(apart=[a_term()]))
    board.add(a_pod("db", apart=[a_term()]), 0)
    assert not board.is_free(a_pod())
    assert board.is_free(a_pod("other"))


def test_whether_a_pod_is_there_that_affinity_names():
    board = PlacedPods(NODES)
    near = a_pod("db", near=[a_term()])
    assert not board.has_near(near)
    board.add(a_pod(), 3)
    assert board.has_near(near)


def test_copies_change_apart():
    web = a_pod(spread=[a_spread()], apart=[a_term()], **ports({"hostPort": 80}))
    board = PlacedPods(NODES)
    assert list(board.open_nodes(web, range(4))) == [0, 1, 2]
    copy = board.copy()
    copy.add(web, 0)
    assert list(copy.open_nodes(web, range(4))) == [2]
    assert list(board.open_nodes(web, range(4))) == [0, 1, 2]


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        (None, {}, False),
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
        (
            {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]},
            {"a": "1"},
            False,
        ),
    ],
)
def test_label_selectors(selector, labels, matches):
    assert LabelSelector.read(selector).matches(labels) is matches


APPS = st.sampled_from(["web", "db"])
KEYS = st.sampled_from([HOST, ZONE])
TERMS = st.lists(st.builds(a_term, KEYS, APPS), max_size=2)
SHAPES = st.builds(
    lambda app, namespace, near, apart, spread, port: a_pod(
        app, namespace, near=near, apart=apart, spread=spread, **(ports({"hostPort": 80}) if port else {})
    ),
    APPS,
    st.sampled_from(["ml", "web"]),
    TERMS,
    TERMS,
    st.lists(st.builds(a_spread, KEYS, APPS, st.integers(1, 2)), max_size=2),
    st.booleans(),
)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20)


@settings(deadline=None, max_examples=300)
@given(st.lists(SHAPES, min_size=4, max_size=4), STEPS)
def test_records_kept_up_to_date_say_what_a_look_at_all_pods_says(shapes, steps):
    board = PlacedPods(NODES)
    there = Counter()
    for number, node in steps:
        shape = shapes[number]
        board.add(shape, node)
        there[shape, node] += 1
        pods = list(there.elements())
        for coming in shapes:
            expected = [each for each in range(4) if is_open(coming, each, pods)]
            assert list(board.open_nodes(coming, range(4))) == expected
            assert [each for each in range(4) if not board.refusal(coming, each)] == expected


def is_open(coming, node, pods):
    """The rules by looking at every pod."""
    free = not any(set(pod.ports) & set(coming.ports) for pod, at in pods if at == node)
    return (
        free
        and may_be_apart(coming, node, pods)
        and may_be_near(coming, node, pods)
        and may_spread(coming, node, pods)
    )


def label(node, key):
    return NODES[node].labels.get(key)


def same(one, other, key):
    return label(one, key) is not None and label(one, key) == label(other, key)


def named(term, by, other):
    return other.namespace in (term.namespaces or {by.namespace}) and term.selector.matches(other.labels)


def may_be_apart(coming, node, pods):
    for pod, at in pods:
        own = any(named(term, coming, pod) and same(at, node, term.topology_key) for term in coming.apart)
        theirs = any(named(term, pod, coming) and same(at, node, term.topology_key) for term in pod.apart)
        if own or theirs:
            return False
    return True


def may_be_near(coming, node, pods):
    keys = [term.topology_key for term in coming.near]
    if any(label(node, key) is None for key in keys):
        return False
    wanted = [at for pod, at in pods if all(named(term, coming, pod) for term in coming.near)]
    if all(any(same(at, node, key) for at in wanted) for key in keys):
        return True
    is_counted = any(label(at, key) is not None for at in wanted for key in keys)
    return not is_counted and all(named(term, coming, coming) for term in coming.near)


def may_spread(coming, node, pods):
    keys = [each.topology_key for each in coming.spread]
    if any(label(node, key) is None for key in keys):
        return False
    eligible = [at for at in range(4) if all(label(at, key) is not None for key in keys)]
    for each in coming.spread:
        numbers = {label(at, each.topology_key): 0 for at in eligible}
        for pod, at in pods:
            if at in eligible and pod.namespace == coming.namespace and each.selector.matches(pod.labels):
                numbers[label(at, each.topology_key)] += 1
        more = numbers[label(node, each.topology_key)] + each.selector.matches(coming.labels)
        if more - min(numbers.values()) > each.max_skew:
            return False
    return True


@pytest.mark.parametrize(
    "asks",
    [{"apart": [a_term()]}, {"spread": [a_spread(HOST)]}, {"near": [a_term(ZONE)]}, ports({"hostPort": 80})],
    ids=["apart", "spread", "near", "ports"],
)
def test_a_pod_takes_no_longer_where_many_run_on_thousands_of_nodes(asks):
    nodes = [a_node(f"n{number}", f"z{number % 50}") for number in range(5000)]
    web = a_pod(**asks)

    def prepare(size: int) -> Callable[[], object]:
        board = PlacedPods(nodes)

        def work() -> None:
            for _ in range(size):
                board.add(web, next(iter(board.open_nodes(web, range(5000)))))

        return work

    # Not so if every pod were looked at for every node.
    assert takes_linear_time(prepare, 250)
