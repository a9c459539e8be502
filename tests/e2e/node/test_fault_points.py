"""The plugin is killed at each step that it takes, while the test plays the kubelet, which has not the patience."""

from __future__ import annotations

import grpc
import pytest

from dra_infra.plugin.claims import ClaimReference
from tests.support.node.invariants import look, settled
from tests.support.node.plugin_process import ONE_RETRY, PluginProcess
from tests.support.node.workloads import CLAIM, request

pytestmark = pytest.mark.e2e

FEWEST_STEPS = 6


@pytest.fixture(scope="module")
def plugin(device_classes, real_node, tmp_path_factory):
    process = PluginProcess(real_node, tmp_path_factory.mktemp("plugin") / "plugin.log", fleet="hgx-h100")
    yield process
    process.kill()


@pytest.fixture
def claim(workloads, plugin, real_node, node_api):
    """A claim of two devices whose pod is bound to the node, where no kubelet runs."""
    real_node.kubelet.stop()
    plugin.start(registers=False)
    workloads.claim("two", request(2))
    workloads.pod_with_claim("pod", "two")
    found = node_api.wait_until(
        CLAIM, "two", lambda one: one.get("status", {}).get("reservedFor"), namespace=workloads.namespace
    )
    plugin.kill()
    metadata = found["metadata"]
    yield ClaimReference(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])
    # One that is still to die would take the next test with it.
    plugin.kill()
    kubelet_comes(real_node, plugin)
    workloads.remove_all()
    assert settled(node_api, real_node) == frozenset()
    plugin.kill()


def kubelet_comes(node, plugin):
    if not plugin.is_running:
        plugin.start(registers=False)
    if not node.kubelet.is_running:
        node.kubelet.start()
    plugin.wait_registered()


def started_to_die(plugin, call, number):
    plugin.start({"DIES_IN": call, "DIES_AT": str(number)}, registers=False)


def one_answer(answers, claim):
    answer = answers[claim.uid]
    assert not answer.error
    return [list(device.cdi_device_ids) for device in getattr(answer, "devices", ())]


def check_nothing_is_half_way(api, node, expected):
    found = look(api, node)
    assert found.recorded == found.specified
    assert found.recorded in expected
    assert not found.left


def test_preparing_goes_on_after_a_death_at_any_step(claim, workloads, plugin, node_api, real_node):
    number = 0
    while True:
        started_to_die(plugin, "prepare", number)
        check_nothing_is_half_way(node_api, real_node, [frozenset(), {claim.uid}])
        with plugin.called() as kubelet:
            try:
                ids = one_answer(kubelet.prepare(claim), claim)
                break
            except grpc.RpcError:
                plugin.wait_killed()
        number += 1
    assert number >= FEWEST_STEPS
    assert len(ids) == len({*map(tuple, ids)}) == 2
    check_nothing_is_half_way(node_api, real_node, [{claim.uid}])
    # The kubelet gets the same.
    kubelet_comes(real_node, plugin)
    workloads.wait_running("pod", timeout=ONE_RETRY)
    assert len(workloads.devices("pod")) == 2
    assert settled(node_api, real_node) == {claim.uid}


def test_releasing_goes_on_after_a_death_at_any_step(claim, plugin, node_api, real_node):
    number = 0
    while True:
        started_to_die(plugin, "release", number)
        check_nothing_is_half_way(node_api, real_node, [frozenset(), {claim.uid}])
        with plugin.called() as kubelet:
            one_answer(kubelet.prepare(claim), claim)
            try:
                one_answer(kubelet.release(claim), claim)
                break
            except grpc.RpcError:
                plugin.wait_killed()
        number += 1
    assert number >= FEWEST_STEPS - 2
    check_nothing_is_half_way(node_api, real_node, [frozenset()])
