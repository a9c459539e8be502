"""Which fields of resource.k8s.io came or went with which minor, as k8s.io/api 0.34 to 0.37 have them.

A server answers a field that it does not know with a strict decoding error, or drops it with a warning. Every version
of the API that a minor serves has the same fields; only their arrangement differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NEWEST: Final = 37
"""The minor whose fields the records have."""

ANY: Final = 0
"""Stands for all supported minors together."""

FIELDS_SINCE: Final[Mapping[tuple[str, str], int]] = {
    ("DeviceAttribute", "ints"): 36,
    ("DeviceAttribute", "bools"): 36,
    ("DeviceAttribute", "strings"): 36,
    ("DeviceAttribute", "versions"): 36,
    ("Device", "nodeAllocatableResourceMappings"): 36,
    ("Device", "nodeAllocatableResources"): 37,
    ("BasicDevice", "nodeAllocatableResourceMappings"): 36,
    ("BasicDevice", "nodeAllocatableResources"): 37,
    ("ResourceSliceSpec", "partitionTypeAttribute"): 37,
    ("ResourceSliceSpec", "skipNodeOperations"): 37,
    ("DeviceCounterConsumption", "compatibilityGroups"): 37,
    ("ExactDeviceRequest", "derivedAttributes"): 37,
    ("DeviceSubRequest", "derivedAttributes"): 37,
    ("DeviceRequest", "derivedAttributes"): 37,
    ("DeviceRequestAllocationResult", "skipNodeOperations"): 37,
    ("DeviceTaintRule", "status"): 35,
}
"""(Go struct, JSON field) to the first minor that knows it; fields that are not here are older than 1.34."""

FIELDS_UNTIL: Final[Mapping[tuple[str, str], int]] = {
    ("DeviceTaintSelector", "deviceClassName"): 34,
    ("DeviceTaintSelector", "selectors"): 34,
    ("Device", "nodeAllocatableResourceMappings"): 36,
    ("BasicDevice", "nodeAllocatableResourceMappings"): 36,
}
"""(Go struct, JSON field) to the last minor that knows it; 1.37 replaced it without conversion."""


def is_known(struct: str, field: str, minor: int) -> bool:
    """Whether a server of *minor* (37 for 1.37, or `ANY`) has *field* in *struct*; named as in JSON and Go."""
    key = (struct, field)
    return minor == ANY or FIELDS_SINCE.get(key, 0) <= minor <= FIELDS_UNTIL.get(key, minor)
