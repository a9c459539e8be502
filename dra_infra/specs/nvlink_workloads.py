"""What a workload must be so that its pods are one group: how many run, and what keeps them on one NVLink domain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.specs.arguments import PLAIN_HINT, is_output, wrong_type
from dra_infra.specs.compute_domains import CLIQUE_LABEL
from dra_infra.specs.nvlink_groups import NvlinkPlan

GROUP_LABEL: Final = "dra-infra/nvlink-group"
"""Label of the pods of a group, by which they find each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """What a workload says of the number of its pods; None where it says nothing."""

    replicas: object = None
    parallelism: object = None
    completions: object = None
    completion_mode: object = None


def check_workload(view: WorkloadView, plan: NvlinkPlan) -> list[Problem]:
    """Whether a workload runs the pods of the group, all at once: `nvlink-group-shape`, `wrong-type`.

    A workload that is scaled to 0 is right too. Paths are fields of the workload, in snake_case.
    """
    given = {
        name: getattr(view, name)
        for name in ("replicas", "parallelism", "completions", "completion_mode")
        if getattr(view, name) is not None
    }
    problems = [
        wrong_type(name, value, "a plain value", PLAIN_HINT)
        for name, value in given.items()
        if is_output(value) or (name != "completion_mode" and not _is_number(value))
    ]
    return problems or list(_check_numbers(given, plan))


def affinity_term(group: str) -> dict[str, Any]:
    """The term of a required podAffinity: on nodes of the NVLink domain where the other pods of the group are.

    It also keeps the first pod off nodes without the label, for the scheduler takes no node that lacks the topology key
    (`satisfyPodAffinity` of the plugin InterPodAffinity).

    Args:
        group: Value of the label `GROUP_LABEL`.
    """
    return {"labelSelector": {"matchLabels": {GROUP_LABEL: group}}, "topologyKey": CLIQUE_LABEL}


def _check_numbers(given: dict[str, Any], plan: NvlinkPlan) -> Iterator[Problem]:
    pods, size = plan.pods, plan.gpus_per_pod
    if not given:
        yield _shape(
            "",
            f"neither parallelism nor replicas is written, so it is 1 pod of {size} GPUs, and the group has {pods} pods",
            f"write parallelism={pods}, completions={pods} in a Job, replicas={pods} in other workloads",
        )
        return
    number = "replicas" if "replicas" in given else "parallelism"
    runs = given.get(number, 1)
    if runs not in (0, pods):
        yield _shape(
            number,
            f"{runs} pods of {size} GPUs are {runs * size}, and the group has {pods * size}",
            f"write {number}={pods}, or gpus={runs * size}" if runs > 1 else f"write {number}={pods}",
        )
    completions = given.get("completions")
    indexed = given.get("completion_mode") == "Indexed"
    if completions is None and not indexed:
        return
    if completions != pods:
        yield _shape(
            "completions",
            f"{'no' if completions is None else completions} completions of a group with {pods} pods, which run together",
            f"write completions={pods}",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shape(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="nvlink-group-shape", message=message, hint=hint)
