"""Values of a ResourceSlice that a server stores and the scheduler's allocator cannot parse."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ResourceSlice
from dra_infra.kubernetes.scheduler.allocator import find_parse_error


def advise_slice(record: ResourceSlice) -> Iterator[Problem]:
    """Yield `slice-not-parsed` for each node selector that the allocator cannot parse.

    API servers do not check that the values of Gt and Lt are numbers (validation.go of resource.k8s.io).
    """
    spec = record.spec
    selectors = [("spec.nodeSelector", spec.node_selector)]
    if spec.per_device_node_selection:
        selectors += [
            (f"spec.devices[{index}].nodeSelector", each.node_selector)
            for index, each in enumerate(spec.devices or ())
        ]
    for path, selector in selectors:
        if selector is not None and (error := find_parse_error(selector)):
            yield Problem(
                path=path,
                code="slice-not-parsed",
                message=f"the server stores it, and the scheduler cannot read it: {error}. No pod with claims gets devices on the nodes "
                "that it may be for, whichever driver it asks",
                hint="write an integer as the value of Gt and Lt",
                severity="warning",
            )
