"""A drain step by step, against a server on loopback that stands in for the API server and its eviction controller."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.client.kubeconfig import Account, User
from dra_infra.client.taint_rules import TaintRules
from dra_infra.cluster import reading
from dra_infra.cluster.draining import Drain, Part, find_ours, find_parts, look
from dra_infra.errors import ClusterError
from dra_infra.kubernetes.api.names import is_dns_subdomain
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


def a_pod(name: str, claim: str = "c", *, is_deleted: bool = False, **status: Any) -> dict[str, Any]:
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_deleted else {}
    claims = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
    return {
        "metadata": {"name": name, "namespace": "ml", "uid": name, **deleted},
        "spec": {"nodeName": "n1", "resourceClaims": claims},
        "status": status,
    }


def a_claim(pod: str, name: str = "c") -> dict[str, Any]:
    """A claim of n1/gpu-0 that was made for a pod."""
    return {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "ownerReferences": [{"kind": "Pod", "uid": pod, "controller": True}],
        },
        "status": {
            "allocation": {"devices": {"results": [{"driver": GPUS, "pool": "n1", "device": "gpu-0"}]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": pod}],
        },
    }


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


@pytest.mark.parametrize("target", ["", " "])
def test_an_empty_target_is_nobody_s_device_and_no_rule_is_given_back(server: Server, target: str):
    for found in (lambda: find_parts(target, SLICES), lambda: find_ours(server.reader(), target)):
        with pytest.raises(ClusterError) as caught:
            found()
        assert [(each.path, each.code) for each in caught.value.problems] == [("TARGET", "subject-not-known")]
    assert server.asked == []


def test_a_node_means_its_own_devices_of_a_pool_that_has_those_of_others_too():
    slices = [
        a_slice(a_device("of-a"), pool="rack", node="a"),
        a_slice(a_device("of-b"), pool="rack", node="b"),
        a_slice({**a_device("x"), "nodeName": "a"}, a_device("y"), pool="each", node=""),
        a_slice(a_device("own"), pool="a-0", node="a"),
        a_slice(a_device("beside-nothing"), pool="grows", node="a"),
        a_slice(pool="grows", node="b"),
    ]
    parts = {target: [str(each) for each in find_parts(target, slices)] for target in ("a", "b", "rack")}
    assert parts["a"] == ["a-0", "each/x", "grows/beside-nothing", "rack/of-a"]
    assert parts["b"] == ["rack/of-b"]
    assert parts["rack"] == ["rack"]


def test_the_name_of_a_rule_is_one_whatever_the_pool_is_called():
    name = Part(driver="a.example.com", pool="Rack/A_1").rule_name
    assert name == "drain-a.example.com-rack-a-1-e5172439"


def test_no_two_devices_have_a_rule_of_one_name():
    long = "/".join(["x" * 62] * 4)
    parts = [
        Part(driver=GPUS, pool="rack/a"),
        Part(driver=GPUS, pool="rack-a"),
        Part(driver=GPUS, pool="rack", device="a/"),
        *(Part(driver=GPUS, pool=long, device=f"gpu-{number}") for number in range(2)),
    ]
    names = {each.rule_name for each in parts}
    assert len(names) == len(parts)
    assert all(is_dns_subdomain(name) for name in names)
    assert f"drain-{GPUS}-rack-a" in names


def a_rule(
    effect: str = "None",
    *,
    ours: bool = True,
    said: str = "",
    target: str = "n1/gpu-0",
    device: str = "gpu-0",
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
        "spec": {
            "deviceSelector": {"driver": GPUS, "pool": "n1", "device": device},
            "taint": {"key": "dra-infra/drain", "effect": effect},
        },
        "status": {"conditions": [condition] if said else []},
    }


def a_drain(server: Server, *, patch: str = "1.37.1", **more: Any) -> Drain:
    """One of n1/gpu-0, which no pod has, with a clock that goes on as it waits."""
    server.says("/version", (200, {"gitVersion": f"v{patch}"}))
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
    return Drain(preview, rules, server.session(), clock=lambda: now[0], sleep=sleep, **more)


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


@pytest.mark.parametrize("there", [a_rule(ours=False), a_rule(target="n1"), a_rule(device="gpu-1")])
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
    holds(server, a_pod("late"))
    assert drain.evict() == ("ml/late",)


def holds(server: Server, *looks: dict[str, Any] | None) -> None:
    """A rule that evicts, and n1/gpu-0 with the pod of each of *looks*, of which the last is for ever; None is nobody."""
    server.says(RULE, (200, a_rule("NoExecute")))
    (name,) = {each["metadata"]["name"] for each in looks if each}
    server.says(f"{ROOT}/resourceclaims", (200, {"items": [a_claim(name)]}))
    server.says("/api/v1/pods", *((200, {"items": [each] if each else []}) for each in looks))


@pytest.mark.parametrize("came", [True, False], ids=["came late", "before the look"])
def test_who_is_being_deleted_has_its_devices_until_it_is_gone(server: Server, *, came: bool):
    told: list[str] = []
    drain = a_drain(server, tell=told.append)
    holds(server, *([a_pod("p")] if came else []), a_pod("p", is_deleted=True), None)
    assert drain.evict() == ()
    assert told == ["waiting for 1 pod to be gone"] * (1 + came)


BRIDGE = {"extendedResourceClaimStatus": {"resourceClaimName": "c"}}


@pytest.mark.parametrize(
    ("version", "stays"),
    [
        ("v1.37.1", True),
        ("v1.36.5-gke.1000", True),
        ("v1.37.2+k3s1", False),
        ("v1.99.0", False),
        ("", False),
    ],
)
def test_the_server_s_patch_decides_who_stays_by_an_extended_resource(
    server: Server, version: str, *, stays: bool
):
    server.says("/version", (200, {"gitVersion": version}) if version else (403, {"message": "no"}))
    for kind, items in (
        ("resourceslices", [a_slice(a_device("gpu-0"))]),
        ("devicetaintrules", []),
        ("resourceclaims", [a_claim("b")]),
    ):
        server.says(f"{ROOT}/{kind}", (200, {"items": items}))
    server.says("/api/v1/pods", (200, {"items": [a_pod("b", "", **BRIDGE)]}))
    preview = look(server.reader(), "n1/gpu-0")
    assert preview.pods == (() if stays else ("ml/b",))
    assert [each.stays for each in preview.evictions] == [stays]
    assert set(preview.counts.values()) == {0 if stays else 1}


def test_from_1_37_2_on_nobody_stays_by_an_extended_resource(server: Server):
    drain = a_drain(server, patch="1.37.2")
    holds(server, a_pod("b", "", **BRIDGE), None)
    assert (drain.evict(), drain.staying) == ((), ())


def test_who_stays_by_an_extended_resource_is_told_until_it_is_deleted(server: Server):
    bridge = BRIDGE
    drain = a_drain(server, seconds=5.0)
    holds(server, a_pod("b", "", **bridge))
    assert (drain.evict(), drain.staying) == ((), ("ml/b",))
    holds(server, a_pod("b", "", is_deleted=True, **bridge))
    assert (drain.evict(), drain.staying) == (("ml/b",), ())


@pytest.mark.parametrize("path", ["/api/v1/pods", f"{ROOT}/resourceclaims"])
def test_what_may_not_be_listed_any_more_is_not_taken_for_gone(server: Server, path: str):
    drain = a_drain(server)
    holds(server, a_pod("p"))
    server.says(path, (403, {"message": "no"}))
    with pytest.raises(ClusterError) as caught:
        drain.evict()
    assert codes(caught) == ["cluster-forbidden"]


def test_the_bounds_of_lists_are_for_one_look_however_long_is_waited(
    server: Server, monkeypatch: pytest.MonkeyPatch
):
    drain = a_drain(server)
    holds(server, *[a_pod("p")] * 5, None)
    monkeypatch.setattr(reading, "MOST_PAGES", 2)
    assert drain.evict() == ()


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
    for path, items in (
        (f"{ROOT}/resourceslices", SLICES),
        (RULES, []),
        (f"{ROOT}/resourceclaims", [a_claim("p")]),
        ("/api/v1/pods", [a_pod("p")]),
    ):
        server.says(path, (200, {"items": items}))
    counts = look(server.reader(), "n1").counts
    assert counts == {f"drain-{GPUS}-n1": 1, f"drain-{IMEX}-n1": 0}
