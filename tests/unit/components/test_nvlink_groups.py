from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dra_infra as dra
from dra_infra.advice.objects import validate
from dra_infra.catalog import load_fleet
from dra_infra.catalog.gpus import systems
from dra_infra.components.known_outputs import text_of
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import UNKNOWN, Program
from dra_infra.specs.compute_domains import channel_template, check_template_names
from dra_infra.target import ClusterTarget
from tests.support.placing import place

POD: dict[str, Any] = {"containers": [{"name": "train", "image": "trainer:1"}], "restartPolicy": "Never"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "pretrain"}}, "spec": POD}
JOB: dict[str, Any] = {
    "parallelism": 18,
    "completions": 18,
    "completionMode": "Indexed",
    "template": TEMPLATE,
}
PARTITIONED = {"FabricManagerPartitioning": True}


def run(body: Any, **config: str) -> Program:
    return synth_function(body, config={f"dra-infra:{key}": value for key, value in config.items()})


def problems_of(program: Program) -> dict[str, str]:
    return {problem.path: problem.code for problem in program.problems}


def by_kind(program: Program, *, warned: str = "") -> dict[str, Any]:
    assert [problem.code for problem in program.problems] == ([warned] if warned else [])
    assert all(problem.severity == "warning" for problem in program.problems)
    found = {each.ref.kind: each.manifest for each in program.objects}
    assert len(found) == len(program.objects)
    return found


def rack(**arguments: Any) -> dra.NvlinkGroup:
    return dra.NvlinkGroup("pretrain", **{"gpus": 72, "on": "gb200-nvl72", "namespace": "ml", **arguments})


def job(spec: Any, group: dra.NvlinkGroup, **arguments: Any) -> None:
    k8s.batch.v1.Job("j", metadata={"name": "j", "namespace": "ml"}, spec=group.attach(spec, **arguments))


def test_a_group_on_a_board_is_a_template_with_the_product():
    def body() -> None:
        four = dra.NvlinkGroup("four", gpus=4, on="hgx-h100", select=dra.gpu.memory >= "79Gi")
        assert (four.pods, four.channel_template) == (1, None)
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=four.attach(POD))

    found = by_kind(run(body))
    assert set(found) == {"ResourceClaimTemplate", "Pod"}
    claim = found["ResourceClaimTemplate"]["spec"]["spec"]["devices"]
    assert "constraints" not in claim
    (request,) = claim["requests"]
    (selector,) = request["exactly"]["selectors"]
    assert (request["name"], request["exactly"]["count"]) == ("gpu", 4)
    assert request["exactly"]["deviceClassName"] == "gpu.nvidia.com"
    assert '"NVIDIA H100 80GB HBM3"' in selector["cel"]["expression"]
    assert "79Gi" in selector["cel"]["expression"]
    assert found["Pod"]["spec"]["resourceClaims"] == [
        {"name": "four", "resourceClaimTemplateName": found["ResourceClaimTemplate"]["metadata"]["name"]}
    ]
    assert "affinity" not in found["Pod"]["spec"]


def test_a_fabric_partition_is_a_constraint_and_one_request():
    body = lambda: dra.NvlinkGroup("four", gpus=4, on="hgx-h100", driver_gates=PARTITIONED)  # noqa: E731
    claim = by_kind(run(body), warned="nvlink-not-measured")["ResourceClaimTemplate"]["spec"]["spec"][
        "devices"
    ]
    assert claim["constraints"] == [{"matchAttribute": "gpu.nvidia.com/partition4"}]
    assert [each["exactly"]["count"] for each in claim["requests"]] == [4]


def test_a_fabric_partition_is_placed_where_there_are_partitions():
    body = lambda: dra.NvlinkGroup("four", gpus=4, on="hgx-h100", driver_gates=PARTITIONED)  # noqa: E731
    claim = dra.testing.synth(body).claim("four")
    assert claim.fits("hgx-h100 driver=0.5 fabric-partitions")
    assert not claim.fits("hgx-h100 driver=0.5")


