"""Patch releases: how versions are written, which patches are known, and the behaviours that differ between patches of a minor.

A difference between minors stands in the module that it belongs to. A difference between two patches of one minor is a row here, so
that one table answers "what changes if I only upgrade the patch". Read in the sources of the patches in `KNOWN_PATCHES`: everything that
`tools/upstream/ported.toml` names was compared from each patch to the next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

COMPARED_PATCHES: Final[Mapping[str, str]] = {
    "1.34": "1.34.10",
    "1.35": "1.35.8",
    "1.36": "1.36.4",
    "1.37": "1.37.1",
}
"""Minor to the patch release of the servers that the rules are compared with in tests."""

KNOWN_PATCHES: Final[Mapping[str, tuple[str, ...]]] = {
    "1.34": ("1.34.10", "1.34.11", "1.34.12"),
    "1.35": ("1.35.8", "1.35.9"),
    "1.36": ("1.36.4", "1.36.5"),
    "1.37": ("1.37.1", "1.37.2"),
}
"""Minor to the patch releases whose sources were read, oldest first. Of 1.35.9 the modules k8s.io/api, apiserver and
dynamic-resource-allocation were read, because no module proxy served k8s.io/kubernetes in that version."""

_VERSION: Final = re.compile(
    r"v?(?P<minor>\d{1,4}\.\d{1,4})(?:\.(?P<patch>\d{1,4}))?(?:[-+][0-9A-Za-z.+-]{1,80})?"
)


class PatchBehaviour(Enum):
    """One thing that the patches of a minor do differently, in the words of a report."""

    REFUSES_OVERFLOWING_COUNTS = "device counts of a claim that overflow a 64-bit number are refused"
    EVICTS_BY_EXTENDED_RESOURCE = "a taint evicts pods that have their devices by an extended resource"


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchRow:
    """One behaviour with the patches that brought it.

    Args:
        since: Minor as a number (36 for 1.36) to its first patch with the behaviour. Older minors that are not named never have it. Newer
            minors than the newest one that is named always have it.
        change: The pull request in kubernetes/kubernetes that changed it.
        before: What older patches do.
        files: The upstream files that differ, as in `tools/upstream/ported.toml`.
    """

    since: Mapping[int, int]
    change: str
    before: str
    files: tuple[str, ...]

    def holds(self, minor: int, patch: int) -> bool:
        """Return whether a patch of a minor, both as numbers, has the behaviour."""
        if minor in self.since:
            return patch >= self.since[minor]
        return minor > max(self.since)


_ALLOCATORS: Final = tuple(
    f"k8s.io/dynamic-resource-allocation/structured/internal/{channel}/allocator_{channel}.go"
    for channel in ("stable", "incubating", "experimental")
)

PATCH_ROWS: Final[Mapping[PatchBehaviour, PatchRow]] = {
    PatchBehaviour.REFUSES_OVERFLOWING_COUNTS: PatchRow(
        since={34: 12, 35: 9, 36: 5, 37: 1},
        change="https://github.com/kubernetes/kubernetes/pull/141307",
        before="a negative sum makes kube-scheduler panic, and a sum that wraps to a small number is searched for in vain",
        files=_ALLOCATORS,
    ),
    PatchBehaviour.EVICTS_BY_EXTENDED_RESOURCE: PatchRow(
        since={37: 2},
        change="https://github.com/kubernetes/kubernetes/pull/142289",
        before="such pods stay on their tainted devices",
        files=(
            "k8s.io/kubernetes/pkg/controller/devicetainteviction/device_taint_eviction.go",
            "k8s.io/dynamic-resource-allocation/resourceclaim/pod.go",
        ),
    ),
}
"""Every behaviour of ours that differs between patches of one minor."""


class KubernetesVersion(NamedTuple):
    """A version of Kubernetes as far as rules depend on it.

    Args:
        minor: Such as `1.37`.
        patch: Such as `1.37.2`; empty for a minor alone.
    """

    minor: str
    patch: str

    @property
    def text(self) -> str:
        """The patch, or the minor where no patch is named."""
        return self.patch or self.minor


def read_version(text: str) -> KubernetesVersion | None:
    """Read a version as people and clusters write it: `1.37`, `1.37.2`, `v1.37.2`, `v1.37.2+k3s1` or `v1.36.2-gke.1234`.

    Returns:
        None where *text* is no version. Whether its minor is supported is not checked.
    """
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    minor, patch = match["minor"], match["patch"]
    return KubernetesVersion(minor, f"{minor}.{int(patch)}" if patch else "")


def shorten_version(text: str) -> str:
    """Return `1.37.2` for `v1.37.2+k3s1` and `1.37` for `v1.37`; a text that is no version stays as it is."""
    version = read_version(text)
    return version.text if version is not None else text


def newest_patch(minor: str) -> str:
    """Return the newest patch of a minor that is known: what a minor alone stands for."""
    return KNOWN_PATCHES[minor][-1]


def nearest_patch(minor: str, patch: int) -> str:
    """Return the known patch whose rules a patch follows: itself, else the newest older one, else the oldest."""
    known = KNOWN_PATCHES[minor]
    return next((each for each in reversed(known) if patch_number(each) <= patch), known[0])


def patch_number(patch: str) -> int:
    """Return 2 for `1.37.2`."""
    return int(patch.rpartition(".")[2])
