"""Objects of the input by what old DRA calls them, and the remarks that are gathered about each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import WorkloadKinds, mapping, value_at
from dra_infra.migration.outcomes import Outcome, Remark

GROUP: Final = "resource.k8s.io"
ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
"""The label of a namespace in which claims may ask for admin access; none was needed before 1.33."""

NVIDIA: Final = "gpu.nvidia.com"
INTEL: Final = "gpu.intel.com"
EXAMPLE: Final = "gpu.example.com"

DRIVERS: Final[Mapping[str, str]] = {
    "dra.gpu.nvidia.com": NVIDIA,
    "gpu.resource.nvidia.com": NVIDIA,
    "gpu.resource.intel.com": INTEL,
    "gpu.dra.intel.com": INTEL,
    "gpu.resource.example.com": EXAMPLE,
}
"""Names of today of the drivers of classic DRA; their API groups had the same names.

Sources: NVIDIA/k8s-dra-driver at 438ae1a9, and its chart at 77d3dd2a, intel/intel-resource-drivers-for-kubernetes v0.2.0 and v0.3.0, and
kubernetes-sigs/dra-example-driver at e56da36.
"""

CLASSES: Final[Mapping[str, str]] = {
    NVIDIA: NVIDIA,
    INTEL: INTEL,
    EXAMPLE: EXAMPLE,
    "intel-gpu": INTEL,
    "gpu.resource.nvidia.com": NVIDIA,
}
"""The ResourceClasses that these drivers shipped, each with its driver of today, which ships a DeviceClass of its name."""


def driver_of_today(name: str) -> str:
    """Returns the name of today of the driver that was called *name*: *name* where nothing else is known."""
    return DRIVERS.get(name, name)


class Remarks:
    """The remarks about one object, in the order in which they are made, each once."""

    def __init__(self) -> None:
        self._found: dict[Remark, None] = {}
        self.moved: tuple[str, str] = ("", "")
        """The path of a part that was moved, and where it stood, which is what a reader of the file knows."""

    def add(self, outcome: Outcome, path: str, code: str, message: str, hint: str = "") -> None:
        """Takes down a remark."""
        now, written = self.moved
        if now and f"{path}.".startswith(f"{now}."):
            path = f"{written}{path.removeprefix(now)}".removeprefix(".")
        self._found[Remark(path, outcome, code, message, hint)] = None

    def changed(self, path: str, code: str, message: str, hint: str = "") -> None:
        """Takes down what means the same in another form."""
        self.add("changed", path, code, message, hint)

    def lost(self, path: str, code: str, message: str, hint: str) -> None:
        """Takes down what has no successor."""
        self.add("lost", path, code, message, hint)

    def decide(self, path: str, code: str, message: str, hint: str) -> None:
        """Takes down what only a person can say."""
        self.add("decide", path, code, message, hint)

    def __iter__(self) -> Iterator[Remark]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class Key(NamedTuple):
    """An object's group, kind and name."""

    group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """An object of the input.

    Args:
        index: Its position.
        written: The object as it is written.
        remarks: What is said of it.

    Attributes:
        manifest: The object with name and spec where its kind has them.
        key: Its group, kind and name; texts that are missing are empty.
    """

    index: int
    written: Mapping[str, Any]
    remarks: Remarks = field(default_factory=Remarks, compare=False)
    manifest: Mapping[str, Any] = field(init=False)
    key: Key = field(init=False, compare=False)

    def __post_init__(self) -> None:
        in_group = text(self.written.get("apiVersion")).startswith(f"{GROUP}/")
        manifest = in_place(self.written, self.remarks) if in_group else self.written
        object.__setattr__(self, "manifest", manifest)
        group = text(manifest.get("apiVersion")).partition("/")[0]
        metadata = mapping(manifest.get("metadata"))
        key = Key(group, text(manifest.get("kind")), text(metadata.get("name")))
        object.__setattr__(self, "key", key)

    @property
    def namespace(self) -> str:
        """The namespace as it is written, which is no text for YAML's `y`; empty where none is."""
        written = mapping(self.manifest.get("metadata")).get("namespace")
        return "" if written is None else str(written)


