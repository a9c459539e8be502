"""Pods as an API server has them: what is asked of them again and again, read once beside the whole object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.metadata import ObjectRef, kind_of

_DONE: Final = ("Failed", "Succeeded")


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod of a cluster. What has another type than a server writes counts as absent.

    Args:
        manifest: The whole object.
        ref: Its name.
        uid: Which pod of that name it is.
        node: The node that it is on, or is bound to; empty while it has none.
        phase: `Pending` until the kubelet writes another one.
        labels: Its labels, as texts.
        controller: What made it; None where no controller did.
        is_deleted: Whether its deletion is asked for. It may run on until its grace period is over.
    """

    manifest: Mapping[str, Any] = field(repr=False, compare=False)
    ref: ObjectRef
    uid: str
    node: str
    phase: str
    labels: Mapping[str, str] = field(hash=False)
    controller: ObjectRef | None
    is_deleted: bool

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """Read a pod."""
        metadata, spec = mapping(manifest.get("metadata")), mapping(manifest.get("spec"))
        return cls(
            manifest=manifest,
            ref=ObjectRef.of(manifest),
            uid=_text(metadata.get("uid")),
            node=_text(spec.get("nodeName")),
            phase=_text(mapping(manifest.get("status")).get("phase")) or "Pending",
            labels={str(name): str(value) for name, value in mapping(metadata.get("labels")).items()},
            controller=find_controller(manifest),
            is_deleted=bool(metadata.get("deletionTimestamp")),
        )

    @property
    def spec(self) -> Mapping[str, Any]:
        """Return the spec as the object has it."""
        return mapping(self.manifest.get("spec"))

    @property
    def is_done(self) -> bool:
        """Return whether all containers have ended for good: such a pod takes nothing, and has no devices."""
        return self.phase in _DONE

    @property
    def waits(self) -> bool:
        """Return whether the pod does not run yet."""
        return self.phase == "Pending"

    @property
    def state(self) -> str:
        """Return `Running on gpu-0`."""
        return f"{self.phase} on {self.node}" if self.node else self.phase


def find_controller(manifest: Mapping[str, Any]) -> ObjectRef | None:
    """Return the object that controls another one; None where none does."""
    for reference in mappings(mapping(manifest.get("metadata")).get("ownerReferences")):
        if reference.get("controller"):
            namespace = ObjectRef.of(manifest).namespace
            return ObjectRef(kind_of(reference), str(reference.get("name")), namespace)
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
