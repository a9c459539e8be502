"""A real upgrade from the oldest to the newest minor on one etcd: what becomes of stored objects is what `upgrade` predicts."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS, stored_version
from tests.support.parity.upgrades import (
    StoredCase,
    UpgradedCluster,
    compare,
    draw_cases,
    release_of,
    storage_hash,
    store,
)

pytestmark = pytest.mark.e2e

IS_SOAK = bool(os.environ.get("DRA_INFRA_SOAK"))
COUNT = 5_000 if IS_SOAK else 120
SEED = 38
PAIRS = list(itertools.combinations(SUPPORTED_MINORS, 2))
KINDS = {
    "deviceclasses": "DeviceClass",
    "resourceclaims": "ResourceClaim",
    "resourceclaimtemplates": "ResourceClaimTemplate",
    "resourceslices": "ResourceSlice",
}


@dataclass
class Upgraded:
    """What was seen on the way up."""

    differences: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    counts: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    hashes: dict[str, dict[str, str]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def upgraded(binaries: Callable[[str], Path]) -> Upgraded:
    """Every minor stores objects, and every later one is asked about them."""
    seen = Upgraded()
    kept: list[list[StoredCase]] = []
    with UpgradedCluster(SUPPORTED_MINORS[0], binaries) as cluster:
        for number, minor in enumerate(SUPPORTED_MINORS):
            if number:
                cluster.upgrade(minor)
            for objects in kept:
                pair = (objects[0].minor, minor)
                seen.differences[pair], seen.counts[pair] = compare(cluster.server, objects)
                print(pair, seen.counts[pair])
            seen.hashes[minor] = {
                name: value
                for version in ("v1alpha3", "v1beta2", "v1")
                for name, value in cluster.read_storage_hashes(version).items()
            }
            cases = draw_cases(COUNT, SEED + number, f"from-{minor.replace('.', '-')}")
            kept.append([store(cluster.server, case) for case in cases if cluster.server.serves(case)])
    return seen


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_what_becomes_of_stored_objects_is_what_is_predicted(
    pair: tuple[str, str], upgraded: Upgraded
) -> None:
    assert upgraded.differences[pair] == []
    assert upgraded.counts[pair]["touched=True"] > COUNT / 10


def test_objects_that_cannot_be_applied_again_come_up(upgraded: Upgraded) -> None:
    assert sum(counts.get("applied=False", 0) for counts in upgraded.counts.values()) > 0
    assert sum(counts.get("before=False", 0) for counts in upgraded.counts.values()) > 0


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_the_version_in_etcd_is_the_one_of_the_table(minor: str, upgraded: Upgraded) -> None:
    kinds = {**KINDS, "devicetaintrules": "DeviceTaintRule"}
    seen = {name: each for name, each in upgraded.hashes[minor].items() if name in kinds}
    assert set(seen) >= set(KINDS)
    release = release_of(minor)
    assert seen == {name: storage_hash(kinds[name], stored_version(kinds[name], release)) for name in seen}
