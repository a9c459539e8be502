from __future__ import annotations

from pathlib import Path

from dra_infra.cli.cluster import describe_status
from dra_infra.cluster.status import Seen, draw_dot, draw_mermaid, draw_tree, find_graph, find_status
from tests.support.cluster.samples import GPU, claim, pod, slice_of

REFUSED = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
SEEN = Seen(
    claims=[
        claim("shared", f"{GPU}/n1/gpu-0", pods=["p", "q"]),
        claim("kept", f"{GPU}/n1/gpu-1"),
        claim("wants"),
        claim("unused"),
        claim("looks", f"{GPU}/n1/gpu-1", pods=["p"], adminAccess=True),
    ],
    pods=[
        pod("p", claims=["shared", "looks"]),
        pod("q", claims=["shared"]),
        pod("w", "Pending", claims=["wants"], conditions=[REFUSED]),
        pod("early", "Pending", templates=["large"]),
    ],
    slices=[slice_of("n1", "gpu-0", "gpu-1", "gpu-2")],
    events=[
        {
            "involvedObject": {"uid": "uid-early"},
            "reason": "FailedResourceClaimCreation",
            "message": "no template",
            "lastTimestamp": "2026-01-02T00:00:00Z",
        },
        {
            "involvedObject": {"uid": "uid-early"},
            "reason": "Old",
            "message": "old",
            "lastTimestamp": "2026-01-01T00:00:00Z",
        },
    ],
)


def test_claims_have_their_devices_nodes_and_consumers() -> None:
    found = {each.name: each for each in find_status(SEEN).claims}
    shared = found["shared"]
    assert (shared.state, shared.node, shared.consumers) == ("in use", "n1", ("Pod p", "Pod q"))
    assert [(str(each), each.device_class) for each in shared.devices] == [(f"{GPU}/n1/gpu-0", GPU)]
    assert found["kept"].state == "allocated"
    assert (found["wants"].state, found["wants"].classes) == ("pending", (GPU,))


def test_a_pod_that_is_done_uses_no_claim() -> None:
    claims = [claim("mine", f"{GPU}/n1/gpu-0", pods=["p"]), claim("ours", f"{GPU}/n1/gpu-1", pods=["p", "q"])]
    found = find_status(Seen(claims=claims, pods=[pod("p", "Succeeded"), pod("q")]))
    assert [(each.state, each.consumers) for each in found.claims] == [
        ("allocated", ()),
        ("in use", ("Pod q",)),
    ]


def test_why_a_claim_waits_is_told_in_the_words_of_the_cluster() -> None:
    found = find_status(SEEN)
    reasons = {each.name: each.reasons for each in found.claims}
    assert reasons["wants"] == ("Pod w: 0/1 nodes are available",)
    assert reasons["unused"] == ("no pod uses it",)
    assert reasons["shared"] == ()
    (early,) = found.waiting
    assert (early.name, early.wants) == ("early", ("template large",))
    assert early.reasons == ("Pod early: FailedResourceClaimCreation: no template",)


def test_a_device_that_is_only_looked_at_is_not_taken() -> None:
    found = find_status(SEEN)
    assert (found.published, found.taken) == ({GPU: 3}, {GPU: 2})
    only = Seen(claims=SEEN.claims[4:], slices=SEEN.slices)
    assert find_status(only).taken == {GPU: 0}


def test_the_text_has_a_line_for_each_claim_and_a_count() -> None:
    lines = list(describe_status(find_status(SEEN)))
    assert f"ml/shared  in use     n1  {GPU}/n1/gpu-0          Pod p and Pod q" in lines
    assert "5 claims: 1 allocated, 2 in use and 2 pending" in lines
    assert f"{GPU}: 2 of 3 devices taken" in lines


def test_the_page_shows_what_is_printed() -> None:
    refused = {**REFUSED, "message": "0/2 nodes are available: 2 cannot allocate all claims."}
    serve = claim("serve-1-gpu", f"{GPU}/node-0/gpu-0", f"{GPU}/node-0/gpu-1", pods=["serve-1"])
    seen = Seen(
        claims=[claim("large-6c9-gpu"), serve],
        pods=[pod("large-6c9", "Pending", claims=["large-6c9-gpu"], conditions=[refused])],
        slices=[slice_of(f"node-{index}", *(f"gpu-{number}" for number in range(8))) for index in range(2)],
    )
    page = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text()
    assert "\n".join(["```", *describe_status(find_status(seen)), "```"]) in page


def test_the_tree_leads_from_pods_to_devices() -> None:
    lines = list(draw_tree(find_graph(find_status(SEEN), SEEN.pods)))
    first = lines.index("Pod ml/q (Running on n1)")
    assert lines[first : first + 4] == [
        "Pod ml/q (Running on n1)",
        "└─ ResourceClaim ml/shared (in use)",
        f"   └─ DeviceClass {GPU}, request r0",
        f"      └─ {GPU}/n1/gpu-0",
    ]
    assert "└─ ResourceClaim of template large (not made yet)" in lines
    assert "ResourceClaim ml/kept (allocated)" in lines


def test_pictures_quote_what_they_show() -> None:
    graph = find_graph(find_status(Seen(pods=[pod('a"<b>', claims=["x"])])), [pod('a"<b>', claims=["x"])])
    assert '  n0["Pod ml/a&quot;&lt;b> (Running on n1)"]' in list(draw_mermaid(graph))
    assert '  n0 [label="Pod ml/a\\"<b> (Running on n1)", shape=box];' in list(draw_dot(graph))
    assert "  n0 -> n1;" in list(draw_dot(graph))
