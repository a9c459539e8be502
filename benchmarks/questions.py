"""The questions, each with the candidates that answer it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.measure import Candidate

ROOT = Path(__file__).parent.parent
PROGRAMS = Path(__file__).parent / "programs"
OTHERS = ROOT / ".cache" / "benchmarks"
NUMBER = "1000"


def synth_of_templates() -> Sequence[Candidate]:
    """1,000 claim templates, from the program to YAML."""
    return [
        Candidate(
            name="dra-infra: GpuClaimTemplate components, checked",
            command=[sys.executable, str(PROGRAMS / "ours.py"), NUMBER],
            goal=2.5,
        ),
        Candidate(
            name="pulumi-kubernetes: typed resources under set_mocks",
            command=[sys.executable, str(PROGRAMS / "typed_pulumi.py"), NUMBER],
        ),
        Candidate(
            name="cdk8s (Python): bare objects, unchecked",
            command=[str(_environment_of_others()), str(PROGRAMS / "cdk8s_objects.py"), NUMBER],
        ),
    ]


def start_of_the_command() -> Sequence[Candidate]:
    """`--help`, whole process."""
    script = Path(sys.executable).parent
    return [
        Candidate(name="dra-infra --help", command=[str(script / "dra-infra"), "--help"], goal=0.25),
        Candidate(name="python -c 'import pulumi'", command=[sys.executable, "-c", "import pulumi"]),
    ]


def the_demo() -> Sequence[Candidate]:
    """What `make demo` runs: two programs compiled, placed and reviewed, and the page."""
    return [
        Candidate(
            name="examples/demo.py", command=[sys.executable, "examples/demo.py"], goal=1.5, folder=ROOT
        )
    ]


def placement() -> Sequence[Candidate]:
    """1,000 workloads on 500 nodes of 8 GPUs."""
    command = [sys.executable, str(PROGRAMS / "placement.py"), NUMBER, "500"]
    return [Candidate(name="dra-infra: place, with loading of the fleet", command=command)]


def selectors() -> Sequence[Candidate]:
    """Five selectors on 1,000 devices, ten times."""
    return [
        Candidate(
            name="dra-infra: cel", command=[sys.executable, str(PROGRAMS / "selector_evaluation.py"), "ours"]
        ),
        Candidate(
            name="cel-python",
            command=[sys.executable, str(PROGRAMS / "selector_evaluation.py"), "cel-python"],
        ),
    ]


QUESTIONS: Mapping[str, Callable[[], Sequence[Candidate]]] = {
    "synth": synth_of_templates,
    "start": start_of_the_command,
    "demo": the_demo,
    "placement": placement,
    "selectors": selectors,
}


def _environment_of_others() -> Path:
    """The Python of an environment with the alternatives, made once from hashed pins."""
    python = OTHERS / "venv" / "bin" / "python"
    if not python.exists():
        uv = Path(sys.executable).parent / "uv"
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, OTHERS / "venv"], check=True)
        pins = ROOT / "requirements" / "bench.txt"
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", pins], check=True
        )
    return python
