"""The value of every expression of a table that Kubernetes itself answered: derived attributes, over all libraries.

Expressions that stand first in the table were once answered wrongly here; the others are generated.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.cel import DeviceView
from dra_infra.kubernetes.cel.evaluate import Failed, derive_attribute

TABLE = json.loads((Path(__file__).parent / "values-1.37.1.json").read_text())
ROWS: list[dict[str, Any]] = TABLE["expressions"]
VIEWS = [
    DeviceView(
        device["driver"],
        {name: DeviceAttribute.from_manifest(value) for name, value in device["attributes"].items()},
        {name: DeviceCapacity.from_manifest(value) for name, value in device["capacity"].items()},
        device["allowMultipleAllocations"],
    )
    for device in TABLE["devices"]
]


@pytest.mark.parametrize("row", ROWS, ids=[row["expression"][:80] for row in ROWS])
def test_an_expression_has_the_servers_value_on_every_device(row: dict[str, Any]):
    for view, truth in zip(VIEWS, row["results"], strict=True):
        ours = derive_attribute(row["expression"], view)
        if isinstance(ours, Failed):
            assert not ours.decided or ours.text == truth
        else:
            # An empty list is left out of the server's JSON.
            assert {key: value for key, value in ours.items() if value != []} == truth


def test_hardly_any_value_is_withheld():
    withheld = [
        row["expression"]
        for row in ROWS
        if any(
            isinstance(ours := derive_attribute(row["expression"], view), Failed) and not ours.decided
            for view in VIEWS
        )
    ]
    assert len(withheld) <= len(ROWS) // 100
