"""Objects as a server gives them out, by `kubectl get -o yaml`: what controllers made of others, and what servers wrote.

A Deployment of a cluster comes with its ReplicaSets and their Pods. Only the first is anybody's to migrate.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.kubernetes.api import ObjectRef, WorkloadKinds, kind_of, mapping, mappings, value_at
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.old_dra.objects import GROUP
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.migration.workloads import find_kind

OWNED: Final = "owned-object"
"""The code of an object that a controller made."""

READ: Final = "written-by-server"
"""The code of an object that was read from a server, and changed."""

_WRITTEN: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
    "managedFields",
)
"""Fields of metadata that servers write."""

_ANNOTATIONS: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
)
"""Annotations that kubectl and controllers write: the first has all of the old object in it."""

_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer that the scheduler and the claim controller give claims in use."""

_OF_JOBS: Final = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)
"""Labels of a Job's pods that the server writes, and refuses on a new Job (generateSelector in pkg/registry/batch/job/strategy.go)."""

_CONTROL_PLANE: Final = {"kube-apiserver", "kube-controller-manager"}
"""Managers of the fields of what Kubernetes makes by itself, such as the PersistentVolumeClaims of a StatefulSet."""

_GIVEN: Final = {
    ("ConfigMap", "kube-root-ca.crt"),
    ("ServiceAccount", "default"),
    *(("Namespace", each) for each in ("default", "kube-node-lease", "kube-public", "kube-system")),
}
"""Kinds and names of what every namespace or cluster has, and gets again (pkg/controller/{certificates/rootcacertpublisher,serviceaccount})."""

_LABELS: Final = {"Namespace": ("kubernetes.io/metadata.name",), "Job": _OF_JOBS}
"""Labels that the server or a controller writes, by kind."""

GIVES_WAY: Final = ("kubectl", "before-first-apply")
"""Beginnings of the managers whose fields the provider makes its own."""

_WRITERS: Final = {
    "argocd-controller": "Argo CD",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "helm-controller": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "kustomize-controller": "Flux",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
}
"""Tools by the managers, and by the labels and annotations, that say them."""

_ADMITTED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""Taints that admission gives pods a toleration of, for 300 seconds (plugin/pkg/admission/defaulttolerationseconds)."""


def migrate_read(objects: Sequence[Mapping[str, Any]], settings: Settings) -> list[Migrated]:
    """Migrate objects as `migrate_objects` does, of which some may be as a server gave them out.

    What a controller made of an object of the input is left out where it would be changed, for the controller makes it anew.
    """
    names = {ObjectRef.of(each).stored for each in objects}
    owners = {
        index: owner
        for index, each in enumerate(objects)
        if settings.kinds.find(each) and (owner := find_owner(each))
    }
    plain = [without_written(each) for each in objects]
    own = iter(migrate_objects([each for index, each in enumerate(plain) if index not in owners], settings))
    return [
        _leave_out(each, owners[index], is_there=owners[index] in names, settings=settings)
        if index in owners
        else _as_read(each, plain[index], next(own))
        for index, each in enumerate(objects)
    ]


def find_owner(manifest: Mapping[str, Any]) -> ObjectRef | None:
    """The controller that made an object; None for what nobody made."""
    for each in mappings(mapping(manifest.get("metadata")).get("ownerReferences")):
        if each.get("controller") is True:
            return ObjectRef(kind_of(each), str(each.get("name")), ObjectRef.of(manifest).stored.namespace)
    return None


def find_beside(objects: Sequence[Mapping[str, Any]]) -> set[int]:
    """Positions of objects of a server that are no user's: of those with owners, of Helm releases, and what Kubernetes makes by itself."""
    sets = {
        (ref.namespace, f"{mapping(each.get('metadata')).get('name')}-{ref.name}")
        for ref, manifest in ((ObjectRef.of(each).stored, each) for each in objects)
        if manifest.get("kind") == "StatefulSet"
        for each in mappings(value_at(manifest, "spec", "volumeClaimTemplates"))
    }
    return {
        index
        for index, each in enumerate(objects)
        if find_owner(each) or (without_written(each) is not each and _is_of_others(each, sets))
    }


