"""What `explain NAME` means: `pod/x`, `deployment/x`, `claim/x`, or `x` of any kind that has pods or is a claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_infra.errors import Problem, ProgramError
from dra_infra.model.metadata import ObjectRef

_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("claim", "claims", "resourceclaim", "resourceclaims"), "ResourceClaim"),
    **dict.fromkeys(("template", "resourceclaimtemplate", "resourceclaimtemplates"), "ResourceClaimTemplate"),
    **dict.fromkeys(("pod", "pods", "po"), "Pod"),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "CronJob"),
    **dict.fromkeys(("replicationcontroller", "rc"), "ReplicationController"),
}
_ORDER: Final = tuple(dict.fromkeys(_KINDS.values()))


def find_subject(
    name: str, namespace: str | None, manifests: Iterable[Mapping[str, Any]]
) -> tuple[ObjectRef, Mapping[str, Any]]:
    """The object of that name.

    Args:
        name: `kind/name`, or a name alone.
        namespace: Its namespace; None for any, when only one has such an object.
        manifests: Where to look.

    Raises:
        ProgramError: `subject-not-known`: of no kind, not there, or there several times.
    """
    kind, slash, rest = name.rpartition("/")
    wanted = _KINDS.get(kind.lower()) if slash else None
    if slash and wanted is None:
        raise _unknown(
            name, f"{kind} is no kind of pods or claims", f"write pod/{rest}, or one of: {', '.join(_ORDER)}"
        )
    found: dict[ObjectRef, Mapping[str, Any]] = {}
    near: list[str] = []
    for manifest in manifests:
        ref = ref_of(manifest)
        if ref.kind not in _ORDER:
            continue
        if (
            ref.name == rest
            and wanted in (None, ref.kind)
            and namespace in (None, ref.namespace or "default")
        ):
            found[ref] = manifest
        elif wanted in (None, ref.kind):
            near.append(f"{ref.kind.lower()}/{ref.name}" + (f" -n {ref.namespace}" if ref.namespace else ""))
    if not found:
        where = f" in namespace {namespace}" if namespace else ""
        raise _unknown(
            name,
            f"there is no {name}{where}",
            f"there are: {_listed(near)}" if near else "nothing of these kinds is there",
        )
    order = sorted(found, key=lambda ref: (_ORDER.index(ref.kind), ref.namespace))
    if len({ref.namespace for ref in found}) > 1 or (wanted is None and len(found) > 1):
        told = [f"{ref.kind.lower()}/{ref.name} -n {ref.namespace or 'default'}" for ref in order]
        raise _unknown(name, f"{name} is there several times", f"write one of: {_listed(told)}")
    return order[0], found[order[0]]


def ref_of(manifest: Mapping[str, Any]) -> ObjectRef:
    """Kind, namespace and name."""
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return ObjectRef(
        kind=str(manifest.get("kind") or ""),
        name=str(metadata.get("name") or ""),
        namespace=str(metadata.get("namespace") or ""),
    )


def _listed(names: list[str]) -> str:
    names = sorted(dict.fromkeys(names))
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _unknown(name: str, message: str, hint: str) -> ProgramError:
    return ProgramError([Problem(path=name[:80], code="subject-not-known", message=message, hint=hint)])
