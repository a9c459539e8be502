"""A drain step by step, against a server on loopback that stands in for the API server and its eviction controller."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.client.kubeconfig import Account, User
from dra_infra.client.taint_rules import TaintRules
from dra_infra.cluster.draining import Drain, Part, find_parts, look
from dra_infra.errors import ClusterError
from tests.unit.cluster.conftest import Server

GPUS, IMEX = "gpu.nvidia.com", "compute-domain.nvidia.com"
ROOT = "/apis/resource.k8s.io/v1"
RULES = f"{ROOT}/devicetaintrules"
NAME = f"drain-{GPUS}-n1-gpu-0"
RULE = f"{RULES}/{NAME}"


def a_device(name: str, **texts: str) -> dict[str, Any]:
    return {"name": name, "attributes": {key: {"string": value} for key, value in texts.items()}}


def a_slice(
    *devices: dict[str, Any], driver: str = GPUS, pool: str = "n1", node: str = "n1"
) -> dict[str, Any]:
    spec = {"driver": driver, "pool": {"name": pool}, "nodeName": node, "devices": list(devices)}
    return {"metadata": {"name": f"{pool}-{driver}"}, "spec": spec}


SLICES = [
    a_slice(
        a_device("gpu-0", uuid="GPU-0"),
        a_device("gpu-0-mig-1", uuid="MIG-1", parentUUID="GPU-0"),
        a_device("gpu-1", uuid="GPU-1"),
    ),
    a_slice(a_device("channel-0"), driver=IMEX),
    a_slice(a_device("gpu-0"), driver="other.example.com", pool="rack/a", node=""),
]


@pytest.mark.parametrize(
    ("target", "driver", "found"),
    [
        ("n1", "", [(IMEX, "n1", "", 1), (GPUS, "n1", "", 3)]),
        ("n1", GPUS, [(GPUS, "n1", "", 3)]),
        ("n1/gpu-0", "", [(GPUS, "n1", "gpu-0", 1), (GPUS, "n1", "gpu-0-mig-1", 1)]),
        ("GPU-1", "", [(GPUS, "n1", "gpu-1", 1)]),
        ("MIG-1", "", [(GPUS, "n1", "gpu-0-mig-1", 1)]),
        ("rack/a", "", [("other.example.com", "rack/a", "", 1)]),
        ("rack/a/gpu-0", "", [("other.example.com", "rack/a", "gpu-0", 1)]),
    ],
)
def test_a_target_is_a_node_a_pool_a_device_or_a_uuid(target: str, driver: str, found: list[Any]):
    parts = find_parts(target, SLICES, driver=driver)
    assert [(each.driver, each.pool, each.device, each.count) for each in parts] == found


@pytest.mark.parametrize(("target", "hint"), [("n1/gpu-00", "did you mean"), ("xyz", "there are n1")])
def test_what_is_not_there_is_told_with_what_is(target: str, hint: str):
    with pytest.raises(ClusterError) as caught:
        find_parts(target, SLICES)
    (problem,) = caught.value.problems
    assert problem.code == "subject-not-known"
    assert problem.hint.startswith(hint)


def test_the_name_of_a_rule_is_one_whatever_the_pool_is_called():
    assert Part(driver="a.example.com", pool="Rack/A_1").rule_name == "drain-a.example.com-rack-a-1"


def a_rule(
    effect: str = "None", *, ours: bool = True, said: str = "", target: str = "n1/gpu-0"
) -> dict[str, Any]:
    condition = {"type": "EvictionInProgress", "status": "False", "observedGeneration": 1, "message": said}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": NAME,
            "uid": "r1",
            "resourceVersion": "7",
            "generation": 1,
            "labels": {"app.kubernetes.io/managed-by": "dra-infra"} if ours else {},
            "annotations": {"dra-infra/drain": target},
        },
        "spec": {"taint": {"key": "dra-infra/drain", "effect": effect}},
        "status": {"conditions": [condition] if said else []},
    }


def a_drain(server: Server, **more: Any) -> Drain:
    """One of n1/gpu-0, which no pod has, with a clock that goes on as it waits."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    for kind, items in (
        ("resourceslices", [*SLICES[1:2], a_slice(a_device("gpu-0"))]),
        ("devicetaintrules", []),
    ):
        server.says(f"{ROOT}/{kind}", (200, {"items": items}))
    server.says(f"{ROOT}/resourceclaims", (200, {"items": []}))
    server.says("/api/v1/pods", (200, {"items": []}))
    account = Account(name="test", server=server.url, user=User())
    preview = look(server.reader(), "n1/gpu-0")
    rules = TaintRules(account, preview.version, {})
    return Drain(preview, rules, server.reader(), clock=lambda: now[0], sleep=sleep, **more)


def codes(caught: pytest.ExceptionInfo[ClusterError]) -> list[str]:
    return [each.code for each in caught.value.problems]