def runs_once(manifest: Mapping[str, Any]) -> bool:
    """True for a Pod or Job of a server: what servers write into its spec makes the provider replace it (its diff.go), or its import fail."""
    known = (manifest.get("apiVersion"), manifest.get("kind")) in (("v1", "Pod"), ("batch/v1", "Job"))
    return known and without_written(manifest) is not manifest


def _is_of_others(manifest: Mapping[str, Any], sets: Collection[tuple[str, str]]) -> bool:
    ref = ObjectRef.of(manifest).stored
    managers = managers_of(manifest)
    (stem, _, number) = ref.name.rpartition("-")
    of_set = ref.kind == "PersistentVolumeClaim" and (ref.namespace, stem) in sets and number.isdigit()
    return bool(
        value_at(manifest, "metadata", "annotations", "meta.helm.sh/release-name")
        or (ref.kind, ref.name) in _GIVEN
        or (managers <= _CONTROL_PLANE if managers else of_set)
    )


def managers_of(manifest: Mapping[str, Any]) -> set[str]:
    """The managers of fields that are neither metadata nor status; none where the object does not say them."""
    return {
        str(each.get("manager"))
        for each in mappings(mapping(manifest.get("metadata")).get("managedFields"))
        if mapping(each.get("fieldsV1")).keys() - {"f:metadata", "f:status"} and not each.get("subresource")
    }


def find_writers(manifest: Mapping[str, Any]) -> set[str]:
    """Who makes the object what it is, beside kubectl and Kubernetes itself: such as Argo CD, or a stack of Pulumi."""
    metadata = mapping(manifest.get("metadata"))
    marks = {*mapping(metadata.get("annotations")), *mapping(metadata.get("labels"))}
    names = {_WRITERS.get(each, each) for each in managers_of(manifest) - _CONTROL_PLANE}
    names |= {who for mark, who in _WRITERS.items() if mark in marks}
    return {
        "another stack of Pulumi" if each.startswith("pulumi-kubernetes") else each
        for each in names
        if not each.startswith(GIVES_WAY)
    }


def is_without_devices(manifest: Mapping[str, Any], done: Migrated, kinds: WorkloadKinds) -> bool:
    """True for an object of a cluster, nothing of which is migrated, that has no claims either."""
    kind = find_kind(manifest, kinds)
    pods = (mapping(spec) for _, spec in kind.find_holders(manifest)) if kind else ()
    has_claims = GROUP in str(manifest.get("apiVersion")) or any(each.get("resourceClaims") for each in pods)
    is_kept = without_written(manifest) is not manifest and done == Migrated(manifest=manifest)
    return is_kept and not has_claims


def _leave_out(
    manifest: Mapping[str, Any], owner: ObjectRef, *, is_there: bool, settings: Settings
) -> Migrated:
    plain = without_written(manifest)
    (done,) = migrate_objects([plain], settings)
    # Without the group of its kind.
    maker = f"{owner.kind.partition('.')[0]} {owner.name}"
    at = "metadata.ownerReferences"
    if done.manifest is plain:
        return Migrated(manifest=manifest) if is_there else replace(done, manifest=manifest)
    if is_there:
        message = f"it is left out: {maker} makes it anew"
        return Migrated(manifest=None, remarks=(Remark(at, "changed", OWNED, message),))
    message = f"it stays as it is: {maker} made it, and is not in the input"
    hint = f"migrate {maker}, or what that belongs to"
    return Migrated(manifest=manifest, remarks=(Remark(at, "decide", OWNED, message, hint),))


