"""A control plane for one test after the other: starting one costs a test three seconds on two cores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Self

from tools.cluster import Api, ControlPlane, WaitTimeoutError

FLEET_KINDS: Final = (
    "resource.k8s.io/v1/ResourceSlice",
    "resource.k8s.io/v1/DeviceClass",
    "v1/Node",
    "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1/CustomResourceDefinition",
)
"""What a test makes outside of namespaces, and leaves."""

OTHER_KINDS: Final = (
    "v1/Pod",
    "apps/v1/Deployment",
    "apps/v1/DaemonSet",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "batch/v1/Job",
    "resource.k8s.io/v1/ResourceClaim",
    "resource.k8s.io/v1/ResourceClaimTemplate",
)
"""What a test that went well has taken away itself."""

OWN_NAMESPACES: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
CLEAR_SECONDS: Final = 10.0


class ReusedPlane:
    """Gives the same control plane again and again, each time empty.

    A test that failed may leave anything: what cannot be cleared is thrown away, and the next test gets a new one.

    Args:
        make: Makes one that is not started.
    """

    def __init__(self, make: Callable[[], ControlPlane]) -> None:
        self._make = make
        self._running = ExitStack()
        self._plane: ControlPlane | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def take(self) -> ControlPlane:
        """An empty control plane, to be given back."""
        if self._plane is None:
            self._plane = self._running.enter_context(self._make())
        return self._plane

    def give_back(self) -> None:
        """Empty it, or stop it where that does not work."""
        if self._plane is None:
            return
        with self._plane.api() as api:
            is_empty = _clear(api)
        if not is_empty:
            self._stop()

    def _stop(self) -> None:
        self._plane = None
        self._running.close()


def _clear(api: Api) -> bool:
    """Delete what tests make outside of namespaces; whether nothing is left, there and in namespaces."""
    if any(api.list(kind) for kind in OTHER_KINDS):
        return False
    if {each["metadata"]["name"] for each in api.list("v1/Namespace")} != OWN_NAMESPACES:
        return False
    for kind in FLEET_KINDS:
        for each in api.list(kind):
            api.delete(kind, each["metadata"]["name"])
    try:
        for kind in FLEET_KINDS:
            api.wait_for(kind, lambda objects: not objects, timeout=CLEAR_SECONDS)
    except WaitTimeoutError:
        return False
    return True
