"""Requests to create objects, as admission policies see them: what is known of each before the server has it.

Claims, claim templates and DeviceClasses are known as the server completes them: decoded, gated, defaulted, converted to the
version that a policy names. Of a pod the resources of its containers are, and of everything else its labels, annotations and
name. Whatever else is read has no answer (`UndecidedError`): the server, its controllers and webhooks write into objects, too.

Upstream: CreateAdmissionRequest and CreateNamespaceObject in `k8s.io/apiserver/pkg/admission/plugin/cel/condition.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from dra_infra.kubernetes.api.decoding import can_decode
from dra_infra.kubernetes.api.device_class import API_VERSION
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.manifests import POD_CLAIM_NAME, mapping, value_at
from dra_infra.kubernetes.api.placeholders import UNKNOWN, holds_placeholder, is_placeholder
from dra_infra.kubernetes.api.resource_claim import ResourceClaim, ResourceClaimTemplate
from dra_infra.kubernetes.apiserver.policies.completion import (
    add_daemon_tolerations,
    complete_workload,
    list_job_labels,
    list_unknown_fields,
)
from dra_infra.kubernetes.apiserver.policies.expressions import Value, partly_known, read_value
from dra_infra.kubernetes.apiserver.policies.objects import Labels, Views, text_map
from dra_infra.kubernetes.apiserver.verdict import Checked, judge

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label that the server gives each namespace."""

NOBODY_ASKS: Final = "who asks is not said"
CONTROLLER_ASKS: Final = "which controller asks is not known here"
NO_NAMESPACE: Final = "no namespace is written"
"""Parts of the reasons why something is not known."""

_CLUSTER_WIDE: Final = frozenset({"DeviceClass", "ResourceSlice", "DeviceTaintRule", "Namespace", "Node"})


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who asks; the server adds the group `system:authenticated`."""

    name: str
    groups: Sequence[str] = ()


_MAKER_OF_CLAIMS: Final = User(
    name="system:serviceaccount:kube-system:resource-claim-controller",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to create an object.

    Args:
        group: API group; empty for the core.
        version: Version that the object is written in.
        kind: Kind.
        name: Name; empty where the server makes one.
        namespace: Namespace, empty where the kind has none; None where it is not written.
        labels: Labels of the object.
        namespace_labels: Labels of its namespace.
        versions: Versions that the server has the kind in as well; None where that is not known.
        view: Returns the object in a version.
        may_get_token: The server may add a volume with a token to the pod.
        filled_in: Returns a pod as LimitRanges that are not known may have completed it; None where there are none.
        record: The object as the server completes it; None where that is not known.
        user: Who asks; None where that is not known.
        nobody: Why not.
    """

    group: str
    version: str
    kind: str
    name: str
    namespace: str | None
    labels: Labels
    namespace_labels: Labels
    versions: frozenset[str] | None
    view: Callable[..., Value] = field(compare=False)
    may_get_token: bool = False
    filled_in: Callable[..., Value] | None = field(default=None, compare=False)
    record: Checked | None = field(default=None, compare=False)
    user: User | None = None
    nobody: str = NOBODY_ASKS

    @property
    def resource(self) -> str:
        """The plural of the kind (UnsafeGuessKindToResource, which is right for all kinds of Kubernetes but Endpoints)."""
        single = self.kind.lower()
        if single.endswith("endpoints"):
            return single
        if single.endswith("s"):
            return f"{single}es"
        return f"{single[:-1]}ies" if single.endswith("y") else f"{single}s"

    @property
    def is_namespace(self) -> bool:
        """It is about a Namespace, which is in itself for the server."""
        return (self.group, self.kind) == ("", "Namespace")

    def variables(
        self, version: str, *, conditions: bool = False, has_token: bool = False
    ) -> dict[str, Value]:
        """Returns the values that expressions read besides params.

        Args:
            version: The version that the policy names.
            conditions: Whether it is for matchConditions, which are told of no namespace.
            has_token: Whether the server adds a volume with a token to the pod.
        """
        return {
            "object": self.view(version, has_token=has_token),
            "oldObject": None,
            "request": self._request(self.version if conditions else version, version),
            "namespaceObject": None if conditions else self._namespace(),
        }

    def _request(self, resource_version: str, kind_version: str) -> Value:
        def kind(version: str) -> Value:
            return read_value({"group": self.group, "version": version, "kind": self.kind})

        def resource(version: str) -> Value:
            return read_value({"group": self.group, "version": version, "resource": self.resource})

        known: dict[str, Value] = {
            "kind": kind(kind_version),
            "resource": resource(resource_version),
            "requestKind": kind(self.version),
            "requestResource": resource(self.version),
            "operation": "CREATE",
            "userInfo": self._user(),
        }
        absent = ["subResource", "requestSubResource"]
        for name, value in (("name", self.name), ("namespace", self.namespace)):
            if value:
                known[name] = value
            elif value is not None:
                absent.append(name)
        reasons = {"namespace": f"request.namespace is read, and {NO_NAMESPACE}"}
        return partly_known(
            known,
            lambda key: reasons.get(key, f"request.{key} is not known before the request is made"),
            absent,
        )

    def _user(self) -> Value:
        if self.user is None:
            return partly_known({}, lambda key: f"request.userInfo.{key} is read, and {self.nobody}")
        groups = [*self.user.groups]
        if "system:authenticated" not in groups:
            groups.append("system:authenticated")
        return partly_known(
            {"username": self.user.name, "groups": groups},
            lambda key: f"request.userInfo.{key} is not known before the request is made",
        )

    def _namespace(self) -> Value:
        if self.namespace == "" or self.is_namespace:
            return None
        metadata: dict[str, Value] = {"labels": self.namespace_labels.value()}
        if self.namespace is not None:
            metadata["name"] = self.namespace

        def unknown(key: str) -> str:
            return f"{key} of the namespace is not known here"

        return partly_known({"metadata": partly_known(metadata, unknown)}, unknown)


