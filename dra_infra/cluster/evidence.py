"""Evidence for `doctor`: what the API server says about itself, and the objects that decide about devices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.client.kinds import (
    CLAIMS,
    CLASSES,
    DAEMON_SETS,
    DEFINITIONS,
    NODES,
    PODS,
    RESOURCE_GROUP,
    SLICES,
    Kind,
)
from dra_infra.client.objects import text
from dra_infra.client.session import Session
from dra_infra.cluster.reading import Listing, Reader
from dra_infra.cluster.server_version import read_server_version
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import GATES, drivers_in, mapping, mappings, read_version

KINDS: Final = (NODES, SLICES, CLASSES, CLAIMS, PODS, DAEMON_SETS, DEFINITIONS)

_GATE: Final = re.compile(
    rb'^kubernetes_feature_enabled\{name="(?P<name>\w+)"[^}]*\} (?P<value>[01])(?:\.0)?$', re.MULTILINE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """One look at a cluster.

    Args:
        kubernetes: Version of the API server, `v1.37.1`; empty where it is not told.
        served: Versions of resource.k8s.io that are served; None where that may not be asked.
        gates: Feature gates of the API server; empty where its metrics may not be read.
        objects: What could be listed, by kind.
        problems: What could not be seen.
        is_whole: Whether objects of every namespace were asked for.
    """

    kubernetes: str = ""
    served: tuple[str, ...] | None = None
    gates: Mapping[str, bool] = field(default_factory=dict)
    objects: Mapping[Kind, tuple[Mapping[str, Any], ...]] = field(default_factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()
    is_whole: bool = True

    def of(self, kind: Kind) -> tuple[Mapping[str, Any], ...]:
        """The objects of a kind that could be seen."""
        return self.objects.get(kind, ())

    def saw(self, *kinds: Kind) -> bool:
        """True where all of these kinds could be listed, so that what is not there does not exist."""
        return self.is_whole and all(kind in self.objects for kind in kinds)

    @property
    def minor(self) -> str:
        """Such as `1.37`; empty where it is not known."""
        version = read_version(self.kubernetes)
        return version.minor if version is not None and version.patch else ""

    @property
    def patch(self) -> str:
        """Such as `1.37.2`; empty where it is not known."""
        version = read_version(self.kubernetes)
        return version.patch if version is not None else ""

    def gate(self, name: str) -> bool | None:
        """State of a feature gate: as the server says, else the default of its minor; None where neither is known."""
        if name in self.gates:
            return self.gates[name]
        state = GATES.get(name, {}).get(self.minor)
        return state.default if state is not None else None


def gather(reader: Reader) -> Evidence:
    """Look at everything once.

    Raises:
        ClusterError: The codes of `Session`.
    """
    session = reader.session
    served = read_served(session)
    listings = [reader.list(kind) for kind in KINDS]
    return Evidence(
        kubernetes=read_server_version(session),
        served=served,
        gates=read_gates(session),
        objects={each.kind: each.items for each in listings if each.is_seen and not each.problems},
        problems=tuple(
            problem for each in listings for problem in each.problems if not _is_said(each, served)
        ),
        is_whole=not reader.namespaces,
    )


def _is_said(listing: Listing, served: tuple[str, ...] | None) -> bool:
    """A group that is not served at all is told once, and not for each of its kinds."""
    return listing.kind.group == RESOURCE_GROUP and served == ()


def read_served(session: Session) -> tuple[str, ...] | None:
    """Return the versions of resource.k8s.io that are served, none where it is not; None where that may not be asked."""
    status, group = session.get_json(f"/apis/{RESOURCE_GROUP}")
    if status == 404:
        return ()
    if status != 200:
        return None
    return tuple(text(each.get("version")) for each in mappings(mapping(group).get("versions")))


def read_gates(session: Session) -> Mapping[str, bool]:
    """Feature gates of the API server; empty where its metrics may not be read."""
    # Whoever may not read metrics sees no gates, and nothing is missing for anything else.
    answer = session.get("/metrics", accept="text/plain")
    if answer.status != 200:
        return {}
    return {found["name"].decode(): found["value"] == b"1" for found in _GATE.finditer(answer.body)}


def drivers_of_class(item: Mapping[str, Any]) -> set[str]:
    """The drivers that the selectors of a class name."""
    selectors = mappings(mapping(item.get("spec")).get("selectors"))
    expressions = (text(mapping(each.get("cel")).get("expression")) for each in selectors)
    return drivers_in(expressions)
