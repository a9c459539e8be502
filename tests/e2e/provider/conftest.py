"""Projects whose cluster is away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.support.lab import Lab
from tools.pulumi_home import PulumiHome


@pytest.fixture
def offline_lab(home: PulumiHome, tmp_path: Path) -> Callable[[Mapping[str, str]], Lab]:
    """Makes a project whose environment says where the cluster is not."""

    def make(environment: Mapping[str, str]) -> Lab:
        return Lab.create(tmp_path, home=home, namespace="offline", environment=environment)

    return make
