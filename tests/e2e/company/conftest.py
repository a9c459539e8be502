"""Definitions of other projects, which the platform of the company makes objects of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.charts import TESTDATA, find_testdata


@pytest.fixture
def folder_of_crds() -> Path:
    """The definitions; the test is skipped where they are not here."""
    found = find_testdata(os.environ)
    if found is None:
        pytest.skip(f"definitions of other projects are not here: set {TESTDATA} to the folder with crds/")
    return found / "crds"
