"""The children of components: Kubernetes objects with the exact type tokens of pulumi-kubernetes.

The vendor's typed classes cost about 5 ms each, most of it for aliases of API versions that a new object never had;
a plain custom resource with the same token costs 1.3 ms and has the same URN and the same state. The version that
each registration carries is that of the installed pulumi-kubernetes, so that one default provider serves all.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import pulumi


@cache
def provider_version() -> str:
    """The version of pulumi-kubernetes that is installed, which its typed classes also send."""
    return metadata.version("pulumi-kubernetes")


class KubernetesObject(pulumi.CustomResource):
    """One object of the API server.

    Args:
        name: Name of the resource.
        manifest: The object, with apiVersion and kind.
        opts: Made for this object alone: the version is put into it.

    Attributes:
        metadata: The object's metadata as the provider returns it.
        spec: The object's spec as the provider returns it.
    """

    if TYPE_CHECKING:
        # The SDK compiles annotations that it finds on the class, for every object anew, and these say nothing to it.
        metadata: pulumi.Output[dict[str, Any]]
        spec: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        opts.version = provider_version()
        version = str(manifest["apiVersion"])
        # Tokens name the core group, where an apiVersion has none.
        group = "" if "/" in version else "core/"
        super().__init__(f"kubernetes:{group}{version}:{manifest['kind']}", name, dict(manifest), opts)
