"""Which claims the kubelet of the node knows, by the file in which it keeps them.

It writes a claim there before it asks a driver to prepare it, and takes it away when all drivers have released it, so what is
not in it is nobody's to release (pkg/kubelet/cm/dra of Kubernetes 1.34 to 1.37: manager.go, state/checkpoint.go).
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Final

NAME: Final = "dra_manager_state"
"""Of the file, in the kubelet's folder."""

_LARGEST: Final = 64 * 1024 * 1024


def claims_of_kubelet(path: Path) -> frozenset[str] | None:
    """UIDs of the claims that the kubelet has; None where the file cannot be read, or is not as it is known here."""
    try:
        with path.open("rb") as file:
            # The kubelet puts a new file in its place: one that is mounted by itself stays the old one, with no name left.
            if not os.fstat(file.fileno()).st_nlink:
                return None
            content = file.read(_LARGEST + 1)
        outer = json.loads(content)
        data = outer["Data"]
        if len(content) > _LARGEST or zlib.crc32(data.encode()) != outer["Checksum"]:
            return None
        inner = json.loads(data)
        if inner["kind"] != "DRACheckpoint":
            return None
        uids = [each["ClaimUID"] for each in inner["ClaimInfoStateList"] or ()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return frozenset(uids) if all(isinstance(uid, str) for uid in uids) else None
