"""The `dra-infra doctor` command: checks the devices and drivers of a live cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dra_infra.cli.printing import progress, write_json, write_lines
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.doctor import Diagnosis, diagnose
from dra_infra.cluster.evidence import gather
from dra_infra.cluster.reading import open_reader
from dra_infra.errors import Problem
from dra_infra.output.wording import count_of


def run(kubeconfig: Path | None, *, context: str | None, driver: str, as_json: bool) -> int:
    """Print what is wrong with a cluster; 1 when something is broken.

    Raises:
        ClusterError: When nothing can be looked at.
    """
    with progress() as tell:
        evidence = gather(open_reader(kubeconfig, context, tell=tell))
    if not evidence.objects and evidence.problems:
        raise nothing_seen(evidence.problems)
    found = diagnose(evidence, driver=driver)
    if as_json:
        write_json(_to_json(found))
    else:
        write_lines(describe(found))
    return 0 if found.is_healthy else 1


def describe(found: Diagnosis) -> Iterator[str]:
    """What was looked at, what is wrong with what to do, and what could not be seen."""
    yield from (f"· {fact}" for fact in found.facts)
    for each in found.findings:
        yield f"{'✗' if each.severity == 'error' else '!'} {each.path}: {each.message} [{each.code}]"
        if each.hint:
            yield f"    {each.hint}"
    for each in found.not_seen:
        yield f"? {each.message} [{each.code}]"
        if each.hint:
            yield f"    {each.hint}"
    errors = sum(each.severity == "error" for each in found.findings)
    yield f"{count_of(errors, 'error')}, {count_of(len(found.findings) - errors, 'warning')}"


def _to_json(found: Diagnosis) -> dict[str, Any]:
    def plain(problem: Problem) -> dict[str, Any]:
        fields = dataclasses.asdict(problem)
        return {
            "object": fields["path"],
            "what": fields["message"],
            **{name: fields[name] for name in ("code", "hint", "severity")},
        }

    return {
        "healthy": found.is_healthy,
        "facts": list(found.facts),
        "findings": [plain(each) for each in found.findings],
        "notSeen": [plain(each) for each in found.not_seen],
    }
