"""The questions, each with the candidates that answer it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.alternatives import FOLDER, ROOT, built, can_run_a_node, has_node, python_of_alternatives
from benchmarks.inputs import (
    allocation_file,
    migration_files,
    review_repository,
    running_cluster,
    server_schemas,
    synth_project,
    validation_files,
)
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


def sizes_of_cpu() -> Sequence[Candidate]:
    """500 workloads of 80 sizes of CPU on 2,000 nodes of 8 GPUs, with loading of the fleet."""
    command = [sys.executable, str(PROGRAMS / "placement.py"), "500", "2000", "8", "alike", "80"]
    return [Candidate(name="8 claims, nodes alike to them", command=command, goal=5.0)]


def all_at_once() -> Sequence[Candidate]:
    """The verdict on all workloads at once, of ten pods each with one to four GPUs or none, beside filling as many nodes with pods."""
    candidates = []
    for workloads, nodes, question, goal in (
        ("120", "500", "fill", 2.0),
        ("1000", "5000", "fill-5000", 20.0),
    ):
        program = [sys.executable, str(PROGRAMS / "joint_verdict.py"), workloads, nodes]
        name = f"the joint verdict of {workloads} workloads on {nodes} nodes, with a first order"
        # Kubernetes' allocator is new for each pod, and takes minutes for 10,000.
        others = [replace(each, once=True) for each in _kubernetes(question)]
        ours = Candidate(name=name, command=program, goal=goal, memory_goal=700, own_clock=True)
        candidates += [ours, *others]
    return candidates


def room() -> Sequence[Candidate]:
    """The cheapest moves by which 18 nodes of 500 become free, in a cluster with 3,000 pods: `dra-infra make-room`, whole process."""
    command = [str(Path(sys.executable).parent / "dra-infra"), "make-room", "job/train"]
    command += ["--snapshot", str(running_cluster())]
    return [Candidate(name="dra-infra make-room job/train", command=command, goal=20.0, memory_goal=700)]


def selectors() -> Sequence[Candidate]:
    """Five selectors on 1,000 devices, ten times."""
    program = str(PROGRAMS / "selector_evaluation.py")
    return [
        Candidate(name="dra-infra: cel", command=[sys.executable, program, "ours"]),
        Candidate(name="cel-python, compiled", command=[sys.executable, program, "compiled"]),
        Candidate(name="cel-python, interpreted (its default)", command=[sys.executable, program, "default"]),
    ]


def warm_selectors() -> Sequence[Candidate]:
    """Five selectors on 1,000 devices, ten times, without start-up and compiling, beside the scheduler's own evaluation."""
    file, program = str(allocation_file("selectors")), str(PROGRAMS / "allocation.py")
    ours = Candidate(
        name="dra_infra.kubernetes.cel, on views that the allocator keeps",
        command=[sys.executable, program, "selectors", file],
        own_clock=True,
    )
    binary = built("allocator-bench")
    if binary is None:
        return [ours]
    theirs = [str(binary), "selectors", file]
    return [
        ours,
        Candidate(
            name="Kubernetes' dra/cel of 1.37, as its allocator calls it", command=theirs, own_clock=True
        ),
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
    kubeconform = built("kubeconform")
    schemas = server_schemas()
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


def migrations() -> Sequence[Candidate]:
    """10,000 manifests in 100 files, migrated from the device plugin, checked for the oldest and the newest minor and written."""
    command = [str(Path(sys.executable).parent / "dra-infra"), "migrate", str(migration_files())]
    options = ["--whole-gpus", "--output", str(FOLDER / "migrated")]
    return [
        Candidate(
            name=f"dra-infra migrate --to {form}", command=[*command, *options, "--to", form], goal=60.0
        )
        for form in ("claims", "bridge")
    ]


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


def first_pod() -> Sequence[Candidate]:
    """What each of 500 nodes of 8 GPUs gives the first pod."""
    return [*_allocation("first"), _placed("first")]


def filling() -> Sequence[Candidate]:
    """2,500 pods of one GPU, one after the other, on 500 nodes of 8 GPUs; the goal is 1,000 a second."""
    return [*_allocation("fill", goal=2.5), _placed("fill", goal=2.5)]


def no_match() -> Sequence[Candidate]:
    """A pod that no device of 5,000 nodes of 8 GPUs matches, after another such pod."""
    return _allocation("no-match", goal=0.15)


def nine_of_eight() -> Sequence[Candidate]:
    """9 GPUs, on 100 nodes that have 8."""
    return [*_allocation("nine-of-eight", goal=0.05), *_allocation("nine-of-eight", goal=0.05, stable=True)]


def eleven_of_ten() -> Sequence[Candidate]:
    """11 GPUs, on a node that has 10."""
    return [*_allocation("eleven-of-ten", goal=0.05), *_allocation("eleven-of-ten", goal=0.05, stable=True)]


def twenty_of_sixteen() -> Sequence[Candidate]:
    """20 GPUs, on a node that has 16; Kubernetes' allocator is stopped after 30 s."""
    return [
        *_allocation("twenty-of-sixteen", goal=0.05),
        *_allocation("twenty-of-sixteen", goal=0.05, stable=True),
    ]


def indexing() -> Sequence[Candidate]:
    """5,000 nodes of 8 GPUs made, and the pools of each gathered."""
    return [
        Candidate(
            name="dra_infra.kubernetes.scheduler.allocator, 40,000 GPUs",
            command=[sys.executable, str(PROGRAMS / "allocation.py"), "index"],
            goal=3.0,
            memory_goal=600,
            own_clock=True,
        )
    ]


def pod_with_a_claim() -> Sequence[Candidate]:
    """How much later a pod of one GPU runs than the same pod without: real scheduler, kubelet, containerd, runc; our plugin, `sim`."""
    if not can_run_a_node():
        return []
    return [
        Candidate(
            name="difference of the medians of 30 pods each, in turns",
            command=[sys.executable, str(PROGRAMS / "pod_start.py")],
            goal=0.15,
            folder=ROOT,
            own_clock=True,
            once=True,
        )
    ]


def plugin_start() -> Sequence[Candidate]:
    """The node plugin with simulated devices, from the start of its process until both of its sockets are served."""
    return [_plugin("dra-infra-plugin, to both sockets", "start", goal=0.8, memory_goal=67)]


def plugin_claims() -> Sequence[Candidate]:
    """What the node plugin takes for a claim, fsyncs included, without API server and queue."""
    return [
        _plugin("a claim prepared, median of 1,000", "prepare-50", goal=0.005),
        _plugin("a claim prepared, 99 of 100 stay below", "prepare-99", goal=0.02),
        _plugin("a claim released, median of 1,000", "release-50"),
    ]


def plugin_calls() -> Sequence[Candidate]:
    """1,000 claims prepared over the node plugin's socket, of which none is released; the goal is 200 a second."""
    return [
        _plugin("one after the other", "calls", goal=5.0),
        _plugin("64 in flight: 99 of 100 calls stay below", "flight-99"),
    ]


def plugin_idle() -> Sequence[Candidate]:
    """Processor time of the node plugin in 20 s of doing nothing, with 1,000 claims prepared; the goal is 0.1 %."""
    return [_plugin("dra-infra-plugin, with metrics, probes and a watch", "idle", goal=0.02, memory_goal=67)]


QUESTIONS: Mapping[str, Callable[[], Sequence[Candidate]]] = {
    "synth": templates_with_selectors,
    "synth-counts": templates_with_counts,
    "start": start_of_the_command,
    "demo": the_demo,
    "placement": placement,
    "sizes-of-cpu": sizes_of_cpu,
    "joint-verdict": all_at_once,
    "make-room": room,
    "selectors": selectors,
    "warm-selectors": warm_selectors,
    "validate": validation,
    "validate-one": one_file,
    "migrate": migrations,
    "review": reviews,
    "allocation-first": first_pod,
    "allocation-fill": filling,
    "allocation-no-match": no_match,
    "allocation-nine-of-eight": nine_of_eight,
    "allocation-eleven-of-ten": eleven_of_ten,
    "allocation-twenty-of-sixteen": twenty_of_sixteen,
    "allocation-index": indexing,
    "pod-start": pod_with_a_claim,
    "plugin-start": plugin_start,
    "plugin-claims": plugin_claims,
    "plugin-calls": plugin_calls,
    "plugin-idle": plugin_idle,
}


def _templates(kind: str) -> Sequence[Candidate]:
    project = synth_project(int(NUMBER), kind)
    candidates = [
        Candidate(
            name="dra-infra synth: a project of GpuClaimTemplate components, checked",
            command=[str(Path(sys.executable).parent / "dra-infra"), "synth", str(project)],
            goal=1.9,
            memory_goal=250,
        ),
        Candidate(
            name="the same as a function in a test, with Python's collector as it starts",
            command=[sys.executable, str(PROGRAMS / "ours.py"), NUMBER, kind],
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


def _allocation(question: str, *, goal: float | None = None, stable: bool = False) -> Sequence[Candidate]:
    file = str(allocation_file(question))
    how = ["stable"] if stable else []
    program = [sys.executable, str(PROGRAMS / "allocation.py")]
    ours = Candidate(
        name=f"dra_infra.kubernetes.scheduler.allocator, as {_copy(stable=stable)}",
        command=[*program, question, file, *how],
        goal=goal,
        own_clock=True,
    )
    return [ours, *_kubernetes(question, stable=stable)]


def _kubernetes(question: str, *, stable: bool = False) -> Sequence[Candidate]:
    file = str(allocation_file(question))
    how = ["stable"] if stable else []
    binary = built("allocator-bench")
    if binary is None:
        return []
    return [
        Candidate(
            name=f"Kubernetes' allocator of 1.37, {_copy(stable=stable)}: {question}",
            command=[str(binary), "fill" if question.startswith("fill") else question, file, *how],
            own_clock=True,
            once=stable,
        )
    ]


def _copy(*, stable: bool) -> str:
    return "the stable copy" if stable else "the copy that runs by default"


def _placed(question: str, *, goal: float | None = None) -> Candidate:
    command = [sys.executable, str(PROGRAMS / "allocation.py"), question, "-", "place"]
    name = "dra_infra.placement.place, with gathering pools"
    return Candidate(name=name, command=command, goal=goal, own_clock=True)


def _plugin(
    name: str, question: str, *, goal: float | None = None, memory_goal: float | None = None
) -> Candidate:
    return Candidate(
        name=name,
        # As a module: the stand-in for an API server is that of the tests.
        command=[sys.executable, "-m", "benchmarks.programs.node_plugin", question],
        goal=goal,
        memory_goal=memory_goal,
        folder=ROOT,
        own_clock=True,
    )


def _placement(name: str, claims: str, nodes: str) -> Candidate:
    command = [sys.executable, str(PROGRAMS / "placement.py"), NUMBER, "500", claims, nodes, "1"]
    return Candidate(name=name, command=command)