def test_a_group_on_a_board_never_lands_on_cards():
    claim = dra.testing.synth(lambda: dra.NvlinkGroup("two", gpus=2, on="hgx-h100")).claim("two")
    assert claim.fits("hgx-h100")
    assert not claim.fits("h100-nvl")


def test_a_rack_is_a_compute_domain_its_claims_and_an_affinity():
    found = by_kind(run(lambda: job(JOB, rack())))
    assert set(found) == {"ComputeDomain", "ResourceClaimTemplate", "Job"}
    domain, claim = found["ComputeDomain"], found["ResourceClaimTemplate"]
    group = domain["metadata"]["name"]
    assert group.startswith("pretrain-")
    assert domain["apiVersion"] == "resource.nvidia.com/v1beta1"
    assert domain["metadata"] == {"name": group, "namespace": "ml"}
    assert domain["spec"] == {
        "numNodes": 0,
        "channel": {"resourceClaimTemplate": {"name": f"{group}-channel"}},
    }
    template = found["Job"]["spec"]["template"]
    assert template["metadata"]["labels"] == {"app": "pretrain", "dra-infra/nvlink-group": group}
    assert template["spec"]["resourceClaims"] == [
        {"name": "pretrain", "resourceClaimTemplateName": claim["metadata"]["name"]},
        {"name": "pretrain-channel", "resourceClaimTemplateName": f"{group}-channel"},
    ]
    assert template["spec"]["containers"][0]["resources"] == {
        "claims": [{"name": "pretrain"}, {"name": "pretrain-channel"}]
    }
    (term,) = template["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "nvidia.com/gpu.clique"
    assert term["labelSelector"] == {"matchLabels": {"dra-infra/nvlink-group": group}}
    assert claim["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 4


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_all_of_a_rack_is_accepted(minor: str):
    program = run(lambda: job(JOB, rack()), kubernetes=minor)
    objects = list(by_kind(program).values())
    domain = by_kind(program)["ComputeDomain"]
    made = channel_template(domain)
    assert made is not None
    assert list(check_template_names(objects)) == []
    target = ClusterTarget(kubernetes=minor)
    assert validate(objects, target) == validate([made], target) == ()


def test_a_template_of_ones_own_under_the_name_of_the_channels_is_refused():
    objects = list(by_kind(run(lambda: job(JOB, rack()))).values())
    (made,) = [each for each in map(channel_template, objects) if each]
    assert [each.code for each in validate([*objects, made])] == ["channel-template-taken"]


@pytest.mark.parametrize(("fleet", "verdict"), [("gb200-nvl72", "fits"), ("gb300-nvl72", "does-not-fit")])
def test_a_rack_of_pods_takes_the_gpus_and_the_channel_of_every_node(fleet: str, verdict: str):
    objects = list(by_kind(run(lambda: job(JOB, rack()))).values())
    (placed,) = place(objects, load_fleet(fleet)).workloads
    assert placed.verdict == verdict
    for node in placed.nodes:
        assert sorted(each.device for each in node.devices) == ["channel-0", *(f"gpu-{i}" for i in range(4))]
    assert len(placed.nodes) == (18 if verdict == "fits" else 0)


@settings(max_examples=40, deadline=None)
@given(
    on=st.sampled_from(sorted(systems())),
    gpus=st.integers(1, 80),
    size=st.none() | st.integers(1, 8),
    line=st.sampled_from(["25.3", "25.12", "0.4", "0.5"]),
    partitioned=st.booleans(),
    minor=st.sampled_from(SUPPORTED_MINORS),
)
def test_a_group_reports_or_makes_what_every_server_takes(on, gpus, size, line, partitioned, minor):
    def body() -> None:
        gates = PARTITIONED if partitioned else None
        group = dra.NvlinkGroup(
            "g", gpus=gpus, on=on, gpus_per_pod=size, driver_release=line, driver_gates=gates
        )
        spec = {"replicas": group.pods, "selector": {}, "template": TEMPLATE}
        k8s.apps.v1.Deployment("d", metadata={"name": "d"}, spec=group.attach(spec))

    program = run(body, kubernetes=minor)
    objects = [each.manifest for each in program.objects]
    errors = [problem for problem in program.problems if problem.severity == "error"]
    assert bool(errors) != bool(objects)
    assert all(problem.path.startswith('NvlinkGroup("g").') for problem in program.problems)
    assert validate(objects, ClusterTarget(kubernetes=minor), driver=line) == ()


@pytest.mark.parametrize(("line", "nodes"), [("25.12", 18), ("0.4", 0)])
def test_the_driver_release_of_the_stack_counts(line: str, nodes: int):
    program = run(rack, driver=line)
    assert by_kind(program)["ComputeDomain"]["spec"]["numNodes"] == nodes


def test_a_group_that_changes_is_another_group():
    def group(**arguments: Any) -> str:
        return by_kind(run(lambda: rack(**arguments)))["ComputeDomain"]["metadata"]["name"]

    assert group() == group(labels={"team": "ml"})
    assert (
        len({group(), group(gpus=64), group(select=dra.gpu.memory >= "1Gi"), group(allocation_mode="All")})
        == 4
    )


def test_an_explicit_name_is_that_of_both_objects():
    found = by_kind(run(lambda: rack(object_name="big", labels={"team": "ml"})))
    assert found["ComputeDomain"]["metadata"] == {
        "name": "big",
        "namespace": "ml",
        "labels": {"team": "ml"},
    }
    assert found["ResourceClaimTemplate"]["metadata"]["name"] == "big"
    assert found["ComputeDomain"]["spec"]["channel"]["resourceClaimTemplate"] == {"name": "big-channel"}


def test_names_and_namespaces_may_be_outputs():
    def body() -> None:
        stack = pulumi.StackReference("acme/platform/prod")
        group = rack(object_name=stack.get_output("name"), namespace=stack.get_output("namespace"))
        job(JOB, group)

    found = by_kind(run(body))
    assert found["ComputeDomain"]["metadata"] == {"name": UNKNOWN, "namespace": UNKNOWN}
    assert found["Job"]["spec"]["template"]["spec"]["resourceClaims"][1] == {
        "name": "pretrain-channel",
        "resourceClaimTemplateName": UNKNOWN,
    }


def test_delete_first_is_passed_to_the_engine_for_both_objects():
    program = run(lambda: rack(object_name="big", replace="delete-first"))
    assert {each.replacement for each in program.objects} == {"delete-first"}


def test_the_pods_depend_on_both_objects():
    kinds: list[set[str]] = []

    async def note(spec: Any) -> None:
        for entry in spec["template"]["spec"]["resourceClaims"]:
            resources = await entry["resourceClaimTemplateName"].resources()
            kinds.append({each._type for each in resources})

    def body() -> None:
        import asyncio

        pulumi.export("x", pulumi.Output.from_input(asyncio.ensure_future(note(rack().attach(JOB)))))

    run(body)
    assert kinds == [
        {"kubernetes:resource.k8s.io/v1:ResourceClaimTemplate"},
        {"kubernetes:resource.nvidia.com/v1beta1:ComputeDomain"},
    ]


def test_attach_mutates_nothing_and_keeps_the_type_that_it_is_given():
    seen: list[Any] = []
    given = copy.deepcopy(JOB)

    def body() -> None:
        group = rack()
        core = k8s.core.v1
        pod = core.PodSpecArgs(containers=[core.ContainerArgs(name="train", image="t:1")])
        template = core.PodTemplateSpecArgs(metadata=k8s.meta.v1.ObjectMetaArgs(labels={"a": "b"}), spec=pod)
        affinity = core.AffinityArgs(node_affinity=core.NodeAffinityArgs())
        bare = core.PodTemplateSpecArgs(
            spec=core.PodSpecArgs(containers=[{"name": "train"}], affinity=affinity)
        )
        typed = k8s.batch.v1.JobSpecArgs(parallelism=18, completions=18, template=template)
        seen.extend([group.attach(typed), group.attach(template), group.attach(bare), group.attach(given)])
        seen.extend([typed, template, affinity])

    run(body)
    typed, template, bare, plain, given_job, given_template, given_affinity = seen
    assert given == JOB
    assert isinstance(typed, k8s.batch.v1.JobSpecArgs)
    assert isinstance(typed.template, k8s.core.v1.PodTemplateSpecArgs)
    assert isinstance(typed.template.metadata, k8s.meta.v1.ObjectMetaArgs)
    assert set(typed.template.metadata.labels) == {"a", "dra-infra/nvlink-group"}
    assert isinstance(template, k8s.core.v1.PodTemplateSpecArgs)
    assert isinstance(bare.spec.affinity, k8s.core.v1.AffinityArgs)
    assert bare.spec.affinity.pod_affinity
    assert plain["template"]["spec"]["affinity"]
    assert given_job.template is given_template
    assert given_template.metadata.labels == {"a": "b"}
    assert given_template.spec.affinity is None
    assert given_affinity.pod_affinity is None


def test_a_typed_job_arrives_as_a_dict_does():
    def body() -> None:
        pod = k8s.core.v1.PodSpecArgs(containers=[{"name": "train", "image": "t:1"}])
        template = k8s.core.v1.PodTemplateSpecArgs(spec=pod)
        job(k8s.batch.v1.JobSpecArgs(parallelism=18, completions=18, template=template), rack())

    template = by_kind(run(body))["Job"]["spec"]["template"]
    assert set(template["metadata"]["labels"]) == {"dra-infra/nvlink-group"}
    assert [each["name"] for each in template["spec"]["resourceClaims"]] == ["pretrain", "pretrain-channel"]
    assert template["spec"]["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]


@pytest.mark.parametrize("spelling", ["camel", "snake"])
def test_affinity_of_the_user_is_kept(spelling: str):
    mine = {"topology_key": "zone"}
    affinity = (
        {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [mine]}, "nodeAffinity": {}}
        if spelling == "camel"
        else {"pod_affinity": {"required_during_scheduling_ignored_during_execution": [mine]}}
    )
    seen: list[Any] = []

    def body() -> None:
        seen.append(rack().attach({"spec": {**POD, "affinity": affinity}}))

    run(body)
    (kept,) = seen[0]["spec"]["affinity"].keys() & {"podAffinity", "pod_affinity"}
    (terms,) = seen[0]["spec"]["affinity"][kept].values()
    assert terms[0] == mine
    assert terms[1]["topologyKey"] == "nvidia.com/gpu.clique"


def test_a_whole_workload_is_taken_too():
    seen: list[Any] = []

    def body() -> None:
        group = rack()
        manifest = {"kind": "StatefulSet", "spec": {"replicas": 18, "template": TEMPLATE}}
        seen.append((group.channel_template, group.attach(manifest)))

    run(body)
    channel, manifest = seen[0]
    assert manifest["kind"] == "StatefulSet"
    assert str(text_of(channel)).startswith("pretrain-")
    assert len(manifest["spec"]["template"]["spec"]["resourceClaims"]) == 2


@pytest.mark.parametrize("pods", [18, 9])
def test_the_job_of_a_cron_job_is_the_group(pods: int):
    cron = {"schedule": "@daily", "jobTemplate": {"spec": {"parallelism": pods, "template": TEMPLATE}}}
    seen: list[Any] = []
    program = run(lambda: seen.append(rack().attach(cron)))
    label = 'NvlinkGroup("pretrain").attach.parallelism'
    assert problems_of(program) == ({} if pods == 18 else {label: "nvlink-group-shape"})
    pod = seen[0]["jobTemplate"]["spec"]["template"]["spec"]
    assert ("affinity" in pod) == (pods == 18)


def test_each_container_may_be_attached_by_itself():
    pod = {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}

    def body() -> None:
        group = rack()
        template = group.attach(group.attach({"spec": pod}, "a"), ["c"], request="gpu")
        job({**JOB, "template": template}, dra.NvlinkGroup("single", gpus=1, on="l4"), containers="b")

    template = by_kind_of_job(run(body))["spec"]["template"]
    names = [each.get("resources", {}).get("claims") for each in template["spec"]["containers"]]
    assert names == [
        [{"name": "pretrain"}, {"name": "pretrain-channel"}],
        [{"name": "single"}],
        [{"name": "pretrain", "request": "gpu"}, {"name": "pretrain-channel"}],
    ]
    assert [each["name"] for each in template["spec"]["resourceClaims"]] == [
        "pretrain",
        "pretrain-channel",
        "single",
    ]
    (terms,) = template["spec"]["affinity"]["podAffinity"].values()
    assert len(terms) == 1


def by_kind_of_job(program: Program) -> Any:
    assert program.problems == ()
    (found,) = [each.manifest for each in program.objects if each.ref.kind == "Job"]
    return found


def test_on_a_board_every_replica_is_a_group_of_its_own():
    seen: list[Any] = []

    def body() -> None:
        eight = dra.NvlinkGroup("eight", gpus=8, gpu="B200")
        seen.append(eight.attach({"replicas": 3, "template": TEMPLATE}))

    assert run(body).problems == ()
    assert seen[0]["replicas"] == 3
    assert seen[0]["template"]["metadata"] == TEMPLATE["metadata"]


OUTPUT = pulumi.Output.from_input
ATTACH = [
    ({**JOB, "parallelism": 16, "completions": 16}, {"parallelism": "nvlink-group-shape", "completions": "nvlink-group-shape"}),
    ({"replicas": 9, "template": TEMPLATE}, {"replicas": "nvlink-group-shape"}),
    ({"spec": {"replicas": 9, "template": TEMPLATE}}, {"replicas": "nvlink-group-shape"}),
    ({"template": TEMPLATE}, {"": "nvlink-group-shape"}),
    (POD, {"pod_spec": "wrong-type"}),
    ({"replicas": 18, "template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}}, {"containers": "containers-not-named"}),
    ({"template": {"metadata": {"labels": {"dra-infra/nvlink-group": "other-01234567"}}, "spec": POD}, "replicas": 18}, {"metadata.labels": "claim-attached-twice"}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), ATTACH)
def test_a_workload_that_is_not_the_group_is_refused_and_not_made(given: Any, expected: dict[str, str]):
    seen: list[Any] = []

    def body() -> None:
        seen.append(rack().attach(given))
        k8s.batch.v1.Job("j", metadata={"name": "j"}, spec=seen[0])

    program = run(body)
    label = 'NvlinkGroup("pretrain").attach'
    assert problems_of(program) == {f"{label}.{path}".rstrip("."): code for path, code in expected.items()}
    assert "Job" not in {each.ref.kind for each in program.objects}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (lambda: {**JOB, "parallelism": OUTPUT(18)}, "parallelism"),
        (lambda: {"metadata": {"labels": OUTPUT({})}, "spec": POD}, "metadata.labels"),
        (lambda: {"metadata": OUTPUT({}), "spec": POD}, "metadata"),
        (lambda: {"spec": {**POD, "affinity": OUTPUT({})}}, "spec.affinity"),
        (lambda: {**JOB, "template": OUTPUT(TEMPLATE)}, "template"),
        (lambda: OUTPUT(JOB), "pod_spec"),
    ],
)
def test_a_workload_whose_structure_is_not_known_is_refused_by_name(given: Any, path: str):
    program = run(lambda: rack().attach(given()))
    found = problems_of(program)
    assert found[f'NvlinkGroup("pretrain").attach.{path}'] == "wrong-type"


def test_all_problems_come_at_once_at_the_users_line():
    def body() -> None:
        dra.NvlinkGroup(
            "pretrain",
            gpus=0,
            on="gb200-nvl7",
            gpus_per_pod="4",  # type: ignore[arg-type]
            device_class="Not A Class",
            select=3,  # type: ignore[arg-type]
            driver_gates={"Foo": True},
            namespace=7,  # type: ignore[arg-type]
            gpuss=72,  # type: ignore[call-arg]
        )
        dra.NvlinkGroup("other")

    program = run(body)
    assert problems_of(program) == {
        'NvlinkGroup("pretrain").gpus': "count-below-one",
        'NvlinkGroup("pretrain").on': "unknown-system",
        'NvlinkGroup("pretrain").gpus_per_pod': "wrong-type",
        'NvlinkGroup("pretrain").device_class': "invalid-name",
        'NvlinkGroup("pretrain").select': "wrong-type",
        'NvlinkGroup("pretrain").driver_gates.Foo': "unknown-driver-gate",
        'NvlinkGroup("pretrain").namespace': "wrong-type",
        'NvlinkGroup("pretrain").gpuss': "unknown-argument",
        'NvlinkGroup("other").gpus': "missing-argument",
    }
    assert all(problem.place for problem in program.problems)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"driver_release": "9.9"}, {"driver_release": "unknown-driver-release"}),
        ({"allocation_mode": "All", "driver_release": "25.3"}, {"allocation_mode": "compute-domain-option"}),
        ({"imex_mode": "hostManaged", "driver_release": "0.4"}, {"imex_mode": "compute-domain-option"}),
        (
            {"imex_mode": "hostManaged", "allocation_mode": "All"},
            {"allocation_mode": "compute-domain-option"},
        ),
        (
            {"gpus": 4, "allocation_mode": "All", "imex_mode": "driverManaged"},
            {"allocation_mode": "compute-domain-option", "imex_mode": "compute-domain-option"},
        ),
        ({"driver_gates": PARTITIONED}, {"driver_gates": "nvlink-not-promised"}),
        ({"gpus": 76}, {"gpus": "nvlink-not-promised"}),
        ({"replace": "now"}, {"replace": "wrong-type"}),
    ],
)
def test_what_is_not_possible_is_a_problem_of_the_argument(arguments: Any, expected: dict[str, str]):
    program = run(lambda: rack(**arguments))
    assert problems_of(program) == {
        f'NvlinkGroup("pretrain").{path}': code for path, code in expected.items()
    }
    assert program.objects == ()


