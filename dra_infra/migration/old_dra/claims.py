"""Migrates the parts of claims and classes of v1 that speak of drivers before today: selectors, constraints, configs, classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import mapping, value_at
from dra_infra.migration.old_dra.configs import migrate_configs
from dra_infra.migration.old_dra.invented_parameters import INVENTED, read_invented
from dra_infra.migration.old_dra.objects import ADMIN_ACCESS, NVIDIA, Item, OldObjects, Remarks
from dra_infra.migration.old_dra.parameters import MIG_CLASS
from dra_infra.migration.old_dra.selectors import migrate_attribute_name, migrate_selector

Manifest = Mapping[str, Any]

_IMEX_CLASS: Final = "imex.nvidia.com"
_UNLABELLED: Final = ("v1alpha3", "v1beta1")
"""Versions that a server without the label for admin access had as its newest."""


def migrate_devices(item: Item, manifest: Manifest, objects: OldObjects) -> Manifest:
    """An object in the arrangement of v1, with selectors, constraints and configs that the drivers of today know.

    Args:
        item: The object as it was.
        manifest: The object in the arrangement of v1.
        objects: The input, whose namespaces may allow admin access.
    """
    kind = item.key.kind
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return manifest
    if kind == "DeviceClass":
        new = _of_class(spec, item.remarks)
    elif kind == "ResourceClaim":
        new = _of_claim(spec, "spec", item, objects)
    elif kind == "ResourceClaimTemplate" and isinstance(spec.get("spec"), Mapping):
        new = {**spec, "spec": _of_claim(spec["spec"], "spec.spec", item, objects)}
    else:
        return manifest
    return {name: new if name == "spec" else value for name, value in manifest.items()}


def _of_class(spec: Manifest, remarks: Remarks) -> Manifest:
    changed = dict(spec)
    if "selectors" in spec:
        changed["selectors"] = _selectors(spec["selectors"], "spec.selectors", remarks)
    if "config" in spec:
        changed["config"] = migrate_configs(spec["config"], "spec.config", remarks)
    return changed


def _of_claim(spec: Manifest, path: str, item: Item, objects: OldObjects) -> Manifest:
    devices = spec.get("devices")
    if not isinstance(devices, Mapping):
        return spec
    at = f"{path}.devices"
    remarks = item.remarks
    changed = dict(devices)
    requests, constraints = devices.get("requests"), devices.get("constraints")
    before = value_at(item.manifest, *path.split("."), "devices", "requests")
    if isinstance(requests, list):
        changed["requests"] = [
            _request(each, f"{at}.requests[{index}]", _at(before, index), item, objects)
            if isinstance(each, Mapping)
            else each
            for index, each in enumerate(requests)
        ]
    if isinstance(constraints, list):
        changed["constraints"] = [
            _constraint(each, f"{at}.constraints[{index}]", remarks) if isinstance(each, Mapping) else each
            for index, each in enumerate(constraints)
        ]
    if "config" in devices:
        changed["config"] = migrate_configs(devices["config"], f"{at}.config", remarks)
    return {name: changed if name == "devices" else value for name, value in spec.items()}


def _request(request: Manifest, path: str, written: Manifest, item: Item, objects: OldObjects) -> Manifest:
    """A request of v1.

    Args:
        request: The request in the arrangement of v1.
        path: Where it is.
        written: The request as it was, for the paths of remarks.
        item: The object that it is in.
        objects: The input.
    """
    remarks = item.remarks
    changed = dict(request)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if isinstance(exactly, Mapping):
        outer = {name: value for name, value in request.items() if name in INVENTED}
        places = _Places(path, written, "exactly")
        read = _leaf({**exactly, **outer}, places, remarks)
        # What stays undecided stays where it is written.
        changed = {name: value for name, value in changed.items() if name not in outer or name in read}
        changed["exactly"] = {name: value for name, value in read.items() if name not in outer}
        if exactly.get("adminAccess") is True:
            _admin_access(places.of("adminAccess"), item, objects)
    if isinstance(alternatives, list):
        before = value_at(written, "firstAvailable")
        changed["firstAvailable"] = [
            _leaf(each, _Places(f"{path}.firstAvailable[{index}]", _at(before, index), "exactly"), remarks)
            if isinstance(each, Mapping)
            else each
            for index, each in enumerate(alternatives)
        ]
    return changed


class _Places(NamedTuple):
    """Where fields of a request were before they were arranged as in v1.

    Args:
        path: Where the request is.
        written: The request as it was.
        wrapper: The field in which some were.
    """

    path: str
    written: Manifest
    wrapper: str

    def of(self, name: str) -> str:
        """The path of a field as it was."""
        return (
            f"{self.path}.{self.wrapper}.{name}"
            if name in mapping(self.written.get(self.wrapper))
            else f"{self.path}.{name}"
        )


def _at(items: Any, index: int) -> Manifest:
    """The object at a place of a list; an empty one where there is none."""
    return mapping(items[index]) if isinstance(items, list) and index < len(items) else {}


def _admin_access(path: str, item: Item, objects: OldObjects) -> None:
    version = str(item.manifest.get("apiVersion")).partition("/")[2]
    if version in _UNLABELLED and not objects.allows_admin_access(item.namespace):
        message = "admin access is refused in a namespace without a label since 1.34"
        hint = f'label the namespace {ADMIN_ACCESS}: "true", which needs a right of its own'
        item.remarks.decide(path, "admin-access-label", message, hint)


def _leaf(fields: Manifest, places: _Places, remarks: Remarks) -> dict[str, Any]:
    """The fields of a request, or of an alternative, that say which devices are meant."""
    changed = dict(fields)
    is_nvidia = fields.get("deviceClassName") in (NVIDIA, MIG_CLASS)
    if "selectors" in fields:
        at = places.of("selectors")
        changed["selectors"] = _selectors(fields["selectors"], at, remarks, nvidia=is_nvidia)
    if fields.get("deviceClassName") == _IMEX_CLASS:
        message = "the class imex.nvidia.com has no successor; channels come with a ComputeDomain"
        hint = "make a ComputeDomain, and name the claim template that it makes in the pods"
        remarks.decide(places.of("deviceClassName"), "imex-channel", message, hint)
    invented = {name: value for name, value in fields.items() if name in INVENTED}
    if not invented or not is_nvidia:
        return changed
    found = read_invented(invented, places.of, remarks)
    if found.is_undecided:
        return changed
    kept = {name: value for name, value in changed.items() if name not in invented}
    if found.is_mig:
        kept["deviceClassName"] = MIG_CLASS
    if found.selectors:
        held = kept.get("selectors")
        written = [{"cel": {"expression": each}} for each in found.selectors]
        kept["selectors"] = [*held, *written] if isinstance(held, list) else written
    return kept


def _selectors(selectors: Any, path: str, remarks: Remarks, *, nvidia: bool = False) -> Any:
    if not isinstance(selectors, list):
        return selectors
    found = (_in_cel(each, f"{path}[{index}]", remarks) for index, each in enumerate(selectors))
    return [
        _selector(each, f"{path}[{index}].cel.expression", remarks, nvidia=nvidia)
        for index, each in enumerate(found)
    ]


def _in_cel(selector: Any, path: str, remarks: Remarks) -> Any:
    """The selector with its expression below `cel`, also where it stands for the whole, for `cel`, or beside an empty one."""
    fields = {name: value for name, value in mapping(selector).items() if value is not None}
    expression = selector if isinstance(selector, str) else next(iter(fields.values()), None)
    if not isinstance(expression, str) or len(fields) > 1 or not fields.keys() <= {"cel", "expression"}:
        return selector
    remarks.changed(path, "old-shape", "a selector has its expression at cel.expression")
    return {"cel": {"expression": expression}}


def _selector(selector: Any, path: str, remarks: Remarks, *, nvidia: bool) -> Any:
    cel = mapping(selector).get("cel")
    expression = mapping(cel).get("expression")
    if not isinstance(expression, str):
        return selector
    new = migrate_selector(expression, path, remarks, nvidia=nvidia)
    return selector if new == expression else {**selector, "cel": {**mapping(cel), "expression": new}}


def _constraint(constraint: Manifest, path: str, remarks: Remarks) -> Manifest:
    found = dict(constraint)
    for name in ("matchAttribute", "distinctAttribute"):
        if isinstance(constraint.get(name), str):
            found[name] = migrate_attribute_name(constraint[name], f"{path}.{name}", remarks)
    return found
