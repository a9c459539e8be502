"""The scheduler's allocator: which devices of a node the claims of a pod get, as each Kubernetes minor chooses them.

`Allocator` answers for one node at a time, from values that are never changed.
"""

from dra_infra.simulation.allocation.allocator import Allocator
from dra_infra.simulation.allocation.identity import DeviceID, PoolID
from dra_infra.simulation.allocation.kinds import DeviceKinds, KindEvaluator
from dra_infra.simulation.allocation.outcomes import Allocated, Cannot, Failed, Outcome
from dra_infra.simulation.allocation.quirks import Quirk
from dra_infra.simulation.allocation.selection import CelEvaluator, Evaluator, Trouble
from dra_infra.simulation.allocation.state import AllocatedState
from dra_infra.simulation.allocation.variants import Features, Variant, choose_variant

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
