"""Object metadata, conditions, and references to objects (k8s.io/apimachinery/pkg/apis/meta/v1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Self

from pydantic import Field

from dra_infra.kubernetes.api.manifests import mapping, name_of
from dra_infra.kubernetes.api.record import UID, CoreRecord, GoType, Integer, RawExtension, Text, Time, Truth


class OwnerReference(CoreRecord):
    """An object without which this one is removed."""

    WRITTEN_EMPTY = ("api_version", "kind", "name", "uid")

    api_version: Text = ""
    kind: Text = ""
    name: Text = ""
    uid: UID = ""
    controller: Truth | None = None
    block_owner_deletion: Truth | None = None


class ManagedFieldsEntry(CoreRecord):
    """Fields that one client set, for server-side apply."""

    manager: Text = ""
    operation: Annotated[Text, GoType("v1.ManagedFieldsOperationType")] = ""
    api_version: Text = ""
    time: Time | None = None
    fields_type: Text = ""
    fields_v1: RawExtension = Field(default=None, alias="fieldsV1")
    subresource: Text = ""


class ObjectMeta(CoreRecord):
    """Name, labels and the like of an object; people write a few of the fields, the server the others."""

    name: Text = ""
    generate_name: Text = ""
    namespace: Text = ""
    self_link: Text = ""
    uid: UID = ""
    resource_version: Text = ""
    generation: Integer = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Integer | None = None
    labels: dict[Text, Text] | None = None
    annotations: dict[Text, Text] | None = None
    owner_references: list[OwnerReference] | None = None
    finalizers: list[Text] | None = None
    managed_fields: list[ManagedFieldsEntry] | None = None


class Condition(CoreRecord):
    """One aspect of an object's state."""

    WRITTEN_EMPTY = ("type", "status", "last_transition_time", "reason", "message")

    type: Text = ""
    status: Annotated[Text, GoType("v1.ConditionStatus")] = ""
    observed_generation: Integer = 0
    last_transition_time: Time | None = None
    reason: Text = ""
    message: Text = ""


_GROUPS: Final = {
    "CronJob": "batch",
    "DaemonSet": "apps",
    "Deployment": "apps",
    "Job": "batch",
    "Pod": "",
    "ReplicaSet": "apps",
    "Service": "",
    "StatefulSet": "apps",
}
"""API groups of kinds of Kubernetes whose names others have too, such as Job of Volcano and Service of Knative."""

CLUSTER_SCOPED: Final = ("DeviceClass", "ResourceSlice", "DeviceTaintRule")
"""Kinds of resource.k8s.io without a namespace, whose generation is the server's from the start."""


def name_kind(kind: str, group: str) -> str:
    """The kind as it is called: `Job`, and `Job.batch.volcano.sh` where Kubernetes itself has a kind of that name.

    kubectl calls them so, too: `kubectl get job.batch.volcano.sh`.
    """
    # Before apps and batch there was extensions; and nobody knows the group of what has no apiVersion.
    return kind if group in ("", "extensions", _GROUPS.get(kind, group)) else f"{kind}.{group}"


def group_of(manifest: Mapping[str, Any]) -> str:
    """Return the API group of an object: empty for the core group."""
    return str(manifest.get("apiVersion") or "").rpartition("/")[0]


def kind_of(manifest: Mapping[str, Any]) -> str:
    """Return the kind of an object as it is called (`name_kind`): empty where it has none."""
    return name_kind(str(manifest.get("kind") or ""), group_of(manifest))


@dataclass(frozen=True, order=True, slots=True)
class ObjectRef:
    """Names one object: `Job ml/train`, or `DeviceClass h100` for one without a namespace.

    Two references are equal where they name the same object in the same way; compare `stored` ones where an object that is
    written without a namespace is looked up.

    Args:
        kind: As it is called: a kind that Kubernetes has too, in another group, comes with its group (`Job.batch.volcano.sh`).
        name: `train-*` where it is made up, by the server or before.
        namespace: Empty where none is written.
        part: Of an object that makes pods of several kinds, one of these: `JobSet ml/train/workers`.
    """

    kind: str
    name: str
    namespace: str = ""
    part: str = ""

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Self:
        """Return the reference to an object; what the object lacks is empty."""
        namespace = str(mapping(manifest.get("metadata")).get("namespace") or "")
        return cls(kind_of(manifest), name_of(manifest), namespace)

    @property
    def stored(self) -> ObjectRef:
        """The object as a cluster has it: in the namespace `default` where none is written.

        Kinds of other groups that have no namespace, such as Node, count as in `default` on both sides of a comparison.
        """
        if self.namespace or self.kind in CLUSTER_SCOPED:
            return self
        return ObjectRef(self.kind, self.name, "default", self.part)

    @property
    def whole(self) -> ObjectRef:
        """The object, of which this may be a part."""
        return replace(self, part="") if self.part else self

    def __str__(self) -> str:
        name = f"{self.name}/{self.part}" if self.part else self.name
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"


def by_namespace(ref: ObjectRef) -> tuple[str, str, str]:
    """Return the key that sorts objects of a kind by namespace and name."""
    return ref.kind, ref.namespace, ref.name
