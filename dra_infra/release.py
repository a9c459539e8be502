"""The release number of dra-infra, for parts that load nothing else of the package."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
