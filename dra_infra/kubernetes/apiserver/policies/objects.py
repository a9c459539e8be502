"""Objects as the expressions of policies see them: what is known of each before the server has completed it.

Upstream: ToUnstructured in `k8s.io/apimachinery/pkg/runtime/converter.go`, and SetDefaults_Pod in `pkg/apis/core/v1/defaults.go`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.kubernetes.api.placeholders import holds_placeholder
from dra_infra.kubernetes.api.record import KubernetesObject
from dra_infra.kubernetes.api.resource_claim import DeviceClaim, ResourceClaim, ResourceClaimTemplate
from dra_infra.kubernetes.api.v1beta1 import flat_request
from dra_infra.kubernetes.apiserver.policies.completion import (
    Data,
    NotKnown,
    complete_pod,
    complete_workload,
)
from dra_infra.kubernetes.apiserver.policies.expressions import (
    UndecidedError,
    Value,
    partly_known,
    read_value,
)
from dra_infra.kubernetes.apiserver.verdict import Checked
from dra_infra.kubernetes.cel.interpreter.maps import NativeMap, OpenMap

NO_LABELS: Final = "has the label"
"""A part of the reason why labels are not known."""

NO_LIMITS: Final = "may be filled in by a LimitRange of a namespace that is not given"
"""A part of the reason why limits and requests that a container does not have are not known."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of an object.

    Args:
        known: Those with known values.
        is_complete: Whether there are no others.
        owner: What to call the object.
        made_up: Labels that are there too, with values that the server makes up.
    """

    known: Mapping[str, str]
    is_complete: bool
    owner: str
    made_up: frozenset[str] = frozenset()

    def get(self, key: str) -> str | None:
        """The value of a label, None where there is none.

        Raises:
            UndecidedError: When that is not known.
        """
        if key in self.made_up or (key not in self.known and not self.is_complete):
            raise UndecidedError(f"whether {self.owner} {NO_LABELS} {key} is not known here")
        return self.known.get(key)

    def value(self) -> Value:
        """The labels as expressions see them."""
        if self.is_complete and not self.made_up:
            return read_value(self.known)
        if self.is_complete:
            made_up = {
                key: NotKnown(f"the value of label {key} is made up by the server") for key in self.made_up
            }
            return to_value({**self.known, **made_up})
        return partly_known(
            self.known, lambda key: f"whether {self.owner} {NO_LABELS} {key} is not known here"
        )


def text_map(value: Any) -> dict[str, str]:
    """A mapping of texts to texts."""
    return {str(key): str(each) for key, each in mapping(value).items()}


class Views:
    """One object, as expressions see it in each version.

    Args:
        manifest: The object.
        record: The object as the server completes it; None where that is not known.
        labels: Its labels.
        namespace: Its namespace; None where it is not written.
        maker: The kind of the object whose controller makes it; empty for an object that is written.
        unknown: Fields of a pod that its controller writes; None where it may write any.
    """

    def __init__(
        self,
        manifest: Mapping[str, Any],
        record: KubernetesObject | None,
        labels: Labels,
        namespace: str | None,
        *,
        maker: str = "",
        unknown: Mapping[str, NotKnown] | None = None,
    ) -> None:
        self._maker = maker
        self._unknown = unknown
        self._manifest = manifest
        self._record = record
        self.labels = labels
        self._namespace = namespace

    @property
    def may_get_token(self) -> bool:
        """The server may add a volume to the pod, with a token of its account (plugin/pkg/admission/serviceaccount)."""
        pod = mapping(self._manifest.get("spec"))
        return self._manifest.get("kind") == "Pod" and pod.get("automountServiceAccountToken") is not False

    def view(self, version: str, *, is_filled_in: bool = False, has_token: bool = False) -> Value:
        """The object in a version.

        Args:
            version: The version.
            is_filled_in: A pod that LimitRanges fill in as well as a policy can wish, but with no resource more.
            has_token: A pod to which the server adds the volume with a token.
        """
        group, _, _ = str(self._manifest.get("apiVersion") or "").rpartition("/")
        kind = str(self._manifest.get("kind") or "")
        known: dict[str, Value] = {
            "apiVersion": f"{group}/{version}" if group else version,
            "kind": kind,
            "metadata": self._metadata(),
        }
        if isinstance(self._record, Checked):
            known["spec"] = read_value(_spec_in(self._record, version))
        elif kind == "Pod" and not group:
            unknown_fields = {} if self._unknown is None and not self._maker else self._unknown
            spec = mapping(self._manifest.get("spec"))
            if unknown_fields is not None:
                known["spec"] = _pod_spec(
                    spec, unknown_fields, is_filled_in=is_filled_in, has_token=has_token
                )
            else:
                known["spec"] = _part_of_pod_spec(spec, is_filled_in=is_filled_in, has_token=has_token)
        elif (workload := complete_workload(self._manifest)) is not None:
            values = {name: to_value(each) for name, each in workload.items()}
            known["spec"] = _fields_of(values, f"object.spec.{{}} of a {kind}")

        def unknown(key: str) -> str:
            return f"object.{key} of a {kind} is not known before the server has completed it"

        return partly_known(known, unknown)

    def _metadata(self) -> Value:
        metadata = mapping(self._manifest.get("metadata"))
        known: dict[str, Value] = {}
        absent: list[str] = []
        if self.labels.is_complete and not self.labels.known:
            absent.append("labels")
        elif self.labels.known or self._manifest.get("kind") == "Pod":
            # Every controller labels the pods that it makes.
            known["labels"] = self.labels.value()
        if self.labels.is_complete and not isinstance(metadata.get("annotations"), str):
            annotations = self._list_annotations()
            known |= {"annotations": _annotations(annotations)} if annotations else {}
            absent += [] if annotations else ["annotations"]
        for name in ("name", "generateName"):
            text = metadata.get(name)
            if isinstance(text, str) and text and not holds_placeholder(text):
                known[name] = text
        if "name" in known:
            absent.append("generateName")
        if self.labels.is_complete and not self._maker:
            # A controller writes its own into the objects that it makes.
            written = {name: metadata.get(name) for name in ("ownerReferences", "finalizers")}
            known |= {
                name: read_value(each)
                for name, each in written.items()
                if each and not holds_placeholder(each)
            }
            absent += [name for name, each in written.items() if not each]
        if self._namespace and self._manifest.get("kind") != "Namespace":
            known["namespace"] = self._namespace
        elif self._namespace is not None:
            absent.append("namespace")
        return partly_known(
            known,
            lambda key: f"object.metadata.{key} is not known before the server has completed it",
            absent,
        )

    def _list_annotations(self) -> dict[str, str]:
        annotations = text_map(mapping(self._manifest.get("metadata")).get("annotations"))
        if self._manifest.get("kind") == "DaemonSet":
            # The server keeps it for clients of versions that are gone.
            annotations["deprecated.daemonset.template.generation"] = "1"
        return annotations


def _spec_in(record: Checked, version: str) -> Any:
    """The spec as the server writes it in a version, with all that Go does not leave out."""
    spec = json.loads(record.to_go_json())["spec"]
    if version == "v1beta1":
        if isinstance(record, ResourceClaim):
            _flatten(spec["devices"], record.spec.devices)
        elif isinstance(record, ResourceClaimTemplate):
            _flatten(spec["spec"]["devices"], record.spec.spec.devices)
    return spec


def _flatten(devices: dict[str, Any], claim: DeviceClaim) -> None:
    if claim.requests:
        devices["requests"] = [json.loads(flat_request(each).to_go_json()) for each in claim.requests]


def _annotations(written: Mapping[str, str]) -> Value:
    def look_up(key: str) -> tuple[Value] | None:
        if holds_placeholder(written.get(key)):
            raise UndecidedError(f"the annotation {key} is not known here")
        return (written[key],) if key in written else None

    if holds_placeholder(written):
        return OpenMap(look_up, "not all annotations are known here")
    return read_value(written)


def to_value(data: Data) -> Value | NotKnown:
    """Return completed data as expressions see it; a list of which an item is not known is not known."""
    if isinstance(data, Mapping):
        values = {str(key): to_value(value) for key, value in data.items()}
        unknown = {key: value.reason for key, value in values.items() if isinstance(value, NotKnown)}
        if not unknown:
            return NativeMap.of(values.items())
        known = {key: value for key, value in values.items() if key not in unknown}

        def look_up(key: str) -> tuple[Value] | None:
            if key in unknown:
                raise UndecidedError(unknown[key])
            return (known[key],) if key in known else None

        return OpenMap(look_up, next(iter(unknown.values())))
    if isinstance(data, list):
        items = [to_value(item) for item in data]
        return next((item for item in items if isinstance(item, NotKnown)), items)
    return data if isinstance(data, NotKnown) else read_value(data)


def _pod_spec(
    spec: Mapping[str, Any], unknown: Mapping[str, NotKnown], *, is_filled_in: bool, has_token: bool
) -> Value:
    completed = {**complete_pod(spec, has_token=has_token), **unknown}
    values = {name: to_value(each) for name, each in completed.items()}
    if is_filled_in:
        for kind in ("containers", "initContainers"):
            containers = completed.get(kind)
            if isinstance(containers, list) and isinstance(values[kind], list):
                values[kind] = [_with_open_amounts(mapping(each)) for each in containers]
    return _fields_of(values, "object.spec.{} of a pod")


def _fields_of(values: Mapping[str, Value | NotKnown], what: str) -> Value:
    """Return an object of which some fields are not known, and all others are known to be there or not."""
    unknown = {name: each.reason for name, each in values.items() if isinstance(each, NotKnown)}
    known = {name: each for name, each in values.items() if not isinstance(each, NotKnown)}

    def look_up(key: str) -> tuple[Value] | None:
        if key in unknown:
            raise UndecidedError(f"{what.format(key)} is not known here: {unknown[key]}")
        return (known[key],) if key in known else None

    return OpenMap(look_up, "all fields of a spec at once")


def _with_open_amounts(container: Mapping[str, Data]) -> Value:
    """Return a container whose limits and requests a LimitRange may have completed."""
    resources = mapping(container.get("resources"))
    amounts: dict[str, Value] = {}
    for name in ("limits", "requests"):
        written = {
            key: value
            for key, value in mapping(resources.get(name)).items()
            if not isinstance(value, NotKnown)
        }
        amounts[name] = partly_known(written, lambda key: f"{key} {NO_LIMITS}", is_gone_over=True)
    claims = to_value(resources.get("claims", []))
    if claims and not isinstance(claims, NotKnown):
        amounts["claims"] = claims
    absent = ["claims"] if not claims else []
    open_resources = partly_known(
        amounts, lambda key: f"{key} of a container's resources is not known here", absent
    )
    fields = {name: to_value(each) for name, each in container.items()} | {"resources": open_resources}
    return _fields_of(fields, "{} of a container")


def _part_of_pod_spec(spec: Mapping[str, Any], *, is_filled_in: bool, has_token: bool) -> Value:
    """Return a pod of which a controller that is not known here may have written more: its containers, claims and volumes."""
    completed = complete_pod(spec, has_token=has_token)
    kept = ("containers", "initContainers", "ephemeralContainers", "resourceClaims", "volumes", "nodeName")
    values = {name: to_value(completed[name]) for name in kept if name in completed}
    if is_filled_in:
        for kind in ("containers", "initContainers"):
            containers = completed.get(kind)
            if isinstance(containers, list) and isinstance(values[kind], list):
                values[kind] = [_with_open_amounts(mapping(each)) for each in containers]
    known = {name: each for name, each in values.items() if not isinstance(each, NotKnown)}
    return partly_known(
        known,
        lambda key: f"object.spec.{key} of a pod is not known before its controller has made it",
        [name for name in kept if name not in completed],
    )
