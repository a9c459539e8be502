"""What a snapshot says of kinds of which it holds no object: that they were read, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from dra_infra.answers.explaining import seen_objects
from dra_infra.catalog import load_snapshot
from dra_infra.catalog.snapshot_headers import find_read_kinds, find_server_version
from dra_infra.client.kinds import SNAPSHOT
from dra_infra.cluster.capture import capture
from dra_infra.cluster.pending import ask_running
from dra_infra.explanation.asking import ClusterContext
from dra_infra.output.secrets import SecretMask
from dra_infra.placement.running import Running
from dra_infra.target import ClusterTarget
from tests.unit.cluster.conftest import Server

HEAD = "# A snapshot of a cluster, by dra-infra 0.1.0. Plain objects.\n"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "16", "pods": "110"}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ml", "uid": "u"},
    "spec": {"containers": [{"name": "c"}]},
    "status": {"phase": "Pending"},
}


def a_header(*kinds: str) -> str:
    """The head of a snapshot that read these kinds."""
    return HEAD + "".join(f"#   {each}: 12\n" for each in kinds)


def text_of(header: str, *objects: dict[str, Any]) -> str:
    """A snapshot."""
    return "---\n".join([header, *(yaml.safe_dump(each) for each in objects)])


def a_pod(**entry: str) -> dict[str, Any]:
    """Pod ml/p with an entry for a claim."""
    return {**POD, "spec": {**POD["spec"], "resourceClaims": [{"name": "g", **entry}]}}


def codes_of(text: str) -> list[str]:
    """The codes of the causes why pod ml/p of a snapshot waits."""
    snapshot = load_snapshot([text])
    seen = seen_objects(snapshot.objects, snapshot.read)
    (release,) = ClusterTarget(kubernetes="1.37").releases
    asked = ask_running(seen.pods[0], ClusterContext(fleet=snapshot.fleet, release=release), seen)
    return [each.code for each in asked.causes]


@pytest.mark.parametrize(
    ("header", "kinds"),
    [
        (a_header("nodes", "pods"), {"nodes", "pods"}),
        (HEAD + "# Of namespaces: ml, dev\n#   pods: ml: 1, dev: 2\n", {"pods"}),
        (HEAD + "#   devicetaintrules: 7, read as v1beta2\n", {"devicetaintrules"}),
        (HEAD + "#   pods: 3\n# not seen: localqueues [kind-not-served]\n", {"pods", "localqueues"}),
        (HEAD + "# not seen: pods [cluster-forbidden]\n", set()),
        ("#   pods: 3\n", set()),
        ("", set()),
        (HEAD + "apiVersion: v1\n#   pods: 3\n", set()),
    ],
)
def test_the_head_of_a_snapshot_names_the_kinds_that_were_read(header: str, kinds: set[str]):
    assert find_read_kinds(header) == kinds


def test_a_snapshot_that_is_written_names_all_kinds_that_were_read(server: Server):
    for kind in SNAPSHOT:
        body = {"kind": f"{kind.name}List", "metadata": {"resourceVersion": "1"}, "items": []}
        if kind.name == "Node":
            body["items"] = [NODE]
        server.says(kind.path(kind.versions[0]), (200, body))
    text = capture(server.reader(), mask=SecretMask(), made_by="test").text
    assert find_read_kinds(text) == {each.plural for each in SNAPSHOT}
    assert load_snapshot([text]).read == {each.plural for each in SNAPSHOT}


@pytest.mark.parametrize(
    ("read", "entry", "codes"),
    [
        (["resourceclaimtemplates"], {"resourceClaimTemplateName": "t"}, ["claim-not-known"]),
        ([], {"resourceClaimTemplateName": "t"}, ["claim-not-made"]),
        (["resourceclaims"], {"resourceClaimTemplateName": "t"}, ["claim-not-made"]),
        (["resourceclaims"], {"resourceClaimName": "c"}, ["claim-not-known"]),
        (["pods"], {"resourceClaimName": "c"}, []),
    ],
)
def test_what_was_read_and_is_not_in_a_snapshot_is_not_there(
    read: Sequence[str], entry: dict[str, str], codes: list[str]
):
    assert codes_of(text_of(a_header("pods", *read), NODE, a_pod(**entry))) == codes


@pytest.mark.parametrize("read", [[], ["pods"], ["resourceclaims"], ["pods", "resourceclaims"]])
def test_devices_of_a_snapshot_without_claims_are_free_for_certain_only_if_claims_were_read(read: list[str]):
    snapshot = load_snapshot([text_of(a_header("nodes", *read), NODE)])
    told = {each.name for each in Running.of(snapshot).not_counted}
    assert told == {"pods", "claims"} - {{"resourceclaims": "claims"}.get(each, each) for each in read}


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ((200, {"gitVersion": "v1.37.2+k3s1"}), "v1.37.2+k3s1"),
        ((200, {"gitVersion": "v1.37.2\n# Of namespaces: ml"}), ""),
        ((200, {"gitVersion": 5}), ""),
        ((403, {"message": "no"}), ""),
    ],
)
def test_a_snapshot_names_the_version_of_its_server(server: Server, answer: tuple[int, Any], version: str):
    server.says("/version", answer)
    server.says("/api/v1/nodes", (200, {"items": [NODE]}))
    text = capture(server.reader(), mask=SecretMask(), made_by="test").text
    assert find_server_version(text) == version
    assert load_snapshot([text]).server == version
