"""Scenarios of the generator that the allocator is compared by: as many of its clusters as an API server takes."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from tests.support.allocator.cases import defaults_of, draw_case
from tests.support.allocator.claims import claims_of
from tests.support.scheduler.objects import DRA, claim, node, pod
from tests.support.scheduler.scenario import Scenario
from tools.cluster import Api, ApiError, Manifest

PODS: Final = 5
WAITED_FOR: Final = ("bindingConditions", "bindingFailureConditions")


def draw(random: Random, api: Api, minor: str) -> Scenario:
    """A cluster with nothing allocated, and pods of one or two claims each; parts that the server refuses are drawn again."""
    while True:
        case = draw_case(random, minor)
        if set(case.release.gates) != set(defaults_of(minor)):
            continue
        slices = [_complete(_without_waiting(each), "ResourceSlice") for each in case.slices]
        for number, each in enumerate(slices):
            each["metadata"]["name"] += f"-{number}"
        if all(_is_taken(api, each) for each in slices):
            break
    claims: list[Manifest] = []
    pods = []
    for number in range(PODS):
        names = []
        for each in claims_of(random, case.variant):
            made = claim(f"p{number}-{each['metadata']['name']}", each["spec"])
            # What names a class that is not there is not decided by us: it may come.
            if '"ghost"' not in json.dumps(made) and _is_taken(api, made):
                names.append(made["metadata"]["name"])
                claims.append(made)
        if names:
            pods.append(pod(f"p{number}", claims=names))
    return Scenario(
        name="adversarial",
        fleet=(
            *(_complete(each, "DeviceClass") for each in case.classes),
            *(node(each["metadata"]["name"], labels=each["metadata"]["labels"]) for each in case.nodes),
            *slices,
        ),
        objects=tuple(claims),
        pods=tuple(pods),
        pinned=False,
    )


def _without_waiting(manifest: dict[str, Any]) -> dict[str, Any]:
    """Without conditions that a pod's binding would wait for: nobody sets them here."""
    devices = [
        {key: value for key, value in each.items() if key not in WAITED_FOR}
        for each in manifest["spec"].get("devices", ())
    ]
    return {**manifest, "spec": {**manifest["spec"], **({"devices": devices} if devices else {})}}


def _complete(manifest: dict[str, Any], kind: str) -> Manifest:
    return {"apiVersion": DRA, "kind": kind, **manifest, "metadata": dict(manifest["metadata"])}


def _is_taken(api: Api, manifest: Manifest) -> bool:
    try:
        api.create(manifest, dry_run=True)
    except ApiError as error:
        if error.reason != "Invalid" and error.status != 400:
            raise
        return False
    return True
