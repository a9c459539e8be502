"""The version of resource.k8s.io that a kubelet reads claims in, by its minor.

Source: the client that pkg/kubelet/cm/dra/manager.go uses: `ResourceV1beta1` in 1.32 and 1.33, `ResourceV1` from 1.34 on.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

DEFAULT_VERSION: Final = "v1"
"""What API servers of 1.34 and newer serve without being told to."""
OLDER_VERSION: Final = "v1beta1"
"""What they can be told to serve for kubelets of 1.32 and 1.33."""

_VERSIONS: Final = ((34, "v1"), (32, "v1beta1"), (31, "v1alpha3"), (26, "v1alpha2"))
"""The first minor, and the version that kubelets from it on read."""


def read_version(kubelet: str) -> str:
    """Return the version of resource.k8s.io that a kubelet reads; empty for a version that is not known.

    Args:
        kubelet: `status.nodeInfo.kubeletVersion`, such as `v1.33.1`.
    """
    minor = re.match(r"v?1\.(\d+)\.", kubelet)
    if not minor:
        return ""
    return next((version for first, version in _VERSIONS if int(minor[1]) >= first), "")


def describe_old_kubelet(kubelet: str, served: Collection[str]) -> str:
    """Describe that a kubelet reads claims in a version that the API server does not serve; empty where it does.

    Args:
        kubelet: `status.nodeInfo.kubeletVersion`, such as `v1.33.1`.
        served: Versions of resource.k8s.io that are served; empty where they are not known.
    """
    version = read_version(kubelet)
    if not version or not served or version in served:
        return ""
    return f"kubelet {kubelet} reads resource.k8s.io/{version}, and the API server serves {', '.join(served)}"
