"""The questions, each with the candidates that answer it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.alternatives import ROOT, built, has_node, python_of_alternatives
from benchmarks.inputs import review_repository, server_schemas, validation_files
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


def validation() -> Sequence[Candidate]:
    """10,000 claim templates with three-clause selectors, one in ten broken, checked for Kubernetes 1.37."""
    files = validation_files()
    program = [sys.executable, str(PROGRAMS / "validation.py")]
    command = [str(Path(sys.executable).parent / "dra-infra"), "validate", "--kubernetes", "1.37"]
    candidates = [
        Candidate(
            name="dra_infra.validate: parsed, twenty selectors",
            command=[*program, "warm", str(files / "warm.jsonl")],
            goal=1.0,
            memory_goal=200,
            own_clock=True,
        ),
        Candidate(
            name="dra_infra.validate: parsed, 10,000 selectors",
            command=[*program, "distinct", str(files / "distinct.jsonl")],
            goal=5.0,
            memory_goal=200,
            own_clock=True,
        ),
        Candidate(
            name="dra-infra validate, JSON lines",
            command=[*command, str(files / "warm.jsonl")],
            goal=1.67,
            memory_goal=200,
            exits=(1,),
        ),
        Candidate(
            name="dra-infra validate, YAML",
            command=[*command, str(files / "all.yaml")],
            goal=3.33,
            memory_goal=200,
            exits=(1,),
        ),
    ]
    if python := python_of_alternatives():
        alternative = [str(python), str(PROGRAMS / "json_schemas.py"), str(files / "all.yaml")]
        name = "kubernetes-validate --strict, YAML (one run)"
        candidates.append(Candidate(name=name, command=alternative, once=True))
    kubeconform, schemas = built("kubeconform"), server_schemas()
    if kubeconform and schemas:
        location = str(schemas / "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json")
        candidates.append(
            Candidate(
                name="kubeconform -n 1 -strict, YAML",
                command=[
                    *(str(kubeconform), "-n", "1", "-strict", "-kubernetes-version", "1.37.0"),
                    *("-schema-location", location, str(files / "all.yaml")),
                ],
                exits=(1,),
            )
        )
    return candidates


def one_file() -> Sequence[Candidate]:
    """One claim template in a file, whole process."""
    one = validation_files() / "one.yaml"
    command = [str(Path(sys.executable).parent / "dra-infra"), "validate", str(one)]
    candidates = [Candidate(name="dra-infra validate one.yaml", command=command, goal=0.25)]
    if python := python_of_alternatives():
        alternative = [str(python), str(PROGRAMS / "json_schemas.py"), str(one)]
        candidates.append(Candidate(name="kubernetes-validate --strict", command=alternative))
    return candidates


def reviews() -> Sequence[Candidate]:
    """A change in 1,000 and in 5,000 objects, on 500 nodes of 8 GPUs, with page and comment; the last commit is the base."""
    command = [str(Path(sys.executable).parent / "dra-infra"), "review", "--fleet", "hgx-h100 x 500"]
    command += ["--html", "../review.html", "--markdown", "../review.md"]
    candidates = []
    for number, goal in ((1000, 6.0), (5000, 25.0)):
        candidates += [
            Candidate(
                name=f"dra-infra review, {kind}, {number:,} objects",
                command=[*command, "--source", kind],
                goal=goal,
                memory_goal=400,
                folder=review_repository(number, kind),
            )
            for kind in ("program", "manifests")
        ]
        if built("pulumi"):
            program = str(PROGRAMS / "engine_preview.py")
            candidates.append(
                Candidate(
                    name=f"pulumi preview of the same program, stand-in provider, {number:,} objects (one run)",
                    command=[sys.executable, program, str(review_repository(number, "program"))],
                    own_clock=True,
                    once=True,
                )
            )
    return candidates


QUESTIONS: Mapping[str, Callable[[], Sequence[Candidate]]] = {
    "synth": templates_with_selectors,
    "synth-counts": templates_with_counts,
    "start": start_of_the_command,
    "demo": the_demo,
    "placement": placement,
    "selectors": selectors,
    "validate": validation,
    "validate-one": one_file,
    "review": reviews,
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
    if (python := python_of_alternatives()) and has_node():
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
