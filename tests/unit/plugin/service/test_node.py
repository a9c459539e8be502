from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from google.protobuf.unknown_fields import UnknownFieldSet

from dra_infra.plugin.claims import Claim, Edits
from dra_infra.plugin.configs import ConfigDecoder
from dra_infra.plugin.locks import PreparationLock
from dra_infra.plugin.protocol import dra_v1_pb2
from dra_infra.plugin.service import node
from tests.support.plugin.kubelet import NODE, Connection
from tests.unit.plugin.faults import claim_of, uid_of
from tests.unit.plugin.service.served import Served, errors

V1 = NODE["v1"][0]
ONE, TWO, SHARED = claim_of(1, "gpu-0", "gpu-1"), claim_of(2, "gpu-2"), claim_of(3, "gpu-3", share="a")


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder, ONE, TWO, SHARED) as served:
        yield served


@pytest.fixture
def kubelet(served: Served) -> Iterator[Connection]:
    with Connection(served.path) as connection:
        yield connection


@pytest.mark.parametrize("version", NODE)
def test_a_claim_is_prepared_and_released_in_both_versions(served: Served, version: str):
    with Connection(served.path, version) as kubelet:
        [answer] = kubelet.prepare(ONE).values()
        assert answer.error == ""
        assert [(list(each.request_names), each.pool_name, each.device_name) for each in answer.devices] == [
            (["gpu"], "node-1", "gpu-0"),
            (["gpu"], "node-1", "gpu-1"),
        ]
        ids = [list(each.cdi_device_ids) for each in answer.devices]
        assert [len(each) for each in ids] == [1, 1]
        assert ids[0][0].startswith(f"k8s.gpu.example.com/claim={ONE.uid}-")
        assert served.node.check() == {ONE.uid}
        assert errors(kubelet.release(ONE)) == [""]
        assert errors(kubelet.release(ONE)) == [""]
    assert served.node.check() == frozenset()


def test_only_version_one_has_shares(served: Served):
    with Connection(served.path, "v1") as new, Connection(served.path, "v1beta1") as old:
        [with_share] = new.prepare(SHARED)[SHARED.uid].devices
        [without] = old.prepare(SHARED)[SHARED.uid].devices
        [alone] = new.prepare(TWO)[TWO.uid].devices
    assert with_share.share_id == "a"
    assert not alone.HasField("share_id")
    assert not len(UnknownFieldSet(without))
    assert list(without.cdi_device_ids) == list(with_share.cdi_device_ids)


def test_a_bad_claim_fails_alone(served: Served, kubelet: Connection):
    held = claim_of(4, "gpu-2")
    served.api.claims[held.uid] = held
    found = kubelet.prepare(ONE, claim_of(9, "gpu-7"), TWO, held)
    assert found.keys() == {ONE.uid, uid_of(9), TWO.uid, held.uid}
    assert (found[ONE.uid].error, found[TWO.uid].error) == ("", "")
    assert not found[uid_of(9)].devices
    assert found[uid_of(9)].error == "there is no such claim [claim-gone] (look again)"
    assert found[held.uid].error == (
        "device node-1/gpu-2: is prepared for ResourceClaim ml/claim-2 [device-held] "
        "(the kubelet asks again when that claim's pods are gone; if it stays so, look for them)"
    )
    assert served.node.check() == {ONE.uid, TWO.uid}
    assert sorted(served.notes.done) == [
        ("prepare", "claim-1", []),
        ("prepare", "claim-2", []),
        ("prepare", "claim-4", ["device-held"]),
        ("prepare", "claim-9", ["claim-gone"]),
    ]


def test_what_nobody_expected_is_an_error_of_the_claim_and_the_service_goes_on(
    served: Served, kubelet: Connection
):
    served.api.before = lambda: {}["x" * 5000]
    [text] = errors(kubelet.prepare(ONE))
    assert text.startswith("the node plugin: nobody expected this: KeyError: 'xxx")
    assert len(text) == node.LONGEST
    served.api.before = lambda: None
    assert errors(kubelet.prepare(ONE)) == [""]
    assert served.notes.done[0] == ("prepare", "claim-1", ["plugin-failed"])
    assert [type(each) for each in served.notes.causes] == [KeyError]


