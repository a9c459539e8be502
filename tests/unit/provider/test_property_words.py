"""Hints for programs in other languages have their words."""

from __future__ import annotations

import re

import pytest

from dra_infra.provider.property_words import in_properties
from tests.support.components.constructing import construct


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ("write count=1", "write count: 1"),
        ("write GpuClaimTemplate(count=1)", "write GpuClaimTemplate with count: 1"),
        ("write device_plugin=False for the operator", "write devicePlugin: false for the operator"),
        ("write gates={'DynamicMIG': True}", 'write gates: {"DynamicMIG": true}'),
        ('ask for 1, or count="all"', "ask for 1, or allDevices: true"),
        ("write sharing=dra.Mps(...)", "write sharing=dra.Mps(...)"),
        ("write gpus=4 or gpus=8", "write gpus: 4 or gpus: 8"),
        ("name it with device_class='gpu.nvidia.com'", 'name it with deviceClass: "gpu.nvidia.com"'),
        ("give device_class or class_ref", "give deviceClass or classRef"),
        ("kubectl label node n team_name=a", "kubectl label node n team_name=a"),
        ("name the gate: DRAAdminAccess=true", "name the gate: DRAAdminAccess=true"),
        ("write resource.kubernetes.io/admin-access=true", "write resource.kubernetes.io/admin-access=true"),
        ("ask for 1 or more devices", "ask for 1 or more devices"),
        ("a == b", "a == b"),
    ],
)
def test_arguments_of_python_are_properties_and_all_else_stays(hint: str, shown: str):
    assert in_properties(hint) == shown


def test_a_component_that_is_refused_has_them_too():
    told = str(construct("GpuClaim", {"deviceClass": "gpu.nvidia.com", "count": 0}).problems)
    assert "hint" in told
    assert not re.search(r"\bcount=", told)
