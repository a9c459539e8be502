"""Objects as the expressions of policies see them: what is known of each before the server has completed it.

Upstream: ToUnstructured in `k8s.io/apimachinery/pkg/runtime/converter.go`, and SetDefaults_Pod in `pkg/apis/core/v1/defaults.go`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import UNKNOWN, holds_marker, is_marker, mapping, mappings
from dra_infra.kubernetes.api.quantity import Quantity, quantity_text
from dra_infra.kubernetes.api.record import KubernetesObject
from dra_infra.kubernetes.api.resource_claim import DeviceClaim, ResourceClaim, ResourceClaimTemplate
from dra_infra.kubernetes.api.v1beta1 import flat_request
from dra_infra.kubernetes.apiserver.policies.expressions import (
    UndecidedError,
    Value,
    partly_known,
    read_value,
)
from dra_infra.kubernetes.apiserver.verdict import Checked
from dra_infra.kubernetes.cel.interpreter.maps import OpenMap

NO_LABELS: Final = "has the label"
"""A part of the reason why labels are not known."""

NO_LIMITS: Final = "may be filled in by a LimitRange of a namespace that is not given"
"""A part of the reason why limits and requests that a container does not have are not known."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of an object."""

    known: Mapping[str, str]
    is_complete: bool
    owner: str

    def get(self, key: str) -> str | None:
        """The value of a label, None where there is none.

        Raises:
            UndecidedError: When that is not known.
        """
        if key not in self.known and not self.is_complete:
            raise UndecidedError(f"whether {self.owner} {NO_LABELS} {key} is not known here")
        return self.known.get(key)

    def value(self) -> Value:
        """The labels as expressions see them."""
        if self.is_complete:
            return read_value(self.known)
        return partly_known(
            self.known, lambda key: f"whether {self.owner} {NO_LABELS} {key} is not known here"
        )


def text_map(value: Any) -> dict[str, str]:
    """A mapping of texts to texts."""
    return {str(key): str(each) for key, each in mapping(value).items()}


class Views:
    """One object, as expressions see it in each version."""

    def __init__(
        self,
        manifest: Mapping[str, Any],
        record: KubernetesObject | None,
        labels: Labels,
        namespace: str | None,
    ) -> None:
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
            known["spec"] = _pod_spec(
                mapping(self._manifest.get("spec")), is_filled_in=is_filled_in, has_token=has_token
            )

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
            annotations = text_map(metadata.get("annotations"))
            known |= {"annotations": _annotations(annotations)} if annotations else {}
            absent += [] if annotations else ["annotations"]
        for name in ("name", "generateName"):
            text = metadata.get(name)
            if isinstance(text, str) and text and not holds_marker(text):
                known[name] = text
        if "name" in known:
            absent.append("generateName")
        if self._namespace and self._manifest.get("kind") != "Namespace":
            known["namespace"] = self._namespace
        elif self._namespace is not None:
            absent.append("namespace")
        return partly_known(
            known,
            lambda key: f"object.metadata.{key} is not known before the server has completed it",
            absent,
        )


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
        if holds_marker(written.get(key)):
            raise UndecidedError(f"the annotation {key} is not known here")
        return (written[key],) if key in written else None

    if holds_marker(written):
        return OpenMap(look_up, "not all annotations are known here")
    return read_value(written)


def _pod_spec(spec: Mapping[str, Any], *, is_filled_in: bool, has_token: bool) -> Value:
    """A pod spec, of which the containers' names, images and resources, the claims, the volumes and the node's name are known."""
    known: dict[str, Value] = {}
    absent: list[str] = []
    # The server writes no node: pods of a DaemonSet have an affinity, and the scheduler binds later.
    for name, value in (
        ("nodeName", spec.get("nodeName") or ""),
        ("volumes", _volumes(spec, has_token=has_token)),
    ):
        if value in ("", []):
            absent.append(name)
        elif isinstance(value, list) or (isinstance(value, str) and not holds_marker(value)):
            known[name] = value
    for kind in ("containers", "initContainers"):
        containers = mappings(spec.get(kind))
        if containers:
            known[kind] = [_container(each, is_filled_in=is_filled_in) for each in containers]
        else:
            absent.append(kind)
    if spec.get("ephemeralContainers") is None:
        absent.append("ephemeralContainers")
    claims = spec.get("resourceClaims")
    if not claims:
        absent.append("resourceClaims")
    elif not holds_marker(claims):
        known["resourceClaims"] = read_value(claims)
    return partly_known(
        known,
        lambda key: f"object.spec.{key} of a pod is not known before the server has completed it",
        absent,
    )


def _volumes(spec: Mapping[str, Any], *, has_token: bool) -> list[Value] | None:
    """The volumes of a pod; None where not all of them are known."""
    written = spec.get("volumes") or []
    volumes = mappings(written)
    if volumes != written:
        return None
    return [
        _volume(each) for each in (*volumes, *([{"name": UNKNOWN, "projected": {}}] if has_token else []))
    ]


def _volume(volume: Mapping[str, Any]) -> Value:
    """A volume, of which is known which source it has, and what is written of it."""
    sources = {name: each for name, each in volume.items() if name != "name" and each is not None}
    # A volume without a source is an emptyDir (SetDefaults_Volume).
    known: dict[str, Value] = {name: _source(each) for name, each in (sources or {"emptyDir": {}}).items()}
    name = volume.get("name")
    if isinstance(name, str) and not holds_marker(name):
        known["name"] = name

    def look_up(key: str) -> tuple[Value] | None:
        if key == "name" and key not in known:
            raise UndecidedError("the name of a volume is not known here")
        return (known[key],) if key in known else None

    return OpenMap(look_up, "all of a volume at once")


def _source(source: Any) -> Value:
    fields = {
        str(name): each
        for name, each in mapping(source).items()
        if isinstance(each, (str, bool)) and not holds_marker(each)
    }
    return partly_known(
        fields, lambda key: f"{key} of a volume is not known before the server has completed it"
    )


def _container(container: Mapping[str, Any], *, is_filled_in: bool) -> Value:
    known: dict[str, Value] = {
        name: value
        for name in ("name", "image")
        if isinstance(value := container.get(name), str) and not holds_marker(value)
    }
    resources = mapping(container.get("resources"))
    limits, requests = _amounts(resources.get("limits")), _amounts(resources.get("requests"))
    # A limit stands in for a request that is not written (SetDefaults_Pod in pkg/apis/core/v1/defaults.go).
    completed = {**limits, **requests} if limits is not None and requests is not None else None
    found = {"limits": limits, "requests": completed}
    written = {name: each for name, each in found.items() if each is not None}
    amounts = {
        name: partly_known(each, lambda key: f"{key} {NO_LIMITS}", is_gone_over=True)
        if is_filled_in
        else read_value(each)
        for name, each in written.items()
        if each or is_filled_in
    }
    absent = [name for name in written if name not in amounts]
    claims = resources.get("claims")
    if not claims:
        absent.append("claims")
    elif not holds_marker(claims):
        amounts["claims"] = read_value(claims)
    known["resources"] = partly_known(
        amounts, lambda key: f"{key} of a container's resources is not known here", absent
    )
    return partly_known(
        known, lambda key: f"{key} of a container is not known before the server has completed it"
    )


def _amounts(written: Any) -> dict[str, str] | None:
    """Quantities as the server writes them; None where one is not known."""
    found: dict[str, str] = {}
    for name, value in mapping(written).items():
        text = quantity_text(value)
        if text is None or is_marker(text):
            return None
        try:
            found[str(name)] = Quantity.parse(text).canonical()
        except ValueError:
            return None
    return found
