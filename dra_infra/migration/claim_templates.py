"""Names for the claim templates that a migration makes, each of which starts with the name of its owner."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from dra_infra.kubernetes.api import WorkloadKinds, mapping, mappings, value_at
from dra_infra.kubernetes.api.names import SUBDOMAIN_LENGTH
from dra_infra.placement.objects import as_referenced, target_of

_Owner = tuple[str, str, str, str]
"""API group, kind, name and generateName of an object."""

_NOBODY: Final[_Owner] = ("", "", "", "")
CLUSTER_RUNTIME: Final = "ClusterTrainingRuntime"
LLM: Final = "LLMInferenceService"


class ClaimTemplates:
    """Names for the claim templates of a migration: each owner's start with its own name.

    Args:
        objects: All that is migrated: templates that are there keep their names.
        kinds: Kinds of objects that make pods.
    """

    def __init__(self, objects: Sequence[Mapping[str, Any]], kinds: WorkloadKinds) -> None:
        self.kinds: Final = kinds
        self._given: dict[tuple[str, str], tuple[_Owner | None, str]] = {}
        self._users: dict[tuple[str, str], dict[Any, None]] = {}
        self.scaled = {target for each in objects if (target := target_of(each))}
        """What autoscalers scale."""
        self._there: dict[str, dict[str, Any]] = {}
        self._claims: set[tuple[str, str]] = set()
        for each in objects:
            spec = mapping(each.get("spec"))
            named = [mapping(spec.get("runtimeRef"))] if each.get("kind") == "TrainJob" else []
            named += mappings(spec.get("baseRefs")) if each.get("kind") == LLM else []
            for ref in named:
                kind = f"{LLM}Config" if each.get("kind") == LLM else ref.get("kind") or CLUSTER_RUNTIME
                where = value_at(each, "metadata", "namespace")
                users = self._users.setdefault((str(kind), str(ref.get("name"))), {})
                users[where if isinstance(where, str) else None] = None
            if each.get("kind") in ("ResourceClaim", "ResourceClaimTemplate"):
                metadata = mapping(each.get("metadata"))
                at = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
                is_shared = each["kind"] == "ResourceClaim"
                claim = spec if is_shared else value_at(each, "spec", "spec")
                self._given[at] = None, _key(claim, is_shared=is_shared)
                if is_shared:
                    self._claims.add(at)
                else:
                    self._there.setdefault(at[1], {})[_key(claim)] = claim
        # The pods that share a claim are counted: no others join them.
        for each in objects if self._claims else ():
            for pods in kinds.find_pod_templates(each):
                for entry in mappings(pods.spec.get("resourceClaims")):
                    namespace = str(value_at(each, "metadata", "namespace") or "")
                    at = namespace, str(entry.get("resourceClaimName"))
                    if at in self._claims:
                        self._given[at] = _NOBODY, ""
        refs = list(map(as_referenced, objects))
        owners = Counter(refs)
        self.of_copies = {
            (ref, str(entry.get("resourceClaimTemplateName")))
            for each, ref in zip(objects, refs, strict=True)
            if owners[ref] > 1 and value_at(each, "metadata", "name")
            for pods in kinds.find_pod_templates(each)
            for entry in mappings(pods.spec.get("resourceClaims"))
        }
        """Objects that are there twice, each with a claim template that one of them names: it is not where the others are applied."""

    def of(self, owner: Mapping[str, Any]) -> OwnTemplates:
        """The templates of one object, in its namespace and in those of the objects whose pods it has."""
        kind = owner.get("kind")
        own = value_at(owner, "metadata", "namespace")
        users = self._users.get((str(kind), str(value_at(owner, "metadata", "name"))), {})
        others = [each for each in users if each != own] if kind == f"{LLM}Config" else []
        return OwnTemplates(owner, self, list(users) if kind == CLUSTER_RUNTIME else [own, *others])

    def alike(self, name: str) -> Any:
        """The claim spec that all templates of a name have that are there; None where there is no one."""
        found = list(self._there.get(name, {}).values())
        return found[0] if len(found) == 1 else None

    def take(self, namespace: str, name: str, owner: _Owner, claim: str) -> bool | None:
        """Takes a name for a claim spec: whether its template is there already; None where the name is not free.

        An owner that is there twice, as in two overlays, has the same name in both for the same spec.
        """
        at = namespace, name
        held = self._given.setdefault(at, (owner, claim))
        if at in self._claims and held == (None, claim):
            # One that no pod names is of an earlier run, for the first that would give it this name.
            self._given[at] = owner, claim
        return held[0] is None or at in self._claims if held in ((None, claim), (owner, claim)) else None


class OwnTemplates:
    """The claim templates of one object, one for each claim spec.

    Args:
        owner: The object.
        names: Where names are taken.
        namespaces: Where its pods are.
    """

    def __init__(self, owner: Mapping[str, Any], names: ClaimTemplates, namespaces: Sequence[Any]) -> None:
        metadata = mapping(owner.get("metadata"))
        self._names = names
        self.namespaces = namespaces
        # What Pulumi names is called `train-*`.
        stem = str(metadata.get("name") or metadata.get("generateName") or "").partition("-*")[0]
        self._stem = stem.rstrip("-.")
        self._owner: _Owner = (
            *(str(owner.get("apiVersion") or "").rpartition("/")[0], str(owner.get("kind") or "")),
            *(str(metadata.get("name") or ""), str(metadata.get("generateName") or "")),
        )
        self._ref = as_referenced(owner)
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self.added: list[Mapping[str, Any]] = []
        """The new objects."""

    def name(self, entry: str, claim: Mapping[str, Any], is_shared: bool = False) -> str:  # noqa: FBT001, FBT002  (of a Callable)
        """Names the template with this claim spec, and makes it where there is none, or a claim that pods of one template share."""
        key = _key(claim, is_shared=is_shared)
        if is_shared or key not in self._known:
            # The first one needs no more than the word for its devices.
            word = entry if self._known else value_at(claim, "devices", "requests")[0]["name"]
            name, missing = self._take(word, key)
            self._known[key] = name
            self._add(name, missing, claim, is_shared=is_shared)
        return self._known[key]

    def copy(self, name: str) -> None:
        """Makes a template that was there before in those of the namespaces that lack it."""
        claim = self._names.alike(name)
        if claim is not None and name not in self._taken:
            self._taken.add(name)
            found = self._ask(name, _key(claim))
            self._add(name, [each for each, there in found if there is False], claim, is_shared=False)

    def _add(
        self, name: str, namespaces: Sequence[Any], claim: Mapping[str, Any], *, is_shared: bool
    ) -> None:
        for namespace in namespaces:
            self.added.append(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim" if is_shared else "ResourceClaimTemplate",
                    "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
                    "spec": claim if is_shared else {"spec": claim},
                }
            )

    def _take(self, entry: str, claim: str) -> tuple[str, list[Any]]:
        """A name that ends on *entry* and a number, and the namespaces in which the template is not there already."""
        for number in count(self._next.get(entry, 1)):
            for between in ("", self._owner[1].lower()):
                end = "-".join(filter(None, (between, entry, str(number) if number > 1 else "")))
                name = f"{self._stem[: SUBDOMAIN_LENGTH - len(end) - 1].rstrip('-.')}-{end}".lstrip("-")
                if name in self._taken:
                    break
                found = self._ask(name, claim)
                if all(there is not None for _, there in found):
                    self._taken.add(name)
                    self._next[entry] = number
                    is_elsewhere = (self._ref, name) in self._names.of_copies
                    return name, [each for each, there in found if is_elsewhere or not there]
        raise AssertionError("numbers do not end")

    def _ask(self, name: str, claim: str) -> list[tuple[Any, bool | None]]:
        """By namespace, whether the template is there already; None where the name is not free."""
        take = self._names.take
        return [(each, take(str(each or ""), name, self._owner, claim)) for each in self.namespaces]


def _key(value: Any, *, is_shared: bool = False) -> str:
    normal = normal_claim(value) if isinstance(value, Mapping) else value
    return json.dumps([normal, is_shared], sort_keys=True)


def normal_claim(spec: Mapping[str, Any]) -> Any:
    """The spec of a claim with the defaults that a server fills in, and without what it takes for nothing."""
    filled = copy.deepcopy(dict(spec))
    for request in mappings(mapping(filled.get("devices")).get("requests")):
        for leaf in [request.get("exactly"), *mappings(request.get("firstAvailable"))]:
            if not isinstance(leaf, dict):
                continue
            if leaf.setdefault("allocationMode", "ExactCount") == "ExactCount":
                leaf.setdefault("count", 1)
            for each in mappings(leaf.get("tolerations")):
                each.setdefault("operator", "Equal")  # type: ignore[attr-defined]  # of the copy
    return without_empty(filled)


def without_empty(value: Any) -> Any:
    """The value without fields that are null and without empty lists."""
    if isinstance(value, Mapping):
        return {key: without_empty(each) for key, each in value.items() if each is not None and each != []}
    return [without_empty(each) for each in value] if isinstance(value, list) else value
