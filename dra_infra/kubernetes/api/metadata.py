"""Object metadata, conditions, and references to objects (k8s.io/apimachinery/pkg/apis/meta/v1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

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


def name_kind(kind: str, group: str) -> str:
    """The kind as it is called: `Job`, and `Job.batch.volcano.sh` where Kubernetes itself has a kind of that name.

    kubectl calls them so, too: `kubectl get job.batch.volcano.sh`.
    """
    # Before apps and batch there was extensions; and nobody knows the group of what has no apiVersion.
    return kind if group in ("", "extensions", _GROUPS.get(kind, group)) else f"{kind}.{group}"


def kind_of(manifest: Mapping[str, Any]) -> str:
    """The kind of an object as it is called (`name_kind`); empty where it says none."""
    group, slash, _ = str(manifest.get("apiVersion") or "").rpartition("/")
    return name_kind(str(manifest.get("kind") or ""), group if slash else "")


@dataclass(frozen=True, order=True, slots=True)
class ObjectRef:
    """Names one object: `Job ml/train`, or `DeviceClass h100` for one without a namespace.

    A kind that Kubernetes has too, in another group, comes with its group: `Job.batch.volcano.sh ml/train`.

    Of an object that makes pods of several kinds it may name one of these: `JobSet ml/train/workers`.
    """

    kind: str
    name: str
    namespace: str = ""
    part: str = ""

    @property
    def whole(self) -> ObjectRef:
        """The object, of which this may be a part."""
        return replace(self, part="") if self.part else self

    def __str__(self) -> str:
        name = f"{self.name}/{self.part}" if self.part else self.name
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"


def ref_of(manifest: Mapping[str, Any]) -> ObjectRef:
    """Kind, namespace and name of an object; empty where it has none."""
    namespace = str(mapping(manifest.get("metadata")).get("namespace") or "")
    return ObjectRef(kind=kind_of(manifest), name=name_of(manifest), namespace=namespace)