def test_a_rule_has_no_effect_before_the_controller_has_spoken(server: Server):
    drain = a_drain(server, reason="INC-1")
    said = a_rule(said="1 published device selected. 2 pods would be evicted in 1 namespace if ...")
    server.says(RULE, (404, {}), (200, a_rule()), (200, said))
    server.says(f"POST {RULES}", (201, a_rule()))
    ((name, message, count),) = drain.ask()
    assert (name, count) == (NAME, 2)
    assert message.startswith("1 published device")
    assert drain.expected(name) == 0
    ((method, path, body),) = server.sent
    assert (method, path) == ("POST", RULES)
    assert body["spec"]["taint"]["effect"] == "None"
    assert body["spec"]["deviceSelector"] == {"driver": GPUS, "pool": "n1", "device": "gpu-0"}
    assert body["metadata"]["annotations"] == {"dra-infra/drain": "n1/gpu-0", "dra-infra/reason": "INC-1"}


def test_a_controller_that_says_nothing_is_given_up(server: Server):
    drain = a_drain(server)
    server.says(RULE, (404, {}), (200, a_rule()))
    server.says(f"POST {RULES}", (201, a_rule()))
    with pytest.raises(ClusterError) as caught:
        list(drain.ask())
    assert codes(caught) == ["drain-not-answered"]


@pytest.mark.parametrize("there", [a_rule(ours=False), a_rule(target="n1")])
def test_a_rule_that_was_made_for_something_else_is_left_alone(server: Server, there: dict[str, Any]):
    drain = a_drain(server)
    server.says(RULE, (200, there))
    with pytest.raises(ClusterError) as caught:
        list(drain.ask())
    assert codes(caught) == ["drain-name-taken"]
    assert server.sent == []


def test_a_rule_of_an_earlier_run_is_made_anew_and_one_that_evicts_is_left_alone(server: Server):
    drain = a_drain(server)
    said = a_rule(said="0 pods would be evicted in 0 different namespaces if ...")
    server.says(RULE, (200, a_rule()), (200, said))
    server.says(f"DELETE {RULE}", (200, {"kind": "Status"}))
    server.says(f"POST {RULES}", (201, a_rule()))
    assert [count for _, _, count in drain.ask()] == [0]
    assert [(method, body.get("preconditions")) for method, _, body in server.sent] == [
        ("DELETE", {"uid": "r1"}),
        ("POST", None),
    ]
    server.sent.clear()
    server.says(RULE, (200, a_rule("NoExecute")))
    assert list(drain.ask()) == []
    assert server.sent == []


def test_an_effect_is_written_onto_the_rule_that_was_read(server: Server):
    drain = a_drain(server)
    server.says(RULE, (200, a_rule()))
    server.says(f"PATCH {RULE}", (200, a_rule("NoExecute")))
    assert drain.evict() == ()
    ((_, _, body),) = server.sent
    assert body == {
        "metadata": {"uid": "r1", "resourceVersion": "7"},
        "spec": {"taint": {"effect": "NoExecute"}},
    }


def test_pods_that_stay_when_the_time_is_over_are_named(server: Server):
    drain = a_drain(server, seconds=5.0)
    device = {"driver": GPUS, "pool": "n1", "device": "gpu-0"}
    claim = {
        "metadata": {"name": "c", "namespace": "ml"},
        "status": {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"resource": "pods", "name": "late", "uid": "1"}],
        },
    }
    spec = {"nodeName": "n1", "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    pod = {"metadata": {"name": "late", "namespace": "ml", "uid": "1"}, "spec": spec}
    server.says(RULE, (200, a_rule("NoExecute")))
    server.says(f"{ROOT}/resourceclaims", (200, {"items": [claim]}))
    server.says("/api/v1/pods", (200, {"items": [pod]}))
    assert drain.evict() == ("ml/late",)


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "cluster-forbidden"), (409, "drain-refused"), (422, "drain-refused"), (500, "cluster-answer")],
)
def test_what_the_server_refuses_is_told(server: Server, status: int, code: str):
    drain = a_drain(server)
    server.says(RULE, (404, {}))
    server.says(f"POST {RULES}", (status, {"message": "no"}))
    with pytest.raises(ClusterError) as caught:
        list(drain.ask())
    assert codes(caught) == [code]


def test_a_name_leads_to_no_other_path(server: Server):
    rules = TaintRules(Account(name="test", server=server.url, user=User()), "v1", {})
    assert rules.get("../../api/v1/secrets") is None
    assert server.asked[-1][0] == f"{RULES}/..%2F..%2Fapi%2Fv1%2Fsecrets"


def test_pods_of_another_driver_in_a_pool_of_the_same_name_are_not_counted(server: Server):
    device = {"driver": GPUS, "pool": "n1", "device": "gpu-0"}
    claim = {
        "metadata": {"name": "c", "namespace": "ml"},
        "status": {
            "allocation": {"devices": {"results": [device]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "1"}],
        },
    }
    spec = {"nodeName": "n1", "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
    pod = {"metadata": {"name": "p", "namespace": "ml", "uid": "1"}, "spec": spec}
    for path, items in (
        (f"{ROOT}/resourceslices", SLICES),
        (RULES, []),
        (f"{ROOT}/resourceclaims", [claim]),
        ("/api/v1/pods", [pod]),
    ):
        server.says(path, (200, {"items": items}))
    counts = look(server.reader(), "n1").counts
    assert counts == {f"drain-{GPUS}-n1": 1, f"drain-{IMEX}-n1": 0}
