"""`dra-infra validate`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from dra_infra.cli.printing import print_problems, write_output
from dra_infra.cli.sources import NOTHING_CHECKED, SourceObject, read_sources
from dra_infra.cli.validation_report import RENDERERS, ValidationReport
from dra_infra.errors import Place, Problem
from dra_infra.model.target import ClusterTarget
from dra_infra.validation.objects import GROUP, check_objects, reference_to


def run(
    paths: Sequence[str],
    *,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    serves: Sequence[str],
    driver: str,
    strict: bool,
    output: str,
) -> int:
    """Check every object in *paths*; 1 when there is a problem (with *strict*: any advice), 2 when nothing was checked.

    Raises:
        InvalidSpecError: When the target or the driver release is not one.
    """
    target = ClusterTarget(kubernetes=kubernetes, gates=gates, serves=frozenset({"v1", *serves}))
    report = check(paths, target, driver=driver)
    if output == "text":
        print_problems(report.problems, with_count=False)
        print(report.summary, file=sys.stderr)
    else:
        write_output(RENDERERS[output](report))
    if any(problem.code == NOTHING_CHECKED for problem in report.problems):
        return 2
    return 1 if report.errors or (strict and report.problems) else 0


def check(paths: Sequence[str], target: ClusterTarget, *, driver: str) -> ValidationReport:
    """Read and check; the releases of *target* are resolved first, so that a wrong one reads nothing."""
    releases = target.releases
    problems: list[Problem] = []
    sources: list[SourceObject] = []
    for found in read_sources(paths, sys.stdin.buffer):
        (sources if isinstance(found, SourceObject) else problems).append(found)  # type: ignore[arg-type]
    if not sources and not problems:
        problems.append(_nothing(paths))
    manifests = [source.manifest for source in sources]
    for index, problem in check_objects(manifests, target, driver=driver):
        place = sources[index].place(problem.path)
        problems.append(problem.below(str(reference_to(manifests[index]))).at(place))
    ours = [source for source in sources if _is_checked(source.manifest)]
    return ValidationReport(
        problems=sorted(problems, key=_by_place),
        objects=[(source.start, str(reference_to(source.manifest))) for source in ours],
        passed=len(sources) - len(ours),
        kubernetes=[release.minor for release in releases],
    )


def _by_place(problem: Problem) -> tuple[Place, Problem]:
    return problem.place or Place(file=""), problem


def _nothing(paths: Sequence[str]) -> Problem:
    return Problem(
        path="document",
        code=NOTHING_CHECKED,
        message="there is no object in the input",
        hint="name a file that holds one",
        place=Place(file=paths[0]),
    )


def _is_checked(manifest: Mapping[str, object]) -> bool:
    group, _, _ = str(manifest.get("apiVersion") or "").rpartition("/")
    if group == GROUP:
        return True
    from dra_infra.model.pods import decode_pod_claims

    return decode_pod_claims(manifest) is not None


def stream_of_bytes() -> None:
    """Let standard streams carry what a hostile file holds, such as half of a character pair."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and "PYTHONIOENCODING" not in os.environ:
            stream.reconfigure(errors="backslashreplace")