def read_request(
    manifest: Mapping[str, Any],
    release: Release,
    *,
    namespaces: Mapping[str, Mapping[str, str]],
    serves: frozenset[str],
    user: User | None,
) -> Request | None:
    """The request that creates *manifest*; None where the server refuses it before it asks any policy.

    Args:
        manifest: Any object.
        release: The server.
        namespaces: Labels of the namespaces that are known.
        serves: Versions of resource.k8s.io that the server has.
        user: Who asks; None where nobody says.
    """
    group, _, version = str(manifest.get("apiVersion") or "").rpartition("/")
    kind = str(manifest.get("kind") or "")
    metadata = mapping(manifest.get("metadata"))
    namespace = _namespace(manifest, kind)
    record: Checked | None = None
    if group == "resource.k8s.io" and can_decode(manifest) and not holds_placeholder(manifest):
        verdict = judge(manifest, release, namespace_labels=namespaces.get(namespace or ""))
        if verdict.status != "accepted":
            return None
        record = verdict.record if isinstance(verdict.record, Checked) else None
    labels = text_map(metadata.get("labels"))
    if kind == "Namespace":
        labels = {**labels, NAME_LABEL: str(metadata.get("name") or "")}
    owner = f"the {kind}"
    is_workload = complete_workload(manifest) is not None
    is_plain = record is not None or kind in ("Namespace", "Pod") or is_workload
    made_up: frozenset[str] = frozenset()
    if (group, kind) == ("batch", "Job") and not labels:
        labels, made_up = list_job_labels(manifest)
    views = Views(manifest, record, Labels(labels, is_plain, owner, made_up), namespace)
    return Request(
        group=group,
        version=version,
        kind=kind,
        name=""
        if metadata.get("generateName") and not metadata.get("name")
        else str(metadata.get("name") or ""),
        namespace=namespace,
        labels=views.labels,
        namespace_labels=_labels_of(namespace, views.labels if kind == "Namespace" else None, namespaces),
        versions=_versions(group, kind, release, serves),
        view=views.view,
        may_get_token=views.may_get_token,
        filled_in=_filled_in(views, namespace, namespaces) if (group, kind) == ("", "Pod") else None,
        record=record,
        user=user,
    )


