"""Why claims get no devices: counted devices, proofs in words, and the smallest edits that fit.

Everything here asks the ported allocator and reads what it reads; nothing decides about an allocation by itself.
"""

from dra_infra.explanation.explain import explain
from dra_infra.explanation.node_reasons import NodeReason, explain_node
from dra_infra.explanation.question import AskedClaim, Holder, Inventory, Question
from dra_infra.explanation.records import AttemptError, Explanation, Refusal, RequestTree, Step, Suggestion

__all__ = [
    "AskedClaim",
    "AttemptError",
    "Explanation",
    "Holder",
    "Inventory",
    "NodeReason",
    "Question",
    "Refusal",
    "RequestTree",
    "Step",
    "Suggestion",
    "explain",
    "explain_node",
]
