"""MIG devices of one card, which pods of classic DRA asked for in several claims, as the requests of one claim.

NVIDIA's MigDeviceClaimParameters named in `gpuClaimName` the entry of the pod's claims whose card they were cut from. Today
that is one claim with `matchAttribute: gpu.nvidia.com/parentUUID`, and the containers name its requests.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.migration.old_dra.classic_claims import ClassicClaims, is_classic
from dra_infra.migration.old_dra.configs import config_entry
from dra_infra.migration.old_dra.objects import GROUP, Item, OldObjects, replaced, text
from dra_infra.migration.old_dra.parameters import Meant, is_parameters
from dra_infra.migration.old_dra.pods import PodPlace, pod_specs

SAME_CARD: Final = "gpu.nvidia.com/parentUUID"
_TEMPLATE: Final = "ResourceClaimTemplate"
_LONGEST: Final = 253
"""Bytes of a template's name (IsDNS1123Subdomain)."""


class _Asked(NamedTuple):
    """An entry of a pod's claims that is a template of classic DRA.

    Args:
        name: The entry's name.
        template: The template.
        parameters: Its parameters object.
        meant: What that means.
    """

    name: str
    template: Item
    parameters: Item
    meant: Meant


class MigJoining:
    """Joins claims of pods.

    Args:
        objects: The input.
        claims: The claims of the input, where parameters are read.
    """

    def __init__(self, objects: OldObjects, claims: ClassicClaims) -> None:
        self._objects = objects
        self._claims = claims
        self._joined: dict[int, int] = {}
        self._used: dict[int, int] = {}
        self._made: set[tuple[str, str]] = set()

    def is_joined(self, template: Item) -> bool:
        """Checks that every pod that named a template gets its devices from another one now."""
        joined = self._joined.get(template.index, 0)
        return joined > 0 and joined == self._used.get(template.index)

    def join(
        self, item: Item, manifest: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
        """The workload with joined claims, and the templates that these are made from.

        Args:
            item: The workload as it was.
            manifest: The same with flat entries of claims.
        """
        added: list[Mapping[str, Any]] = []
        for place in list(pod_specs(manifest, self._objects.kinds)):
            entries = mappings(place.spec.get("resourceClaims"))
            asked = [found for each in entries if (found := self._read(each, item)) is not None]
            for each in asked:
                self._used[each.template.index] = self._used.get(each.template.index, 0) + 1
            spec = place.spec
            for card in asked:
                parts = [
                    each
                    for each in asked
                    if card.name and each.meant.parent == card.name and each is not card
                ]
                if card.meant.on_card is not None and parts:
                    spec = self._join(item, place._replace(spec=spec), card, parts, added)
            if spec is not place.spec:
                manifest = replaced(manifest, place.steps, spec)
        return manifest, added

    def _read(self, entry: Mapping[str, Any], item: Item) -> _Asked | None:
        name = text(entry.get("resourceClaimTemplateName"))
        template = self._objects.find(GROUP, _TEMPLATE, name, item.namespace)
        if template is None or not is_classic(template):
            return None
        parameters = self._claims.parameters_of(template)
        if parameters is None or not is_parameters(parameters):
            return None
        meant = self._claims.meaning_for(template, parameters)
        return None if meant is None else _Asked(text(entry.get("name")), template, parameters, meant)

    def _join(
        self,
        item: Item,
        place: PodPlace,
        card: _Asked,
        parts: Sequence[_Asked],
        added: list[Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        path = f"{place.path}.resourceClaims"
        names = [each.name for each in parts]
        if (
            len(set(names)) < len(names)
            or _names_card_alone(place.spec, card.name, names)
            or card.meant.number > 1
        ):
            item.remarks.decide(
                path,
                "mig-parent-not-known",
                f"the MIG devices {', '.join(names)} were to be on one card, which a container names without one of them, or of "
                "which there are several",
                f"ask for them in one claim, with matchAttribute {SAME_CARD}",
            )
            return place.spec
        name = self._name(item, f"{item.key.name or card.template.key.name}-{card.name}")
        added.append(_template(item.namespace, name, card, parts))
        for each in (card, *parts):
            self._joined[each.template.index] = self._joined.get(each.template.index, 0) + 1
            self._claims.use(each.parameters, is_replaced=True)
        message = f"{', '.join(names)} are requests of one claim now, all on one card: {card.name}"
        item.remarks.changed(path, "mig-joined", message)
        return _with_requests(place.spec, card.name, names, name)

    def _name(self, item: Item, wanted: str) -> str:
        """A name for a template that no other one has."""
        for number in itertools.count(1):
            end = f"-{number}" if number > 1 else ""
            name = wanted[: _LONGEST - len(end)].rstrip("-.") + end
            taken = (item.namespace, name)
            if taken not in self._made and self._objects.find(GROUP, _TEMPLATE, name, item.namespace) is None:
                break
        self._made.add(taken)
        return name


def _template(namespace: str, name: str, card: _Asked, parts: Sequence[_Asked]) -> dict[str, Any]:
    on_card = card.meant.on_card or ()
    requests = [
        {
            "name": each.name,
            "exactly": each.meant._replace(selectors=(*each.meant.selectors, *on_card)).exactly(),
        }
        for each in parts
    ]
    devices: dict[str, Any] = {"requests": requests}
    if len(parts) > 1 or parts[0].meant.number > 1:
        devices["constraints"] = [{"matchAttribute": SAME_CARD}]
    configs = [config_entry(each.meant.config, [each.name]) for each in parts if each.meant.config]
    if configs:
        devices["config"] = configs
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": _TEMPLATE,
        "metadata": metadata,
        "spec": {"spec": {"devices": devices}},
    }


def _names_card_alone(spec: Mapping[str, Any], card: str, parts: Sequence[str]) -> bool:
    """Check that a container names the card and none of its parts: with their claim it would get all of them."""
    containers = [*mappings(spec.get("initContainers")), *mappings(spec.get("containers"))]
    named = [
        {claim.get("name") for claim in mappings(mapping(each.get("resources")).get("claims"))}
        for each in containers
    ]
    return any(card in each and each.isdisjoint(parts) for each in named)


def _with_requests(spec: Mapping[str, Any], card: str, parts: Sequence[str], template: str) -> dict[str, Any]:
    """The pod spec with one entry for all, and containers that name its requests."""
    entries = [
        {"name": card, "resourceClaimTemplateName": template} if mapping(each).get("name") == card else each
        for each in spec["resourceClaims"]
        if mapping(each).get("name") not in parts
    ]
    changed = {**spec, "resourceClaims": entries}
    for kind in ("initContainers", "containers"):
        if isinstance(spec.get(kind), list):
            changed[kind] = [_container(each, card, parts) for each in spec[kind]]
    return changed


def _container(container: Any, card: str, parts: Sequence[str]) -> Any:
    claims = mapping(mapping(container).get("resources")).get("claims")
    if not isinstance(claims, list):
        return container
    # A container that names its part and the card, as NVIDIA's gpu-test4 did, has the part.
    found = [
        {"name": card, "request": each["name"]} if mapping(each).get("name") in parts else each
        for each in claims
        if mapping(each).get("name") != card
    ]
    return container if found == claims else replaced(container, ("resources", "claims"), found)