def read_claim_request(manifest: Mapping[str, Any], template: Request) -> Request:
    """The request by which kube-controller-manager makes a claim of a claim template.

    Upstream: handleClaim in pkg/controller/resourceclaim/controller.go.

    Args:
        manifest: The template.
        template: The request that creates it.
    """
    record = template.record
    spec = record.spec.spec if isinstance(record, ResourceClaimTemplate) else None
    metadata = mapping(value_at(manifest, "spec", "metadata"))
    # A pod that is not there yet has the names that the annotation holds, and that the name of the claim begins with.
    annotations = {**mapping(metadata.get("annotations")), POD_CLAIM_NAME: UNKNOWN}
    views = Views(
        {"apiVersion": API_VERSION, "kind": "ResourceClaim", "metadata": {"annotations": annotations}},
        ResourceClaim().changed({"spec": spec}) if spec else None,
        Labels(text_map(metadata.get("labels")), spec is not None, "a claim of the template"),
        template.namespace,
        maker="ResourceClaimTemplate",
    )
    return replace(
        template,
        version="v1",
        kind="ResourceClaim",
        name="",
        labels=views.labels,
        view=views.view,
        may_get_token=views.may_get_token,
        user=_MAKER_OF_CLAIMS,
    )


def read_pod_request(
    spec: Mapping[str, Any],
    labels: Mapping[str, str],
    namespace: str,
    namespaces: Mapping[str, Mapping[str, str]],
    *,
    maker: Mapping[str, Any],
) -> Request:
    """The request by which a controller makes a pod of a template.

    Args:
        spec: The pod spec of the template.
        labels: Labels of the template, to which the controller adds its own.
        namespace: Namespace of the object that has the template; empty where none is written.
        namespaces: Labels of the namespaces that are known.
        maker: The object with the template.
    """
    known = Labels(dict(labels), is_complete=False, owner="a pod of the template")
    kind = str(maker.get("kind"))
    spec = add_daemon_tolerations(spec) if kind == "DaemonSet" else spec
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": spec}
    unknown = list_unknown_fields(kind, mapping(maker.get("spec")))
    views = Views(pod, None, known, namespace or None, maker=kind, unknown=unknown)
    return Request(
        group="",
        version="v1",
        kind="Pod",
        name="",
        namespace=namespace or None,
        labels=known,
        namespace_labels=_labels_of(namespace or None, None, namespaces),
        versions=frozenset({"v1"}),
        view=views.view,
        may_get_token=views.may_get_token,
        filled_in=_filled_in(views, namespace, namespaces),
        nobody=CONTROLLER_ASKS,
    )


def _filled_in(
    views: Views, namespace: str | None, namespaces: Mapping[str, Mapping[str, str]]
) -> Callable[..., Value] | None:
    return None if namespace in namespaces else partial(views.view, is_filled_in=True)


def _namespace(manifest: Mapping[str, Any], kind: str) -> str | None:
    metadata = mapping(manifest.get("metadata"))
    if kind == "Namespace":
        return str(metadata.get("name") or "")
    if kind in _CLUSTER_WIDE:
        return ""
    found = metadata.get("namespace")
    return found if isinstance(found, str) and found and not is_placeholder(found) else None


def _labels_of(
    namespace: str | None, own: Labels | None, namespaces: Mapping[str, Mapping[str, str]]
) -> Labels:
    if own is not None:
        return own
    if namespace is None:
        return Labels({}, is_complete=False, owner=f"the namespace, for {NO_NAMESPACE},")
    named = {NAME_LABEL: namespace}
    is_known = namespace in namespaces
    return Labels({**namespaces.get(namespace, {}), **named}, is_known, f"namespace {namespace}")


def _versions(group: str, kind: str, release: Release, serves: frozenset[str]) -> frozenset[str] | None:
    if group == "resource.k8s.io":
        return frozenset(each for each in serves if release.knows(kind, each))
    return frozenset({"v1"}) if group in ("", "apps", "batch") else None
