"""The Pod Security labels of a tenant's Namespace, as an argument."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dra_infra.errors import Problem
from dra_infra.kubernetes.api.pod_security import LEVELS, MODES, PREFIX, Level, is_version
from dra_infra.specs.arguments import shorten, wrong_plain_type


@dataclass(frozen=True, kw_only=True)
class PodSecurity:
    """Which pods the API server refuses in a namespace, and which it only reports.

    Args:
        enforce: Pods that break this level are refused: `"privileged"`, `"baseline"` or `"restricted"`.
        audit: Pods and workloads that break this level are marked in the audit log; by default the level of *enforce*.
        warn: Whoever creates a pod or a workload that breaks this level gets a warning; by default the level of *enforce*.
        enforce_version: The Kubernetes minor whose rules *enforce* follows: `"v1.37"`, or `"latest"`. By default the setting of
            the cluster, which is `latest` unless its administrator changed it.
        audit_version: The Kubernetes minor whose rules *audit* follows.
        warn_version: The Kubernetes minor whose rules *warn* follows.
    """

    enforce: Level = "baseline"
    audit: Level | None = None
    warn: Level | None = None
    enforce_version: str | None = None
    audit_version: str | None = None
    warn_version: str | None = None

    def labels(self) -> dict[str, str]:
        """Return the labels of the Namespace."""
        found: dict[str, str] = {}
        for mode in MODES:
            found[f"{PREFIX}{mode}"] = getattr(self, mode) or self.enforce
            if version := getattr(self, f"{mode}_version"):
                found[f"{PREFIX}{mode}-version"] = version
        return found


def read_pod_security(given: PodSecurity | Level | None) -> PodSecurity:
    """Return the levels that an argument stands for; a single level is enforced, audited and warned of."""
    if isinstance(given, PodSecurity):
        return given
    return PodSecurity() if given is None else PodSecurity(enforce=given)


def check_pod_security_argument(given: object) -> Iterator[Problem]:
    """Problems of the argument `pod_security`: `wrong-type`, `unsupported-value`."""
    if given is None:
        return
    if not isinstance(given, PodSecurity):
        yield from _check_level("pod_security", given)
        return
    for mode in MODES:
        level, version = getattr(given, mode), getattr(given, f"{mode}_version")
        if level is not None or mode == "enforce":
            yield from _check_level(f"pod_security.{mode}", level)
        if version is None:
            continue
        path = f"pod_security.{mode}_version"
        hint = f'write {mode}_version="v1.37", or leave it out'
        if not isinstance(version, str):
            yield wrong_plain_type(path, version, "a text", hint)
        elif not is_version(version):
            message = f"{shorten(version)} is no version of the Pod Security Standards"
            yield Problem(path=path, code="unsupported-value", message=message, hint=hint)


def _check_level(path: str, level: object) -> Iterator[Problem]:
    hint = f"write one of {', '.join(LEVELS)}"
    if not isinstance(level, str):
        yield wrong_plain_type(path, level, "a level, or a PodSecurity", hint)
    elif level not in LEVELS:
        message = f"{shorten(level)} is no level of the Pod Security Standards"
        yield Problem(path=path, code="unsupported-value", message=message, hint=hint)
