"""Replacements of stored objects: what may change, what may not, and what is checked again."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

from tests.support.parity import bases
from tests.support.parity.cases import ADMIN, PLAIN, Case, Object
from tests.support.parity.faults import break_some, everything, get, is_of_claims
from tests.support.parity.gate_sets import ALL, NONE
from tests.support.parity.kinds import expressions
from tests.support.parity.kinds.pods import WORKLOADS
from tests.support.parity.kinds.taint_rule import whole_taint_rule
from tests.support.parity.kinds.whole_slices import whole_slices
from tests.support.parity.odd_values import Path

_DEVICES: Path = ("spec", "devices")
_LARGE = {"k": "a" * 10240}


def stored(minor: str, gate_set: str) -> Iterator[Case]:
    """What is to be stored first; each has a name of its own."""
    bases_of = dict(_bases(choices=gate_set != NONE))
    if gate_set == ALL:
        # Replacing one in v1 takes a resourceVersion, which is about what is stored and not about the object.
        version = "v1beta2" if minor >= "1.36" else "v1alpha3"
        bases_of["rule"] = (whole_taint_rule(version), PLAIN)
    for kind, (built, namespace) in bases_of.items():
        changed = copy.deepcopy(built)
        changed["metadata"]["name"] = f"stored-{kind}"
        yield Case(id=f"stored {kind}", object=changed, namespace=namespace)


def named(old: Case) -> Iterator[Case]:
    """The updates of one stored object (*old* holds what the server made of it) that have a name."""
    changes = _CHANGES[old.id.removeprefix("stored ")]
    # Of pods only what is about claims is judged.
    shared = _METADATA[:1] if old.kind in WORKLOADS else _METADATA
    for name, path, value in (*shared, *changes):
        # What a gate dropped on the way in cannot be changed any more.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            yield _update(old, name, _changed(old.object, path, value))


def drawn(old: Case, seed: int, count: int) -> Iterator[Case]:
    """Updates of one stored object by faults at random."""
    kind = old.id.removeprefix("stored ")
    may_break: Callable[[Path], bool] = is_of_claims if kind in ("pod", "deployment") else everything
    for index in range(count):
        name = f"{kind}/{seed}/{index}"
        random = Random(f"update {name}")  # noqa: S311 - reproducible, not secret.
        yield _update(
            old,
            name,
            break_some(random, old.object, random.choice((1, 1, 1, 2, 3)), _not_identity(may_break)),
        )


def _not_identity(may_break: Callable[[Path], bool]) -> Callable[[Path], bool]:
    """Keeps the name, which is part of the request's address, and what only a running cluster sets."""

    def check(path: Path) -> bool:
        return (
            path[:2] != ("metadata", "name")
            and path != ("metadata",)
            and path[0] != "status"
            and may_break(path)
        )

    return check


def _update(old: Case, name: str, changed: Object) -> Case:
    return Case(
        id=f"update {old.id.removeprefix('stored ')} {name}",
        object=changed,
        namespace=old.namespace,
        old=old.object,
    )


def _changed(built: Object, path: Path, value: Any) -> Object:
    changed = copy.deepcopy(built)
    if not path:
        return changed
    parent = get(changed, path[:-1])
    if value is _ABSENT:
        del parent[path[-1]]
    elif callable(value):
        parent[path[-1]] = value(parent.get(path[-1]))
    else:
        parent[path[-1]] = copy.deepcopy(value)
    return changed


_ABSENT = object()
_Change = tuple[str, Path, Any]


def _class_with(**spec: Any) -> Object:
    built = bases.device_class()
    built["spec"].update(spec)
    return built


def _selector(text: str) -> Object:
    return {"cel": {"expression": text}}


def _one_more(items: list[Any] | None) -> list[Any]:
    return [*(items or []), copy.deepcopy(items[0]) if items else {}]


def _bases(*, choices: bool) -> Mapping[str, tuple[Object, str]]:
    everywhere = {"derived": False, "distinct": False, "choices": choices}
    return {
        "claim": (bases.claim(**everywhere), ADMIN),
        "template": (bases.template(**everywhere), ADMIN),
        "class": (bases.device_class(), PLAIN),
        "large-class": (
            _class_with(
                selectors=[_selector(expressions.of_bytes(expressions.LIMIT)), _selector("true")],
                config=[{"opaque": {"driver": "gpu.example.com", "parameters": {"k": "a" * 10000}}}],
            ),
            PLAIN,
        ),
        "bare-claim": (_bare("ResourceClaim"), PLAIN),
        "bare-template": (_bare("ResourceClaimTemplate"), PLAIN),
        "pod": (bases.pod(), PLAIN),
        "deployment": (bases.pod("Deployment"), PLAIN),
        "slice": (whole_slices()["of a node"], PLAIN),
        "counters": (whole_slices()["of counters"], PLAIN),
    }


