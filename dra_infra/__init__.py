"""dra-infra: GPU infrastructure for Kubernetes Dynamic Resource Allocation, in typed Python.

Write components in a Pulumi program; know before merge that the API server accepts what they make, that the
scheduler can place it, and where.

```python
import dra_infra as dra

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
trainer = dra.GpuClaimTemplate("trainer", device_class=h100, count=4)
pod_spec = trainer.attach({"containers": [{"name": "train", "image": "trainer:1.0"}]})
```

Names load when they are first used, so that importing the package costs nothing and selectors need no Pulumi.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dra_infra.release import VERSION

if TYPE_CHECKING:
    # For type checkers, which cannot read `_HOMES`; tests/contract/test_public_names.py holds these lines to it.
    from dra_infra import testing as testing
    from dra_infra.advice.objects import validate as validate
    from dra_infra.components.claims import GpuClaim as GpuClaim
    from dra_infra.components.claims import GpuClaimTemplate as GpuClaimTemplate
    from dra_infra.components.device_classes import GpuDeviceClass as GpuDeviceClass
    from dra_infra.components.device_taints import DeviceTaint as DeviceTaint
    from dra_infra.components.guardrails import GpuGuardrails as GpuGuardrails
    from dra_infra.components.mig_partitions import MigPartition as MigPartition
    from dra_infra.components.monitoring import GpuMonitoring as GpuMonitoring
    from dra_infra.components.node_plugin import NodePlugin as NodePlugin
    from dra_infra.components.nvlink_groups import NvlinkGroup as NvlinkGroup
    from dra_infra.components.platform import GpuPlatform as GpuPlatform
    from dra_infra.components.platform_drivers import DraDriver as DraDriver
    from dra_infra.components.platform_drivers import ExampleDriver as ExampleDriver
    from dra_infra.components.platform_drivers import GpuOperator as GpuOperator
    from dra_infra.components.public_arguments import DeviceTaintArgs as DeviceTaintArgs
    from dra_infra.components.public_arguments import DraDriverArgs as DraDriverArgs
    from dra_infra.components.public_arguments import ExampleDriverArgs as ExampleDriverArgs
    from dra_infra.components.public_arguments import GpuClaimArgs as GpuClaimArgs
    from dra_infra.components.public_arguments import GpuClaimTemplateArgs as GpuClaimTemplateArgs
    from dra_infra.components.public_arguments import GpuDeviceClassArgs as GpuDeviceClassArgs
    from dra_infra.components.public_arguments import GpuGuardrailsArgs as GpuGuardrailsArgs
    from dra_infra.components.public_arguments import GpuMonitoringArgs as GpuMonitoringArgs
    from dra_infra.components.public_arguments import GpuOperatorArgs as GpuOperatorArgs
    from dra_infra.components.public_arguments import GpuPlatformArgs as GpuPlatformArgs
    from dra_infra.components.public_arguments import GpuRolesArgs as GpuRolesArgs
    from dra_infra.components.public_arguments import GpuTenantArgs as GpuTenantArgs
    from dra_infra.components.public_arguments import KueueQueueArgs as KueueQueueArgs
    from dra_infra.components.public_arguments import MigPartitionArgs as MigPartitionArgs
    from dra_infra.components.public_arguments import NodePluginArgs as NodePluginArgs
    from dra_infra.components.public_arguments import NvlinkGroupArgs as NvlinkGroupArgs
    from dra_infra.components.public_arguments import SharedGpuArgs as SharedGpuArgs
    from dra_infra.components.queues import KueueQueue as KueueQueue
    from dra_infra.components.roles import GpuRoles as GpuRoles
    from dra_infra.components.shared_gpus import SharedGpu as SharedGpu
    from dra_infra.components.tenants import GpuTenant as GpuTenant
    from dra_infra.errors import Problem as Problem
    from dra_infra.selectors.any_attribute import attribute as attribute
    from dra_infra.selectors.any_attribute import capacity as capacity
    from dra_infra.selectors.any_attribute import version as version
    from dra_infra.selectors.gpu_selectors import gpu as gpu
    from dra_infra.selectors.selector import Selector as Selector
    from dra_infra.selectors.selector import cel as cel
    from dra_infra.selectors.selector import driver as driver
    from dra_infra.specs.device_configs import ComputeDomainChannelConfig as ComputeDomainChannelConfig
    from dra_infra.specs.device_configs import DeviceConfig as DeviceConfig
    from dra_infra.specs.device_configs import ExampleGpuConfig as ExampleGpuConfig
    from dra_infra.specs.device_configs import GpuConfig as GpuConfig
    from dra_infra.specs.device_configs import MigDeviceConfig as MigDeviceConfig
    from dra_infra.specs.device_configs import Mps as Mps
    from dra_infra.specs.device_configs import OpaqueConfig as OpaqueConfig
    from dra_infra.specs.device_configs import SpacePartitioning as SpacePartitioning
    from dra_infra.specs.device_configs import TimeSlicing as TimeSlicing
    from dra_infra.specs.device_configs import VfioDeviceConfig as VfioDeviceConfig
    from dra_infra.specs.pod_security import PodSecurity as PodSecurity
    from dra_infra.specs.products import with_capabilities as with_capabilities
    from dra_infra.specs.queues import CapacitySource as CapacitySource
    from dra_infra.specs.queues import CounterSource as CounterSource
    from dra_infra.specs.requests import Alternative as Alternative
    from dra_infra.specs.requests import ClassRef as ClassRef
    from dra_infra.specs.requests import DeviceRequest as DeviceRequest
    from dra_infra.specs.requests import DistinctAttribute as DistinctAttribute
    from dra_infra.specs.requests import MatchAttribute as MatchAttribute
    from dra_infra.specs.requests import Toleration as Toleration
    from dra_infra.specs.requests import class_ref as class_ref
    from dra_infra.specs.requests import pair as pair
    from dra_infra.target import ClusterTarget as ClusterTarget

__version__ = VERSION

# The source: a name is public when it stands here.
_HOMES = {
    "Alternative": "dra_infra.specs.requests",
    "CapacitySource": "dra_infra.specs.queues",
    "ClassRef": "dra_infra.specs.requests",
    "ClusterTarget": "dra_infra.target",
    "ComputeDomainChannelConfig": "dra_infra.specs.device_configs",
    "CounterSource": "dra_infra.specs.queues",
    "DeviceConfig": "dra_infra.specs.device_configs",
    "DeviceRequest": "dra_infra.specs.requests",
    "DeviceTaint": "dra_infra.components.device_taints",
    "DistinctAttribute": "dra_infra.specs.requests",
    "DraDriver": "dra_infra.components.platform_drivers",
    "ExampleDriver": "dra_infra.components.platform_drivers",
    "ExampleGpuConfig": "dra_infra.specs.device_configs",
    "GpuClaim": "dra_infra.components.claims",
    "GpuClaimTemplate": "dra_infra.components.claims",
    "GpuConfig": "dra_infra.specs.device_configs",
    "GpuDeviceClass": "dra_infra.components.device_classes",
    "GpuGuardrails": "dra_infra.components.guardrails",
    "GpuMonitoring": "dra_infra.components.monitoring",
    "GpuOperator": "dra_infra.components.platform_drivers",
    "GpuPlatform": "dra_infra.components.platform",
    "GpuRoles": "dra_infra.components.roles",
    "GpuTenant": "dra_infra.components.tenants",
    "KueueQueue": "dra_infra.components.queues",
    "MatchAttribute": "dra_infra.specs.requests",
    "MigDeviceConfig": "dra_infra.specs.device_configs",
    "MigPartition": "dra_infra.components.mig_partitions",
    "Mps": "dra_infra.specs.device_configs",
    "NodePlugin": "dra_infra.components.node_plugin",
    "NvlinkGroup": "dra_infra.components.nvlink_groups",
    "OpaqueConfig": "dra_infra.specs.device_configs",
    "PodSecurity": "dra_infra.specs.pod_security",
    "Problem": "dra_infra.errors",
    "Selector": "dra_infra.selectors.selector",
    "SharedGpu": "dra_infra.components.shared_gpus",
    "SpacePartitioning": "dra_infra.specs.device_configs",
    "TimeSlicing": "dra_infra.specs.device_configs",
    "Toleration": "dra_infra.specs.requests",
    "VfioDeviceConfig": "dra_infra.specs.device_configs",
    "attribute": "dra_infra.selectors.any_attribute",
    "capacity": "dra_infra.selectors.any_attribute",
    "cel": "dra_infra.selectors.selector",
    "class_ref": "dra_infra.specs.requests",
    "driver": "dra_infra.selectors.selector",
    "gpu": "dra_infra.selectors.gpu_selectors",
    "pair": "dra_infra.specs.requests",
    "testing": "dra_infra.testing",
    "validate": "dra_infra.advice.objects",
    "version": "dra_infra.selectors.any_attribute",
    "with_capabilities": "dra_infra.specs.products",
}

# The arguments of each component, as a TypedDict. `make golden` writes that module.
_HOMES |= {
    f"{name}Args": "dra_infra.components.public_arguments"
    for name, home in _HOMES.items()
    if home.startswith("dra_infra.components.")
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the source)


def _load(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_suggestion(name)}")
    module = import_module(home)
    # `testing` is the package itself.
    value = module if home == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:
    # Type checkers would take any name for one that there is.
    __getattr__ = _load


def _suggestion(name: str) -> str:
    """The name that may have been meant, in Python's own words: it suggests none for a module that loads its names late."""
    if name.startswith("_"):
        return ""
    import difflib

    near = difflib.get_close_matches(name[:80], __all__, n=1, cutoff=0.7)
    return f". Did you mean: {near[0]!r}?" if near else ""


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
