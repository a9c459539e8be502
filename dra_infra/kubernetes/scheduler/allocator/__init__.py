"""The scheduler's allocator: which devices of a node the claims of a pod get, as each Kubernetes minor chooses them.

`Allocator` answers for one node at a time, from values that are never changed.
"""

from dra_infra.kubernetes.scheduler.allocator.allocator import Allocator
from dra_infra.kubernetes.scheduler.allocator.identity import (
    Allocated,
    Cannot,
    DeviceID,
    Failed,
    Outcome,
    PoolID,
)
from dra_infra.kubernetes.scheduler.allocator.selection import (
    CelEvaluator,
    DeviceKinds,
    Evaluator,
    KindEvaluator,
    Trouble,
)
from dra_infra.kubernetes.scheduler.allocator.state import AllocatedState
from dra_infra.kubernetes.scheduler.allocator.variants import Features, Quirk, Variant, choose_variant

__all__ = [
    "Allocated",
    "AllocatedState",
    "Allocator",
    "Cannot",
    "CelEvaluator",
    "DeviceID",
    "DeviceKinds",
    "Evaluator",
    "Failed",
    "Features",
    "KindEvaluator",
    "Outcome",
    "PoolID",
    "Quirk",
    "Trouble",
    "Variant",
    "choose_variant",
]
