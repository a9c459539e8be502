"""The API as data: records in the `v1` shape, their versions, quantities, names and feature gates, and readers of manifests.

A record can hold what a server would refuse: no rule lives here. `limits`, `names`, `pod_security` and `v1beta1` are public modules too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_infra.kubernetes.front_door import find_homes, load_late

if TYPE_CHECKING:
    from dra_infra.kubernetes.api.decoding import GROUP as GROUP
    from dra_infra.kubernetes.api.decoding import VERSIONS as VERSIONS
    from dra_infra.kubernetes.api.decoding import can_decode as can_decode
    from dra_infra.kubernetes.api.decoding import decode as decode
    from dra_infra.kubernetes.api.decoding import field_names as field_names
    from dra_infra.kubernetes.api.decoding import json_type as json_type
    from dra_infra.kubernetes.api.defaults import claim_with_defaults as claim_with_defaults
    from dra_infra.kubernetes.api.defaults import with_defaults as with_defaults
    from dra_infra.kubernetes.api.device_class import API_VERSION as API_VERSION
    from dra_infra.kubernetes.api.device_class import DRIVER_TEST as DRIVER_TEST
    from dra_infra.kubernetes.api.device_class import CELDeviceSelector as CELDeviceSelector
    from dra_infra.kubernetes.api.device_class import DeviceClass as DeviceClass
    from dra_infra.kubernetes.api.device_class import DeviceClassConfiguration as DeviceClassConfiguration
    from dra_infra.kubernetes.api.device_class import DeviceClassSpec as DeviceClassSpec
    from dra_infra.kubernetes.api.device_class import DeviceSelector as DeviceSelector
    from dra_infra.kubernetes.api.device_class import OpaqueDeviceConfiguration as OpaqueDeviceConfiguration
    from dra_infra.kubernetes.api.device_class import drivers_in as drivers_in
    from dra_infra.kubernetes.api.device_class import drivers_of as drivers_of
    from dra_infra.kubernetes.api.device_class import expressions_of as expressions_of
    from dra_infra.kubernetes.api.device_taints import DeviceTaint as DeviceTaint
    from dra_infra.kubernetes.api.device_taints import DeviceTaintRule as DeviceTaintRule
    from dra_infra.kubernetes.api.device_taints import DeviceTaintRuleSpec as DeviceTaintRuleSpec
    from dra_infra.kubernetes.api.device_taints import DeviceTaintSelector as DeviceTaintSelector
    from dra_infra.kubernetes.api.device_taints import DeviceToleration as DeviceToleration
    from dra_infra.kubernetes.api.dropping import Dropped as Dropped
    from dra_infra.kubernetes.api.dropping import drop_from_claim as drop_from_claim
    from dra_infra.kubernetes.api.dropping import drop_from_slice as drop_from_slice
    from dra_infra.kubernetes.api.dropping import gates_of_fields as gates_of_fields
    from dra_infra.kubernetes.api.equality import is_same_json as is_same_json
    from dra_infra.kubernetes.api.equality import is_same_value as is_same_value
    from dra_infra.kubernetes.api.gates import GATES as GATES
    from dra_infra.kubernetes.api.gates import SUPPORTED_MINORS as SUPPORTED_MINORS
    from dra_infra.kubernetes.api.gates import Release as Release
    from dra_infra.kubernetes.api.go_text import go_json as go_json
    from dra_infra.kubernetes.api.label_selectors import LabelSelector as LabelSelector
    from dra_infra.kubernetes.api.label_selectors import Namespaces as Namespaces
    from dra_infra.kubernetes.api.label_selectors import matches_node_selector as matches_node_selector
    from dra_infra.kubernetes.api.label_selectors import meets_node_requirement as meets_node_requirement
    from dra_infra.kubernetes.api.label_selectors import read_texts as read_texts
    from dra_infra.kubernetes.api.manifests import POD_CLAIM_NAME as POD_CLAIM_NAME
    from dra_infra.kubernetes.api.manifests import FieldPath as FieldPath
    from dra_infra.kubernetes.api.manifests import find_all as find_all
    from dra_infra.kubernetes.api.manifests import mapping as mapping
    from dra_infra.kubernetes.api.manifests import mappings as mappings
    from dra_infra.kubernetes.api.manifests import name_of as name_of
    from dra_infra.kubernetes.api.manifests import value_at as value_at
    from dra_infra.kubernetes.api.metadata import CLUSTER_SCOPED as CLUSTER_SCOPED
    from dra_infra.kubernetes.api.metadata import ObjectMeta as ObjectMeta
    from dra_infra.kubernetes.api.metadata import ObjectRef as ObjectRef
    from dra_infra.kubernetes.api.metadata import by_namespace as by_namespace
    from dra_infra.kubernetes.api.metadata import group_of as group_of
    from dra_infra.kubernetes.api.metadata import kind_of as kind_of
    from dra_infra.kubernetes.api.metadata import name_kind as name_kind
    from dra_infra.kubernetes.api.nodes import Node as Node
    from dra_infra.kubernetes.api.nodes import NodeTaint as NodeTaint
    from dra_infra.kubernetes.api.patches import KNOWN_PATCHES as KNOWN_PATCHES
    from dra_infra.kubernetes.api.patches import read_version as read_version
    from dra_infra.kubernetes.api.patches import shorten_version as shorten_version
    from dra_infra.kubernetes.api.placeholders import UNKNOWN as UNKNOWN
    from dra_infra.kubernetes.api.placeholders import Placeholder as Placeholder
    from dra_infra.kubernetes.api.placeholders import as_placeholder as as_placeholder
    from dra_infra.kubernetes.api.placeholders import holds_placeholder as holds_placeholder
    from dra_infra.kubernetes.api.placeholders import is_placeholder as is_placeholder
    from dra_infra.kubernetes.api.placeholders import plain_text as plain_text
    from dra_infra.kubernetes.api.pod_containers import Amounts as Amounts
    from dra_infra.kubernetes.api.pod_records import PodRecord as PodRecord
    from dra_infra.kubernetes.api.pod_records import find_controller as find_controller
    from dra_infra.kubernetes.api.pods import decode_pod_claims as decode_pod_claims
    from dra_infra.kubernetes.api.pods import has_claim_parts as has_claim_parts
    from dra_infra.kubernetes.api.quantity import MAX_INT64 as MAX_INT64
    from dra_infra.kubernetes.api.quantity import NANO as NANO
    from dra_infra.kubernetes.api.quantity import Quantity as Quantity
    from dra_infra.kubernetes.api.quantity import nanos as nanos
    from dra_infra.kubernetes.api.quantity import print_amount as print_amount
    from dra_infra.kubernetes.api.quantity import quantity_text as quantity_text
    from dra_infra.kubernetes.api.record import Record as Record
    from dra_infra.kubernetes.api.resource_claim import CLAIM_KINDS as CLAIM_KINDS
    from dra_infra.kubernetes.api.resource_claim import AllocationResult as AllocationResult
    from dra_infra.kubernetes.api.resource_claim import CapacityRequirements as CapacityRequirements
    from dra_infra.kubernetes.api.resource_claim import DeviceClaim as DeviceClaim
    from dra_infra.kubernetes.api.resource_claim import DeviceClaimConfiguration as DeviceClaimConfiguration
    from dra_infra.kubernetes.api.resource_claim import DeviceConstraint as DeviceConstraint
    from dra_infra.kubernetes.api.resource_claim import DeviceRequest as DeviceRequest
    from dra_infra.kubernetes.api.resource_claim import DeviceSubRequest as DeviceSubRequest
    from dra_infra.kubernetes.api.resource_claim import ExactDeviceRequest as ExactDeviceRequest
    from dra_infra.kubernetes.api.resource_claim import ResourceClaim as ResourceClaim
    from dra_infra.kubernetes.api.resource_claim import ResourceClaimSpec as ResourceClaimSpec
    from dra_infra.kubernetes.api.resource_claim import ResourceClaimTemplate as ResourceClaimTemplate
    from dra_infra.kubernetes.api.resource_slice import CapacityRequestPolicy as CapacityRequestPolicy
    from dra_infra.kubernetes.api.resource_slice import (
        CapacityRequestPolicyRange as CapacityRequestPolicyRange,
    )
    from dra_infra.kubernetes.api.resource_slice import Counter as Counter
    from dra_infra.kubernetes.api.resource_slice import CounterSet as CounterSet
    from dra_infra.kubernetes.api.resource_slice import Device as Device
    from dra_infra.kubernetes.api.resource_slice import DeviceAttribute as DeviceAttribute
    from dra_infra.kubernetes.api.resource_slice import DeviceCapacity as DeviceCapacity
    from dra_infra.kubernetes.api.resource_slice import DeviceCounterConsumption as DeviceCounterConsumption
    from dra_infra.kubernetes.api.resource_slice import ResourcePool as ResourcePool
    from dra_infra.kubernetes.api.resource_slice import ResourceSlice as ResourceSlice
    from dra_infra.kubernetes.api.resource_slice import ResourceSliceSpec as ResourceSliceSpec
    from dra_infra.kubernetes.api.semver import Semver as Semver
    from dra_infra.kubernetes.api.stored_versions import removed_in as removed_in
    from dra_infra.kubernetes.api.stored_versions import stored_version as stored_version
    from dra_infra.kubernetes.api.versions import convert as convert
    from dra_infra.kubernetes.api.workload_kinds import BUILT_IN_KINDS as BUILT_IN_KINDS
    from dra_infra.kubernetes.api.workload_kinds import SUSPENDED as SUSPENDED
    from dra_infra.kubernetes.api.workload_kinds import Gang as Gang
    from dra_infra.kubernetes.api.workload_kinds import Number as Number
    from dra_infra.kubernetes.api.workload_kinds import PodClaimEntry as PodClaimEntry
    from dra_infra.kubernetes.api.workload_kinds import PodPart as PodPart
    from dra_infra.kubernetes.api.workload_kinds import PodTemplate as PodTemplate
    from dra_infra.kubernetes.api.workload_kinds import Steps as Steps
    from dra_infra.kubernetes.api.workload_kinds import WorkloadKind as WorkloadKind
    from dra_infra.kubernetes.api.workload_kinds import WorkloadKinds as WorkloadKinds
    from dra_infra.kubernetes.api.workload_kinds import read_steps as read_steps
    from dra_infra.kubernetes.api.workload_kinds import show_steps as show_steps

# The source: a name is public when it stands here, behind its module.
_HOMES = find_homes(
    {
        "decoding": (
            "GROUP",
            "VERSIONS",
            "can_decode",
            "decode",
            "field_names",
            "json_type",
        ),
        "defaults": (
            "claim_with_defaults",
            "with_defaults",
        ),
        "device_class": (
            "API_VERSION",
            "CELDeviceSelector",
            "DRIVER_TEST",
            "DeviceClass",
            "DeviceClassConfiguration",
            "DeviceClassSpec",
            "DeviceSelector",
            "OpaqueDeviceConfiguration",
            "drivers_in",
            "drivers_of",
            "expressions_of",
        ),
        "device_taints": (
            "DeviceTaint",
            "DeviceTaintRule",
            "DeviceTaintRuleSpec",
            "DeviceTaintSelector",
            "DeviceToleration",
        ),
        "dropping": (
            "Dropped",
            "drop_from_claim",
            "drop_from_slice",
            "gates_of_fields",
        ),
        "equality": (
            "is_same_json",
            "is_same_value",
        ),
        "gates": (
            "GATES",
            "Release",
            "SUPPORTED_MINORS",
        ),
        "go_text": ("go_json",),
        "label_selectors": (
            "LabelSelector",
            "Namespaces",
            "matches_node_selector",
            "meets_node_requirement",
            "read_texts",
        ),
        "manifests": (
            "FieldPath",
            "POD_CLAIM_NAME",
            "find_all",
            "mapping",
            "mappings",
            "name_of",
            "value_at",
        ),
        "metadata": (
            "CLUSTER_SCOPED",
            "ObjectMeta",
            "ObjectRef",
            "by_namespace",
            "group_of",
            "kind_of",
            "name_kind",
        ),
        "nodes": (
            "Node",
            "NodeTaint",
        ),
        "patches": (
            "KNOWN_PATCHES",
            "read_version",
            "shorten_version",
        ),
        "placeholders": (
            "Placeholder",
            "UNKNOWN",
            "as_placeholder",
            "holds_placeholder",
            "is_placeholder",
            "plain_text",
        ),
        "pod_containers": ("Amounts",),
        "pod_records": ("PodRecord", "find_controller"),
        "pods": (
            "decode_pod_claims",
            "has_claim_parts",
        ),
        "quantity": (
            "MAX_INT64",
            "NANO",
            "Quantity",
            "nanos",
            "print_amount",
            "quantity_text",
        ),
        "record": ("Record",),
        "resource_claim": (
            "AllocationResult",
            "CLAIM_KINDS",
            "CapacityRequirements",
            "DeviceClaim",
            "DeviceClaimConfiguration",
            "DeviceConstraint",
            "DeviceRequest",
            "DeviceSubRequest",
            "ExactDeviceRequest",
            "ResourceClaim",
            "ResourceClaimSpec",
            "ResourceClaimTemplate",
        ),
        "resource_slice": (
            "CapacityRequestPolicy",
            "CapacityRequestPolicyRange",
            "Counter",
            "CounterSet",
            "Device",
            "DeviceAttribute",
            "DeviceCapacity",
            "DeviceCounterConsumption",
            "ResourcePool",
            "ResourceSlice",
            "ResourceSliceSpec",
        ),
        "semver": ("Semver",),
        "stored_versions": (
            "removed_in",
            "stored_version",
        ),
        "versions": ("convert",),
        "workload_kinds": (
            "BUILT_IN_KINDS",
            "Gang",
            "Number",
            "PodClaimEntry",
            "PodPart",
            "PodTemplate",
            "SUSPENDED",
            "Steps",
            "WorkloadKind",
            "WorkloadKinds",
            "read_steps",
            "show_steps",
        ),
    }
)

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the source)

if not TYPE_CHECKING:
    # Type checkers would take any name for one that there is.
    __getattr__, __dir__ = load_late(__name__, _HOMES)
