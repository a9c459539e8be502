"""The policies of the pack, one for each code of a problem, and how strict each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dra_infra.codes import CODES
from dra_infra.errors import Problem

PACK: Final = "dra-infra"

SETTINGS: Final = "settings"
"""The policy whose configuration names the cluster."""

Level = Literal["advisory", "mandatory", "remediate", "disabled"]
"""What the engine does about a violation: prints it, fails, changes the resource, or does not look for it."""

REMEDIED: Final = ("cel-unguarded-read", "missing-field", "one-of", "unknown-field")
"""Codes whose hint may say exactly what to write. The version of an object is none: the type of its resource names it."""

_DANGER: Final = "danger:"


def policies() -> dict[str, str]:
    """Return the policies by name, each with its description. Dangers belong to reviews, which have two sides."""
    of_codes = {code: meaning for code, meaning in CODES.items() if not meaning.startswith(_DANGER)}
    return {SETTINGS: "the settings name a cluster that there is", **dict(sorted(of_codes.items()))}


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """The configuration of a policy.

    Args:
        level: What happens to a violation.
        properties: What the configuration says besides.
    """

    level: Level = "mandatory"
    properties: Mapping[str, Any] = field(default_factory=dict)


def level_of(problem: Problem, configured: Mapping[str, PolicyConfig]) -> Level:
    """Return how strict the pack is about a problem.

    Errors have the level of their policy. Warnings are advisory unless the policy has `warnings: mandatory`, or the settings `strict: true`.
    A remediation that was not possible leaves a violation, which is mandatory.

    Args:
        problem: The problem. A code without a policy is judged as a policy that is not configured.
        configured: Configuration by policy.
    """
    config = configured.get(problem.code, PolicyConfig())
    if config.level in ("disabled", "advisory"):
        return config.level
    if problem.severity == "error":
        return "mandatory"
    settings = configured.get(SETTINGS, PolicyConfig()).properties
    is_strict = config.properties.get("warnings") == "mandatory" or settings.get("strict") is True
    return "mandatory" if is_strict else "advisory"
