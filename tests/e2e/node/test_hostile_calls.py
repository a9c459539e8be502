"""What reaches the sockets without being a kubelet's call: refused, and nothing is written outside of the plugin's folders."""

from __future__ import annotations

import concurrent.futures
import random
import socket
from collections import Counter

import grpc
import pytest

from dra_infra.plugin.claims import ClaimReference
from dra_infra.plugin.protocol import dra_v1_pb2
from tests.support.node.invariants import settled
from tests.support.node.workloads import CLAIM

pytestmark = pytest.mark.e2e

PREPARE = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
RELEASE = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources"
REFUSALS = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
}
CALLERS = 16
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def claim(claims):
    """A claim that a pod has."""
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.wait_running("pod")
    return reference(claims.api.get(CLAIM, "one", namespace=claims.namespace))


def reference(claim, **changes):
    metadata = {**claim["metadata"], **changes}
    return ClaimReference(namespace=metadata["namespace"], name=metadata["name"], uid=metadata["uid"])


def is_refused(call, claim):
    try:
        return bool(call(claim)[claim.uid].error)
    except grpc.RpcError as error:
        return error.code() in REFUSALS


def answer_to(kubelet, method, content):
    """The code of the refusal, or None."""
    try:
        kubelet.raw(method, content)
    except grpc.RpcError as error:
        return error.code()
    return None


def files_of(node):
    """Every file of the node that is not a pod's or a runtime's."""
    roots = [node.kubelet_root / "plugins", node.kubelet_root / "plugins_registry", node.cdi_folder]
    beside = [path for path in node.folder.iterdir() if path.is_file()]
    return {str(path) for root in roots for path in root.rglob("*")} | {str(path) for path in beside}


def test_one_claim_that_many_ask_for_at_once_is_prepared_once(claim, plugin, node_api, real_node):
    def ask(_):
        with plugin.called() as kubelet:
            answer = kubelet.prepare(claim)[claim.uid]
            assert not answer.error
            return [tuple(device.cdi_device_ids) for device in answer.devices]

    with concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
        answers = list(callers.map(ask, range(CALLERS)))
    assert answers == [answers[0]] * CALLERS
    assert len(answers[0]) == 1
    assert settled(node_api, real_node) == {claim.uid}


@pytest.mark.parametrize(
    "uid",
    [
        "",
        "../../../../etc/cron.d/evil",
        "/etc/evil",
        "a" * 300,
        f"{UNKNOWN}/../../evil",
        f"{UNKNOWN}\n",
        UNKNOWN.upper().replace("0", "A"),
        ".",
    ],
)
def test_uid_that_is_none_is_refused(claim, plugin, real_node, uid):
    before = files_of(real_node)
    wrong = ClaimReference(namespace=claim.namespace, name=claim.name, uid=uid)
    with plugin.called() as kubelet:
        assert is_refused(kubelet.prepare, wrong)
        assert is_refused(kubelet.release, wrong)
    assert files_of(real_node) == before


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("..", "one"), ("default/../..", "x"), ("", ""), ("a b", "c?d"), ("ml", "x" * 5000), ("%2e%2e", "%00")],
)
def test_names_that_are_no_claims_are_refused(claim, plugin, real_node, namespace, name):
    before = files_of(real_node)
    with plugin.called() as kubelet:
        assert is_refused(kubelet.prepare, ClaimReference(namespace=namespace, name=name, uid=UNKNOWN))
    assert files_of(real_node) == before


def test_claim_of_another_uid_is_refused_and_the_other_one_stays(claim, plugin, node_api, real_node):
    wrong = ClaimReference(namespace=claim.namespace, name=claim.name, uid=UNKNOWN)
    with plugin.called() as kubelet:
        answers = kubelet.prepare(wrong, claim)
    assert answers[UNKNOWN].error
    assert not answers[claim.uid].error
    assert settled(node_api, real_node) == {claim.uid}


def test_claim_that_no_pod_has_is_refused(claims, plugin):
    unused = reference(claims.claim("unused"))
    with plugin.called() as kubelet:
        assert kubelet.prepare(unused)[unused.uid].error


def test_bytes_that_are_no_request_are_refused(claim, plugin, node_api, real_node):
    before = files_of(real_node)
    request = dra_v1_pb2.NodePrepareResourcesRequest(
        claims=[dra_v1_pb2.Claim(namespace=claim.namespace, name=claim.name, uid=claim.uid)]
    ).SerializeToString()
    drawn = random.Random(1)  # noqa: S311 - drawn, not secret.
    garbage = [drawn.randbytes(drawn.randint(1, 2000)) for _ in range(100)]
    cut = [request[:length] for length in range(1, len(request))]
    huge = [b"\x0a\xff\xff\xff\xff\x0f" + b"x" * 1000, b"x" * 20_000_000]
    answers = Counter()
    with plugin.called() as kubelet:
        for content in [*garbage, *cut, *huge]:
            for method in (PREPARE, RELEASE):
                answers[answer_to(kubelet, method, content)] += 1
        with pytest.raises(grpc.RpcError) as caught:
            kubelet.raw("k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/Nothing", b"")
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        assert not kubelet.prepare(claim)[claim.uid].error
    assert answers.keys() <= {None, *REFUSALS}
    # Some bytes happen to be a request, of nothing that we know.
    assert answers[None] < len(garbage) < answers.total()
    assert files_of(real_node) == before
    assert settled(node_api, real_node) == {claim.uid}


def test_connections_that_say_nothing_keep_nobody_out(claim, plugin):
    silent = [socket.socket(socket.AF_UNIX) for _ in range(200)]
    try:
        for one in silent:
            one.connect(str(plugin.socket))
        silent[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
        with plugin.called() as kubelet:
            assert not kubelet.prepare(claim)[claim.uid].error
    finally:
        for one in silent:
            one.close()
