"""Requests that a policy or a binding is about: rules of resources, and selectors of namespaces and objects.

What is not known counts only where it decides: a rule that excludes the request settles it, whatever the labels are.

Upstream: `k8s.io/apiserver/pkg/admission/plugin/policy/matching/matching.go`, the predicates in
`k8s.io/apiserver/pkg/admission/plugin/webhook/predicates`, and `k8s.io/apimachinery/pkg/labels/selector.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.kubernetes.api.label_selectors import OPERATORS, LabelSelector, meets
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.placeholders import holds_placeholder
from dra_infra.kubernetes.apiserver.policies.expressions import UndecidedError
from dra_infra.kubernetes.apiserver.policies.objects import Labels
from dra_infra.kubernetes.apiserver.policies.requests import Request

_LISTS: Final = ("apiGroups", "apiVersions", "operations", "resources", "resourceNames")


def listed(value: Any) -> list[Any]:
    """Returns *value* where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def refuse_shapes(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, text) of what is no list in a policy or binding where the server decodes one, and refuses the object."""
    found = [("spec.validationActions", spec.get("validationActions"))]
    for part in ("matchConstraints", "matchResources"):
        for kind in ("resourceRules", "excludeResourceRules"):
            for index, rule in enumerate(mappings(mapping(spec.get(part)).get(kind))):
                found += [(f"spec.{part}.{kind}[{index}].{name}", rule.get(name)) for name in _LISTS]
    for path, value in found:
        if value is not None and not isinstance(value, list) and not holds_placeholder(value):
            yield path, "must be a list"


def match_resources(resources: Mapping[str, Any], request: Request) -> str | None:
    """The version in which matchConstraints or matchResources take a request; None where they do not.

    Raises:
        UndecidedError: When that is not known.
    """
    found: str | None = request.version
    undecided: UndecidedError | None = None
    policy = resources.get("matchPolicy") or "Equivalent"
    rules = mappings(resources.get("resourceRules"))
    excluded = mappings(resources.get("excludeResourceRules"))

    def of_rules() -> bool:
        nonlocal found
        found = _match_rules(rules, policy, request) if rules else request.version
        return found is not None

    conditions: tuple[Callable[[], bool], ...] = (
        of_rules,
        lambda: not excluded or _match_rules(excluded, policy, request) is None,
        lambda: _match_namespace(mapping(resources.get("namespaceSelector")), request),
        lambda: _selects(mapping(resources.get("objectSelector")), request.labels),
    )
    for holds in conditions:
        try:
            if not holds():
                return None
        except UndecidedError as error:
            undecided = undecided or error
    if undecided is not None:
        raise undecided
    return found


def _match_rules(rules: Sequence[Mapping[str, Any]], policy: str, request: Request) -> str | None:
    """The version that the first rule that fits names: that of the request, before another that means the same."""
    undecided: UndecidedError | None = None
    for rule in rules:
        try:
            if _is_named(rule, request) and _fits(rule, request, request.version):
                return request.version
        except UndecidedError as error:
            undecided = undecided or error
    if undecided is not None:
        raise undecided
    if policy == "Exact":
        return None
    for rule in rules:
        # The server goes over its versions in an order of its own; rules name one, or `*`, which fits the request's own.
        for version in _equivalents(rule, request):
            if version != request.version and _is_named(rule, request) and _fits(rule, request, version):
                return version
    return None


def _equivalents(rule: Mapping[str, Any], request: Request) -> list[str]:
    written = [str(each) for each in listed(rule.get("apiVersions"))]
    if request.versions is not None:
        return sorted(request.versions.intersection(written))
    if any(_fits(rule, request, each) for each in written):
        raise UndecidedError(f"which versions the server has a {request.kind} in is not known here")
    return []


def _fits(rule: Mapping[str, Any], request: Request, version: str) -> bool:
    return (
        _lists(rule.get("apiGroups"), request.group)
        and _lists(rule.get("apiVersions"), version)
        and _lists(rule.get("operations"), "CREATE")
        and any(_is_resource(str(each), request.resource) for each in listed(rule.get("resources")))
        and _is_in_scope(str(rule.get("scope") or "*"), request)
    )


def _lists(items: Any, sought: str) -> bool:
    return isinstance(items, list) and ("*" in items or sought in items)


def _is_resource(rule: str, resource: str) -> bool:
    name, _, subresource = rule.partition("/")
    return name in ("*", resource) and subresource in ("", "*")


def _is_in_scope(scope: str, request: Request) -> bool:
    if scope not in ("Cluster", "Namespaced"):
        return scope == "*"
    if request.namespace is None:
        raise UndecidedError(f"whether a {request.kind} is in a namespace is not known here")
    is_cluster_wide = request.is_namespace or not request.namespace
    return is_cluster_wide is (scope == "Cluster")


def _is_named(rule: Mapping[str, Any], request: Request) -> bool:
    names = listed(rule.get("resourceNames"))
    return not names or request.name in names


def _match_namespace(selector: Mapping[str, Any], request: Request) -> bool:
    if request.namespace == "" and not request.is_namespace:
        return True
    return _selects(selector, request.namespace_labels)


def _selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    undecided: UndecidedError | None = None
    for key, operator, values in LabelSelector.read(selector).requirements:
        if operator not in OPERATORS:
            refusal = f"a selector has the operator {operator}, which the server refuses"
            undecided = undecided or UndecidedError(refusal)
            continue
        try:
            if not meets(labels.get(key), operator, values):
                return False
        except UndecidedError as error:
            undecided = undecided or error
    if undecided is not None:
        raise undecided
    return True
