"""Errors as an event of a pod shows them: "NodePrepareResources failed for ResourceClaim NAME: TEXT"."""

from __future__ import annotations

import re
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import ClaimReference

LONGEST: Final = 800
"""Characters: an event has room for 1,024 with what the kubelet puts around it."""

_GAPS: Final = re.compile(r"\s+")


def explain(error: PluginError, claim: ClaimReference) -> str:
    """All problems of a claim in one line, without the claim's name: the kubelet says it."""
    text = "; ".join(_line(problem, str(claim)) for problem in error.problems)
    # Parameters of a claim may have half a letter (JSON's \\ud800), which no message takes: all claims would fail with it.
    text = _GAPS.sub(" ", text).strip().encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _line(problem: Problem, claim: str) -> str:
    path = problem.path.removeprefix(claim).removeprefix(":").strip()
    where = f"{path}: " if path else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{where}{problem.message} [{problem.code}]{hint}"
