"""What has to agree on a node whenever nothing is on its way, whatever happened before."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path

from tests.support.node.workloads import CLAIM
from tools.cluster import Api, Manifest
from tools.node import RealNode

DRIVER = "gpu.nvidia.com"
SECONDS = 120.0

# A node may have several drivers, each with files of its own.
_OF_A_DRIVER = re.compile(r"k8s\.[a-z0-9.-]+-claim_[0-9a-f-]{36}\.json")


@dataclass(frozen=True)
class Claims:
    """UIDs of claims, as each party has them."""

    reserved: frozenset[str]
    """On the API server: allocated on this node, and reserved for a pod."""
    kubelet: frozenset[str]
    """In the kubelet's own checkpoint."""
    recorded: frozenset[str]
    """In the plugin's checkpoint, as completed."""
    specified: frozenset[str]
    """With a CDI spec."""
    left: frozenset[str] = frozenset()
    """Other files of the plugin: half-way, set aside, temporary."""

    @property
    def agree(self) -> bool:
        """Whether all parties have the same, and nothing is left over."""
        return self.reserved == self.kubelet == self.recorded == self.specified and not self.left


def look(api: Api, node: RealNode, *, state: Path | None = None, driver: str = DRIVER) -> Claims:
    """What each party has now.

    Args:
        state: The folder of the plugin's checkpoint, where it is not the usual one.
    """
    state = state or node.kubelet_root / "plugins" / driver / "claims"
    prefix = f"k8s.{driver}-claim_"
    suffix = ".json"
    recorded, begun, left = set(), set(), set()
    for file in _files(state):
        is_completed = file.suffix == ".json" and _read(file).get("record", {}).get("state") == "completed"
        if is_completed:
            recorded.add(file.stem)
        elif file.suffix == ".started":
            begun.add(file.stem)
        elif len(file.name.partition(".")[0]) == 36:
            left.add(file.name)
    left |= {f"{uid}.started" for uid in begun - recorded}
    specified = set()
    for file in _files(node.cdi_folder):
        if file.name.startswith(prefix) and file.name.endswith(suffix):
            specified.add(file.name.removeprefix(prefix).removesuffix(suffix))
        elif not _OF_A_DRIVER.fullmatch(file.name):
            left.add(file.name)
    return Claims(
        reserved=frozenset(_reserved(api, node, driver)),
        kubelet=frozenset(_known_to_kubelet(node)),
        recorded=frozenset(recorded),
        specified=frozenset(specified),
        left=frozenset(left),
    )


def settled(
    api: Api, node: RealNode, *, state: Path | None = None, driver: str = DRIVER, timeout: float = SECONDS
) -> frozenset[str]:
    """The claims that are prepared, once all parties agree on them; no device is given twice.

    Raises:
        AssertionError: When they still do not agree after *timeout* seconds.
    """
    deadline = time.monotonic() + timeout
    while not (found := look(api, node, state=state, driver=driver)).agree:
        assert time.monotonic() < deadline, _difference(found)
        time.sleep(0.1)
    given = Counter(
        (result["driver"], result["pool"], result["device"])
        for claim in api.list(CLAIM)
        if claim["metadata"]["uid"] in found.recorded
        for result in _results(claim)
        if not result.get("adminAccess") and "shareID" not in result
    )
    assert not [device for device, count in given.items() if count > 1]
    return found.recorded


def _reserved(api: Api, node: RealNode, driver: str) -> set[str]:
    found = set()
    for claim in api.list(CLAIM):
        if claim.get("status", {}).get("reservedFor") and any(
            result["driver"] == driver and result["pool"] == node.name for result in _results(claim)
        ):
            found.add(claim["metadata"]["uid"])
    return found


def _results(claim: Manifest) -> list[Manifest]:
    """The devices that a claim has now."""
    found: list[Manifest] = (
        claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    )
    return found


def _known_to_kubelet(node: RealNode) -> set[str]:
    """UIDs in ``dra_manager_state``: JSON in a string of JSON (pkg/kubelet/cm/dra/state)."""
    data = _read(node.kubelet_root / "dra_manager_state").get("Data")
    states = json.loads(data)["ClaimInfoStateList"] if isinstance(data, str) else None
    return {one["ClaimUID"] for one in states or ()}


def _difference(found: Claims) -> str:
    return "\n".join(f"{one.name}: {sorted(getattr(found, one.name))}" for one in fields(found))


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []


def _read(file: Path) -> dict[str, object]:
    try:
        content = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
