"""`dra-infra explain`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

from dra_infra.cli.explain_live import read_live
from dra_infra.cli.explain_offline import read_offline
from dra_infra.cli.explain_report import Report, describe, to_json
from dra_infra.cli.printing import print_problems, write_output
from dra_infra.cli.progress import progress
from dra_infra.planning.wording import show_hidden
from dra_infra.simulation.explaining import explain
from dra_infra.simulation.explaining.causes import find_causes


def run(
    name: str,
    path: Path | None,
    *,
    namespace: str | None,
    fleet: str | None,
    snapshot: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    is_deep: bool,
    as_json: bool,
) -> int:
    """Print why a pod or claim fits or not; 0 when it fits, 1 when not, or when it cannot be told in the time.

    Raises:
        ProblemsError: When there is nothing to answer.
    """
    is_live = path is None and fleet is None and snapshot is None
    with progress() as tell:
        if is_live:
            found = read_live(
                name, namespace, kubeconfig, context, kubernetes=kubernetes, gates=gates, tell=tell
            )
        else:
            found = read_offline(
                name,
                path,
                namespace=namespace,
                fleet=fleet,
                snapshot=snapshot,
                kubernetes=kubernetes,
                gates=gates,
                stack=stack,
                config=config,
            )
        tell("explaining")
        end = time.monotonic() + timeout
        question = found.asking.question
        answer = None
        causes = list(found.asking.causes)
        if question is not None:
            causes += find_causes(question)
            if question.claims:
                answer = explain(question, is_late=lambda: time.monotonic() > end, is_deep=is_deep)
    report = Report(
        asking=found.asking, causes=tuple(dict.fromkeys(causes)), answer=answer, where=found.where
    )
    print_problems(found.not_seen, with_count=False)
    if as_json:
        write_output(json.dumps(to_json(report, found.not_seen), indent=2, sort_keys=True))
    else:
        write_output("\n".join(map(show_hidden, describe(report))))
    return 0 if report.fits else 1