def test_an_error_with_half_a_letter_fails_its_own_claim_alone(served: Served, kubelet: Connection):
    # From a field's name in a claim's parameters, which servers store as they are.
    odd = replace(ONE, devices=(replace(ONE.devices[0], configs=(json.dumps({"kind": "\ud800"}),)),))
    served.api.claims[ONE.uid] = odd

    def decode(claim: Claim) -> Sequence[Edits]:
        ConfigDecoder("gpu.nvidia.com").decode(claim, lambda _: "gpu")
        return [Edits(env=("A=1",))]

    served.node.devices.prepare = decode
    found = kubelet.prepare(ONE, TWO)
    assert "[config-kind-not-known]" in found[ONE.uid].error
    assert found[TWO.uid].error == ""


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        (replace(ONE, uid="../../../etc/passwd"), "invalid-claim-uid"),
        (replace(ONE, uid=""), "invalid-claim-uid"),
        (replace(ONE, uid=ONE.uid.upper()), "invalid-claim-uid"),
        (replace(ONE, uid=ONE.uid + "\n"), "invalid-claim-uid"),
        (replace(ONE, uid="a" * 50_000), "invalid-claim-uid"),
        (replace(ONE, namespace=".."), "invalid-claim-name"),
        (replace(ONE, namespace="a/b"), "invalid-claim-name"),
        (replace(ONE, namespace="n" * 64), "invalid-claim-name"),
        (replace(ONE, namespace=""), "invalid-claim-name"),
        (replace(ONE, name="../x"), "invalid-claim-name"),
        (replace(ONE, name="x\0y"), "invalid-claim-name"),
        (replace(ONE, name="x" * 254), "invalid-claim-name"),
        (replace(ONE, name="ok/../../status"), "invalid-claim-name"),
    ],
)
def test_names_that_no_api_server_makes_are_refused_before_anything_is_asked_or_written(
    served: Served, kubelet: Connection, claim, code: str
):
    served.api.before = lambda: pytest.fail("the API server was asked")
    before = sorted(served.path.parent.rglob("*"))
    for call in (kubelet.prepare, kubelet.release):
        found = call(claim)
        assert list(found) == [claim.uid]
        assert f"[{code}]" in found[claim.uid].error
        assert len(found[claim.uid].error) <= node.LONGEST
    assert sorted(served.path.parent.rglob("*")) == before
    assert all(len(name) <= 253 for _, name, _ in served.notes.done)


def test_two_claims_with_one_uid_are_refused_and_one_named_twice_is_prepared(
    served: Served, kubelet: Connection
):
    found = kubelet.prepare(ONE, replace(ONE, name="other"), TWO, TWO)
    assert "'ml/claim-1', 'ml/other' [invalid-claim-name]" in found[ONE.uid].error
    assert found[TWO.uid].error == ""
    assert served.node.check() == {TWO.uid}


def status_of(kubelet: Connection, request: bytes, method: str = f"{V1}/NodePrepareResources"):
    with pytest.raises(grpc.RpcError) as caught:
        kubelet.raw(method, request)
    return caught.value.code()


