"""How orders of arrival read: pods of one workload on node after node are counted, not listed."""

from __future__ import annotations

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.placement import Order

INFERENCE = ObjectRef(kind="Deployment", namespace="ml", name="inference")
TRAIN = ObjectRef(kind="Job", namespace="ml", name="train")


def test_seven_hundred_pods_one_per_node_are_one_entry_and_those_that_wait_are_named():
    order = Order.of([(INFERENCE, f"n{number}") for number in range(700)], [(TRAIN, 100)])
    assert str(order) == (
        "700 x Deployment ml/inference, one on each of 700 nodes; pending: 100 x Job ml/train"
    )


def test_nodes_with_several_pods_each_are_counted_with_their_pods():
    equal = [(INFERENCE, node) for node in ("a", "a", "b", "b", "c", "c")]
    assert str(Order.of(equal, [])) == "6 x Deployment ml/inference, 2 on each of 3 nodes"
    assert str(Order.of(equal[:5], [])) == "5 x Deployment ml/inference, 1 to 2 on each of 3 nodes"


def test_a_node_that_is_visited_twice_counts_once():
    order = Order.of([(INFERENCE, node) for node in ("a", "b", "a")], [])
    assert str(order) == "3 x Deployment ml/inference, 1 to 2 on each of 2 nodes"


def test_one_or_two_nodes_are_named():
    order = Order.of([(INFERENCE, "a"), (INFERENCE, "b"), (TRAIN, "a")], [])
    assert str(order) == "Deployment ml/inference on a, Deployment ml/inference on b, Job ml/train on a"