def _bare(kind: str) -> Object:
    """A claim or template with few fields, and parameters that Python takes for others."""
    capacity = {"requests": {"memory": "1Gi"}}
    parameters = {"exclusive": True, "level": 1, "none": 0, "empty": {}, "list": [1]}
    spec: Object = {
        "devices": {
            "requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "capacity": capacity}}
            ],
            "config": [{"opaque": {"driver": "gpu.example.com", "parameters": parameters}}],
        }
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "bare"},
        "spec": spec if kind == "ResourceClaim" else {"spec": spec},
    }


_METADATA: Sequence[_Change] = (
    ("nothing", (), None),
    ("other labels", ("metadata", "labels"), {"other": "label"}),
    ("no labels", ("metadata", "labels"), None),
    ("bad label", ("metadata", "labels"), {"a b": "-"}),
    ("bad annotation", ("metadata", "annotations"), {"-": ""}),
    ("other generation", ("metadata", "generation"), 7),
    ("negative generation", ("metadata", "generation"), -1),
    ("other creation", ("metadata", "creationTimestamp"), "2020-01-01T00:00:00Z"),
    ("unknown field", ("bogus",), 1),
)
_CLAIM: Sequence[_Change] = (
    ("no spec", ("spec",), _ABSENT),
    ("empty spec", ("spec",), {}),
    ("no devices", _DEVICES, None),
    ("request renamed", (*_DEVICES, "requests", 0, "name"), "other"),
    ("request renamed badly", (*_DEVICES, "requests", 0, "name"), "A B"),
    ("request removed", (*_DEVICES, "requests"), lambda items: items[:1]),
    ("request twice", (*_DEVICES, "requests"), _one_more),
    ("33 requests", (*_DEVICES, "requests"), lambda items: items[:1] * 33),
    ("count", (*_DEVICES, "requests", 0, "exactly", "count"), 3),
    ("count zero", (*_DEVICES, "requests", 0, "exactly", "count"), 0),
    ("count absent", (*_DEVICES, "requests", 0, "exactly", "count"), _ABSENT),
    ("no admin access", (*_DEVICES, "requests", 0, "exactly", "adminAccess"), _ABSENT),
    ("selector", (*_DEVICES, "requests", 0, "exactly", "selectors", 0, "cel", "expression"), "false"),
    ("bad selector", (*_DEVICES, "requests", 0, "exactly", "selectors", 0, "cel", "expression"), "device."),
    ("mode", (*_DEVICES, "requests", 0, "exactly", "allocationMode"), "All"),
    ("unknown mode", (*_DEVICES, "requests", 0, "exactly", "allocationMode"), "Any"),
    ("operator absent", (*_DEVICES, "requests", 0, "exactly", "tolerations", 0, "operator"), _ABSENT),
    ("constraint", (*_DEVICES, "constraints", 0, "matchAttribute"), "a/other"),
    ("no constraints", (*_DEVICES, "constraints"), None),
    ("parameters", (*_DEVICES, "config", 0, "opaque", "parameters"), {"a": 2}),
    ("same parameters in other order", (*_DEVICES, "config", 0, "opaque", "parameters"), {"b": 1, "a": 1}),
    ("large parameters", (*_DEVICES, "config", 0, "opaque", "parameters"), _LARGE),
    ("bad driver", (*_DEVICES, "config", 0, "opaque", "driver"), "_"),
)
_REQUEST: Path = (*_DEVICES, "requests", 0, "exactly")
_PARAMETERS: Path = (*_DEVICES, "config", 0, "opaque", "parameters")
_BARE: Sequence[_Change] = (
    # Absent lists and maps equal empty ones.
    ("empty constraints", (*_DEVICES, "constraints"), []),
    ("empty selectors", (*_REQUEST, "selectors"), []),
    ("empty tolerations", (*_REQUEST, "tolerations"), []),
    ("empty derived attributes", (*_REQUEST, "derivedAttributes"), []),
    ("empty requests of config", (*_DEVICES, "config", 0, "requests"), []),
    ("null constraints", (*_DEVICES, "constraints"), None),
    # With another change, the server prints the whole spec, in which its gates and conversions show.
    (
        "empty lists and a count",
        _REQUEST,
        {"deviceClassName": "gpu.example.com", "count": 3, "selectors": []},
    ),
    (
        "empty gated lists and a count",
        _REQUEST,
        {"deviceClassName": "gpu.example.com", "count": 3, "tolerations": [], "derivedAttributes": []},
    ),
    ("a name that JSON escapes", (*_DEVICES, "constraints"), [{"matchAttribute": "a && b <c>"}]),
    # What is given by pointer is there when it is false, empty or zero.
    ("no admin access", (*_REQUEST, "adminAccess"), False),
    ("empty capacity", (*_REQUEST, "capacity"), {}),
    ("empty requests of capacity", (*_REQUEST, "capacity", "requests"), {}),
    # Amounts are compared by value.
    ("capacity in another spelling", (*_REQUEST, "capacity", "requests", "memory"), "1024Mi"),
    ("capacity as bytes", (*_REQUEST, "capacity", "requests", "memory"), "1073741824"),
    ("capacity as a number", (*_REQUEST, "capacity", "requests", "memory"), 1073741824),
    ("other capacity", (*_REQUEST, "capacity", "requests", "memory"), "1025Mi"),
    # Parameters are compared as text.
    ("parameter true as 1", (*_PARAMETERS, "exclusive"), 1),
    ("parameter true as 1.0", (*_PARAMETERS, "exclusive"), 1.0),
    ("parameter 1 as true", (*_PARAMETERS, "level"), True),
    ("parameter 1 as 1.0", (*_PARAMETERS, "level"), 1.0),
    ("parameter 0 as false", (*_PARAMETERS, "none"), False),
    ("parameter 0 as null", (*_PARAMETERS, "none"), None),
    ("empty parameter left out", (*_PARAMETERS, "empty"), _ABSENT),
    ("empty parameter as null", (*_PARAMETERS, "empty"), None),
    ("parameter 1 in a list as true", (*_PARAMETERS, "list", 0), True),
    ("same parameter", (*_PARAMETERS, "exclusive"), True),
)
_CLASS: Sequence[_Change] = (
    ("no spec", ("spec",), {}),
    ("selector changed", ("spec", "selectors", 0), _selector("device.driver == 'x'")),
    ("selector changed badly", ("spec", "selectors", 0), _selector("device.")),
    ("selector too costly", ("spec", "selectors", 0), _selector(expressions.TOO_COSTLY)),
    ("selector too long", ("spec", "selectors", 0), _selector(expressions.of_bytes(expressions.LIMIT + 1))),
    ("bad selector added", ("spec", "selectors"), lambda items: [*items, _selector("1")]),
    ("selector twice", ("spec", "selectors"), _one_more),
    ("selectors reversed", ("spec", "selectors"), lambda items: items[::-1]),
    ("33 selectors", ("spec", "selectors"), lambda items: items[:1] * 33),
    ("no selectors", ("spec", "selectors"), None),
    ("config twice", ("spec", "config"), _one_more),
    ("33 configs", ("spec", "config"), lambda items: items[:1] * 33),
    ("driver changed", ("spec", "config", 0, "opaque", "driver"), "other.example.com"),
    ("driver changed badly", ("spec", "config", 0, "opaque", "driver"), "_"),
    ("parameters changed", ("spec", "config", 0, "opaque", "parameters"), {"a": 2}),
    ("parameters too large", ("spec", "config", 0, "opaque", "parameters"), _LARGE),
    ("parameters no object", ("spec", "config", 0, "opaque", "parameters"), []),
    ("resource changed", ("spec", "extendedResourceName"), "example.com/other"),
    ("resource changed badly", ("spec", "extendedResourceName"), "gpu"),
    ("no resource", ("spec", "extendedResourceName"), None),
)
_POD: Sequence[_Change] = (
    ("claim renamed", ("spec", "resourceClaims", 0, "name"), "other"),
    ("other claim", ("spec", "resourceClaims", 1, "resourceClaimName"), "other"),
    ("no claims", ("spec", "resourceClaims"), None),
    ("claim twice", ("spec", "resourceClaims"), _one_more),
    ("container without", ("spec", "containers", 0, "resources"), {}),
)
_WORKLOAD: Sequence[_Change] = tuple((name, ("spec", "template", *path), value) for name, path, value in _POD)
_DEVICE: Path = ("spec", "devices", 0)
_SLICE: Sequence[_Change] = (
    ("other driver", ("spec", "driver"), "other.example.com"),
    ("bad driver", ("spec", "driver"), "_"),
    ("other pool", ("spec", "pool", "name"), "other"),
    ("no pool", ("spec", "pool"), _ABSENT),
    ("next generation", ("spec", "pool", "generation"), 7),
    ("more slices", ("spec", "pool", "resourceSliceCount"), 3),
    ("no slices", ("spec", "pool", "resourceSliceCount"), 0),
    ("other node", ("spec", "nodeName"), "node-b"),
    ("no node", ("spec", "nodeName"), _ABSENT),
    ("all nodes", ("spec", "allNodes"), True),
    ("no devices", ("spec", "devices"), _ABSENT),
    ("one device", ("spec", "devices"), lambda items: items[:1]),
    ("device twice", ("spec", "devices"), _one_more),
    ("129 devices", ("spec", "devices"), lambda items: items[:1] * 129),
    ("devices reversed", ("spec", "devices"), lambda items: items[::-1]),
    ("device renamed", (*_DEVICE, "name"), "other"),
    ("device renamed badly", (*_DEVICE, "name"), "A"),
    ("attribute changed", (*_DEVICE, "attributes", "a"), {"int": 7}),
    ("attribute emptied", (*_DEVICE, "attributes", "a"), {}),
    ("attribute doubled", (*_DEVICE, "attributes", "a"), {"int": 7, "bool": True}),
    ("capacity in another spelling", (*_DEVICE, "capacity", "memory", "value"), "1Gi"),
    ("capacity smaller than its policy", (*_DEVICE, "capacity", "slots", "value"), "1"),
    ("no longer shared", (*_DEVICE, "allowMultipleAllocations"), False),
    ("taints absent", (*_DEVICE, "taints"), _ABSENT),
    ("taint without time", (*_DEVICE, "taints", 0, "timeAdded"), _ABSENT),
    ("taint of another effect", (*_DEVICE, "taints", 0, "effect"), "x"),
    ("taint added badly", (*_DEVICE, "taints"), lambda items: [*items, {"key": ""}]),
    ("set renamed", ("spec", "sharedCounters", 0, "name"), "other"),
    ("set renamed badly", ("spec", "sharedCounters", 0, "name"), "A"),
    ("set twice", ("spec", "sharedCounters"), _one_more),
    ("9 sets", ("spec", "sharedCounters"), lambda items: items[:1] * 9),
    ("counter added badly", ("spec", "sharedCounters", 0, "counters", "A"), {"value": "1"}),
    ("counter in another spelling", ("spec", "sharedCounters", 0, "counters", "cores", "value"), "500m"),
    ("no counters in the set", ("spec", "sharedCounters", 0, "counters"), {}),
)
_RULE: Sequence[_Change] = (
    ("other driver", ("spec", "deviceSelector", "driver"), "b"),
    ("bad pool", ("spec", "deviceSelector", "pool"), "A"),
    ("no selector", ("spec", "deviceSelector"), _ABSENT),
    ("other effect, time kept", ("spec", "taint", "effect"), "NoSchedule"),
    (
        "other effect and time",
        ("spec", "taint"),
        {"key": "a", "effect": "NoSchedule", "timeAdded": "2026-02-02T00:00:00Z"},
    ),
    ("other effect, no time", ("spec", "taint"), {"key": "a", "effect": "NoSchedule"}),
    ("unknown effect", ("spec", "taint", "effect"), "x"),
    ("no effect", ("spec", "taint", "effect"), _ABSENT),
    ("other time", ("spec", "taint", "timeAdded"), "2026-02-02T00:00:00Z"),
    ("no time", ("spec", "taint", "timeAdded"), _ABSENT),
    ("bad key", ("spec", "taint", "key"), "a b"),
    ("no taint", ("spec", "taint"), _ABSENT),
)


