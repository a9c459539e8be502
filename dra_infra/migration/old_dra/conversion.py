"""Old DRA, of classic controllers and of the versions before v1, as objects of resource.k8s.io/v1.

What counts is the shape of an object and not the version that is written on it: files are often migrated by half. Nothing
is guessed: where an object could mean several things it stays as it is, with a remark for somebody to decide. Migrating
what was migrated changes nothing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

from dra_infra.advice.objects import reference_to
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.kubernetes.api import WorkloadKinds, mapping, value_at
from dra_infra.migration.old_dra.claims import migrate_devices
from dra_infra.migration.old_dra.classic_claims import ClassicClaims, claim_spec, is_claim, is_classic
from dra_infra.migration.old_dra.mig_joining import MigJoining
from dra_infra.migration.old_dra.objects import GROUP, Item, OldObjects, driver_of_today
from dra_infra.migration.old_dra.parameters import is_class_parameters, is_parameters
from dra_infra.migration.old_dra.pods import find_named, migrate_pods
from dra_infra.migration.old_dra.shapes import KINDS, is_arranged, to_v1
from dra_infra.migration.outcomes import Migrated, Remark

_WRITTEN: Final = f"{GROUP}/v1"
"""Every minor from 1.34 on serves it."""

_OBSOLETE: Final[Mapping[str, str]] = {
    "PodScheduling": "the scheduler of today allocates without asking a controller",
    "PodSchedulingContext": "the scheduler of today allocates without asking a controller",
    "NodeAllocationState": "drivers publish their devices in ResourceSlices",
}
_OWN_METADATA: Final = ("metadata.labels", "metadata.annotations", "spec.metadata")
"""Fields of a template that its claims, or people, know it by."""

_KEPT: Final = "decide that first, by its own remarks, and migrate again"

_PARAMETERS: Final = ("ResourceClaimParameters", "ResourceClassParameters")


def migrate_old_dra(
    objects: Sequence[Mapping[str, Any]], kinds: WorkloadKinds | None = None
) -> dict[int, Migrated]:
    """Migrates each object that has to do with old DRA, by its position in *objects*.

    Objects that are not in the answer are not touched. One that stays as it is, since somebody has to decide, is in it
    with its own manifest.

    Args:
        objects: The objects of an input, all together: claims and their parameters find each other by name.
        kinds: Kinds of objects that make pods; None for those that the catalogue knows.
    """
    return _Migration(OldObjects(objects, kinds or workload_kinds())).run()


class _Migration:
    def __init__(self, objects: OldObjects) -> None:
        self._objects = objects
        self._claims = ClassicClaims(self._objects)
        self._joining = MigJoining(self._objects, self._claims)
        self._found: dict[int, Migrated] = {}

    def run(self) -> dict[int, Migrated]:
        """Pods first, which join claims; then claims and classes, which use parameters; what stays together; parameters last."""
        ours = (GROUP, "")
        for item in self._objects.items:
            if item.key.group not in ours and not is_parameters(item):
                self._workload(item)
        for item in self._objects.items:
            if item.key.group == GROUP:
                self._of_group(item)
        self._keep_together()
        for item in self._objects.items:
            self._of_driver(item)
        return dict(sorted(self._found.items()))

    def _workload(self, item: Item) -> None:
        flat = migrate_pods(item, self._objects)
        manifest, added = self._joining.join(item, flat)
        self._put(item, manifest, [_written(each) for each in added])

    def _of_group(self, item: Item) -> None:
        kind = item.key.kind
        if is_claim(item) and is_classic(item):
            if self._joining.is_joined(item):
                item.remarks.changed("spec", "mig-joined", "its devices are requests of another template now")
                for path in filter(lambda path: value_at(item.manifest, *path.split(".")), _OWN_METADATA):
                    message = "the template that has its devices now is of several, and has none of it"
                    hint = "write it into that template, where something reads it"
                    item.remarks.lost(path, "mig-joined", message, hint)
                self._put(item, None)
                return
            manifest = self._claims.migrate(item)
            self._put(item, manifest if manifest is item.manifest else _written(manifest))
        elif kind == "ResourceClass":
            device_class = self._claims.migrate_class(item)
            untouched = device_class is None or device_class is item.manifest
            self._put(item, device_class if untouched else _written(mapping(device_class)))
        elif kind == "ResourceSlice" and "driverName" in item.manifest:
            item.remarks.changed("", "obsolete-object", "drivers publish their ResourceSlices themselves")
            self._put(item, None)
        elif kind in KINDS:
            self._put(item, self._of_version(item))
        elif kind == "DeviceTaintRule":
            selector = mapping(value_at(item.manifest, "spec", "deviceSelector"))
            for name in filter(selector.get, ("deviceClassName", "selectors")):
                message = f"1.35 removed {name}: without it the taint is put on all devices that the rest selects, or on every one"
                at = f"spec.deviceSelector.{name}"
                item.remarks.decide(at, "old-field-removed", message, "name driver, pool and device")
            self._put(item, item.manifest)

    def _of_version(self, item: Item) -> Mapping[str, Any]:
        hub: Mapping[str, Any] = to_v1(item.manifest, item.remarks)
        if not is_arranged(hub):
            if not any(each.code == "two-shapes" for each in item.remarks):
                message = "the exactly of a request is no object, or holds another"
                item.remarks.decide("spec", "two-shapes", message, "write the request anew")
            return item.manifest
        hub = migrate_devices(item, hub, self._objects)
        written = _written(hub)
        if item.manifest.get("apiVersion") != _WRITTEN:
            before = str(item.manifest["apiVersion"]).partition("/")[2]
            item.remarks.changed("apiVersion", "old-version", f"{before} is v1 now")
        return item.manifest if written == item.written else written

    def _keep_together(self) -> None:
        """Leaves objects as they are that belong to one for which somebody has to decide: half of them fits no cluster.

        A claim that stays keeps the pods that name it, these keep their other claims, and each keeps its class.
        """
        # Nearly all objects know nothing of old DRA.
        if not any(map(self._is_undecided, self._objects.items)):
            return
        named = {
            item.index: claims
            for item in self._objects.items
            if item.key.group != GROUP and (claims := find_named(item, self._objects))
        }
        items = {each.index: each for each in self._objects.items}
        stuck = {
            each.index: ""
            for each in items.values()
            if self._is_kept_claim(each) or (each.index in named and _lacks_parent(each))
        }
        waiting = list(stuck)
        while waiting:
            index = waiting.pop()
            users = [pod for pod, claims in named.items() if any(index == each.index for each in claims)]
            beside = [each.index for each in named.get(index, ()) if is_classic(each)]
            for other in (*users, *beside):
                if other not in stuck:
                    stuck[other] = str(reference_to(items[index].manifest))
                    waiting.append(other)
        for index, why in stuck.items():
            self._hold(items[index], why)
        moved = [
            each for each in items.values() if is_claim(each) and is_classic(each) and each.index not in stuck
        ]
        used = {str(claim_spec(each).get("resourceClassName")) for each in moved}
        for item in (items[index] for index in stuck if is_claim(items[index])):
            self._hold_class(item, used)

    def _is_undecided(self, item: Item) -> bool:
        """Check whether the user has to decide about an object, by its own remarks alone."""
        return self._is_kept_claim(item) or _lacks_parent(item)

    def _is_kept_claim(self, item: Item) -> bool:
        return is_claim(item) and is_classic(item) and self._is_kept(item)

    def _is_kept(self, item: Item) -> bool:
        done = self._found.get(item.index)
        return done is not None and done.manifest is item.written

    def _hold(self, item: Item, why: str) -> None:
        """Leaves an object as it is, for *why*, with the class and the parameters that it names."""
        if why and not any(each.outcome == "decide" for each in item.remarks):
            item.remarks.decide("", "kept-together", _tell_kept(why), _KEPT)
        remarks = tuple(each for each in item.remarks if each.outcome == "decide")
        self._found[item.index] = Migrated(manifest=item.written, remarks=remarks)
        if is_claim(item):
            self._claims.hold(item)

    def _hold_class(self, item: Item, used: Container[str]) -> None:
        """Leaves the class of a claim that stays; one of *used* has its successor beside it."""
        name = str(claim_spec(item).get("resourceClassName") or "")
        own = self._objects.find(GROUP, "ResourceClass", name, "")
        if own is None or self._is_kept(own):
            return
        made = self._found[own.index].manifest
        remark = Remark("", "decide", "kept-together", _tell_kept(str(reference_to(item.manifest))), _KEPT)
        added = (made,) if made is not None and name in used else ()
        self._found[own.index] = Migrated(manifest=own.written, remarks=(remark,), added=added)
        self._claims.hold_parameters(self._claims.class_parameters_of(own))

    def _of_driver(self, item: Item) -> None:
        group, kind, _ = item.key
        own = group.removeprefix("nas.")
        if (kind in _OBSOLETE and group == GROUP) or (
            kind == "NodeAllocationState" and driver_of_today(own) != own
        ):
            item.remarks.changed("", "obsolete-object", _OBSOLETE[kind])
            self._put(item, None)
        elif is_parameters(item) or is_class_parameters(item) or (group == GROUP and kind in _PARAMETERS):
            self._parameters(item)

    def _parameters(self, item: Item) -> None:
        if self._claims.is_replaced(item):
            item.remarks.changed("", "parameters-written", "what it says is in the objects that named it")
            self._put(item, None)
            return
        if self._claims.is_generated(item):
            message = "a controller of then wrote it, from an object that is migrated"
            item.remarks.changed("", "obsolete-object", message)
            self._put(item, None)
            return
        if is_parameters(item):
            self._claims.meaning_of(item)
        is_clear = all(each.outcome == "changed" for each in item.remarks)
        if is_clear and self._claims.is_held(item):
            message = _tell_kept("a claim that names it")
            item.remarks.decide("", "kept-together", message, _KEPT)
        elif is_clear:
            message = "no claim that it was written into names it, of those in the input"
            hint = "give the claims too; leave it out once none names it"
            item.remarks.decide("", "parameters-not-used", message, hint)
        self._put(item, item.manifest)

    def _put(
        self, item: Item, manifest: Mapping[str, Any] | None, added: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        untouched = manifest is item.manifest and not added
        # What would have become of fields says nothing where the object stays as it is.
        remarks = tuple(each for each in item.remarks if not untouched or each.outcome != "changed")
        if remarks or not untouched:
            kept = item.written if untouched else manifest
            self._found[item.index] = Migrated(manifest=kept, remarks=remarks, added=tuple(added))


def _lacks_parent(item: Item) -> bool:
    return any(each.code == "mig-parent-not-known" for each in item.remarks)


def _tell_kept(why: str) -> str:
    return f"it stays as it is together with {why}, for which somebody has to decide"


def _written(hub: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _WRITTEN if name == "apiVersion" else value for name, value in hub.items()}
