"""Shapes of hardware that people want room for: `8 x h100 on one node`, `a rack of gb200`, `2 x 3g.40gb`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.catalog.gpus import find_products, nearest_product, systems_with
from dra_infra.errors import ProgramError
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.specs.compute_domains import CLIQUE_LABEL

_COUNTED: Final = re.compile(
    r"(?:(?P<count>\d{1,4}) ?x ?)?(?P<what>[A-Za-z0-9][A-Za-z0-9 .+-]{0,60}?)(?P<together> on (?:one|a) node)?",
    re.IGNORECASE,
)
_RACK: Final = re.compile(
    r"(?:(?P<nodes>\d{1,3}) nodes of )?(?:a )?rack of (?P<what>[A-Za-z0-9][A-Za-z0-9 .-]{0,60})",
    re.IGNORECASE,
)
_PROFILE: Final = re.compile(r"\d{1,2}g\.\d{1,4}gb(?:\+[a-z.]+)*", re.IGNORECASE)
_NAME: Final = "room"
_NODE_TAINTS: Final = "node.kubernetes.io/"
_EXAMPLES: Final = (
    "write `8 x h100 on one node`, `a rack of gb200`, `16 nodes of a rack of gb200` or `2 x 3g.40gb`"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class WantedShape:
    """A shape as objects that stand for its pods.

    Args:
        text: As the user wrote it.
        manifests: A class, a claim template and a Job.
        domain: The label of nodes in which all pods need one value; empty for none.
    """

    text: str
    manifests: tuple[Mapping[str, Any], ...]
    domain: str = ""

    @property
    def name(self) -> str:
        """The object that makes the pods."""
        return f"job/{_NAME}"


def is_shape(text: str) -> bool:
    """Return whether a text is a shape: it names no object (`deployment/x`), and has a number, a profile or a rack in it."""
    return "/" not in text and bool(
        _RACK.fullmatch(text)
        or _PROFILE.fullmatch(text)
        or re.match(r"\d{1,4} ?x ?\S", text)
        or find_products(text)
    )


def read_shape(text: str, fleet: Fleet) -> WantedShape:
    """Return the objects that stand for a shape. Their pods tolerate the taints of the fleet's nodes, but not of those that are not ready.

    Args:
        text: The shape.
        fleet: The hardware.

    Raises:
        ProgramError: `shape-not-known`.
    """
    rack = _RACK.fullmatch(text)
    if rack is not None:
        products = _find_products(text, rack["what"])
        system = next(
            (each for product in products for each in systems_with(product).values() if each.nodes_per_rack),
            None,
        )
        if system is None or not system.gpus_per_node or not system.nodes_per_rack:
            raise _not_known(
                text,
                f"no rack of {rack['what']} is known",
                "name a GPU that NVLink joins across nodes, such as gb200",
            )
        nodes = int(rack["nodes"] or system.nodes_per_rack)
        if not 0 < nodes <= system.nodes_per_rack:
            raise _not_known(
                text,
                f"a rack has {system.nodes_per_rack} nodes",
                f"write up to {system.nodes_per_rack} nodes",
            )
        return _write(
            text, _select_products(products), system.gpus_per_node, nodes, fleet, domain=CLIQUE_LABEL
        )
    counted = _COUNTED.fullmatch(text)
    if counted is None:
        raise _not_known(text, "is no shape that is known", _EXAMPLES)
    count, what = int(counted["count"] or 1), counted["what"].strip()
    if not count:
        raise _not_known(text, "is room for nothing", _EXAMPLES)
    if counted["together"] and count > MAX_RESULTS:
        raise _not_known(text, f"a claim has at most {MAX_RESULTS} devices", f"write up to {MAX_RESULTS}")
    if _PROFILE.fullmatch(what):
        select = _equals("profile", [what.lower()])
    else:
        select = _select_products(_find_products(text, what))
    devices, pods = (count, 1) if counted["together"] else (1, count)
    return _write(text, select, devices, pods, fleet)


def _find_products(text: str, what: str) -> Sequence[str]:
    products = find_products(what)
    if not products:
        near = nearest_product(what)
        raise _not_known(
            text,
            f"no GPU that is known here is called {what[:80]!r}",
            f"did you mean {near!r}?" if near else "`dra-infra catalog gpus` lists what is known",
        )
    return products


def _not_known(text: str, message: str, hint: str) -> ProgramError:
    return ProgramError.of(path=text[:200], code="shape-not-known", message=message, hint=hint)


def _select_products(products: Iterable[str]) -> str:
    return f"{_equals('type', ['gpu'])} && {_equals('productName', sorted(products))}"


def _equals(attribute: str, values: Sequence[str]) -> str:
    """An expression that is true for devices of NVIDIA's driver with one of some values, which have no quotes."""
    listed = ", ".join(f'"{each}"' for each in values)
    return f'device.attributes["gpu.nvidia.com"].?{attribute}.orValue("") in [{listed}]'


def _write(text: str, select: str, devices: int, pods: int, fleet: Fleet, *, domain: str = "") -> WantedShape:
    selectors = [{"cel": {"expression": f'device.driver == "gpu.nvidia.com" && {select}'}}]
    request = {"name": _NAME, "exactly": {"deviceClassName": _NAME, "count": devices}}
    keys = sorted(
        {taint.key for node in fleet.nodes for taint in node.taints if not taint.key.startswith(_NODE_TAINTS)}
    )
    pod = {
        "tolerations": [{"key": key, "operator": "Exists"} for key in keys],
        "resourceClaims": [{"name": _NAME, "resourceClaimTemplateName": _NAME}],
        "containers": [{"name": "main", "resources": {"claims": [{"name": _NAME}]}}],
        "restartPolicy": "Never",
    }
    metadata = {"name": _NAME, "namespace": "default"}
    return WantedShape(
        text=text,
        manifests=(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": _NAME},
                "spec": {"selectors": selectors},
            },
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": metadata,
                "spec": {"spec": {"devices": {"requests": [request]}}},
            },
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": metadata,
                "spec": {"parallelism": pods, "template": {"spec": pod}},
            },
        ),
        domain=domain,
    )
