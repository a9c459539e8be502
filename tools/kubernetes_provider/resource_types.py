"""Type tokens, resource IDs and names: how the engine and the API server call the same object."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Any, Final

from tools.kubernetes_provider.values import UNKNOWN, Object, reveal

AUTONAMED: Final = "pulumi.com/autonamed"
"""Annotation of an object whose name the provider chose, so that a replacement may choose another one."""

NOT_OBJECTS: Final = frozenset({"helm.sh", "kustomize", "yaml"})
"""Modules of the vendor's package that hold components, not Kubernetes kinds."""

WITHOUT_NAMESPACE: Final = """
    APIService CertificateSigningRequest ClusterRole ClusterRoleBinding CSIDriver CSINode CustomResourceDefinition
    FlowSchema IngressClass MutatingWebhookConfiguration Namespace Node PersistentVolume PodSecurityPolicy PriorityClass
    PriorityLevelConfiguration RuntimeClass StorageClass ValidatingWebhookConfiguration VolumeAttachment
"""
"""Kinds of Kubernetes' own groups that the vendor's table has at cluster scope: `DeviceClass`, `ResourceSlice` and
`ValidatingAdmissionPolicy` are not on it. Source: `Kind.Namespaced` in `provider/pkg/kinds/kinds.go`, July 2026.
"""

TOKEN: Final = re.compile(r"kubernetes:(?P<group>[^/:]+)/(?P<version>[^/:]+):(?P<kind>[A-Za-z0-9]+)")


class UnsupportedTypeError(Exception):
    """The stand-in does not know what to do with this type token."""


@dataclass(frozen=True, kw_only=True)
class GroupVersionKind:
    """A Kubernetes kind; *group* is empty for the core group."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects of this kind."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


def is_known_without_namespace(kind: GroupVersionKind) -> bool:
    """Tell whether the provider knows without a server that objects of *kind* are at cluster scope."""
    of_kubernetes = "." not in kind.group or kind.group.endswith(".k8s.io")
    return of_kubernetes and kind.kind in WITHOUT_NAMESPACE.split()


def parse_token(token: str) -> GroupVersionKind:
    """Return the kind that a type token such as `kubernetes:apps/v1:Deployment` names.

    Raises:
        UnsupportedTypeError: The token names a component, a patch or a list.
    """
    match = TOKEN.fullmatch(token)
    if match is None or match["group"] in NOT_OBJECTS:
        raise UnsupportedTypeError(
            f"{token}: charts, manifests and kustomizations are not part of the stand-in provider; "
            "register the objects one by one, or run the tests with the vendor's plugin"
        )
    if match["kind"].endswith("Patch"):
        raise UnsupportedTypeError(
            f"{token}: patch resources are not part of the stand-in provider; "
            "manage the whole object, or run the tests with the vendor's plugin"
        )
    if match["kind"].endswith("List"):
        raise UnsupportedTypeError(
            f"{token}: list resources exist for manifests and cannot be created; register each item"
        )
    group = "" if match["group"] == "core" else match["group"]
    return GroupVersionKind(group=group, version=match["version"], kind=match["kind"])


def metadata(properties: Object) -> dict[str, Any]:
    """Return the metadata of an object in the clear, empty when there is none or it is unknown."""
    found = reveal(properties.get("metadata"))
    return found if isinstance(found, dict) else {}


def annotation(properties: Object, name: str) -> str:
    """Return an annotation's value, empty when it is missing or not known yet."""
    annotations = metadata(properties).get("annotations")
    value = annotations.get(name) if isinstance(annotations, dict) else None
    return value if isinstance(value, str) else ""


def format_id(properties: Object) -> str:
    """Return the ID of an object: `namespace/name`, or `name` at cluster scope."""
    found = metadata(properties)
    return f"{found['namespace']}/{found['name']}" if found.get("namespace") else str(found["name"])


def parse_id(resource_id: str) -> tuple[str, str]:
    """Return namespace (empty at cluster scope) and name of a resource ID."""
    namespace, _, name = resource_id.rpartition("/")
    return namespace, name


def with_name(properties: Object, name: str) -> Object:
    """Return *properties* under an automatic name, marked as such."""
    named = {**properties}
    found = named.get("metadata")
    own = dict(found) if isinstance(found, dict) else metadata(named)
    annotations = own.get("annotations")
    own["annotations"] = {**(annotations if isinstance(annotations, dict) else {}), AUTONAMED: "true"}
    named["metadata"] = {**own, "name": name}
    return named


def is_named(properties: Object) -> bool:
    """Tell whether the program chose the name, even if the name is not known yet."""
    return bool(metadata(properties).get("name")) or reveal(properties.get("metadata")) is UNKNOWN


def random_name(resource_name: str, seed: bytes) -> str:
    """Return `<resource name>-<8 hex digits>`: the same one for the same non-empty *seed* of the engine."""
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(4)
    return f"{resource_name}-{digits[:8]}"


def field_manager(urn: str) -> str:
    """Return the name under which updates of this resource are applied."""
    return f"pulumi-kubernetes-{hashlib.sha256(urn.encode()).hexdigest()[:8]}"
