"""Which gates the servers of the harness run with."""

from __future__ import annotations

from dra_infra.kubernetes.api import GATES

DEFAULT, ALL, NONE = "default", "all", "none"
GATE_SETS = (DEFAULT, ALL, NONE)
"""Gates as the minor ships them; every one on, alphas too; every one off that can be."""

_KEPT_ON = ("DynamicResourceAllocation",)


def gates_of(minor: str, gate_set: str) -> dict[str, bool]:
    """Gates to start the server of *minor* with; only those that differ from its defaults."""
    if gate_set == DEFAULT:
        return {}
    wanted = gate_set == ALL
    return {
        gate: wanted
        for gate, states in GATES.items()
        if minor in states
        and not states[minor].locked
        and states[minor].default != wanted
        and gate not in _KEPT_ON
    }
