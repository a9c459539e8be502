"""A device that has to be made ready for the node that it was chosen for: the pod waits for it, or gets another."""

from __future__ import annotations

import pytest

from dra_infra.plugin.back_ends.sim_commands import Commands, bind, fail, hold
from tests.e2e.node.simulated_devices import taints_of, told
from tests.support.node.invariants import settled
from tests.support.node.workloads import CLAIM
from tools.node.access import grant_binding_conditions

pytestmark = pytest.mark.e2e

FIRST, SECOND = "gpu-0", "gpu-1"


@pytest.fixture(scope="module")
def rights(node_api, real_node):
    """What the plugin's service account has on a cluster, for the node's own user, which the plugin is here."""
    grant_binding_conditions(node_api, real_node.name)


@pytest.fixture
def devices(node_api, plugin, rights):
    """The first device has to be made ready before a pod may use it."""
    with told(node_api, plugin) as found:
        found.tell(hold(Commands(), FIRST))
        found.wait_for(lambda published: published.get(FIRST, {}).get("bindingConditions"))
        yield found


@pytest.fixture
def waiting(claims, devices):
    """A pod whose claim was allocated the first device, which is not ready yet."""
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.api.wait_until(CLAIM, "one", allocated, namespace=claims.namespace)
    return claims


def allocated(claim):
    """The devices of a claim."""
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [each["device"] for each in results]


def claim_of(claims):
    return claims.api.get(CLAIM, "one", namespace=claims.namespace)


def test_pod_waits_for_its_device_and_runs_when_that_is_ready(waiting, devices, node_api, real_node):
    assert allocated(claim_of(waiting)) == [FIRST]
    # A pod that came later and needs nothing of it is bound long since: the wait is for the device.
    waiting.pod("later")
    waiting.wait_running("later")
    pod = waiting.api.get("v1/Pod", "pod", namespace=waiting.namespace)
    assert "nodeName" not in pod["spec"]
    assert allocated(claim_of(waiting)) == [FIRST]
    devices.tell(bind(hold(Commands(), FIRST), f"{waiting.namespace}/one"))
    waiting.wait_running("pod")
    assert waiting.devices("pod") == [FIRST]
    claim = claim_of(waiting)
    [entry] = claim["status"]["devices"]
    [condition] = entry["conditions"]
    assert (entry["device"], condition["type"], condition["status"]) == (FIRST, "BindingConditions", "True")
    assert settled(node_api, real_node) == {claim["metadata"]["uid"]}


def test_pod_gets_another_device_when_its_own_cannot_be_made_ready(waiting, devices, node_api, real_node):
    # As drivers do: what cannot be made ready is tainted, or the scheduler would choose it again.
    broken = fail(hold(Commands(), FIRST), FIRST, message="no power")
    devices.tell(broken)
    devices.wait_for(lambda published: taints_of(published.get(FIRST, {})))
    devices.tell(bind(broken, f"{waiting.namespace}/one", device=FIRST, failed="no power"))
    waiting.wait_running("pod")
    assert waiting.devices("pod") == [SECOND]
    claim = claim_of(waiting)
    assert allocated(claim) == [SECOND]
    assert settled(node_api, real_node) == {claim["metadata"]["uid"]}
