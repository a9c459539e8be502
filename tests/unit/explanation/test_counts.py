"""Counts of trees, held against a count that knows nothing of the code."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.allocator.known import a_claim, a_leaf, a_slice
from tests.support.explanation.asked import a_holder, answer

ATTRIBUTES = "device.attributes['a.example.com']"
DEVICES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from(["", "", "k", "l"]),
        st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(
    first=DEVICES, second=DEVICES, least=st.integers(0, 3), most=st.integers(0, 3), tolerates=st.booleans()
)
def test_each_device_counts_at_the_first_thing_that_it_fails(first, second, least, most, tolerates):
    expected: Counter[tuple[str, str]] = Counter()
    left: Counter[str] = Counter()
    slices = []
    held = []
    for node, devices in (("n0", first), ("n1", second)):
        written = []
        for number, (size, speed, taint, used) in enumerate(devices):
            name = f"{node}-d{number}"
            device = {"name": name, "attributes": {"size": {"int": size}, "speed": {"int": speed}}}
            if taint:
                device["taints"] = [{"key": taint, "effect": "NoSchedule"}]
            if used:
                held.append(a_holder(f"c-{name}", name, pool=node))
            written.append(device)
            if size < least:
                expected["request", f"{ATTRIBUTES}.size >= {least}"] += 1
            elif speed > most:
                expected["request", f"{ATTRIBUTES}.speed <= {most}"] += 1
            elif taint and not (tolerates and taint == "k"):
                expected["taint", f"{taint}:NoSchedule"] += 1
            elif used:
                expected["in-use", "device"] += 1
            else:
                left[node] += 1
        slices.append(a_slice(*written, name=node, pool=node, nodeName=node))
    expression = f"{ATTRIBUTES}.size >= {least} && {ATTRIBUTES}.speed <= {most}"
    leaf = a_leaf(9, selectors=[{"cel": {"expression": expression}}])
    if tolerates:
        leaf["tolerations"] = [{"key": "k", "operator": "Exists"}]
    nodes = [{"metadata": {"name": name, "labels": {}}} for name in ("n0", "n1")]
    found = answer(slices=slices, nodes=nodes, claims=[a_claim(leaf)], holders=held)
    (tree,) = found.requests
    assert {(step.rule, step.text): step.removed for step in tree.steps if step.removed} == dict(expected)
    assert tree.candidates == len(first) + len(second)
    assert tree.left == sum(left.values())
    assert tree.most == max(left.values(), default=0)
    assert tree.candidates - sum(step.removed for step in tree.steps) == tree.left
