"""The questions, each with the candidates that answer it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.alternatives import ROOT, built, python_with_cdk8s
from benchmarks.measure import Candidate

PROGRAMS = Path(__file__).parent / "programs"
NUMBER = "1000"


def templates_with_selectors() -> Sequence[Candidate]:
    """1,000 claim templates, each with a selector of its own, from the program to YAML."""
    return _templates("selectors")


def templates_with_counts() -> Sequence[Candidate]:
    """1,000 claim templates that differ in count only, from the program to YAML."""
    return _templates("counts")


def start_of_the_command() -> Sequence[Candidate]:
    """`--help`, whole process."""
    script = Path(sys.executable).parent
    candidates = [
        Candidate(name="dra-infra --help", command=[str(script / "dra-infra"), "--help"], goal=0.25),
        Candidate(name="python -c 'import pulumi'", command=[sys.executable, "-c", "import pulumi"]),
    ]
    if pulumi := built("pulumi"):
        candidates.append(Candidate(name="pulumi version", command=[str(pulumi), "version"]))
    if kubectl := built("kubectl"):
        command = [str(kubectl), "version", "--client"]
        candidates.append(Candidate(name="kubectl version --client", command=command))
    return candidates


def the_demo() -> Sequence[Candidate]:
    """What `make demo` runs: two programs compiled, placed and reviewed, and the page."""
    return [
        Candidate(
            name="examples/demo.py", command=[sys.executable, "examples/demo.py"], goal=1.5, folder=ROOT
        )
    ]


def placement() -> Sequence[Candidate]:
    """1,000 workloads on 500 nodes of 8 GPUs, with loading of the fleet."""
    return [
        _placement("8 claims, nodes alike to them", "8", "alike"),
        _placement("8 claims, no two nodes alike", "8", "unlike"),
        _placement("40 claims, no two nodes alike", "40", "unlike"),
    ]


def selectors() -> Sequence[Candidate]:
    """Five selectors on 1,000 devices, ten times."""
    program = str(PROGRAMS / "selector_evaluation.py")
    return [
        Candidate(name="dra-infra: cel", command=[sys.executable, program, "ours"]),
        Candidate(name="cel-python, compiled", command=[sys.executable, program, "compiled"]),
        Candidate(name="cel-python, interpreted (its default)", command=[sys.executable, program, "default"]),
    ]


QUESTIONS: Mapping[str, Callable[[], Sequence[Candidate]]] = {
    "synth": templates_with_selectors,
    "synth-counts": templates_with_counts,
    "start": start_of_the_command,
    "demo": the_demo,
    "placement": placement,
    "selectors": selectors,
}


def _templates(kind: str) -> Sequence[Candidate]:
    candidates = [
        Candidate(
            name="dra-infra: GpuClaimTemplate components, checked",
            command=[sys.executable, str(PROGRAMS / "ours.py"), NUMBER, kind],
            goal=2.5,
            memory_goal=200,
        ),
        Candidate(
            name="floor: the SDK alone, bare components with bare children in our engine",
            command=[sys.executable, str(PROGRAMS / "sdk_alone.py"), NUMBER, kind],
        ),
        Candidate(
            name="pulumi-kubernetes: typed resources under set_mocks",
            command=[sys.executable, str(PROGRAMS / "typed_pulumi.py"), NUMBER, kind],
        ),
    ]
    if python := python_with_cdk8s():
        candidates.append(
            Candidate(
                name="cdk8s (Python): bare objects, unchecked",
                command=[str(python), str(PROGRAMS / "cdk8s_objects.py"), NUMBER, kind],
            )
        )
    return candidates


def _placement(name: str, claims: str, nodes: str) -> Candidate:
    command = [sys.executable, str(PROGRAMS / "placement.py"), NUMBER, "500", claims, nodes]
    return Candidate(name=name, command=command)
