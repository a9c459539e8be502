"""The slices of built-in fleets and of machines of clouds, shown to the real API servers: every driver line, every minor."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.catalog.machines import machines
from dra_infra.errors import FleetError
from tests.support.components.objects import refusal
from tests.unit.catalog.test_publication import PLAIN, SET
from tools.cluster import ApiError

pytestmark = pytest.mark.e2e

NODES = 2
"""Of each fleet: the others differ in names only."""


NOT_ON_1_34 = ("example partitions=2", "example driver=0.3 partitions=7", "example shareable partitions=4")
"""The example driver has one layout for counters, of slices that Kubernetes 1.34 does not know."""


MACHINES = [*machines(), "p4d.24xlarge dranet"]


def slices_of(text: str, minor: str) -> list[dict[str, Any]]:
    """The slices of the first nodes."""
    slices = load_fleet(text, kubernetes=minor).slices
    nodes = sorted({each.spec.node_name or "" for each in slices})[:NODES]
    return [each.to_manifest() for each in slices if (each.spec.node_name or "") in nodes]


def lost(sent: Any, stored: Any, path: str = "") -> list[str]:
    """Places of *sent* that are not in *stored*, or other there."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [
            place
            for key, value in sent.items()
            for place in (lost(value, stored[key], f"{path}.{key}") if key in stored else [f"{path}.{key}"])
        ]
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        pairs = enumerate(zip(sent, stored, strict=True))
        return [place for index, (a, b) in pairs for place in lost(a, b, f"{path}[{index}]")]
    return [] if sent == stored else [path]


def test_slices_of_every_fleet_and_line_are_taken_and_kept_whole(minor, server_with_all_gates):
    refused: dict[str, str] = {}
    dropped: dict[str, list[str]] = {}
    shown = 0
    for text in (*PLAIN, *SET, *MACHINES):
        if minor == "1.34" and text in NOT_ON_1_34:
            continue
        for manifest in slices_of(text, minor):
            shown += 1
            try:
                stored = server_with_all_gates.create(manifest, dry_run=True)
            except ApiError as error:
                refused.setdefault(text, str(error))
                continue
            if places := lost(manifest, stored):
                dropped.setdefault(text, places)
    assert refused == {}
    assert dropped == {}
    assert shown > len(PLAIN) + len(MACHINES)


@pytest.mark.parametrize("minor", ["1.34"], indirect=True)  # Every other minor takes all fleets.
def test_a_fleet_that_is_refused_for_a_minor_is_refused_by_its_server(minor, server_with_all_gates):
    for text in NOT_ON_1_34:
        with pytest.raises(FleetError, match="fleet-option"):
            load_fleet(text, kubernetes=minor)
        told = [refusal(server_with_all_gates, each) for each in slices_of(text, "1.35")]
        assert any(" 422 " in each for each in told)
