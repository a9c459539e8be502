"""What a server fills in when it decodes a slice (SetDefaults_* in pkg/apis/resource/*/defaults.go)."""

from __future__ import annotations

from dra_infra.model.defaults import AnyRecord, changed_only, each_changed
from dra_infra.model.device import Device
from dra_infra.model.resource_slice import ResourceSlice


def slice_with_defaults(record: AnyRecord) -> AnyRecord:
    """*record* as a server has it after defaulting; the same object when nothing was to be filled in."""
    if not isinstance(record, ResourceSlice) or not record.spec.devices:
        return record
    spec = changed_only(record.spec, devices=each_changed(record.spec.devices, _device))
    return changed_only(record, spec=spec)


def _device(device: Device) -> Device:
    """A device of 1.36, whose node resources are multiplied by one unless they say otherwise; 1.37 has others."""
    mappings = device.node_allocatable_resource_mappings
    if not mappings:
        return device
    changed = {
        name: changed_only(each, allocation_multiplier=each.allocation_multiplier or "1")
        for name, each in mappings.items()
    }
    return device.changed({"node_allocatable_resource_mappings": changed})
