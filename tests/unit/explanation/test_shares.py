"""Shares of capacity by a policy: what a device gives, and what it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.explanation.shares import largest_share, refuse_share
from dra_infra.kubernetes.api import DeviceCapacity, Release, nanos
from dra_infra.kubernetes.scheduler.allocator.variants import choose_variant

VARIANT = choose_variant(Release(minor="1.37", gates=frozenset({"DRAConsumableCapacity"})))
RANGE = {"validRange": {"min": "1Gi", "max": "20Gi", "step": "2Gi"}}
VALUES = {"validValues": ["8Gi", "16Gi", "32Gi"]}


def a_capacity(value: str, policy: Any = None) -> DeviceCapacity:
    written = {"value": value, **({"requestPolicy": {"default": "1Gi", **policy}} if policy else {})}
    return DeviceCapacity.from_manifest(written)


@pytest.mark.parametrize(
    ("asked", "value", "policy", "used", "largest"),
    [
        ("24Gi", "40Gi", None, "25Gi", "15Gi"),
        ("24Gi", "42949672960", None, "25Gi", "15Gi"),
        ("24G", "40G", None, "25G", "15G"),
        ("35G", "64Gi", VALUES, "0", "32Gi"),
        ("35e9", "64Gi", None, "32Gi", "32Gi"),
        ("24Gi", "40Gi", None, "40Gi", None),
        ("24Gi", "40Gi", RANGE, "0", "19Gi"),
        ("24Gi", "40Gi", RANGE, "30Gi", "9Gi"),
        ("24Gi", "40Gi", RANGE, "39.5Gi", None),
        ("40Gi", "64Gi", VALUES, "0", "32Gi"),
        ("40Gi", "64Gi", VALUES, "40Gi", "16Gi"),
        ("40Gi", "64Gi", VALUES, "60Gi", None),
    ],
)
def test_the_largest_share_is_one_that_the_policy_gives(asked, value, policy, used, largest):
    assert largest_share(asked, a_capacity(value, policy), nanos(used)) == largest


@pytest.mark.parametrize(
    ("asked", "value", "policy", "text"),
    [
        ("48Gi", "40Gi", None, "memory is 40Gi"),
        ("24Gi", "40Gi", RANGE, "its requestPolicy gives at most 20Gi of memory, and 24Gi takes 25Gi"),
        ("40Gi", "64Gi", VALUES, "its requestPolicy gives 8Gi, 16Gi, 32Gi of memory"),
        ("17Gi", "24Gi", VALUES, "memory is 24Gi, and by its requestPolicy 17Gi takes 32Gi"),
    ],
)
def test_a_refused_share_is_told_with_its_policy_and_what_it_is_rounded_to(asked, value, policy, text):
    assert refuse_share("memory", asked, a_capacity(value, policy), VARIANT) == text