class OldObjects:
    """The objects of the input, which of them a name means, and the kinds that make pods where the user names kinds."""

    def __init__(self, objects: Sequence[Mapping[str, Any]], kinds: WorkloadKinds) -> None:
        self.kinds: Final = kinds
        # What a reader of files hands on may be anything.
        known: list[tuple[int, Any]] = list(enumerate(objects))
        self.items: Final = [Item(index, each) for index, each in known if isinstance(each, Mapping)]
        self._by_key: dict[Key, list[Item]] = {}
        for item in self.items:
            self._by_key.setdefault(item.key, []).append(item)

    def find(self, group: str, kind: str, name: str, namespace: str) -> Item | None:
        """The object that *name* means in *namespace*; of several of one name the last, which a cluster would have.

        A file may leave the namespace to whoever applies it: then it means any that has no other of the name, and who leaves
        it open himself means the only one.
        """
        return meant_in(namespace, self._by_key.get(Key(group, kind, name), []) if name else [])

    def of_kind(self, group: str, kind: str) -> list[Item]:
        """All objects of a kind."""
        return [each for key, found in self._by_key.items() if key[:2] == (group, kind) for each in found]

    def allows_admin_access(self, namespace: str) -> bool:
        """Checks that a Namespace of the input has the label without which adminAccess is refused."""
        found = self._by_key.get(Key("v1", "Namespace", namespace), [])
        return any(value_at(each.manifest, "metadata", "labels", ADMIN_ACCESS) == "true" for each in found)


def meant_in(namespace: str, found: Sequence[Item]) -> Item | None:
    """The object that is meant in *namespace*, of several that a name may mean in one namespace or another."""
    own = [each for each in found if each.namespace == namespace]
    left_open = [each for each in found if not each.namespace]
    is_only = not namespace and len({each.namespace for each in found}) == 1
    return next(reversed(own or left_open or (found if is_only else ())), None)


_DEPTHS: Final = {"ResourceClaim": 1, "ResourceClaimTemplate": 2}
_OF_DEVICES: Final = ("requests", "constraints", "config")
_OF_CLAIM: Final = {"devices", "resourceClassName", "parametersRef", "allocationMode", *_OF_DEVICES}


def in_place(manifest: Mapping[str, Any], remarks: Remarks) -> Mapping[str, Any]:
    """The object with its name in its metadata, and what a claim asks for below as many `spec` as its kind has."""
    metadata = manifest.get("metadata") or {}
    if text(manifest.get("name")) and isinstance(metadata, Mapping) and "name" not in metadata:
        remarks.changed("name", "old-shape", "an object has its name in its metadata")
        named = {"name": manifest["name"], **metadata}
        kept = [each for each in manifest.items() if each[0] != "metadata"]
        manifest = dict(("metadata", named) if name == "name" else (name, value) for name, value in kept)
    depth = _DEPTHS.get(text(manifest.get("kind")), 0)
    levels = [manifest]
    while depth and len(levels) < 5 and isinstance(levels[-1].get("spec"), Mapping):
        levels.append(levels[-1]["spec"])
    found = [at for at, each in enumerate(levels) if depth and not _OF_CLAIM.isdisjoint(each)]
    at = found[0] if found else depth
    if not found or (at == depth and ("devices" in levels[at] or "requests" not in levels[at])):
        return manifest
    now, written = (".".join(["spec"] * each) for each in (depth, at))
    outer = {"metadata": levels[1]["metadata"]} if at and depth > 1 and "metadata" in levels[1] else {}
    strays = [
        set(each) - {"spec"} - (set() if level else set(outer)) for level, each in enumerate(levels[1:at])
    ]
    if len(found) > 1 or any(strays) or (at != depth and levels[at].get("spec") is not None):
        message = "what the claim asks for stands on several levels"
        hint = f"write all of it below {now}"
        remarks.decide(written, "two-shapes", message, hint)
        return manifest
    message = f"a {manifest['kind']} has what it asks for at {now}.devices"
    remarks.changed(written, "old-shape", message)
    stays: Iterable[str] = outer if at == 1 else ()
    if at == 0:
        stays = manifest.keys() - _OF_CLAIM
    claim = {name: value for name, value in levels[at].items() if name not in stays}
    remarks.moved = (now, written)
    if "devices" not in claim and "requests" in claim:
        devices = {name: claim.pop(name) for name in _OF_DEVICES if name in claim}
        claim = {**claim, "devices": devices}
        remarks.moved = (f"{now}.devices", written)
    rest = {name: value for name, value in manifest.items() if at or name in stays}
    return {**rest, "spec": {**outer, "spec": claim} if depth > 1 else claim}


def text(value: Any) -> str:
    """*value* where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def is_whole(value: Any) -> bool:
    """True for a number without a fraction, which true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def replaced(value: Any, steps: Sequence[str | int], new: Any) -> Any:
    """*value* with *new* in the place of what is below it at *steps*; only what is on the way is copied."""
    if not steps:
        return new
    step, *rest = steps
    if isinstance(step, int):
        return [replaced(each, rest, new) if place == step else each for place, each in enumerate(value)]
    return {key: replaced(each, rest, new) if key == step else each for key, each in value.items()}
