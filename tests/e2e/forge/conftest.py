"""Fixtures of the tests that run the steps of the actions: the product's source, a sample repository, a forge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forge.local_forge import LocalForge, serving
from tests.support.forge.runner import TOKEN
from tests.support.forge.sample import Sample, make_sample, source_of_dra_infra


@pytest.fixture(scope="module")
def action(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source_of_dra_infra(tmp_path_factory.mktemp("action") / "dra-infra")


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return make_sample(tmp_path / "sample")


@pytest.fixture
def forge() -> Iterator[LocalForge]:
    with serving(LocalForge(accounts={TOKEN: ("github-actions[bot]", True)})) as running:
        yield running
