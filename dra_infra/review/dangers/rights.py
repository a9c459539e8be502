"""Dangers of widened rights: rules of roles, bindings, admin access to devices, and namespaces that allow more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import CLAIM_KINDS, ObjectRef, group_of
from dra_infra.kubernetes.api.pod_security import ENFORCE, LEVELS, enforced_level
from dra_infra.output.wording import join_words
from dra_infra.program_objects import ProgramObject, get_field
from dra_infra.review.comparison import Comparison
from dra_infra.review.dangers import Danger

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_RBAC: Final = "rbac.authorization.k8s.io"


class _Right(NamedTuple):
    """One verb on one resource; `group` is `-` and `resource` a path for URLs, `name` is `*` for all objects."""

    group: str
    resource: str
    verb: str
    name: str


def find_widened_rights(compared: Comparison) -> Iterator[Danger]:
    """`rights-widened` and `admin-access-added`."""
    for change in compared.changes:
        new = change.after
        if new is None:
            continue
        old = change.before or compared.base_index.objects.get(change.ref)
        if group_of(new.manifest) == _RBAC:
            yield from _find_rbac(old, new, compared)
        elif new.ref.kind == "Namespace":
            yield from _find_namespace(old, new)
        elif new.ref.kind in CLAIM_KINDS:
            yield from _find_admin_access(old, new)


def _find_admin_access(old: ProgramObject | None, new: ProgramObject) -> Iterator[Danger]:
    if _has_admin_access(new.manifest) and not (old is not None and _has_admin_access(old.manifest)):
        yield Danger(
            who=new.ref,
            code="admin-access-added",
            message="asks for admin access: its pods see devices that others have, and may use them",
            hint="for monitoring alone; drop admin_access=True where pods compute",
        )


def _has_admin_access(manifest: Mapping[str, Any]) -> bool:
    """True for a claim or template that asks for admin access."""
    path = (
        "spec.spec.devices.requests"
        if manifest.get("kind") == "ResourceClaimTemplate"
        else "spec.devices.requests"
    )
    requests = get_field(manifest, path)
    return isinstance(requests, list) and any(
        isinstance(each, Mapping) and get_field(each, "exactly.adminAccess") is True for each in requests
    )


def _find_rbac(old: ProgramObject | None, new: ProgramObject, compared: Comparison) -> Iterator[Danger]:
    if new.ref.kind in ("Role", "ClusterRole"):
        # A role that is new gives nothing to anybody until it is bound, which is said of the binding.
        if old is not None and (text := _describe_growth(old.manifest, new.manifest)):
            yield Danger(
                who=new.ref, code="rights-widened", message=f"gains {text}{_bound(new.ref, compared)}"
            )
    elif new.ref.kind in ("RoleBinding", "ClusterRoleBinding"):
        role = get_field(new.manifest, "roleRef")
        known = set(_subjects(old.manifest)) if old and get_field(old.manifest, "roleRef") == role else set()
        gained = [subject for subject in _subjects(new.manifest) if subject not in known]
        if gained and isinstance(role, Mapping):
            everywhere = " in the whole cluster" if new.ref.kind == "ClusterRoleBinding" else ""
            yield Danger(
                who=new.ref,
                code="rights-widened",
                message=f"gives {join_words(gained)} the rights of {role.get('kind')} {role.get('name')}{everywhere}",
            )


def _bound(role: ObjectRef, compared: Comparison) -> str:
    """Whom the program binds a role to."""
    subjects = {
        subject
        for ref, item in compared.head_index.objects.items()
        if ref.kind.endswith("Binding")
        and get_field(item.manifest, "roleRef.name") == role.name
        and get_field(item.manifest, "roleRef.kind") == role.kind
        and role.namespace in ("", ref.namespace)
        for subject in _subjects(item.manifest)
    }
    return f", for {join_words(sorted(subjects))}" if subjects else ""


def _find_namespace(old: ProgramObject | None, new: ProgramObject) -> Iterator[Danger]:
    before, after = (_labels(side.manifest) if side else {} for side in (old, new))
    if after.get(ADMIN_LABEL) == "true" and before.get(ADMIN_LABEL) != "true":
        yield Danger(
            who=new.ref,
            code="admin-access-added",
            message=f"gets the label {ADMIN_LABEL}: whoever may create claims in it sees the devices of all others",
            hint="keep ordinary users out of the namespace",
        )
    # A level that is known only after `pulumi up` may be any.
    was, now = (enforced_level(labels) or "privileged" for labels in (before, after))
    # A namespace that is new takes nothing back that was forbidden before.
    if old is not None and LEVELS.index(now) < LEVELS.index(was):
        yield Danger(
            who=new.ref,
            code="rights-widened",
            message=f"lets {now} pods in, and only {was} ones until now ({ENFORCE})",
            hint=""
            if now != "privileged"
            else "a privileged pod takes its node and all devices of it without a claim; keep the label",
        )


def _labels(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    labels = get_field(manifest, "metadata.labels")
    return labels if isinstance(labels, Mapping) else {}


def _subjects(manifest: Mapping[str, Any]) -> list[str]:
    subjects = manifest.get("subjects")
    return [
        str(
            ObjectRef(
                kind=str(each.get("kind")),
                name=str(each.get("name")),
                namespace=str(each.get("namespace") or ""),
            )
        )
        for each in (subjects if isinstance(subjects, list) else ())
        if isinstance(each, Mapping)
    ]


def _describe_growth(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """`get and list on secrets, * on pods/exec`: what no rule allowed before."""
    known = _rights(before)
    grown: dict[str, list[str]] = {}
    for right in _rights(after):
        if not any(_covers(each, right) for each in known):
            group = f".{right.group}" if right.group not in ("", "-", "*") else ""
            name = f" {right.name}" if right.name != "*" else ""
            verbs = grown.setdefault(f"{right.resource}{group}{name}", [])
            if right.verb not in verbs:
                verbs.append(right.verb)
    return join_words([f"{join_words(verbs)} on {resource}" for resource, verbs in grown.items()])


def _rights(role: Mapping[str, Any]) -> list[_Right]:
    rules = role.get("rules")
    return [
        right
        for rule in (rules if isinstance(rules, list) else ())
        if isinstance(rule, Mapping)
        for right in _read(rule)
    ]


def _read(rule: Mapping[str, Any]) -> Iterator[_Right]:
    for verb in _texts(rule.get("verbs")):
        for path in _texts(rule.get("nonResourceURLs")):
            yield _Right("-", path, verb, "*")
        for group in _texts(rule.get("apiGroups")):
            for resource in _texts(rule.get("resources")):
                for name in _texts(rule.get("resourceNames")) or ("*",):
                    yield _Right(group, resource, verb, name)


def _covers(have: _Right, want: _Right) -> bool:
    """Source: PolicyRule in k8s.io/api/rbac/v1 and the matching in pkg/apis/rbac/v1/evaluation_helpers.go."""
    if have.verb not in ("*", want.verb):
        return False
    if "-" in (have.group, want.group):
        path = have.resource.endswith("*") and want.resource.startswith(have.resource[:-1])
        return have.group == want.group and (have.resource == want.resource or path)
    sub = want.resource.partition("/")[2]
    return (
        have.group in ("*", want.group)
        and have.resource in ("*", want.resource, *([f"*/{sub}"] if sub else []))
        and have.name in ("*", want.name)
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
