"""What an API server is: its release, and the versions of resource.k8s.io that it has. Asked once, and anew when it may be another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dra_infra.cluster.kinds import RESOURCE_GROUP, Kind
from dra_infra.cluster.objects import mapping, mappings, text
from dra_infra.errors import ClusterError, Problem
from dra_infra.plugin.api_server.asking import Asking
from dra_infra.plugin.api_server.refusals import ApiError, not_served, of_cluster, refused


class Served:
    """Remembers what the server said of itself; safe to use from several threads."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._version = ""
        self._release: Mapping[str, Any] = {}

    def forget(self) -> None:
        """Find it out anew: it may be another release since it was away."""
        self._version, self._release = "", {}

    def version(self, kind: Kind) -> str:
        """The best version of a kind that the server has; of resource.k8s.io it is asked for once."""
        if kind.group != RESOURCE_GROUP:
            return kind.versions[0]
        # What another thread forgets meanwhile is still an answer.
        found = self._version
        if not found:
            found = self._version = self._find_version(kind)
        return found

    def minor(self) -> int:
        """The minor release that the server behaves like, 37 for 1.37, asked for once."""
        release = self._release
        if not release:
            answer = self._asking.ask("GET", "/version", asked="get /version")
            release = mapping(answer.body)
            if answer.status != 200 or not _minor(release):
                raise of_cluster("get /version", ClusterError([_no_version(answer.body)]))
            self._release = release
        return _minor(release)

    def is_another(self) -> bool:
        """Whether who answers now is of another release than who was asked last, which is then forgotten.

        One small question; a server that does not answer it is none that changed.
        """
        before = self._release
        if not before:
            return False
        try:
            answer = self._asking.ask("GET", "/version", asked="get /version", once=True)
        except ApiError:
            return False
        if answer.status != 200 or mapping(answer.body) == before:
            return False
        self.forget()
        return True

    def _find_version(self, kind: Kind) -> str:
        for version in kind.versions:
            path = f"/apis/{RESOURCE_GROUP}/{version}"
            answer = self._asking.ask("GET", path, asked=f"get {path}")
            if answer.status not in (200, 404):
                asked, said = f"get {path}", str(answer.body)
                raise refused(
                    asked, kind, "get", answer.status, said, answer.reason, retry_after=answer.retry_after
                )
            served = {text(each.get("name")) for each in mappings(mapping(answer.body).get("resources"))}
            # Versions are served that hold other kinds alone.
            if answer.status == 200 and {"resourceslices", "resourceclaims"} <= served:
                return version
        raise not_served(kind)


def _minor(release: Mapping[str, Any]) -> int:
    # An emulated one decides what is accepted; clouds write `34+`.
    digits = (text(release.get("emulationMinor")) or text(release.get("minor"))).rstrip("+")
    return int(digits) if digits.isdigit() else 0


def _no_version(said: object) -> Problem:
    return Problem(path="/version", code="cluster-answer", message=f"it says no version: {str(said)[:100]}")