def test_bytes_that_are_no_request_are_refused_and_the_service_goes_on(served: Served, kubelet: Connection):
    good = dra_v1_pb2.NodePrepareResourcesRequest(
        claims=[dra_v1_pb2.Claim(namespace="ml", uid=ONE.uid, name="claim-1")]
    ).SerializeToString()
    no_text = b"\x0a\x04\x12\x02\xff\xfe"
    for request in (good[:-1], b"\xff" * 100, no_text):
        assert status_of(kubelet, request) == grpc.StatusCode.INVALID_ARGUMENT
    assert served.notes.refused == [f"{V1}/NodePrepareResources"] * 3
    assert status_of(kubelet, b"\0" * (2**20)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert status_of(kubelet, good, f"{V1}/Other") == grpc.StatusCode.UNIMPLEMENTED
    assert kubelet.raw(f"{V1}/NodePrepareResources", b"") == b""
    assert served.node.check() == frozenset()
    assert kubelet.raw(f"{V1}/NodePrepareResources", good)
    assert served.node.check() == {ONE.uid}


def test_a_request_with_more_claims_than_a_pod_has_is_refused_as_a_whole(served: Served, kubelet: Connection):
    many = [claim_of(number, "gpu-0") for number in range(300)]
    with pytest.raises(grpc.RpcError) as caught:
        kubelet.prepare(*many)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "300 claims, and 256" in caught.value.details()
    assert not served.notes.done


def test_sixteen_callers_at_once_get_the_same_answer_for_one_claim(served: Served):
    def ask(_: int) -> list[str]:
        with Connection(served.path) as kubelet:
            [answer] = kubelet.prepare(ONE).values()
            assert answer.error == ""
            return [cdi_id for device in answer.devices for cdi_id in device.cdi_device_ids]

    with ThreadPoolExecutor(16) as callers:
        [first, *others] = callers.map(ask, range(16))
    assert others == [first] * 15
    assert served.node.check() == {ONE.uid}


def test_a_claim_whose_call_is_out_of_time_is_not_begun(served: Served, kubelet: Connection):
    # The first claim takes all the time that the caller has; the caller goes, and may release both claims.
    gone, seen = threading.Event(), threading.Semaphore(0)

    def slow() -> None:
        seen.release()
        assert gone.wait(60)

    served.api.before = slow
    for seconds in (0.2, 2.0, 20.0):
        with pytest.raises(grpc.RpcError) as caught:
            kubelet.prepare(ONE, TWO, timeout=seconds)
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        # On a busy machine a call is out of time before it has come to anybody.
        if seen.acquire(timeout=seconds):
            break
    else:
        pytest.fail("no call was seen")
    # The server's own time begins when the call comes, and ends later than the caller's. What is asked behind the end of a call
    # on the same connection comes behind it.
    assert kubelet.raw(f"{V1}/NodePrepareResources", b"") == b""
    gone.set()
    served.api.before = lambda: None
    assert errors(kubelet.release(ONE, TWO)) == ["", ""]
    assert served.server.stop(60)
    codes = {name: codes for kind, name, codes in served.notes.done if kind == "prepare"}
    assert codes == {"claim-1": ["call-out-of-time"], "claim-2": ["call-out-of-time"]}
    assert served.node.check() == frozenset()


def test_a_claim_whose_caller_went_is_not_begun(served: Served, kubelet: Connection):
    # A pod that is deleted while it starts: the kubelet cancels its call, and releases before we have read the claim.
    began, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        began.set()
        assert go_on.wait(60)

    served.api.before = slow
    call = kubelet.begin_to_prepare(ONE)
    assert began.wait(60)
    call.cancel()
    assert errors(kubelet.release(ONE)) == [""]
    go_on.set()
    assert served.server.stop(60)
    assert ("prepare", "claim-1", ["call-out-of-time"]) in served.notes.done
    assert served.node.check() == frozenset()


def test_a_claim_whose_caller_went_while_it_waited_for_its_turn_is_not_begun(
    served: Served, kubelet: Connection
):
    read = threading.Event()
    served.api.before = read.set
    with PreparationLock(served.node.claims / "lock").acquire():
        call = kubelet.begin_to_prepare(ONE)
        assert read.wait(60)
        call.cancel()
        # What is asked behind it on the same connection comes behind it.
        assert kubelet.raw(f"{V1}/NodePrepareResources", b"") == b""
    assert served.server.stop(60)
    assert served.notes.done == [("prepare", "claim-1", ["call-out-of-time"])]
    assert served.node.check() == frozenset()


def test_calls_wait_for_a_thread_and_none_is_lost(folder: Path):
    claims = [claim_of(number, f"gpu-{number}") for number in range(64)]
    with Served(folder, *claims, threads=2) as served, Connection(served.path) as kubelet:
        with ThreadPoolExecutor(64) as callers:
            found = list(callers.map(kubelet.prepare, claims))
        assert [errors(each) for each in found] == [[""]] * 64
        assert served.node.check() == {each.uid for each in claims}