def _below_spec(changes: Sequence[_Change]) -> Sequence[_Change]:
    """The changes of a claim, in the spec of a template."""
    return tuple((name, ("spec", *path), value) for name, path, value in changes if path != ("spec",))


_CHANGES: Mapping[str, Sequence[_Change]] = {
    "claim": _CLAIM,
    "template": _below_spec(_CLAIM),
    "bare-claim": _BARE,
    "bare-template": (
        *_below_spec(_BARE),
        ("empty metadata", ("spec", "metadata"), {}),
        ("empty labels", ("spec", "metadata"), {"labels": {}}),
        ("labels", ("spec", "metadata"), {"labels": {"a": "b"}}),
        ("empty annotations", ("spec", "metadata"), {"annotations": {}}),
        ("empty finalizers", ("spec", "metadata"), {"finalizers": []}),
        ("null finalizers", ("spec", "metadata"), {"finalizers": None}),
        ("empty owners", ("spec", "metadata"), {"ownerReferences": []}),
        ("empty managed fields", ("spec", "metadata"), {"managedFields": []}),
    ),
    "class": _CLASS,
    "large-class": _CLASS,
    "pod": _POD,
    "deployment": _WORKLOAD,
    "slice": _SLICE,
    "counters": _SLICE,
    "rule": _RULE,
}
