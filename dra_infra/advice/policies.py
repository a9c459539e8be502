"""Admission policies asked offline: what the API server would refuse on their behalf, and what only it can know.

A policy is asked as often as it is bound, about each object and about the pods that controllers make of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import UNKNOWN, Release, mapping, mappings, value_at
from dra_infra.kubernetes.apiserver import PodAdmission
from dra_infra.kubernetes.apiserver import policies as admission
from dra_infra.target import ClusterTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """Policies with their bindings, and the objects that bindings name as params.

    Args:
        policies: ValidatingAdmissionPolicies.
        bindings: ValidatingAdmissionPolicyBindings.
        others: Objects that may be params, and Namespaces, whose labels count.
    """

    policies: Sequence[Mapping[str, Any]]
    bindings: Sequence[Mapping[str, Any]]
    others: Sequence[Mapping[str, Any]]

    @classmethod
    def gather(cls, objects: Iterable[Mapping[str, Any]]) -> Self:
        """The policies among *objects*; of two with one name the later counts."""
        found: dict[str, dict[str, Mapping[str, Any]]] = {admission.POLICY: {}, admission.BINDING: {}}
        others: list[Mapping[str, Any]] = []
        for each in objects:
            kind = str(each.get("kind"))
            if kind in found and str(each.get("apiVersion")).startswith(f"{admission.GROUP}/"):
                found[kind][str(value_at(each, "metadata", "name"))] = each
            else:
                others.append(each)
        return cls(
            policies=[*found[admission.POLICY].values()],
            bindings=[*found[admission.BINDING].values()],
            others=others,
        )

    def find(self, version: str, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """An object that may be params; None where it is not here."""
        for each in self.others:
            metadata = mapping(each.get("metadata"))
            here = (
                each.get("apiVersion"),
                each.get("kind"),
                metadata.get("namespace") or "",
                metadata.get("name"),
            )
            if here == (version, kind, namespace, name):
                return each
        return None

    def namespaces(self) -> dict[str, Mapping[str, str]]:
        """Labels of the namespaces that are here."""
        return {
            str(value_at(each, "metadata", "name")): {
                str(key): str(label) for key, label in mapping(value_at(each, "metadata", "labels")).items()
            }
            for each in self.others
            if (each.get("apiVersion"), each.get("kind")) == ("v1", "Namespace")
        }


class Court:
    """One API server with the policies in force.

    Args:
        found: The policies.
        release: The server.
        serves: Versions of resource.k8s.io that it has.
        user: Who asks; None where nobody says.
    """

    def __init__(
        self, found: PolicySet, release: Release, *, serves: frozenset[str], user: admission.User | None
    ) -> None:
        self._found = found
        self._release = release
        self._serves = serves
        self._user = user
        self._namespaces = found.namespaces()
        self._defaults = PodAdmission(found.others)
        self.policies = [admission.Policy(each, release) for each in found.policies]
        self._bindings: dict[str, list[Mapping[str, Any]]] = {}
        self._named = {str(value_at(each, "spec", "policyName")) for each in found.bindings}
        for each in found.bindings:
            # No server takes one of a wrong shape.
            if not any(admission.refuse_shapes(mapping(each.get("spec")))):
                self._bindings.setdefault(str(value_at(each, "spec", "policyName")), []).append(each)

    def is_bound(self, policy: admission.Policy) -> bool:
        """Some binding names the policy."""
        return policy.name in self._named

    def hear(
        self, manifest: Mapping[str, Any], *, is_there: bool = False
    ) -> Iterator[tuple[str, admission.Decision]]:
        """(Path of a template of pods or claims, nothing for the object itself, decision) of each policy that does not let it pass.

        Args:
            manifest: The object.
            is_there: Whether it is there already, so that only what is made of it is asked about.
        """
        request = admission.read_request(
            self._fill_in(manifest),
            self._release,
            namespaces=self._namespaces,
            serves=self._serves,
            user=self._user,
        )
        if request is None or request.group == admission.GROUP:
            # The server asks no policy about policies, and none about what it refuses itself.
            return
        own = [] if is_there else [*self._decide(request)]
        for decision in own:
            yield "", decision
        said = {(each.action, each.message) for each in own}
        # No claim is made of a template that is refused, and what is said of both is said once.
        is_template = (request.group, request.kind) == ("resource.k8s.io", "ResourceClaimTemplate")
        if is_template and "deny" not in {each.action for each in own}:
            for decision in self._decide(admission.read_claim_request(manifest, request)):
                if (decision.action, decision.message) not in said:
                    yield "spec.spec", decision
        if request.kind == "Pod":
            return
        for template in find_pod_templates(manifest):
            namespace = template.owner.namespace
            spec = self._defaults.admit(template.spec, namespace) if namespace else template.spec
            pod = admission.read_pod_request(
                spec, template.labels, namespace, self._namespaces, maker=manifest
            )
            for decision in self._decide(pod):
                yield template.path, decision

    def _fill_in(self, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
        """A pod with what LimitRanges of its namespace fill in, of which the server tells in an annotation."""
        metadata, spec = mapping(manifest.get("metadata")), mapping(manifest.get("spec"))
        is_pod = (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", "Pod")
        namespace = str(metadata.get("namespace") or "")
        filled = self._defaults.admit(spec, namespace) if is_pod and namespace else spec
        if filled is spec:
            return manifest
        annotations = {**mapping(metadata.get("annotations")), _LIMIT_RANGER: UNKNOWN}
        return {**manifest, "metadata": {**metadata, "annotations": annotations}, "spec": filled}

    def _decide(self, request: admission.Request) -> Iterator[admission.Decision]:
        for policy in self.policies:
            if policy.refusals:
                continue
            for binding in self._bindings.get(policy.name, ()):
                found = [*policy.decide(binding, request, self._found.find)]
                if found and request.filled_in:
                    filled = replace(request, view=request.filled_in)
                    again = [*policy.decide(binding, filled, self._found.find)]
                    if doubtful := [each for each in found if each not in again]:
                        # It is no refusal where it is for want of what may be filled in.
                        found = [each for each in found if each in again]
                        reason = f"what a container does not ask for {admission.NO_LIMITS}"
                        found.append(doubtful[0]._replace(action="undecided", message=reason))
                yield from found


def ask_policies(
    objects: Sequence[Mapping[str, Any]],
    found: PolicySet,
    target: ClusterTarget,
    *,
    user: admission.User | None = None,
    kept: Container[int] = (),
) -> Iterator[tuple[int, Problem]]:
    """Finds what the policies do not let pass, as pairs of an object's position and a problem whose path begins inside it.

    Codes: `policy-denies` and `policy-warns` with the server's text, and `policy-not-decided`. An object that the server refuses
    by its own rules is asked about by no policy.

    Args:
        objects: Manifests as plain JSON data.
        found: The policies, with the namespaces and params that they need.
        target: The cluster.
        user: Who would create the objects; None where nobody says.
        kept: Positions of objects that are there already, of which only the pods and claims are made anew.
    """
    releases = target.releases
    courts = [Court(found, each, serves=target.serves, user=user) for each in releases]
    for index, manifest in enumerate(objects):
        told: dict[Problem, list[str]] = {}
        for release, court in zip(releases, courts, strict=True):
            heard = court.hear(manifest, is_there=index in kept)
            for problem in dict.fromkeys(_problem(path, decision, manifest) for path, decision in heard):
                told.setdefault(problem, []).append(release.minor)
        for problem, minors in told.items():
            yield index, _on(minors, problem, releases)


def check_policies(found: PolicySet, target: ClusterTarget) -> Iterator[tuple[Mapping[str, Any], Problem]]:
    """Finds what is wrong with the policies themselves, each with its manifest.

    Codes: `policy-invalid` for one that the API server does not take, or whose binding, `policy-not-bound` for one that nothing
    is held to, and `policy-not-decided` for one that has a rule for updates of something, and none for what is created of it.
    """
    releases = target.releases
    told: dict[tuple[int, Problem], list[str]] = {}
    for release in releases:
        court = Court(found, release, serves=target.serves, user=None)
        for index, policy in enumerate(court.policies):
            problems = [_invalid(path, text) for path, text in policy.refusals]
            if not court.is_bound(policy):
                problems.append(_unbound(policy.name))
            elif not problems and (changed := _find_only_changed(found.policies[index])):
                problems.append(_for_updates(policy.name, changed))
            for problem in problems:
                told.setdefault((index, problem), []).append(release.minor)
    for (index, problem), minors in told.items():
        yield found.policies[index], _on(minors, problem, releases)
    for binding in found.bindings:
        for path, text in admission.refuse_shapes(mapping(binding.get("spec"))):
            yield binding, _invalid(path, text)


def _on(minors: Sequence[str], problem: Problem, releases: Sequence[Release]) -> Problem:
    if len(minors) == len(releases):
        return problem
    return replace(problem, message=f"on Kubernetes {', '.join(minors)}: {problem.message}")


_LIMIT_RANGER: Final = "kubernetes.io/limit-ranger"
_HINTS: Final = (
    ("NOBODY_ASKS", "say who asks: --as USER --as-group GROUP"),
    ("CONTROLLER_ASKS", "ask about a Pod like those that are made, --as the controller that makes them"),
    ("NO_LIMITS", "write the limits and requests, or give the Namespace and its LimitRanges with the others"),
    ("NO_NAMESPACE", "write metadata.namespace"),
    ("NO_LABELS", "give the object that has the labels, such as the Namespace, with the others"),
    ("NO_PARAMS", "name their file with --policies"),
)
"""By the name of a part of the reason."""
_CODES: Final = {"deny": "policy-denies", "warn": "policy-warns", "undecided": "policy-not-decided"}


def _problem(path: str, decision: admission.Decision, manifest: Mapping[str, Any]) -> Problem:
    message = decision.message
    if decision.action == "undecided":
        asked = f"ValidatingAdmissionPolicy '{decision.policy}' with binding '{decision.binding}'"
        message = f"what {asked} says is known to the API server alone: {message}"
        ask_it = "ask the API server: kubectl apply --dry-run=server"
        hint = next((hint for part, hint in _HINTS if getattr(admission, part) in decision.message), ask_it)
    else:
        hint = "ask for what the policy allows, or have the policy changed"
    if path:
        made = "claims" if path == "spec.spec" else "pods"
        message = f"of the {made} that are made of it: {message}"
    return Problem(
        path=path or ("spec" if "spec" in manifest else "metadata"),
        code=_CODES[decision.action],
        message=message,
        hint=hint,
        severity="error" if decision.action == "deny" else "warning",
    )


def _invalid(path: str, text: str) -> Problem:
    hint = "the API server refuses it; until it is right, nothing is held to it"
    return Problem(path=path, code="policy-invalid", message=text, hint=hint)


def _find_only_changed(policy: Mapping[str, Any]) -> list[str]:
    """The resources for which a policy has a rule on updates, and none on what is created; without subresources, which nobody writes."""
    made, changed = set[tuple[str, str]](), set[tuple[str, str]]()
    for rule in mappings(value_at(policy, "spec", "matchConstraints", "resourceRules")):
        groups, resources, operations = (
            [*map(str, each)] if isinstance(each := rule.get(name), list) else []
            for name in ("apiGroups", "resources", "operations")
        )
        pairs = {(group, each) for group in groups for each in resources if "/" not in each or each == "*/*"}
        if {"CREATE", "*"} & {*operations}:
            made |= pairs
        elif "UPDATE" in operations:
            changed |= pairs
    # A star stands for every group and resource.
    return sorted(
        {
            name
            for group, name in changed
            if made.isdisjoint((of, each) for of in (group, "*") for each in (name, "*", "*/*"))
        }
    )


def _for_updates(name: str, resources: Sequence[str]) -> Problem:
    return Problem(
        path="spec.matchConstraints.resourceRules",
        code="policy-not-decided",
        message=f"what ValidatingAdmissionPolicy '{name}' says of changes is known to the API server alone: it has rules for UPDATE "
        f"of {', '.join(resources)} and none for CREATE, and objects are judged here as if they were created",
        hint="ask the API server, which has the old objects: kubectl apply --dry-run=server",
        severity="warning",
    )


def _unbound(name: str) -> Problem:
    return Problem(
        path="metadata.name",
        code="policy-not-bound",
        message="no ValidatingAdmissionPolicyBinding here names the policy, so nothing is held to it",
        hint=f"add a binding with policyName: {name}",
        severity="warning",
    )
