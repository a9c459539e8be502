"""Rules for the claim parts of pods (pkg/apis/core/validation/validation.go), and whether what they name is there."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from dra_infra.errors import Problem
from dra_infra.model import names
from dra_infra.model.device_class import API_VERSION
from dra_infra.model.pods import PodTemplate, find_pod_templates
from dra_infra.model.program import SECRET, UNKNOWN, Program


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownClaims:
    """The classes, and the claims and templates as (namespace, name), that a program makes."""

    classes: frozenset[str]
    claims: frozenset[tuple[str, str]]
    templates: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, program: Program) -> Self:
        """What *program* makes."""
        refs = [each.ref for each in program.objects if each.manifest.get("apiVersion") == API_VERSION]
        return cls(
            classes=frozenset(ref.name for ref in refs if ref.kind == "DeviceClass"),
            claims=frozenset((ref.namespace, ref.name) for ref in refs if ref.kind == "ResourceClaim"),
            templates=frozenset(
                (ref.namespace, ref.name) for ref in refs if ref.kind == "ResourceClaimTemplate"
            ),
        )


def check_pods(manifest: Mapping[str, Any], known: KnownClaims) -> Iterator[Problem]:
    """Check the pod template of *manifest*, if its kind carries one."""
    for template in find_pod_templates(manifest):
        yield from _check_entries(template, known)
        yield from _check_containers(template)


def _check_entries(template: PodTemplate, known: KnownClaims) -> Iterator[Problem]:
    seen: set[str] = set()
    namespace = template.owner.namespace
    for index, entry in enumerate(template.claims):
        path = f"{template.path}.resourceClaims[{index}]"
        if not names.is_dns_label(entry.name):
            yield Problem(
                path=f"{path}.name", code="invalid-name", message=f"{entry.name!r} is not a DNS label"
            )
        if entry.name in seen:
            yield Problem(
                path=f"{path}.name", code="duplicate-claim", message=f"{entry.name!r} is there twice"
            )
        seen.add(entry.name)
        if (entry.claim_name is None) == (entry.template_name is None):
            yield Problem(
                path=path,
                code="one-of",
                message="exactly one of `resourceClaimName` and `resourceClaimTemplateName` must be set",
            )
            continue
        kind, name, there, elsewhere = (
            ("ResourceClaim", entry.claim_name, known.claims, known.templates)
            if entry.claim_name is not None
            else ("ResourceClaimTemplate", entry.template_name, known.templates, known.claims)
        )
        if name in (UNKNOWN, SECRET) or (namespace, name) in there:
            continue
        yield _not_found(path, kind, str(name), namespace, there, elsewhere)


def _not_found(
    path: str,
    kind: str,
    name: str,
    namespace: str,
    there: frozenset[tuple[str, str]],
    elsewhere: frozenset[tuple[str, str]],
) -> Problem:
    other = "ResourceClaim" if kind == "ResourceClaimTemplate" else "ResourceClaimTemplate"
    namespaces = sorted(space or "default" for space, each in there if each == name)
    if (namespace, name) in elsewhere:
        hint = f"{name!r} is a {other}: use the other field"
    elif namespaces:
        hint = f"it is in namespace {namespaces[0]!r}; claims and pods must share one"
    else:
        near = difflib.get_close_matches(
            name, sorted(each for space, each in there if space == namespace), n=1
        )
        hint = f"did you mean {near[0]!r}?" if near else "it must exist in the cluster, or pods stay pending"
    return Problem(
        path=path,
        code="claim-not-known",
        message=f"{kind} {name!r} is not in this program in namespace {namespace or 'default'!r}",
        hint=hint,
        severity="warning",
    )


def _check_containers(template: PodTemplate) -> Iterator[Problem]:
    entries = {entry.name for entry in template.claims}
    seen: set[tuple[str, str, str | None]] = set()
    for use in template.container_claims:
        path = f"{template.path}.containers[{use.container}].resources.claims"
        if use.name not in entries:
            yield Problem(
                path=path,
                code="claim-not-in-pod",
                message=f"{use.name!r} is not in the pod's resourceClaims",
                hint=f"its entries are {', '.join(sorted(map(repr, entries))) or 'none'}",
            )
        whole, part = (use.container, use.name, None), (use.container, use.name, use.request)
        overlaps = part in seen or whole in seen
        if use.request is None:
            overlaps = any(each[:2] == whole[:2] for each in seen)
        if overlaps:
            yield Problem(
                path=path,
                code="claim-attached-twice",
                message=f"container {use.container!r} uses {use.name!r} more than once",
                hint="use a claim once per container, or each request of it once",
            )
        seen.add(part)
