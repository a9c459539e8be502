"""Valid DeviceClasses."""

from __future__ import annotations

from random import Random

from tests.support.parity.cases import Object
from tests.support.parity.kinds import claim
from tests.support.parity.kinds.metadata import metadata


def device_class(random: Random) -> Object:
    """A class, with and without selectors, configuration and an extended resource."""
    spec: Object = {}
    if random.random() < 0.7:
        spec["selectors"] = claim.selectors(random)
    if random.random() < 0.5:
        spec["config"] = [claim.configuration(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.4:
        spec["extendedResourceName"] = random.choice(("example.com/gpu", "a/b", "gpu.example.com/A_1.x"))
    return {
        "apiVersion": f"{claim.GROUP}/{random.choice(claim.VERSIONS)}",
        "kind": "DeviceClass",
        "metadata": metadata(random),
        "spec": spec,
    }
