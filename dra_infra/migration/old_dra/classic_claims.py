"""Claims, templates and classes of classic DRA, which name a ResourceClass and a parameters object, as those of v1.

Source of the shapes: pkg/apis/resource/v1alpha2 of Kubernetes 1.30, in v1alpha1 alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.kubernetes.api.names import is_driver_name
from dra_infra.migration.old_dra.configs import config_entry
from dra_infra.migration.old_dra.objects import (
    CLASSES,
    GROUP,
    NVIDIA,
    Item,
    OldObjects,
    driver_of_today,
    meant_in,
    replaced,
    text,
)
from dra_infra.migration.old_dra.parameters import (
    MIG_CLASS,
    Meant,
    is_parameters,
    read_class_parameters,
    read_parameters,
)
from dra_infra.migration.old_dra.selectors import from_named_resources
from dra_infra.migration.old_dra.shapes import NODE_SELECTOR, without, without_old_finalizer
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import driver

_NO_CONTROLLER: Final = "nothing is to be done: a claim is allocated when its first pod is scheduled"
_OF_CLASS: Final = (
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "driverName",
    "parametersRef",
    "suitableNodes",
    "structuredParameters",
)
"""Fields of a ResourceClass; articles have others, which nobody reads."""


class DeviceRequests(NamedTuple):
    """The devices that a claim asks for.

    Args:
        requests: Its requests.
        config: Its configs.
    """

    requests: list[dict[str, Any]]
    config: list[dict[str, Any]]


class _Class(NamedTuple):
    """The DeviceClass in the place of a ResourceClass; its driver of today is empty where it was one before, and may be any."""

    name: str
    driver: str

    def holds(self, meant: Meant, driver: str) -> Meant | None:
        """Returns a request for devices of *driver* as one of this class; None where nobody can say which those are."""
        if self.name == self.driver == driver:
            return meant
        if self.driver not in ("", driver) or meant.on_card is not None or meant.device_class == MIG_CLASS:
            return None
        # The driver's own class tells GPUs from their MIG devices; this one may have both.
        tests = ((gpu.type == "gpu").expression(),) if driver == NVIDIA else ()
        return meant._replace(device_class=self.name, selectors=(*tests, *meant.selectors))


def is_classic(item: Item) -> bool:
    """Checks that a claim or template names a ResourceClass, in whatever version it is written."""
    return "resourceClassName" in claim_spec(item)


def is_claim(item: Item) -> bool:
    """Checks that an object is a claim or a template of one."""
    return item.key.group == GROUP and item.key.kind in ("ResourceClaim", "ResourceClaimTemplate")


def claim_spec(item: Item) -> Mapping[str, Any]:
    """The spec of a claim, or of the claims of a template; empty where there is none."""
    spec = mapping(item.manifest.get("spec"))
    return mapping(spec.get("spec")) if item.key.kind == "ResourceClaimTemplate" else spec


class ClassicClaims:
    """The claims of an input as those of v1, with what became of their parameters and classes.

    Args:
        objects: The input.
    """

    def __init__(self, objects: OldObjects) -> None:
        self._objects = objects
        self._meant: dict[int, Meant | None] = {}
        self._users: dict[int, list[bool]] = {}
        self._held: set[int] = set()

    def meaning_of(self, item: Item) -> Meant | None:
        """Returns the meaning of a parameters object, which is read once."""
        if item.index not in self._meant:
            self._meant[item.index] = read_parameters(item)
        return self._meant[item.index]

    def meaning_for(self, item: Item, parameters: Item) -> Meant | None:
        """Returns what a claim asks for by a parameters object and its class; None where nobody can say, and remarks say why."""
        path = _path(item)
        kind = parameters.key.kind
        driver = driver_of_today(parameters.key.group)
        meant = self.meaning_of(parameters)
        within = self._class_of(item)
        if meant is None:
            message = f"nobody can say what the {kind} means today"
            hint = "see its own remarks"
            item.remarks.decide(f"{path}.parametersRef", "parameters-not-known", message, hint)
        if meant is None or within is None:
            return None
        held = within.holds(meant, driver)
        if held is None:
            message = f"nobody can say what {kind} of {driver} ask for in the class {within.name}"
            hint = "write the request that is meant, with a DeviceClass of the driver of today"
            item.remarks.decide(f"{path}.resourceClassName", "class-not-known", message, hint)
        return held

    def parameters_of(self, item: Item) -> Item | None:
        """The parameters object that a claim or template names, where it is in the input."""
        reference = mapping(claim_spec(item).get("parametersRef"))
        return self._objects.find(
            _group_of(reference), text(reference.get("kind")), text(reference.get("name")), item.namespace
        )

    def use(self, parameters: Item, *, is_replaced: bool) -> None:
        """Takes down that a claim names a parameters object, and whether what it says is in the claim now."""
        self._users.setdefault(parameters.index, []).append(is_replaced)

    def hold(self, item: Item) -> None:
        """Takes down that a claim stays as it is, and so do its parameters."""
        parameters = self.parameters_of(item)
        self.hold_parameters(parameters)
        if parameters is not None:
            generated = self._generated_from(parameters)
            if generated is not None:
                self.use(generated, is_replaced=False)

    def hold_parameters(self, parameters: Item | None) -> None:
        """Takes down that an object that stays as it is names a parameters object."""
        if parameters is not None:
            self._held.add(parameters.index)
            self.use(parameters, is_replaced=False)

    def is_held(self, parameters: Item) -> bool:
        """Checks that a claim that stays as it is names a parameters object."""
        return parameters.index in self._held

    def is_replaced(self, parameters: Item) -> bool:
        """Checks that what a parameters object says is in all claims that name it, and that one does."""
        used = self._users.get(parameters.index, [])
        return bool(used) and all(used)

    def is_generated(self, parameters: Item) -> bool:
        """Checks that a controller wrote a parameters object from another one, whose claims are migrated."""
        source = mapping(parameters.manifest.get("generatedFrom"))
        group = text(source.get("apiGroup")).partition("/")[0]
        own = self._objects.find(
            group, text(source.get("kind")), text(source.get("name")), parameters.namespace
        )
        return own is not None and own is not parameters and self.is_replaced(own)

    def migrate(self, item: Item) -> Mapping[str, Any]:
        """A claim or template in the form of v1; the very object where nobody can say what it asks for."""
        spec = claim_spec(item)
        remarks = item.remarks
        path = _path(item)
        if spec.get("devices") is not None:
            message, hint = "resourceClassName beside devices: no version takes both", "leave out one of both"
            remarks.decide(path, "two-shapes", message, hint)
            return item.manifest
        asked = self._requests(item, path)
        if asked is None:
            return item.manifest
        at = f"{path}.allocationMode"
        if spec.get("allocationMode") == "Immediate":
            message = (
                "no claim is allocated before a pod needs it; allocationMode of a request is something else"
            )
            remarks.lost(at, "old-field-removed", message, _NO_CONTROLLER)
        elif spec.get("allocationMode"):
            remarks.changed(at, "old-field-removed", "every claim waits for its first pod now")
        devices: dict[str, Any] = {"requests": asked.requests}
        if asked.config:
            devices["config"] = asked.config
        remarks.changed(path, "classic-shape", f"the claim asks for {_say(asked.requests)}")
        changed: dict[str, Any] = {}
        for name, value in spec.items():
            if name in ("resourceClassName", "parametersRef", "allocationMode"):
                changed.setdefault("devices", devices)
            else:
                changed[name] = value
        manifest = without_old_finalizer(replaced(item.manifest, path.split("."), changed), remarks)
        if item.key.kind != "ResourceClaim" or "status" not in manifest:
            return manifest
        message = "the status is of an allocation that no scheduler of today reads"
        remarks.changed("status", "old-field-removed", message)
        return {name: value for name, value in manifest.items() if name != "status"}

    def _requests(self, item: Item, path: str) -> DeviceRequests | None:
        within = self._class_of(item)
        remarks = item.remarks
        reference = claim_spec(item).get("parametersRef")
        if not isinstance(reference, Mapping) or not reference:
            return _single(within and within.holds(Meant(within.driver), within.driver))
        parameters = self.parameters_of(item)
        if parameters is None:
            what = f"{text(reference.get('kind')) or 'object'} {text(reference.get('name'))}"
            message = f"there is no {what} in the input"
            hint = "give the file too: the claim may ask for anything"
            remarks.decide(f"{path}.parametersRef", "parameters-not-known", message, hint)
            return None
        found = self._read(parameters, item, path, within)
        self.use(parameters, is_replaced=found is not None)
        return found

    def _read(self, parameters: Item, item: Item, path: str, within: _Class | None) -> DeviceRequests | None:
        at = f"{path}.parametersRef"
        kind = parameters.key.kind
        if is_parameters(parameters):
            meant = self.meaning_for(item, parameters)
            if meant is not None and meant.on_card is not None:
                message = "a card was asked for to be cut into MIG devices, and no pod of the input does that"
                hint = "give the pods too, or write claims for mig.nvidia.com and leave this one out"
                item.remarks.decide(at, "mig-parent-not-known", message, hint)
                return None
            if meant is not None and meant.parent:
                message = f"the MIG device was to be on the card of {meant.parent}, and may now be on any"
                hint = "ask for all MIG devices of one card in one claim, with matchAttribute gpu.nvidia.com/parentUUID"
                item.remarks.decide(at, "mig-parent-not-known", message, hint)
                return None
            return _single(meant)
        if within is None:
            return None
        if parameters.key.group == GROUP and kind == "ResourceClaimParameters":
            return self._structured(parameters, within)
        generated = self._generated_from(parameters)
        if generated is not None:
            found = self._structured(generated, within)
            self.use(generated, is_replaced=found is not None)
            return found
        message = f"nobody knows what a {kind} means"
        hint = "write the requests that it stood for"
        item.remarks.decide(at, "parameters-not-known", message, hint)
        return None

    def _generated_from(self, parameters: Item) -> Item | None:
        """Returns the parameters that a vendor's controller generated from an object of its own."""
        found: list[Item] = []
        for each in self._objects.of_kind(GROUP, "ResourceClaimParameters"):
            source = mapping(each.manifest.get("generatedFrom"))
            group = text(source.get("apiGroup")).partition("/")[0]
            if (group, source.get("kind"), source.get("name")) == parameters.key:
                found.append(each)
        return meant_in(parameters.namespace, found)

    def _structured(self, parameters: Item, within: _Class) -> DeviceRequests | None:
        """The requests of a ResourceClaimParameters of 1.30, which every driver shared."""
        asked = [
            (text(each.get("driverName")), each, request)
            for each in mappings(parameters.manifest.get("driverRequests"))
            for request in mappings(each.get("requests"))
        ]
        if not asked:
            message, hint = "there is no request", "write one"
            parameters.remarks.decide("driverRequests", "parameter-not-known", message, hint)
            return None
        if parameters.manifest.get("shareable") is False:
            message, hint = "every claim can be shared by pods", "let one pod name the claim"
            parameters.remarks.lost("shareable", "old-field-removed", message, hint)
        found = DeviceRequests([], [])
        for index, (name, group, request) in enumerate(asked):
            today = driver_of_today(name)
            selector = mapping(request.get("namedResources")).get("selector")
            expression = from_named_resources(selector, today) if isinstance(selector, str) else ""
            of_driver = Meant(today, 1, (expression,) if expression and expression != "true" else ())
            meant = within.holds(of_driver, today) or (of_driver if today in CLASSES else None)
            has_more = group.get("vendorParameters") or request.get("vendorParameters")
            if meant is None or expression is None or has_more:
                message = f"nobody can say what request {index} means today"
                hint = "write the request, with its parameters as an opaque config of the claim"
                parameters.remarks.decide("driverRequests", "parameter-not-known", message, hint)
                return None
            numbered = meant.name if len(asked) == 1 else f"{meant.name}-{index}"
            found.requests.append({"name": numbered, "exactly": meant.exactly()})
        return found

    def _class_of(self, item: Item) -> _Class | None:
        """The DeviceClass in the place of a claim's ResourceClass; None where nobody can say."""
        name = text(claim_spec(item).get("resourceClassName"))
        at = f"{_path(item)}.resourceClassName"
        own = self._objects.find(GROUP, "ResourceClass", name, "")
        if own is not None:
            made = self.migrate_class(own)
            today = driver_of_today(class_driver(own))
            if made is own.manifest:
                message = f"the class {name} stays, and is no DeviceClass"
                hint = "see its own remarks"
                item.remarks.decide(at, "class-not-known", message, hint)
                return None
            if {**mapping(own.manifest.get("spec")), **own.manifest}.get("suitableNodes"):
                message = f"the class {name} kept pods on its suitableNodes, and the API has none any more"
                item.remarks.lost(at, "old-field-removed", message, NODE_SELECTOR)
            # A class that says no more than the driver's name is the one that the driver ships.
            return _Class(name if made else CLASSES[today], today)
        if name in CLASSES:
            return _Class(CLASSES[name], CLASSES[name])
        if self._objects.find(GROUP, "DeviceClass", name, "") is not None:
            return _Class(name, "")
        message = f"the class {name or 'without a name'} is not in the input, and no known driver shipped it"
        hint = "give the file that has it too, or write the DeviceClass of the driver of today"
        item.remarks.decide(at, "class-not-known", message, hint)
        return None

    def class_parameters_of(self, item: Item) -> Item | None:
        """The parameters object that a ResourceClass names, where it is in the input."""
        reference = mapping(item.manifest.get("parametersRef"))
        names = (text(reference.get(name)) for name in ("kind", "name", "namespace"))
        return self._objects.find(_group_of(reference), *names)

    def migrate_class(self, item: Item) -> Mapping[str, Any] | None:
        """The DeviceClass in the place of a ResourceClass; None where its driver ships one, the object where nobody knows."""
        remarks = item.remarks
        name = class_driver(item)
        today = driver_of_today(name)
        fields = {**mapping(item.manifest.get("spec")), **item.manifest}
        without(fields, "suitableNodes", "", remarks, hint=NODE_SELECTOR)
        if strays := [name for name, value in fields.items() if value and name not in _OF_CLASS]:
            message = f"a ResourceClass has no {strays[0]}"
            hint = "write what it did into a DeviceClass"
            remarks.decide(strays[0], "parameter-not-known", message, hint)
            return item.manifest
        reference = fields.get("parametersRef")
        parameters = self.class_parameters_of(item) if reference else None
        if parameters is not None and read_class_parameters(parameters) == []:
            self.use(parameters, is_replaced=True)
            reference = None
        if not is_driver_name(today.lower()):
            message = f"{name[:80]!r} cannot be the name of a driver" if name else "the class names no driver"
            remarks.decide("driverName", "class-not-known", message, "write a DeviceClass for its driver")
            return item.manifest
        if not reference and today in CLASSES:
            device_class = "gpu.nvidia.com and mig.nvidia.com" if today == NVIDIA else today
            message = f"the driver of today ships the DeviceClass {device_class}"
            remarks.changed("driverName", "obsolete-object", message)
            return None
        selectors = [driver(today).expression()]
        if reference:
            more = None if item.key.name in CLASSES else self._filters(parameters, today)
            if more is None:
                message = "nobody can say what the parameters of the class mean today"
                hint = "write a DeviceClass with a selector or an opaque config, under a name of its own"
                remarks.decide("parametersRef", "parameters-not-known", message, hint)
                return item.manifest
            selectors += more
        if today == name and today not in CLASSES:
            message = f"nobody knows whether the driver is called {name} today"
            hint = "look up its name and its DeviceClasses, which it may ship itself"
            remarks.decide("driverName", "driver-not-known", message, hint)
        message = "the ResourceClass is a DeviceClass with a selector on the driver"
        remarks.changed("driverName", "classic-shape", message)
        spec = {"selectors": [{"cel": {"expression": each}} for each in selectors]}
        kept = {each: item.manifest[each] for each in _OF_CLASS[:3] if each in item.manifest}
        return {**kept, "kind": "DeviceClass", "spec": spec}

    def _filters(self, parameters: Item | None, today: str) -> list[str] | None:
        if parameters is None:
            return None
        if today == NVIDIA and (read := read_class_parameters(parameters)):
            self.use(parameters, is_replaced=True)
            return read
        if parameters.key[:2] != (GROUP, "ResourceClassParameters"):
            return None
        manifest = parameters.manifest
        found = list[str]()
        for each in mappings(manifest.get("filters")):
            selector = mapping(each.get("namedResources")).get("selector")
            expression = from_named_resources(selector, today) if isinstance(selector, str) else None
            if expression is None or driver_of_today(text(each.get("driverName"))) != today:
                self.use(parameters, is_replaced=False)
                return None
            found.append(expression)
        self.use(parameters, is_replaced=not manifest.get("vendorParameters"))
        return None if manifest.get("vendorParameters") else found


def _path(item: Item) -> str:
    return "spec.spec" if item.key.kind == "ResourceClaimTemplate" else "spec"


def _group_of(reference: Mapping[str, Any]) -> str:
    # Intel's tests wrote the version into the group, articles write apiVersion, and the group of ConfigMaps has no name.
    return (text(reference.get("apiGroup")) or text(reference.get("apiVersion")) or "v1").partition("/")[0]


def class_driver(item: Item) -> str:
    """The driver of a ResourceClass, whose fields some wrote below `spec`."""
    manifest = item.manifest
    return text(manifest.get("driverName")) or text(mapping(manifest.get("spec")).get("driverName"))


def _single(meant: Meant | None) -> DeviceRequests | None:
    if meant is None:
        return None
    config = [config_entry(meant.config)] if meant.config else []
    return DeviceRequests([{"name": meant.name, "exactly": meant.exactly()}], config)


def _say(requests: list[dict[str, Any]]) -> str:
    found = (each["exactly"] for each in requests)
    return " and ".join(f"{each.get('count', 1)} of {each['deviceClassName']}" for each in found)
