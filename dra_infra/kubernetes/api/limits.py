"""How many items, and how many bytes, the API server takes in objects of resource.k8s.io.

Upstream: the constants of k8s.io/api/resource/v1/types.go, and of validation.go in pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Final

from dra_infra.kubernetes.api.gates import Release

# claims and classes

MAX_ITEMS: Final = 32
"""Requests, constraints and configs of a claim, selectors, derived attributes, and request names in a list."""

MAX_FIRST_AVAILABLE: Final = 8
"""Alternatives of one request (FirstAvailableDeviceRequestMaxSize)."""

MAX_RESULTS: Final = 32
"""Devices that are allocated for one claim (AllocationResultsMaxSize)."""

MAX_CONFIGS: Final = 64
"""Configs of an allocation, those of the claim and of its classes (twice DeviceConfigMaxSize)."""

MAX_RESERVED: Final = 256
"""Pods that a claim serves at a time (ResourceClaimReservedForMaxSize)."""

MAX_TOLERATIONS: Final = 16
"""Tolerations of a request (DeviceTolerationsMaxLength): stated in types.go, and no server checks it."""

MAX_PARAMETERS: Final = 10 * 1024
"""Bytes of a config's parameters as JSON (OpaqueParametersMaxLength)."""

MAX_EXPRESSION: Final = 10 * 1024
"""Bytes of a CEL expression (CELSelectorExpressionMaxLength)."""

MAX_COST: Final = 1_000_000
"""CELSelectorExpressionMaxCost, and DeviceClaimDerivedAttributeCELMaxCost for a claim's derived attributes together."""

# names

MAX_DRIVER_NAME: Final = 63
"""Bytes of a driver's name, and of the domain of an attribute (DriverNameMaxLength, DeviceMaxDomainLength)."""

MAX_IDENTIFIER: Final = 32
"""Bytes of an attribute's name behind the domain (DeviceMaxIDLength)."""

MAX_POOL_NAME: Final = 253
"""Bytes of a pool's name (PoolNameMaxLength)."""

# slices

MAX_DEVICES: Final = 128
"""Devices of a slice (ResourceSliceMaxDevices)."""

MAX_ADVANCED_DEVICES: Final = 64
"""Devices of a slice in which any has taints, counters or lists (ResourceSliceMaxDevicesWithAdvancedFeatures)."""

MAX_ENTRIES: Final = 32
"""Attributes and capacities of a device together (ResourceSliceMaxAttributesAndCapacitiesPerDevice)."""

MAX_VALUES: Final = 48
"""Values of all attributes of a device, since 1.36."""

MAX_VALUE_LENGTH: Final = 64
"""Bytes of a text or version of an attribute (DeviceAttributeMaxValueLength)."""

MAX_CONDITIONS: Final = 4
"""Binding conditions of a device, and as many of failure (BindingConditionsMaxSize)."""

MAX_OPTIONS: Final = 10
"""Valid values of a request policy (CapacityRequestPolicyDiscreteMaxOptions)."""

MAX_SETS: Final = 8
"""Counter sets of a slice (ResourceSliceMaxCounterSets)."""

MAX_CONSUMED_SETS: Final = 2
"""Counter sets that a device takes from (ResourceSliceMaxDeviceCounterConsumptionsPerDevice)."""

MAX_COUNTERS: Final = 32
"""Counters of a set, and up to 1.34 those of a slice, or of a device, together."""

MAX_DEVICE_COUNTERS: Final = 1024
"""Counters that all devices of a slice take together, up to 1.34."""

MAX_GROUPS: Final = 2
"""Compatibility groups of what a device takes of a counter set."""


def max_taints(release: Release) -> int:
    """Taints that a device may have (DeviceTaintsMaxLength)."""
    return 4 if release.number < 35 else 16
