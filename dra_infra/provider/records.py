"""Objects of the schema as the records that components take in Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_infra.components.claims import GpuClaimTemplate
from dra_infra.components.mig_partitions import MigPartition
from dra_infra.components.nvlink_groups import NvlinkGroup
from dra_infra.components.shared_gpus import SharedGpu
from dra_infra.specs.device_configs import (
    ComputeDomainChannelConfig,
    ExampleGpuConfig,
    GpuConfig,
    MigDeviceConfig,
    Mps,
    OpaqueConfig,
    SpacePartitioning,
    TimeSlicing,
    VfioDeviceConfig,
)
from dra_infra.specs.pod_security import PodSecurity
from dra_infra.specs.queues import CapacitySource, CounterSource
from dra_infra.specs.requests import Alternative, DeviceRequest, DistinctAttribute, MatchAttribute, Toleration
from dra_infra.target import ClusterTarget

_Fields = dict[str, Any]

ONE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "Sharing": ("time_slicing", "mps", "space_partitioning"),
    "Constraint": ("match_attribute", "distinct_attribute"),
    "DeviceConfig": ("time_slicing", "mps", "mig", "vfio", "channel", "example", "opaque"),
    "QueueSource": ("counter", "capacity"),
    "TenantTemplate": ("claim", "mig", "shared", "nvlink"),
}
"""Objects that stand for one of several records, with the fields of which exactly one must be given."""

_TEMPLATES: Final = {
    "claim": GpuClaimTemplate,
    "mig": MigPartition,
    "shared": SharedGpu,
    "nvlink": NvlinkGroup,
}
_CONFIGS: Final = {
    "mig": MigDeviceConfig,
    "vfio": VfioDeviceConfig,
    "channel": ComputeDomainChannelConfig,
    "example": ExampleGpuConfig,
    "opaque": OpaqueConfig,
}


def _constraint(fields: _Fields) -> MatchAttribute | DistinctAttribute:
    requests = fields.get("requests", ())
    if "match_attribute" in fields:
        return MatchAttribute(fields["match_attribute"], requests=requests)
    return DistinctAttribute(fields["distinct_attribute"], requests=requests)


def _device_config(fields: _Fields) -> Any:
    requests = fields.pop("requests", ())
    ((key, value),) = fields.items()
    if key in _CONFIGS:
        return _CONFIGS[key](**value, requests=requests)
    return GpuConfig(sharing=value, requests=requests)


def _mps(fields: _Fields) -> Mps:
    limits = fields.get("per_device_pinned_memory_limit")
    if isinstance(limits, Mapping):
        # Keys of objects are texts, those that are an index of a device too.
        limits = {int(key) if key.isdigit() else key: limit for key, limit in limits.items()}
        return Mps(**{**fields, "per_device_pinned_memory_limit": limits})
    return Mps(**fields)


def _template(fields: _Fields) -> Callable[..., Any]:
    ((key, arguments),) = fields.items()
    return functools.partial(_TEMPLATES[key], **arguments)


def _only_value(fields: _Fields) -> Any:
    (value,) = fields.values()
    return value


def _from_fields(record: Callable[..., Any]) -> Callable[[_Fields], Any]:
    return lambda fields: record(**fields)


RECORDS: Final[Mapping[str, Callable[[_Fields], Any]]] = {
    **{
        record.__name__: _from_fields(record)
        for record in (
            *(Toleration, Alternative, DeviceRequest, TimeSlicing, SpacePartitioning),
            *(PodSecurity, CounterSource, CapacitySource, ClusterTarget),
        )
    },
    "Mps": _mps,
    "Sharing": _only_value,
    "QueueSource": _only_value,
    "Constraint": _constraint,
    "DeviceConfig": _device_config,
    "TenantTemplate": _template,
}
"""Makes what Python takes of an object's fields, by the name of the object. Objects that are not here are mappings in Python too."""