@pytest.mark.parametrize(("length", "expected"), [(54, {}), (55, {"name": "invalid-name"})])
def test_a_name_must_leave_room_for_the_label(length: int, expected: dict[str, str]):
    name = "x" * length
    program = run(lambda: job(JOB, dra.NvlinkGroup(name, gpus=72, on="gb200-nvl72", namespace="ml")))
    assert problems_of(program) == {f'NvlinkGroup("{name}").{path}': code for path, code in expected.items()}
    assert validate([each.manifest for each in program.objects]) == ()


def test_the_example_of_the_guide_runs():
    guide = Path(__file__).parents[3] / "docs" / "nvlink.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    program = run(lambda: exec("\n".join(blocks), {}))  # noqa: S102
    assert [str(problem) for problem in program.problems] == []
    assert {each.ref.kind for each in program.objects} == {
        "ComputeDomain",
        "Job",
        "Pod",
        "ResourceClaimTemplate",
    }


def test_warnings_are_told_and_stop_nothing(monkeypatch: pytest.MonkeyPatch):
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *_: logged.append(message))
    program = run(lambda: rack(gpus=36, gpus_per_pod=2))
    assert len(by_kind(program, warned="nvlink-group-shape")) == 2
    assert logged == []
    (warning,) = program.problems
    assert (warning.path, warning.code) == ('NvlinkGroup("pretrain").gpus_per_pod', "nvlink-group-shape")
    assert warning.severity == "warning"
