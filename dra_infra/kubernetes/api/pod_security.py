"""Pod Security: the labels of a Namespace by which the API server refuses pods that reach their node.

Source: k8s.io/pod-security-admission, api/constants.go and api/helpers.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

from dra_infra.kubernetes.api.placeholders import is_placeholder

Level = Literal["privileged", "baseline", "restricted"]
"""A Pod Security Standard. `privileged` refuses nothing."""

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From the one that refuses nothing to the strictest."""

PREFIX: Final = "pod-security.kubernetes.io/"
ENFORCE: Final = f"{PREFIX}enforce"
MODES: Final = ("enforce", "audit", "warn")
"""`enforce` refuses pods. `audit` and `warn` also judge the pod templates of workloads, and refuse nothing."""

_VERSION: Final = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")


def enforced_level(labels: Mapping[str, Any]) -> Level | None:
    """Return the level that labels of a Namespace enforce; None where it is not known yet.

    Without the label nothing is refused, unless the API server is configured otherwise. A text that is no level counts as
    `restricted` (ParseLevel).
    """
    written = labels.get(ENFORCE, "privileged")
    if is_placeholder(written):
        return None
    return next((level for level in LEVELS if level == written), "restricted")


def is_version(text: str) -> bool:
    """Check that a text names a version of the standards: `latest` or `v1.37` (ParseVersion)."""
    return _VERSION.fullmatch(text) is not None