def without_written(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object without what servers write; the very same one where it was not read from one."""
    metadata = mapping(manifest.get("metadata"))
    if not metadata.get("uid"):
        return manifest
    kept = _without(metadata, _WRITTEN)
    _narrow(kept, "annotations", lambda held: _without(held, _ANNOTATIONS))
    kind = manifest.get("kind")
    is_manual = value_at(manifest, "spec", "manualSelector") is True
    _narrow(kept, "labels", lambda held: _without(held, () if is_manual else _LABELS.get(str(kind), ())))
    if isinstance(kept.get("finalizers"), list):
        kept["finalizers"] = [each for each in kept["finalizers"] if each != _FINALIZER]
    cleaned = {key: each for key, each in kept.items() if each or key != "finalizers"}
    made = {**_without(manifest, ("status",)), "metadata": cleaned}
    _narrow(made, "spec", _SPECS.get(str(kind), _of_template), keep=kind != "Namespace")
    return made


def _narrow(
    held: dict[str, Any],
    key: str,
    narrow: Callable[[Mapping[str, Any]], dict[str, Any]],
    *,
    keep: bool = False,
) -> None:
    """Puts what is left of a mapping in its place, and takes it out where nothing is left, unless that is to be kept."""
    if isinstance(held.get(key), Mapping):
        held[key] = narrow(held[key])
        if not held[key] and not keep:
            del held[key]


def _of_pod(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec of a Pod without its node and without what admission adds (plugin/pkg/admission/serviceaccount)."""
    tokens = [str(each.get("name")) for each in mappings(spec.get("volumes"))]
    tokens = [each for each in tokens if each.startswith("kube-api-access-")]
    made = _without(_of_template(spec), ("nodeName",))
    for key in ("containers", "initContainers"):
        if isinstance(made.get(key), list):
            made[key] = [_of_container(each, tokens) for each in made[key]]
    _sift(made, "volumes", lambda each: each.get("name") in tokens)
    _sift(
        made,
        "tolerations",
        lambda each: each.get("key") in _ADMITTED and each.get("tolerationSeconds") == 300,
    )
    return made


def _of_container(container: Any, tokens: Sequence[str]) -> Any:
    if not isinstance(container, Mapping):
        return container
    made = dict(container)
    _sift(made, "volumeMounts", lambda each: each.get("name") in tokens)
    return made


def _sift(held: dict[str, Any], key: str, is_written: Callable[[Mapping[str, Any]], bool]) -> None:
    """Takes entries out that servers wrote, and the list with them where no others are left."""
    entries = held.get(key)
    if isinstance(entries, list):
        held[key] = [each for each in entries if not (isinstance(each, Mapping) and is_written(each))]
        if entries and not held[key]:
            del held[key]


def _of_job(spec: Mapping[str, Any]) -> dict[str, Any]:
    if spec.get("manualSelector") is True:
        return _of_template(spec)
    made = _without(spec, ("selector",))
    template = dict(mapping(spec.get("template")))
    metadata = dict(mapping(template.get("metadata")))
    _narrow(metadata, "labels", lambda held: _without(held, _OF_JOBS))
    if template:
        made["template"] = {**template, "metadata": metadata}
    return _of_template(made)


def _of_template(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec without the older name of its account; its templates without `creationTimestamp: null`, which servers before 1.35 write."""
    is_same = spec.get("serviceAccountName") == spec.get("serviceAccount")
    made = _without(spec, ("serviceAccount",) if is_same else ())
    for key in ("template", "jobTemplate"):
        if isinstance(made.get(key), Mapping):
            made[key] = dict(made[key])
            _narrow(made[key], "metadata", lambda held: _without(held, ("creationTimestamp",)))
            _narrow(made[key], "spec", _of_template, keep=True)
    return made


def _of_claim_template(spec: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(spec)
    _narrow(made, "metadata", lambda held: _without(held, ("creationTimestamp",)))
    return made


def _of_namespace(spec: Mapping[str, Any]) -> dict[str, Any]:
    return _without(spec, ("finalizers",))


_SPECS: Final = {
    "Pod": _of_pod,
    "Job": _of_job,
    "Namespace": _of_namespace,
    "ResourceClaimTemplate": _of_claim_template,
}
"""By kind, the functions that take out what servers write into a spec; of other kinds only metadata of templates goes."""


def _without(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in names}


def _as_read(manifest: Mapping[str, Any], plain: Mapping[str, Any], done: Migrated) -> Migrated:
    """The outcome of an object, where it changed without what servers write."""
    if done.manifest is plain:
        return replace(done, manifest=manifest)
    if done.manifest is None or plain is manifest:
        return done
    message = "what servers write is left out: status, uid, managedFields and others of metadata"
    if manifest.get("kind") in ("Pod", "Job"):
        message += f", and what they write into the spec of a {manifest['kind']}"
    return replace(done, remarks=(*done.remarks, Remark("metadata", "changed", READ, message)))
