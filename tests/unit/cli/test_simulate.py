from __future__ import annotations

from dra_infra.cli.simulate import describe
from dra_infra.model.fleet import Fleet
from dra_infra.model.metadata import ObjectRef
from dra_infra.simulation.placement import Placement, Reason, WorkloadPlacement


def test_room_for_all_at_once_is_doubted_only_where_each_fits_alone():
    def lines(*verdicts):
        workloads = tuple(
            WorkloadPlacement(
                owner=ObjectRef(kind="Job", name=f"j{index}", namespace="ml"),
                replicas=1,
                verdict=verdict,
                reasons=(Reason(code="too-few-nodes", message="0 of 1 pods fit"),),
            )
            for index, verdict in enumerate(verdicts)
        )
        return "\n".join(describe(Placement(fleet=Fleet(name="f"), workloads=workloads, together=False)))

    assert "placed alone" in lines("fits", "fits")
    assert "placed alone" not in lines("does-not-fit")
