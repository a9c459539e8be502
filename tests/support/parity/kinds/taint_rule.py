"""Valid DeviceTaintRules in all versions that a supported minor has."""

from __future__ import annotations

from random import Random

from tests.support.parity.cases import Object
from tests.support.parity.kinds import claim, resource_slice
from tests.support.parity.kinds.metadata import metadata

VERSIONS = ("v1", "v1", "v1beta2", "v1alpha3")


def taint_rule(random: Random) -> Object:
    """A rule for no device, for all, or for those of a driver, pool or name."""
    spec: Object = {"taint": resource_slice.taint(random)}
    if random.random() < 0.85:
        fields = {
            "driver": random.choice(resource_slice.DRIVERS),
            "pool": random.choice(resource_slice.POOLS),
            "device": random.choice(resource_slice.NAMES),
        }
        spec["deviceSelector"] = {
            name: fields[name] for name in random.sample(sorted(fields), random.randint(0, 3))
        }
    return {
        "apiVersion": f"{claim.GROUP}/{random.choice(VERSIONS)}",
        "kind": "DeviceTaintRule",
        "metadata": metadata(random),
        "spec": spec,
    }


def whole_taint_rule(version: str) -> Object:
    """A rule with every field, but for those that 1.34 alone has."""
    selector = {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
    taint = {"key": "a/broken", "value": "yes", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"}
    return {
        "apiVersion": f"{claim.GROUP}/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "rule"},
        "spec": {"deviceSelector": selector, "taint": taint},
    }


def old_taint_rule() -> Object:
    """A rule with the fields that 1.34 alone has."""
    built = whole_taint_rule("v1alpha3")
    built["spec"]["deviceSelector"] |= {
        "deviceClassName": "gpu.example.com",
        "selectors": [{"cel": {"expression": "true"}}],
    }
    return built
