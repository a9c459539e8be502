"""Each row of the table of patches, shown by the binaries of the patch that has the behaviour and of the patch before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.api import DeviceTaint, DeviceTaintSelector, Release
from dra_infra.kubernetes.api.patches import PATCH_ROWS, PatchBehaviour
from dra_infra.kubernetes.scheduler import find_evictions
from dra_infra.kubernetes.scheduler.allocator.variants import choose_variant
from tests.support.allocator import known
from tests.support.allocator.answers import answers_of, find_difference
from tests.support.allocator.cases import Case, draw_case, release_of
from tests.support.parity.judge import Judge
from tools import build
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet
from tools.cluster.components import CONTROLLER_MANAGER
from tools.errors import ToolError

pytestmark = pytest.mark.e2e

GPUS = "gpu.nvidia.com"
POD, CLAIM, RULE = "v1/Pod", "resource.k8s.io/v1/ResourceClaim", "resource.k8s.io/v1/DeviceTaintRule"
KEY = "example.com/service"
WOULD = re.compile(r"(\d+) pods? would be evicted")
OVERFLOWING = ("counts_below_zero", "counts_that_wrap_to_zero", "counts_that_wrap_to_the_limit")
DRAWN = 300


def optional(name: str, toolset: str) -> Path:
    """A binary of an optional toolset; skips where it was not built."""
    try:
        return build.binary(name)
    except ToolError:
        pytest.skip(f"{name} is not built here: python -m tools.build --only {toolset}")


def at_patch(case: Case, patch: str) -> Case:
    """A case of 1.36 for another patch."""
    release = release_of(case.minor, sorted(case.release.gates), patch=patch)
    return replace(case, release=release, variant=choose_variant(release, asked=case.asked))


def test_both_allocators_of_1_36_do_with_counts_what_their_row_says(binaries: Callable[[str], Path]):
    newer_binary = optional("allocator-judge-1.36.5", "judges-1.36.5")
    random = Random("counts of two patches")  # noqa: S311  (cases, not secrets)
    cases = [build_case("1.36") for build_case in known.CASES.values()]
    cases += [draw_case(random, "1.36") for _ in range(DRAWN)]
    with ExitStack() as stack:
        older = stack.enter_context(Judge(binaries("allocator-judge-1.36")))
        newer = stack.enter_context(Judge(newer_binary))
        for patch, judge in (("1.36.4", older), ("1.36.5", newer)):
            asked = [at_patch(case, patch) for case in cases]
            theirs = judge.ask({"batch": [case.question() for case in asked]})
            assert [find_difference(case, answer) for case, answer in zip(asked, theirs, strict=True)] == [
                ""
            ] * len(cases)
    for name in OVERFLOWING:
        case = known.CASES[name]("1.36")
        assert answers_of(at_patch(case, "1.36.4")) != answers_of(at_patch(case, "1.36.5"))
        assert "exceeds the claim limit of 32" in answers_of(at_patch(case, "1.36.5"))[0]


def a_pod(name: str, node: str, *, extended: bool) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "registry.invalid/main:1"}
    spec: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    if extended:
        container["resources"] = {"limits": {f"deviceclass.resource.kubernetes.io/{GPUS}": "1"}}
    else:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": GPUS}}]}}},
}


def is_running(pod: dict[str, Any]) -> bool:
    return bool(pod["status"].get("phase") == "Running")


def says_how_many(rule: dict[str, Any]) -> bool:
    return any(WOULD.search(each.get("message", "")) for each in rule.get("status", {}).get("conditions", ()))


@pytest.fixture(scope="module", params=["1.37.1", "1.37.2"])
def patch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def api(patch: str, binaries: Callable[[str], Path]) -> Iterator[Api]:
    """A control plane with the controller manager of a patch; its other servers are those of 1.37.1."""
    manager = (
        binaries(CONTROLLER_MANAGER)
        if patch == "1.37.1"
        else optional(f"{CONTROLLER_MANAGER}-{patch}", f"kubernetes-{patch}")
    )

    def find(name: str) -> Path:
        return manager if name == CONTROLLER_MANAGER else binaries(name)

    with ControlPlane(binaries=find) as plane, NodeStandIn(plane.connection), plane.api() as api:
        create_fleet(api, load_fleet("hgx-h100").to_manifests())
        yield api


def test_both_controllers_of_1_37_evict_by_extended_resource_what_their_row_says(api: Api, patch: str):
    (node,) = (each["metadata"]["name"] for each in api.list("v1/Node"))
    api.create(TEMPLATE)
    for name in ("own", "bridged"):
        api.create(a_pod(name, node, extended=name == "bridged"))
        api.wait_until(POD, name, is_running, namespace="default")
    selector = {"driver": GPUS, "pool": node}
    found = list(
        find_evictions(
            DeviceTaint(key=KEY, effect="NoExecute"),
            [DeviceTaintSelector(driver=GPUS, pool=node)],
            pods=api.list(POD, namespace="default"),
            claims=api.list(CLAIM, namespace="default"),
            release=Release(minor="1.37", gates=frozenset(), patch=patch),
        )
    )
    going = {each.pod["metadata"]["name"] for each in found if not each.stays}
    assert going == ({"own"} if patch == "1.37.1" else {"own", "bridged"})

    # The controller says first how many it would delete: of a pod that stays there is nothing else to wait for.
    spec = {"deviceSelector": selector, "taint": {"key": KEY, "effect": "None"}}
    api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "r"},
            "spec": spec,
        }
    )
    rule = api.wait_until(RULE, "r", says_how_many)
    messages = " ".join(each.get("message", "") for each in rule["status"]["conditions"])
    assert [int(each) for each in WOULD.findall(messages)] == [len(going)]

    api.patch(RULE, "r", {"spec": {"taint": {"key": KEY, "effect": "NoExecute"}}})
    for name in going:
        api.wait_gone(POD, name, namespace="default")
    left = {each["metadata"]["name"] for each in api.list(POD, namespace="default")}
    assert left == {"own", "bridged"} - going


def test_every_row_is_shown_here():
    assert set(PATCH_ROWS) == {
        PatchBehaviour.REFUSES_OVERFLOWING_COUNTS,
        PatchBehaviour.EVICTS_BY_EXTENDED_RESOURCE,
    }
