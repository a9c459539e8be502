"""Why claims get no devices: counted devices, proofs in words, and the smallest edits that fit.

Everything here asks the ported allocator and reads what it reads; nothing decides about an allocation by itself.
"""

from dra_infra.simulation.explaining.cluster import Cluster
from dra_infra.simulation.explaining.findings import Finding, explain_node

__all__ = ["Cluster", "Finding", "explain_node"]
