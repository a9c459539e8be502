"""For each field the values at and beyond its limits; which of them are valid is for the server to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.parity.kinds import expressions

Path = tuple[str | int, ...]

LABELS: Sequence[Any] = (
    "", "A", "a_b", "-a", "a-", "a.b", "a/b", "a" * 63, "a" * 64, "é", "日本", " a", "a b", "é" * 63, "a\n", "a" * 300,
)  # fmt: skip
_LONG = ".".join(["a" * 63] * 3)
SUBDOMAINS: Sequence[Any] = (
    "", "A", "a_b", "-a", "a-", "a.b", "a..b", ".a", "a.", "a/b", "é", "a b", "a" * 63, "a" * 64,
    f"{_LONG}.{'a' * 61}", f"{_LONG}.{'a' * 62}", "a" * 253, "a" * 254, "A" * 254, "é" * 127, "a" * 3000,
)  # fmt: skip
DRIVERS: Sequence[Any] = (
    "", "A", "GPU.Example.com", "a_b", "-a", "a..b", "a.", "gpu", "gpu.example.com/", "a" * 63, "a" * 64,
    f"{'a' * 31}.{'b' * 31}", f"{'a' * 31}.{'b' * 32}", "é", "é" * 32, "A_" * 40,
)  # fmt: skip
QUALIFIED: Sequence[Any] = (
    "", "model", "gpu.example.com/model", "GPU.example.com/model", "a/b/c", "/x", "x/", "/", "a/1x", "a/x-y", "a/x.y", "a/_x",
    f"a/{'x' * 32}", f"a/{'x' * 33}", f"{'a' * 63}/x", f"{'a' * 64}/x", "a/é", "a_b/x", "a..b/x", "é/x", "a b/x", "a/x ",
    f"{'A' * 64}/{'é' * 33}",
)  # fmt: skip
REFERENCES: Sequence[Any] = (
    "", "gpu", "nic", "nope", "gpu/large", "gpu/nope", "nope/large", "gpu/", "/large", "/", "gpu/large/x", "Gpu", "gpu//large",
    "large", "é", "a" * 64, f"gpu/{'a' * 64}", "a b",
)  # fmt: skip
INTEGERS: Sequence[Any] = (
    0, 1, -1, 2, 32, 33, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30,
    1.0, 1.5, 1e3, 1e20, "1", "", True,
)  # fmt: skip
QUANTITIES: Sequence[Any] = (
    "", "1", "+1", "-1", "0", "1.5", ".5", "5.", "1Ki", "1KI", "10Gi", "1Zi", "1E", "1e", "1e3", "1E3", "1e-3", "1n", "1u", "1m", "0.1n",
    "1 Gi", " 1", "1.5.5", "--1", "0x10", "x", "Ki", "1e400", "1e-400", "9223372036854775807", "9223372036854775808", "9" * 40,
    "9" * 1000, "0.000000000000000001", "123456789.123456789Gi", "1é", "٣", 5, -5, 0, 1.5, 1e3, 1e-3, 10**30, 0.1, True, [], {},
)  # fmt: skip
LABEL_KEYS: Sequence[Any] = (
    "", "a", "A", "A_1.b", "-a", "a-", "a/b", "a/b/c", "/a", "a/", "A.example.com/x", "é", "a b", "x" * 63, "x" * 64,
    f"{_LONG}.{'a' * 61}/x", f"{_LONG}.{'a' * 62}/x", f"{'a' * 64}/x", "kubernetes.io/x",
)  # fmt: skip
LABEL_VALUES: Sequence[Any] = (
    "", "a", "A_1.b-c", "-a", "a-", "a/b", "a b", "é", "x" * 63, "x" * 64, "a\n", 1, True, None,
)  # fmt: skip
EXTENDED_RESOURCES: Sequence[Any] = (
    "", "gpu", "example.com/gpu", "Example.com/gpu", "kubernetes.io/gpu", "x.kubernetes.io/gpu", "kubernetes.io", "a.kubernetes.io/",
    "requests.example.com/x", "requests.", "requests./x", "a/b/c", "/x", "x/", "a/-b", "a/b_c", "a_b/c", "é/x", "a/é", f"a/{'x' * 63}", f"a/{'x' * 64}",
    f"{_LONG}.{'a' * 52}/x", f"{_LONG}.{'a' * 53}/x", f"{_LONG}.{'a' * 61}/x", "pods", "limits.example.com/x",
    "deviceclass.resource.kubernetes.io/x",
)  # fmt: skip


def _parameters(count: int, letter: str = "a") -> dict[str, str]:
    """An object of exactly *count* bytes as compact JSON, filled with *letter*."""
    frame = len('{"k":""}')
    filled = letter * ((count - frame) // len(letter.encode()))
    return {"k": filled + " " * (count - frame - len(filled.encode()))}


PARAMETERS: Sequence[Any] = (
    {}, {"a": 1}, {"": None}, [], [1], "", "x", "{}", 0, 1, 1.5, True, False, None, {"a": {"b": [{}, [], None, 1e3, 2**70]}},
    _parameters(10239), _parameters(10240), _parameters(10241), _parameters(10240, "é"), _parameters(10241, "é"), _parameters(20000),
    ["a" * 10240], "a" * 10241, {"a": '"\\\n\u2028<>&'}, {"a": "\x00\x7f"},
)  # fmt: skip
EXPRESSIONS: Sequence[Any] = (
    *expressions.VALID,
    *expressions.VERSIONED,
    *expressions.INVALID,
    *expressions.EXPENSIVE,
    *(
        expressions.of_bytes(count, letter)
        for count in (expressions.LIMIT, expressions.LIMIT + 1)
        for letter in ("a", "é", "日")
    ),
    "(" * 5000 + "true" + ")" * 5000,
    "true" + " && true" * 1000,
)

ATTRIBUTE_TEXTS: Sequence[Any] = ("", "a" * 64, "a" * 65, "é" * 32, "é" * 33, "日本", "<&>\u2028", 1, None)
SEMVERS: Sequence[Any] = (
    "", "1", "1.2", "1.2.3", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-a..b", "1.2.3-01", "1.2.3-0a", "1.2.3+", "1.2.3+01", "1.2.3-a+b",
    "1.2.3 ", "1.2.3\n", "٣.0.0", f"1.2.3-{'a' * 58}", f"1.2.3-{'a' * 59}", f"1.2.3-{'é' * 33}",
)  # fmt: skip
TRUTHS: Sequence[Any] = (True, False, None, "true", 1)
POLICY_AMOUNTS: Sequence[Any] = (
    "0", "1", "2", "3", "4", "5", "1.5", "2.5", "100m", "1500m", "1.0", "1k", "1000", "80Gi", "81Gi", "1Ki", "1.5Ki", "-1", "-1500m",
    "9223372036854775807", "9223372036854775808", "1e30", "0.0001", "1n", "9E", "16Ei", "1e3",
)  # fmt: skip
NODE_NAMES: Sequence[Any] = SUBDOMAINS
POOL_NAMES: Sequence[Any] = (*SUBDOMAINS, "a/b", "a//b", "/a", "a/", "/", "A/b", "a/" * 130)

UUIDS: Sequence[Any] = (
    "", "x", "11111111-2222-3333-4444-555555555555", "11111111-2222-3333-4444-55555555555A", "11111111222233334444555555555555",
    "1111111122223333444455555555555g", "urn:uuid:11111111-2222-3333-4444-555555555555", "urn:uuix:11111111-2222-3333-4444-555555555555",
    "{11111111-2222-3333-4444-555555555555}", "(11111111-2222-3333-4444-555555555555)", "11111111-2222-3333-4444-55555555555g",
    "11111111_2222-3333-4444-555555555555", "é", "a" * 36,
)  # fmt: skip
ADDRESSES: Sequence[Any] = (
    "", "192.0.2.5/24", "192.0.2.5", "192.0.2.5/33", "192.0.2.5/024", "192.000.2.5/24", "192.0.2.256/24", "192.0.2/24", "2001:db8::1/64",
    "2001:DB8::1/64", "2001:db8:0:0::1/64", "2001:db8::1/129", "::ffff:192.0.2.5/120", "::ffff:192.0.2.5/20", "::/0", "fe80::1%eth0/64", "a/b", "1/2/3",
)  # fmt: skip

BY_KEY: Mapping[str, Sequence[Any]] = {
    "name": LABELS,
    "request": LABELS,
    "nodeName": NODE_NAMES,
    "allNodes": TRUTHS,
    "perDeviceNodeSelection": TRUTHS,
    "allowMultipleAllocations": TRUTHS,
    "bindsToNode": TRUTHS,
    "resourceSliceCount": INTEGERS,
    "int": INTEGERS,
    "ints": ([], [1], [1, "x"], [1] * 47, [1] * 48, [1] * 49),
    "strings": ([], ["a" * 64], ["a" * 65], ["é" * 33, ""], [1], ["a"] * 49),
    "versions": ([], ["1.2.3"], ["1"], [f"1.2.3-{'a' * 60}"], [None]),
    "bools": ([], [True], [1]),
    "string": ATTRIBUTE_TEXTS,
    "version": SEMVERS,
    "counterSet": LABELS,
    "compatibilityGroups": ([], ["a"], ["a", "b"], ["a", "b", "c"], ["a", "a"], ["A", ""], [1]),
    "partitionTypeAttribute": (*QUALIFIED, "a/type", "a/missing"),
    "skipNodeOperations": (
        [],
        ["*"],
        ["*", "*"],
        ["NodePrepareResources"],
        ["NodePrepareResources", "NodeUnprepareResources"],
        ["x", ""],
        ["<x>"],
    ),
    "bindingConditions": (
        [],
        ["a"],
        ["a", "a"],
        ["a/ready", "a/failed"],
        ["", "-a", "a/b/c"],
        ["a", "b", "c", "d"],
        ["a", "b", "c", "d", "a"],
    ),
    "bindingFailureConditions": (
        [],
        ["b"],
        ["b", "b"],
        ["a/ready"],
        ["é"],
        ["e", "f", "g", "h"],
        ["e", "f", "g", "h", "i"],
    ),
    "default": POLICY_AMOUNTS,
    "min": POLICY_AMOUNTS,
    "max": POLICY_AMOUNTS,
    "step": POLICY_AMOUNTS,
    "validValues": (
        [],
        ["1"],
        ["2", "1"],
        ["1", "1"],
        ["1", "1.0"],
        ["1", "1000m"],
        ["1", "1.5"],
        ["1Ki", "1.5Ki"],
        ["-1.5", "-1"],
        [f"{n}" for n in range(1, 11)],
        [f"{n}" for n in range(1, 12)],
        ["81Gi"],
        ["x"],
    ),
    "capacityKey": (*QUALIFIED, "memory", "cores"),
    "capacityMultiplier": POLICY_AMOUNTS,
    "deviceMultiplier": POLICY_AMOUNTS,
    "allocationMultiplier": POLICY_AMOUNTS,
    "perPod": POLICY_AMOUNTS,
    "perContainer": POLICY_AMOUNTS,
    "shareID": UUIDS,
    "ips": (
        [],
        *([each] for each in ADDRESSES),
        ["192.0.2.5/24"] * 2,
        [f"192.0.2.{n}/24" for n in range(16)],
        [f"192.0.2.{n}/24" for n in range(17)],
    ),
    "source": ("", "FromClaim", "FromClass", "fromclaim", "<x>"),
    "data": PARAMETERS,
    "interfaceName": ("", "eth0", "é" * 128, "é" * 129, "x" * 257),
    "hardwareAddress": ("", "x" * 128, "x" * 129),
    "resource": ("", "pods"),
    "timeAdded": (None, "", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.6+01:00", "x", 1),
    "deviceClassName": SUBDOMAINS,
    "resourceClaimName": SUBDOMAINS,
    "resourceClaimTemplateName": SUBDOMAINS,
    "driver": DRIVERS,
    "expression": EXPRESSIONS,
    "matchAttribute": QUALIFIED,
    "distinctAttribute": QUALIFIED,
    "count": INTEGERS,
    "tolerationSeconds": INTEGERS,
    "allocationMode": ("", "All", "ExactCount", "all", "exactcount", "Any", "ExactCount ", "é"),
    "operator": ("", "Equal", "Exists", "equal", "Gt", "Exists "),
    "effect": ("", "NoSchedule", "NoExecute", "None", "PreferNoSchedule", "noschedule"),
    "key": LABEL_KEYS,
    "value": LABEL_VALUES,
    "adminAccess": (True, False, "true", 1),
    "parameters": PARAMETERS,
    "extendedResourceName": EXTENDED_RESOURCES,
    "generateName": ("", "a-", "A", "-", "a.", "a" * 247, "a" * 248, "a" * 253, "a" * 254, "é"),
    "generation": (0, 1, -1, 2**63),
    "creationTimestamp": (None, "", "2026-01-01T00:00:00Z", "2026-01-01", 0),
    "deletionTimestamp": (None, "2026-01-01T00:00:00Z", "x"),
    "deletionGracePeriodSeconds": (0, -1, 5),
    "selfLink": ("", "x"),
    "uid": ("", "x", 1),
    "managedFields": (
        None,
        [],
        [{}],
        [{"manager": "a", "operation": "Apply"}],
        [{"operation": "x", "time": 1}],
    ),
    "apiVersion": ("", "v1", "apps/v1", "apps/", "/v1", "/", "a/b/c", "A b/v1"),
    "controller": (True, False, None),
    "blockOwnerDeletion": (True, False, None),
}
"""Odd values by the last element of the path: in this API a name mostly decides the format."""

SERVER_SET: Sequence[str] = (
    "generateName",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "uid",
    "managedFields",
)
"""Fields of metadata that nobody has reason to write, but may."""

LIMITS: Mapping[str, int] = {
    "requests": 32,
    "firstAvailable": 8,
    "selectors": 32,
    "constraints": 32,
    "config": 32,
    "tolerations": 16,
    "derivedAttributes": 32,
    "resourceClaims": 4,
    "claims": 4,
    "devices": 128,
    "results": 32,
    "reservedFor": 256,
    "conditions": 8,
    "ips": 16,
    "taints": 16,
    "sharedCounters": 8,
    "consumesCounters": 2,
    "validValues": 10,
    "ints": 48,
    "nodeSelectorTerms": 1,
}
"""Items that lists may have, or are said to have."""


def of(path: Path) -> Sequence[Any]:
    """Odd values for the field at *path*; empty when nothing special is known about it."""
    key = path[-1] if isinstance(path[-1], str) else path[-2]
    above = path[-2] if len(path) > 1 else None
    if key == "name" and above == "metadata":
        return SUBDOMAINS
    if key == "name" and "derivedAttributes" in path:
        return QUALIFIED
    in_slices = _in_slices(path, key)
    if in_slices is not None:
        return in_slices
    if above == "labels":
        return LABEL_VALUES
    if above == "annotations":
        return ("", "é\n", "x" * 300_000, 1, None)
    if above == "requests" and "capacity" in path:
        return QUANTITIES
    if key == "requests" and isinstance(path[-1], int):
        return REFERENCES
    if key == "finalizers" and isinstance(path[-1], int):
        return ("", "a", "example.com/a", "a/b/c", "-", "é", "x" * 64, "foregroundDeletion", "kubernetes")
    return BY_KEY.get(str(key), ())


_CONDITIONS: Mapping[str, Sequence[Any]] = {
    "type": LABEL_KEYS,
    "status": ("", "True", "False", "Unknown", "true", "<x>"),
    "reason": ("", "Up", "a-b", "a_", "1a", "a,", "a:b", "é", "a" * 1024, "a" * 1025),
    "message": ("", "é\n", "x" * 32768, "x" * 32769),
    "lastTransitionTime": (None, "", "2026-01-02T03:04:05Z", "x", 1),
    "observedGeneration": INTEGERS,
}
_ENTRIES: Mapping[Any, Sequence[Any]] = {
    "attributes": ({}, {"int": 1, "string": "a"}, {"bool": False, "versions": ["1.0.0"]}, {"ints": []}, {"ints": [], "int": 1}, {"strings": []}),
    "capacity": (
        {"value": "10", "requestPolicy": {}}, {"value": "10", "requestPolicy": {"validValues": ["1"]}},
        {"value": "10", "requestPolicy": {"default": "1", "validValues": ["1"], "validRange": {}}},
        {"value": "10", "requestPolicy": {"default": "1", "validRange": {"max": "2"}}},
    ),
    "nodeAllocatableResources": ({}, {"mapping": {}}, {"overhead": {}}, {"mapping": {"capacityKey": "memory", "deviceMultiplier": "1"}}),
}  # fmt: skip
_AMOUNT_HOLDERS = ("capacity", "counters")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "in", "<x>")


def _in_slices(path: Path, key: str | int) -> Sequence[Any] | None:
    """What a name decides only in a slice; None when it is for others to say."""
    if "nodeSelectorTerms" in path:
        return _of_node_selector(key)
    if isinstance(path[-1], str) and len(path) > 1 and path[-2] in _ENTRIES:
        return _ENTRIES[path[-2]]
    if "results" in path and key == "request":
        return REFERENCES
    if "conditions" in path and key in _CONDITIONS:
        return _CONDITIONS[str(key)]
    if key == "pool":
        return POOL_NAMES
    if key == "device":
        return LABELS
    if key == "name" and path[-2] == "pool":
        return POOL_NAMES
    if key == "value" and any(step in _AMOUNT_HOLDERS for step in path[-3:-1]):
        return QUANTITIES
    return None


def _of_node_selector(key: str | int) -> Sequence[Any]:
    if key == "operator":
        return _OPERATORS
    if key == "values":
        return ([], ["x"], ["x", "y"], ["-", "é"], ["A_b"], ["x" * 64], [1])
    return (*LABEL_KEYS, "metadata.name", "metadata.namespace") if key == "key" else ()


def keys_of(path: Path) -> Sequence[str]:
    """Odd keys for the map at *path*; empty when its keys are field names."""
    if path[-1] in ("labels", "annotations"):
        return LABEL_KEYS
    if path[-1] == "requests" and "capacity" in path:
        return QUALIFIED
    if path[-1] in ("attributes", "capacity"):
        return QUALIFIED
    if path[-1] == "counters":
        return LABELS
    if path[-1] in ("nodeAllocatableResources", "nodeAllocatableResourceMappings"):
        return (
            "cpu",
            "memory",
            "ephemeral-storage",
            "hugepages-1Gi",
            "pods",
            "example.com/x",
            "kubernetes.io/x",
            "",
            "<x>",
        )
    return ()
