"""MIG devices that the driver makes when claims need them."""

from __future__ import annotations

import pytest

from tests.support.node.workloads import request

pytestmark = pytest.mark.e2e

FLEET = "hgx-h100 dynamic-mig"


def mig(profile, **fields):
    expression = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
    return request(device_class="mig.nvidia.com", selectors=[{"cel": {"expression": expression}}], **fields)


def made(plugin):
    """The MIG devices that are there."""
    return sorted(file.stem for file in (plugin.folder / "sim").rglob("*.mig"))


def told(variables, what):
    return sorted(value for name, value in variables.items() if name.endswith(what))


def test_mig_devices_of_one_gpu_run_side_by_side_and_are_destroyed_with_their_claims(claims, plugin):
    claims.claim(
        "pair", mig("3g.40gb", name="train"), mig("1g.10gb", name="serve"), same="gpu.nvidia.com/parentUUID"
    )
    containers = [
        claims.container(name, resources={"claims": [{"name": "gpu", "request": name}]})
        for name in ("train", "serve")
    ]
    claims.pod_with_claim("pair", "pair", *containers)
    claims.claim("more", mig("1g.10gb"))
    claims.pod_with_claim("more", "more")
    for pod in ("pair", "more"):
        claims.wait_running(pod)
    train, serve = claims.environment("pair", "train"), claims.environment("pair", "serve")
    more = claims.environment("more")
    assert told(train, "_PROFILE") == ["3g.40gb"]
    assert told(serve, "_PROFILE") == told(more, "_PROFILE") == ["1g.10gb"]
    assert told(train, "_PARENT_UUID") == told(serve, "_PARENT_UUID")
    devices = [*claims.devices("pair", "train"), *claims.devices("pair", "serve"), *claims.devices("more")]
    assert made(plugin) == sorted(devices)
    assert len(set(devices)) == 3
    claims.delete("pair")
    assert made(plugin) == claims.devices("more")
    claims.delete("more")
    assert made(plugin) == []


def test_gpu_with_mig_devices_is_not_given_whole(claims, plugin):
    claims.claim("part", mig("1g.10gb", count=8))
    claims.pod_with_claim("part", "part")
    claims.wait_running("part")
    claims.claim("whole", request(8))
    claims.pod_with_claim("whole", "whole")
    claims.wait_not_placed("whole", "cannot allocate all claims")
    claims.delete("part")
    claims.wait_running("whole")
    assert len(claims.devices("whole")) == 8
