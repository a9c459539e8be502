"""What a server clears of a claim whose gates are off, also where nothing is in it (pkg/api/resourceclaimspec/util.go)."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import DeviceClaim, drop_from_claim
from dra_infra.target import ClusterTarget


def claim_of(**exactly: object) -> DeviceClaim:
    request = {"name": "a", "exactly": {"deviceClassName": "gpu", **exactly}}
    return DeviceClaim.model_validate({"requests": [request]})


@pytest.mark.parametrize(
    ("minor", "is_kept"), [("1.34", True), ("1.35", False), ("1.36", False), ("1.37", False)]
)
def test_tolerations_go_with_their_gate_also_empty_ones(minor: str, is_kept: bool):
    (release,) = ClusterTarget(kubernetes=minor, gates={"DRADeviceTaints": False}).releases
    for written in ([], [{"operator": "Exists"}]):
        claim, dropped = drop_from_claim(claim_of(tolerations=written), "spec.devices", release)
        assert claim.requests is not None
        assert claim.requests[0].exactly is not None
        assert (claim.requests[0].exactly.tolerations is not None) == is_kept
        # Nobody loses anything with an empty list.
        assert [each.path for each in dropped] == ["spec.devices.requests[0].exactly.tolerations"] * len(
            written
        )


def test_with_the_gate_an_empty_list_stays():
    (release,) = ClusterTarget(kubernetes="1.37", gates={"DRADeviceTaints": True}).releases
    claim, dropped = drop_from_claim(claim_of(tolerations=[]), "spec.devices", release)
    assert claim.requests is not None
    assert claim.requests[0].exactly is not None
    assert (claim.requests[0].exactly.tolerations, dropped) == ([], ())
