"""The servers of any supported minor: the API server by itself, with nobody who acts on it, or all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tools import build
from tools.cluster import components as parts
from tools.cluster.control_plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

WHOLE_CONTROL_PLANE = "1.37"
"""The minor whose binaries have no minor in their names."""

_WORKLOADS = "GenericWorkload"
_WORKLOAD_APIS = {
    "1.35": ("scheduling.k8s.io/v1alpha1",),
    "1.36": ("scheduling.k8s.io/v1alpha2",),
    "1.37": ("scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1beta1"),
}
"""What an API server with that gate waits for before it is ready, without saying so."""


def api_server(
    minor: str,
    *,
    feature_gates: Mapping[str, bool] | None = None,
    more_apis: Iterable[str] = (),
    binaries: Callable[[str], Path] = build.binary,
) -> ControlPlane:
    """Etcd and the real kube-apiserver of *minor*, to be used in a ``with`` statement; ready after about 3 s.

    All versions of resource.k8s.io that the minor has are served. Pods need no service account, for nobody would
    make one.

    Args:
        minor: Such as ``"1.34"``.
        feature_gates: Gates that differ from the defaults of the minor.
        more_apis: Group versions to serve beside those that are served by default; ``api/all`` for every one.
        binaries: Finds an executable by its name, ``kube-apiserver-1.34`` for older minors.
    """
    gates = dict(feature_gates or {})
    return ControlPlane(
        components=(parts.ETCD, parts.APISERVER),
        binaries=_of_minor(minor, binaries),
        feature_gates=gates,
        more_apis=(*_more_apis(minor, gates), *more_apis),
    )


def control_plane(
    minor: str,
    *,
    feature_gates: Mapping[str, bool] | None = None,
    binaries: Callable[[str], Path] = build.binary,
) -> ControlPlane:
    """All the real servers of *minor*, to be used in a ``with`` statement.

    Args:
        minor: Such as ``"1.34"``.
        feature_gates: Gates that differ from the defaults of the minor.
        binaries: As for `api_server`.
    """
    gates = dict(feature_gates or {})
    return ControlPlane(
        binaries=_of_minor(minor, binaries), feature_gates=gates, more_apis=_more_apis(minor, gates)
    )


def _more_apis(minor: str, gates: Mapping[str, bool]) -> tuple[str, ...]:
    return _WORKLOAD_APIS.get(minor, ()) if gates.get(_WORKLOADS) else ()


def _of_minor(minor: str, binaries: Callable[[str], Path]) -> Callable[[str], Path]:
    def find(name: str) -> Path:
        own = name if name == parts.ETCD or minor == WHOLE_CONTROL_PLANE else f"{name}-{minor}"
        return binaries(own)

    return find
