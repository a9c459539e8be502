"""Questions about objects that are not in a cluster yet: of a program, or of manifests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from dra_infra.catalog.train_jobs import with_runtime
from dra_infra.errors import Problem, ProgramError
from dra_infra.explanation.asking import ClusterContext, SubjectQuestion, read_allocation, read_claim
from dra_infra.explanation.question import AskedClaim
from dra_infra.kubernetes.api import CLAIM_KINDS, ObjectRef, PodTemplate, WorkloadKinds, name_of, value_at
from dra_infra.kubernetes.scheduler import find_unmodelled
from dra_infra.placement.demand import find_unknown, without_known_classes
from dra_infra.placement.objects import count_seats, show_crowd
from dra_infra.placement.workloads import at_allocations
from dra_infra.specs.compute_domains import channel_template

Manifest = Mapping[str, Any]


def ask_program(
    manifest: Manifest,
    around: ClusterContext,
    manifests: Sequence[Manifest],
    running: Sequence[Manifest] = (),
    *,
    part: str = "",
    kinds: WorkloadKinds,
    held: Mapping[ObjectRef, Manifest] = MappingProxyType({}),
) -> SubjectQuestion:
    """The question about one object.

    Args:
        manifest: The object.
        around: Fleet, release and what is in use.
        manifests: All objects of the program.
        running: Objects of the cluster, where claims and templates may be too.
        part: Which of its pods, where the object makes several kinds of them.
        kinds: Kinds of objects that make pods.
        held: Claims of others that are allocated and stay so, by namespace and name.

    Raises:
        ProgramError: `subject-not-known` for a part that is not there, or where none is named of several with claims.
    """
    subject = ObjectRef.of(manifest)
    if subject.kind in CLAIM_KINDS:
        claims, causes = _claims([manifest], around)
        return SubjectQuestion(
            subject=str(subject), question=around.ask(claims) if claims else None, causes=tuple(causes)
        )
    template = _choose(subject, list(kinds.find_pod_templates(with_runtime(manifest, manifests))), part)
    if template is None:
        return SubjectQuestion(subject=str(subject), causes=(_unreadable(subject),))
    subject = replace(subject, part=template.owner.part)
    template, used = at_allocations(template, held)
    elsewhere = {str(ObjectRef.of(each)): result for each in used if (result := read_allocation(each))}
    needed, missing = _find_claims(subject, template, (*manifests, *running))
    causes = [*_find_unusable(used, template.replicas or 0), *missing]
    claims, problems = _claims(needed, around)
    causes += problems
    claims = [
        replace(each, is_shared=(template.replicas or 1) > 1 and each.path == "spec") for each in claims
    ]
    question = None
    try:
        if not any(each.severity == "error" for each in causes):
            priority = _find_priority(template.spec, (*manifests, *running))
            waits = not (subject.kind == "Pod" and manifest.get("status"))
            question = around.ask(claims, template, elsewhere=[*elsewhere.items()], waits=waits)
            question = replace(question, priority=priority)
    except ValueError as error:
        causes.append(_malformed(subject, template, error))
    if question is not None and not question.claims and not used:
        causes.append(_without_claims(subject))
    return SubjectQuestion(
        subject=str(subject),
        question=question,
        causes=tuple(causes),
        unmodelled=find_unmodelled(template, manifest),
    )


def _find_claims(
    subject: ObjectRef, template: PodTemplate, manifests: Sequence[Manifest]
) -> tuple[list[Manifest], list[Problem]]:
    """Return the claims and templates that pods name, and why others of them are not there."""
    # The driver's controller makes templates of ComputeDomains.
    made = [
        channels
        for domain in manifests
        if domain.get("kind") == "ComputeDomain" and (channels := channel_template(domain))
    ]
    needed = []
    causes = []
    for entry in template.claims:
        kind = "ResourceClaim" if entry.claim_name is not None else "ResourceClaimTemplate"
        name = str(entry.claim_name or entry.template_name or "")
        if not name and template.places:
            causes.append(_made_by_controller(subject, template))
            continue
        claim = _find(kind, name, subject.namespace, (*manifests, *made))
        if claim is None:
            causes.append(_missing(ObjectRef(kind, name, subject.namespace), subject, entry.name))
        else:
            needed.append(claim)
    return needed, causes


_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def _find_priority(spec: Mapping[str, Any], objects: Sequence[Manifest]) -> int | None:
    """The priority that the server gives a pod (plugin/pkg/admission/priority); None where its class is not known."""
    name = spec.get("priorityClassName")
    values = [
        each.get("value")
        for each in objects
        if each.get("kind") == "PriorityClass"
        and (name_of(each) == name if name else each.get("globalDefault") is True)
    ]
    # Of several defaults the lowest counts.
    known = min((each for each in values if isinstance(each, int)), default=None if name else 0)
    return _SYSTEM_PRIORITIES.get(str(name), known)


def _choose(subject: ObjectRef, templates: Sequence[PodTemplate], part: str) -> PodTemplate | None:
    """The pods that are asked about: those of the part, else the only ones, or the only ones with claims."""
    if not part and len(templates) < 2:
        return next(iter(templates), None)
    wanted = [each for each in templates if (each.owner.part == part if part else each.claims)]
    if len(wanted) == 1:
        return wanted[0]
    names = [f"{subject.kind.lower()}/{subject.name}/{each.owner.part}" for each in templates]
    what = f"has no pods called {part!r}" if part else "makes several kinds of pods"
    raise ProgramError.of(
        path=str(subject),
        code="subject-not-known",
        message=what,
        hint=f"write one of: {', '.join(names[:8])}",
    )


def _claims(found: Sequence[Manifest], around: ClusterContext) -> tuple[list[AskedClaim], list[Problem]]:
    claims = list[AskedClaim]()
    causes = list[Problem]()
    classes = frozenset(each.metadata.name for each in (*around.fleet.classes, *around.classes))
    for manifest in found:
        ref = ObjectRef.of(manifest)
        spec = manifest.get("spec")
        unknown = find_unknown(without_known_classes(_deciding(spec), classes), "spec")
        if unknown:
            causes.append(_not_known(ref, unknown[0]))
            continue
        claim, problems = read_claim(manifest, ref, around.release)
        causes += problems
        if claim is not None:
            claims.append(claim)
    return claims, causes


def _deciding(value: Any) -> Any:
    """A spec without configuration, which is for drivers and may hold a secret."""
    if isinstance(value, Mapping):
        return {key: _deciding(item) for key, item in value.items() if key != "config"}
    return value


def _find(kind: str, name: str, namespace: str, manifests: Sequence[Manifest]) -> Manifest | None:
    wanted = ObjectRef(kind, name, namespace).stored
    return next((each for each in manifests if ObjectRef.of(each).stored == wanted), None)


_NAMELESS: Final = "it names neither a claim nor a template, so the API server refuses its pods"


def _missing(ref: ObjectRef, subject: ObjectRef, entry: str) -> Problem:
    what = "claim" if ref.kind == "ResourceClaim" else "template"
    return Problem(
        path=f"{subject}: resourceClaims entry {entry}",
        code="claim-not-known",
        message=f"there is no {ref}, so its pods wait for ever" if ref.name else _NAMELESS,
        hint=f"create the {what}, correct its name, or put it into the same namespace"
        if ref.name
        else "write resourceClaimTemplateName or resourceClaimName",
    )


def _find_unusable(claims: Sequence[Manifest], number: int) -> Iterator[Problem]:
    for each in claims:
        if number > (seats := count_seats(each)):
            yield Problem(
                path=str(ObjectRef.of(each)),
                code="claim-reserved",
                message=f"it {show_crowd(seats, number)}",
                hint="take a second claim, or one for each pod by a template",
            )
        if value_at(each, "metadata", "deletionTimestamp"):
            yield Problem(
                path=str(ObjectRef.of(each)),
                code="claim-deleting",
                message="it is being deleted: no pod gets it any more",
                hint="its pods must end first; then create it anew",
            )


def _made_by_controller(subject: ObjectRef, template: PodTemplate) -> Problem:
    return Problem(
        path=f"{subject}: {template.at('resourceClaims')}",
        code="not-modelled",
        message="its controller makes a claim of other fields of the entry, which is not looked into",
        hint="write that claim as a ResourceClaimTemplate and name it in the entry",
    )


def _not_known(ref: ObjectRef, path: str) -> Problem:
    return Problem(
        path=f"{ref}: {path}",
        code="value-not-known",
        message="is only known after `pulumi up`, and it decides",
        hint="give a value that is known before, such as one of the stack's settings",
    )


def _without_claims(subject: ObjectRef) -> Problem:
    return Problem(
        path=str(subject),
        code="claim-not-known",
        message="its pods use no claim, so they get a node and no devices of DRA",
        hint="for devices list a claim or a template in spec.resourceClaims, and name it in a container's resources.claims",
        severity="warning",
    )


def _unreadable(subject: ObjectRef) -> Problem:
    if subject.kind == "TrainJob":
        return Problem(
            path=str(subject),
            code="not-modelled",
            message="its runtime is not in the input, or runs MPI, so its pods are not known",
            hint="give the TrainingRuntime or ClusterTrainingRuntime that it names beside it",
        )
    return Problem(
        path=str(subject),
        code="object-malformed",
        message="it has no pod spec that can be read",
        hint="see its spec",
    )


def _malformed(subject: ObjectRef, template: PodTemplate, error: ValueError) -> Problem:
    return Problem(
        path=f"{subject}: {template.path}",
        code="object-malformed",
        message=str(error),
        hint="write a quantity as 500m, 4 or 16Gi",
    )
