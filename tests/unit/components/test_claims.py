from __future__ import annotations

import copy
import re
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.components.report import judged_at_end
from dra_infra.kubernetes.api import is_placeholder
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import UNKNOWN, ComponentRef, Program, ProgramObject

POD: dict[str, Any] = {"containers": [{"name": "train", "image": "trainer:1"}]}


def run(body: Any, **config: str) -> Program:
    return synth_function(body, config={f"dra-infra:{key}": value for key, value in config.items()})


def only(program: Program, kind: str) -> ProgramObject:
    assert [str(problem) for problem in program.problems] == []
    (found,) = [each for each in program.objects if each.ref.kind == kind]
    return found


def problems_of(program: Program) -> dict[str, str]:
    return {problem.path: problem.code for problem in program.problems}


def test_a_template_is_named_after_the_component_and_its_content():
    template = only(
        run(lambda: dra.GpuClaimTemplate("trainer", device_class="h100", count=4)), "ResourceClaimTemplate"
    )
    stem, _, digest = template.ref.name.rpartition("-")
    assert stem == "trainer"
    assert len(digest) == 8
    assert str(template.component) == 'GpuClaimTemplate("trainer")'


def test_another_spec_is_another_name_and_another_label_is_not():
    def name(**arguments: Any) -> str:
        return only(
            run(lambda: dra.GpuClaimTemplate("t", device_class="h100", **arguments)), "ResourceClaimTemplate"
        ).ref.name

    assert name(count=1) != name(count=2)
    assert name(count=1) == name(count=1, labels={"team": "ml"})


def test_outputs_are_outputs_whatever_was_given():
    def body() -> None:
        for name, given in (("a", {}), ("b", {"object_name": "b", "namespace": "ml"})):
            template = dra.GpuClaimTemplate(name, device_class="h100", **given)
            assert isinstance(template.object_name, pulumi.Output)
            assert isinstance(template.namespace, pulumi.Output)
            pulumi.export(name, template.object_name.apply(lambda known: f"claim/{known}"))
        assert isinstance(dra.GpuDeviceClass("h100").object_name, pulumi.Output)
        group = dra.NvlinkGroup("group", gpus=72, on="gb200-nvl72")
        assert isinstance(group.channel_template, pulumi.Output)

    assert run(body).problems == ()


def test_a_test_reads_the_plain_name():
    seen = []

    def body() -> None:
        seen.append(dra.testing.object_name(dra.GpuClaimTemplate("t", device_class="h100")))
        stack = pulumi.StackReference("acme/platform/prod")
        later = dra.GpuClaimTemplate("u", device_class="h100", object_name=stack.get_output("name"))
        with pytest.raises(LookupError):
            dra.testing.object_name(later)

    program = run(body)
    assert seen == [next(each.ref.name for each in program.objects if not is_placeholder(each.ref.name))]


@pytest.mark.parametrize(
    "make",
    [
        lambda named: dra.GpuClaimTemplate("t", device_class=named),
        lambda named: dra.GpuClaim("t", requests=[dra.DeviceRequest("a", device_class=named)]),
        lambda named: dra.GpuClaim("t", first_available=[dra.Alternative("a", device_class=named)]),
        lambda named: dra.GpuClaim("t", device_class=dra.class_ref(named)),
        lambda named: dra.NvlinkGroup("t", gpus=4, on="hgx-h100", device_class=named),
        lambda named: dra.GpuTenant("t", quota={named: 8}),
        lambda named: dra.KueueQueue("t", quota={named: 8}, namespaces=["ml"]),
        lambda named: dra.GpuGuardrails("t", classes={"ml": [named]}),
        lambda named: dra.GpuClaim("t", device_class="h100", namespace=named),
    ],
)
def test_the_name_of_a_component_stands_for_its_text_in_arguments(make: Any):
    plain = run(lambda: [dra.GpuDeviceClass("h100"), make("h100")])
    named = run(lambda: make(dra.GpuDeviceClass("h100").object_name))
    assert [str(each) for each in named.problems] == [str(each) for each in plain.problems]
    assert {each.urn: each.manifest for each in named.objects} == {
        each.urn: each.manifest for each in plain.objects
    }


def test_the_name_is_known_after_up_when_the_class_is():
    def body() -> None:
        stack = pulumi.StackReference("acme/platform/prod")
        template = dra.GpuClaimTemplate("t", device_class=dra.class_ref(stack.get_output("class")))
        assert isinstance(template.object_name, pulumi.Output)

    template = only(run(body), "ResourceClaimTemplate")
    assert is_placeholder(template.ref.name)
    assert re.fullmatch(r"\[unknown] \(t [0-9a-f]{8}\)", template.ref.name)
    request = template.manifest["spec"]["spec"]["devices"]["requests"][0]
    assert request["exactly"] == {"deviceClassName": UNKNOWN, "count": 1}


def test_an_explicit_name_is_kept():
    body = lambda: dra.GpuClaim("cache", device_class="h100", object_name="shared-cache", namespace="ml")  # noqa: E731
    claim = only(run(body), "ResourceClaim")
    assert (claim.ref.namespace, claim.ref.name, claim.replacement) == ("ml", "shared-cache", "provider")


def test_delete_first_is_passed_to_the_engine():
    body = lambda: dra.GpuClaim("cache", device_class="h100", object_name="c", replace="delete-first")  # noqa: E731
    assert only(run(body), "ResourceClaim").replacement == "delete-first"


def test_attach_returns_a_copy_with_an_entry_named_after_the_component():
    given = copy.deepcopy(POD)

    def body() -> None:
        trainer = dra.GpuClaimTemplate("trainer", device_class="h100", object_name="fixed")
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=trainer.attach(given))

    pod = only(run(body), "Pod")
    assert given == POD
    assert pod.manifest["spec"]["resourceClaims"] == [
        {"name": "trainer", "resourceClaimTemplateName": "fixed"}
    ]
    assert pod.manifest["spec"]["containers"][0]["resources"] == {"claims": [{"name": "trainer"}]}


@pytest.mark.parametrize(
    ("around", "path"),
    [
        (lambda pod: {"spec": pod}, ("spec",)),
        (lambda pod: {"template": {"spec": pod}, "replicas": 2}, ("template", "spec")),
        (lambda pod: {"kind": "Job", "spec": {"template": {"spec": pod}}}, ("spec", "template", "spec")),
        (
            lambda pod: {"job_template": {"spec": {"template": {"spec": pod}}}, "schedule": "@daily"},
            ("job_template", "spec", "template", "spec"),
        ),
        (
            lambda pod: {"spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}},
            ("spec", "jobTemplate", "spec", "template", "spec"),
        ),
    ],
)
@pytest.mark.parametrize("component", [dra.GpuClaim, dra.SharedGpu, dra.NvlinkGroup, dra.MigPartition])
def test_attach_takes_the_workload_around_the_pod_too(component: Any, around: Any, path: tuple[str, ...]):
    arguments: dict[Any, dict[str, Any]] = {
        dra.GpuClaim: {"device_class": "h100"},
        dra.NvlinkGroup: {"gpus": 8, "on": "hgx-h100"},
        dra.MigPartition: {"gpu": "H100", "profile": "1g.10gb"},
    }
    seen: list[Any] = []

    def body() -> None:
        claim = component("trainer", object_name="fixed", **arguments.get(component, {}))
        seen.extend([claim.attach(around(copy.deepcopy(POD))), claim.attach(POD)])

    assert problems_of(run(body)) == {}
    workload, pod = seen
    inner = workload
    for field in path:
        inner = inner[field]
    entry = inner.pop("resourceClaims")
    assert entry[0]["name"] == pod.pop("resourceClaims")[0]["name"] == "trainer"
    assert inner == pod
    assert workload == around(inner)


def test_a_typed_job_keeps_its_types_around_the_pod():
    seen: list[Any] = []

    def body() -> None:
        trainer = dra.GpuClaimTemplate("trainer", device_class="h100")
        pod = k8s.core.v1.PodSpecArgs(containers=[k8s.core.v1.ContainerArgs(name="train", image="trainer:1")])
        job = k8s.batch.v1.JobSpecArgs(template=k8s.core.v1.PodTemplateSpecArgs(spec=pod), parallelism=2)
        seen.extend([trainer.attach(job), job])

    run(body)
    attached, given = seen
    assert isinstance(attached, k8s.batch.v1.JobSpecArgs)
    assert isinstance(attached.template.spec, k8s.core.v1.PodSpecArgs)
    assert attached.template.spec.resource_claims[0]["name"] == "trainer"
    assert attached.parallelism == 2
    assert given.template.spec.resource_claims is None


def test_a_claim_is_attached_by_its_own_field():
    def body() -> None:
        cache = dra.GpuClaim("cache", device_class="h100", object_name="fixed")
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=cache.attach(POD))

    assert only(run(body), "Pod").manifest["spec"]["resourceClaims"] == [
        {"name": "cache", "resourceClaimName": "fixed"}
    ]


def test_attach_keeps_the_type_it_is_given():
    seen: list[Any] = []

    def body() -> None:
        trainer = dra.GpuClaimTemplate("trainer", device_class="h100")
        container = k8s.core.v1.ContainerArgs(name="train", image="trainer:1")
        spec = k8s.core.v1.PodSpecArgs(containers=[container])
        template = k8s.core.v1.PodTemplateSpecArgs(spec=spec)
        seen.extend(
            [trainer.attach(spec), trainer.attach(template), trainer.attach({"spec": POD}), spec, container]
        )

    run(body)
    spec, template, plain, given, container = seen
    assert isinstance(spec, k8s.core.v1.PodSpecArgs)
    assert isinstance(template, k8s.core.v1.PodTemplateSpecArgs)
    assert isinstance(template.spec, k8s.core.v1.PodSpecArgs)
    assert plain["spec"]["resourceClaims"][0]["name"] == "trainer"
    assert given.resource_claims is None
    assert container.resources is None


def test_typed_pods_arrive_as_dicts_do():
    def body() -> None:
        trainer = dra.GpuClaimTemplate("trainer", device_class="h100", object_name="fixed")
        limits = k8s.core.v1.ResourceRequirementsArgs(limits={"cpu": "1"})
        container = k8s.core.v1.ContainerArgs(name="train", image="trainer:1", resources=limits)
        fetch = {"name": "fetch", "image": "fetch:1"}
        spec = k8s.core.v1.PodSpecArgs(containers=[container], init_containers=[fetch])
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=trainer.attach(spec, containers=["fetch", "train"]))

    spec = only(run(body), "Pod").manifest["spec"]
    assert spec["containers"][0]["resources"] == {"claims": [{"name": "trainer"}], "limits": {"cpu": "1"}}
    assert spec["initContainers"][0]["resources"] == {"claims": [{"name": "trainer"}]}


def test_each_container_may_get_one_request():
    def body() -> None:
        pair = dra.GpuClaimTemplate(
            "pair", requests=[dra.DeviceRequest(name, device_class="h100") for name in ("prefill", "decode")]
        )
        spec: dict[str, Any] = {"containers": [{"name": "a"}, {"name": "b"}]}
        spec = pair.attach(spec, "a", request="prefill")
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=pair.attach(spec, "b", request="decode"))

    spec = only(run(body), "Pod").manifest["spec"]
    assert len(spec["resourceClaims"]) == 1
    assert [each["resources"]["claims"] for each in spec["containers"]] == [
        [{"name": "pair", "request": "prefill"}],
        [{"name": "pair", "request": "decode"}],
    ]


def test_the_entry_of_a_pod_may_have_a_name_of_its_own():
    def body() -> None:
        pair = dra.GpuClaimTemplate(
            "pair",
            object_name="pair",
            requests=[dra.DeviceRequest(name, device_class="h100") for name in ("prefill", "decode")],
        )
        spec: dict[str, Any] = {"containers": [{"name": "a"}, {"name": "b"}]}
        spec = pair.attach(spec, "a", request="prefill", entry="gpu")
        spec = pair.attach(spec, "b", request="decode", entry="gpu")
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=pair.attach(spec, "b", entry="more"))

    spec = only(run(body), "Pod").manifest["spec"]
    assert spec["resourceClaims"] == [
        {"name": "gpu", "resourceClaimTemplateName": "pair"},
        {"name": "more", "resourceClaimTemplateName": "pair"},
    ]
    assert [each["resources"]["claims"] for each in spec["containers"]] == [
        [{"name": "gpu", "request": "prefill"}],
        [{"name": "gpu", "request": "decode"}, {"name": "more"}],
    ]


def test_the_entry_of_a_pod_is_a_label():
    def body() -> None:
        dra.GpuClaimTemplate("t", device_class="h100").attach(POD, entry="My entry")

    assert problems_of(run(body)) == {'GpuClaimTemplate("t").attach.entry': "invalid-name"}


def test_the_pod_depends_on_the_object_except_under_delete_first():
    dependencies: dict[str, set[str]] = {}

    async def note(name: str, spec: dict[str, Any]) -> None:
        value = spec["resourceClaims"][0]["resourceClaimTemplateName"]
        resources = await value.resources() if isinstance(value, pulumi.Output) else set()
        dependencies[name] = {type(each).__name__ for each in resources}

    def body() -> None:
        import asyncio

        usual = dra.GpuClaimTemplate("usual", device_class="h100")
        first = dra.GpuClaimTemplate("first", device_class="h100", object_name="f", replace="delete-first")
        pulumi.export(
            "usual", pulumi.Output.from_input(asyncio.ensure_future(note("usual", usual.attach(POD))))
        )
        pulumi.export(
            "first", pulumi.Output.from_input(asyncio.ensure_future(note("first", first.attach(POD))))
        )

    run(body)
    assert dependencies == {"usual": {"KubernetesObject"}, "first": set()}


def test_broken_components_are_all_reported_at_the_users_lines_and_make_no_children():
    def body() -> None:
        dra.GpuDeviceClass("h100", driver="Not A Driver")
        dra.GpuClaimTemplate("trainer", device_class="h100", count=0)
        dra.GpuClaim("cache", device_class="h100", cuont=2)  # type: ignore[call-arg]

    program = run(body)
    assert problems_of(program) == {
        'GpuDeviceClass("h100").driver': "invalid-name",
        'GpuClaimTemplate("trainer").count': "count-below-one",
        'GpuClaim("cache").cuont': "unknown-argument",
    }
    assert {
        problem.place.line - program.problems[0].place.line for problem in program.problems if problem.place
    } == {
        0,
        1,
        2,
    }
    assert program.objects == ()


def test_a_workload_with_a_broken_claim_is_not_registered():
    def body() -> None:
        broken = dra.GpuClaimTemplate("trainer", device_class="h100", count=0)
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=broken.attach(POD))

    program = run(body)
    assert problems_of(program) == {'GpuClaimTemplate("trainer").count': "count-below-one"}
    assert program.objects == ()


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        (lambda: pulumi.Output.from_input(POD), "attach.pod_spec"),
        (lambda: {"containers": pulumi.Output.from_input([])}, "attach.pod_spec.containers"),
        (lambda: {"containers": [pulumi.Output.from_input({})]}, "attach.pod_spec.containers[0]"),
        (
            lambda: {"containers": [{"name": pulumi.Output.from_input("a")}]},
            "attach.pod_spec.containers[0].name",
        ),
        (lambda: {"spec": pulumi.Output.from_input(POD)}, "attach.pod_spec"),
        (lambda: {"spec": {"template": pulumi.Output.from_input({"spec": POD})}}, "attach.pod_spec"),
        (lambda: {"template": {"spec": pulumi.Output.from_input(POD)}}, "attach.pod_spec"),
        (lambda: {"template": {"metadata": {}}}, "attach.pod_spec"),
        (lambda: 7, "attach.pod_spec"),
        (lambda: {"containers": 3}, "attach.pod_spec.containers"),
    ],
)
def test_a_pod_spec_whose_structure_is_not_known_is_refused_by_name(pod: Any, path: str):
    program = run(lambda: dra.GpuClaimTemplate("t", device_class="h100").attach(pod()))
    assert problems_of(program) == {f'GpuClaimTemplate("t").{path}': "wrong-type"}


def test_requests_exclude_the_shorthand():
    body = lambda: dra.GpuClaim("c", count=2, requests=[dra.DeviceRequest("a", device_class="h100")])  # noqa: E731
    assert problems_of(run(body)) == {'GpuClaim("c").count': "shorthand-with-requests"}


def test_the_target_comes_from_the_argument_else_the_parent_else_the_stack():
    targets: list[str | None] = []

    def body() -> None:
        parent = dra.GpuDeviceClass("parent", target=dra.ClusterTarget(kubernetes="1.35"))
        child = dra.GpuDeviceClass("child", opts=pulumi.ResourceOptions(parent=parent))
        targets.extend(each.target.kubernetes for each in (parent, child, dra.GpuDeviceClass("other")))

    run(body, kubernetes="1.36")
    assert targets == ["1.35", "1.35", "1.36"]


def test_a_minor_that_is_not_supported_is_refused():
    program = run(lambda: dra.GpuDeviceClass("a"), kubernetes="1.33")
    assert problems_of(program) == {'GpuDeviceClass("a").target.kubernetes': "unknown-kubernetes"}


def test_names_labels_and_namespaces_may_be_outputs():
    def body() -> None:
        namespace = k8s.core.v1.Namespace("ml", metadata={"name": "ml"}).metadata["name"]
        claim = dra.GpuClaim(
            "cache",
            device_class="h100",
            namespace=namespace,
            object_name=namespace.apply(lambda name: f"{name}-cache"),
            labels={"team": namespace},
        )
        pulumi.export("namespace", claim.namespace)

    claim = only(run(body), "ResourceClaim")
    assert claim.manifest["metadata"] == {"name": "ml-cache", "namespace": "ml", "labels": {"team": "ml"}}


def test_the_name_may_be_given_by_keyword():
    program = run(lambda: dra.GpuClaim(name="cache", device_class="h100"))
    assert only(program, "ResourceClaim").component == ComponentRef("GpuClaim", "cache")


@pytest.mark.parametrize(
    ("body", "path", "code"),
    [
        (lambda: dra.GpuClaim(device_class="h100"), "GpuClaim", "missing-argument"),  # type: ignore[call-arg]
        (lambda: dra.GpuClaim("cache", "h100", device_class="a"), 'GpuClaim("cache")', "unknown-argument"),  # type: ignore[call-arg]
    ],
)
def test_a_component_takes_one_positional_argument(body: Any, path: str, code: str):
    assert problems_of(run(body)) == {path: code}


def test_two_components_of_one_name_do_not_share_an_entry():
    def body() -> None:
        claim = dra.GpuClaim("cache", device_class="h100")
        template = dra.GpuClaimTemplate("cache", device_class="h100")
        template.attach(claim.attach({"containers": [{"name": "a"}, {"name": "b"}]}, "a"), "b")

    assert problems_of(run(body)) == {'GpuClaimTemplate("cache").attach': "duplicate-claim"}


def test_an_entry_that_the_user_wrote_is_not_taken_over():
    pod = {**POD, "resourceClaims": [{"name": "cache", "resourceClaimName": "mine"}]}
    program = run(lambda: dra.GpuClaim("cache", device_class="h100").attach(pod))
    assert problems_of(program) == {'GpuClaim("cache").attach': "duplicate-claim"}


@pytest.mark.parametrize("constraints", [None, 3, "gpu.nvidia.com/productName"])
def test_constraints_that_are_no_list_are_refused(constraints: Any):
    program = run(lambda: dra.GpuClaim("c", device_class="h100", constraints=constraints))
    assert problems_of(program) == {'GpuClaim("c").constraints': "wrong-type"}


def test_containers_that_are_no_names_are_refused():
    body = lambda: dra.GpuClaim("c", device_class="h100").attach(POD, pulumi.Output.from_input("train"))  # type: ignore[arg-type]  # noqa: E731
    assert problems_of(run(body)) == {'GpuClaim("c").attach.containers': "wrong-type"}


def test_a_component_is_judged_for_its_own_target():
    def body():
        gates = {"DRAConsumableCapacity": False, "DRADeviceTaints": False}
        dra.GpuDeviceClass("a", target=dra.ClusterTarget(kubernetes="1.34", gates=gates))
        dra.GpuDeviceClass("b")

    program = run(body, kubernetes="1.37")
    assert {str(each.component): each.target and each.target.kubernetes for each in program.objects} == {
        'GpuDeviceClass("a")': "1.34",
        'GpuDeviceClass("b")': None,
    }


def test_a_gate_of_the_target_that_is_not_known_is_a_problem_of_the_component():
    program = run(lambda: dra.GpuDeviceClass("a", target=dra.ClusterTarget(gates={"DRAAdminAcces": True})))
    assert problems_of(program) == {"GpuDeviceClass(\"a\").target.gates['DRAAdminAcces']": "unknown-gate"}


def test_under_the_real_engine_a_component_asks_for_the_verdict_itself():
    def body():
        # What `synth` says of its run: nobody judges the objects at the end of a preview.
        judged_at_end.set(False)
        # Only 1.37 knows the variable, and an expression may use what the server before knows too.
        oldest = dra.ClusterTarget(kubernetes="1.34")
        dra.GpuDeviceClass("a", select=dra.cel("device.allowMultipleAllocations"), target=oldest)
        dra.GpuClaimTemplate("b", device_class="a", count=4, namespace=pulumi.Output.from_input("ml"))

    program = run(body)
    assert problems_of(program) == {
        'GpuDeviceClass("a").spec.selectors[1].cel.expression': "cel-type",
    }
    assert [each.ref.kind for each in program.objects] == ["ResourceClaimTemplate"]


def test_what_only_the_named_release_does_is_told_of_its_configs():
    drops = [dra.GpuConfig(sharing=dra.Mps(multi_user=True))]
    told = run(lambda: dra.GpuClaim("c", device_class="gpu.nvidia.com", driver_release="25.3", configs=drops))
    assert len(told.objects) == 1
    assert [(each.path, each.code, each.severity) for each in told.problems] == [
        ('GpuClaim("c").configs[0].sharing.multi_user', "config-field-not-known", "warning")
    ]


def test_of_the_release_of_the_stack_advice_on_the_object_tells_the_same_once():
    drops = [dra.GpuConfig(sharing=dra.Mps(multi_user=True))]
    told = run(lambda: dra.GpuClaim("c", device_class="gpu.nvidia.com", configs=drops), driver="25.3")
    assert [each.code for each in check_program(told)] == ["config-field-not-known"]


def test_a_component_with_an_object_name_is_called_as_pulumi_calls_anything():
    def body(entry: str | None) -> None:
        claim = dra.GpuClaimTemplate("my_claim", device_class="h100", object_name="my-claim")
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=claim.attach(POD, entry=entry))

    program = run(lambda: body("gpu"))
    assert only(program, "ResourceClaimTemplate").ref.name == "my-claim"
    assert only(program, "Pod").manifest["spec"]["resourceClaims"] == [
        {"name": "gpu", "resourceClaimTemplateName": "my-claim"}
    ]
    (problem,) = run(lambda: body(None)).problems
    assert (problem.path, problem.code) == ('GpuClaimTemplate("my_claim").attach.entry', "invalid-name")
    without = run(lambda: dra.GpuClaimTemplate("my_claim", device_class="h100"))
    assert problems_of(without) == {'GpuClaimTemplate("my_claim").name': "invalid-name"}


def test_a_users_subclass_has_the_type_of_our_component() -> None:
    class TeamClaim(dra.GpuClaimTemplate):
        pass

    program = run(lambda: TeamClaim("trainer", device_class="gpu.nvidia.com", count=1))
    (template,) = program.objects
    assert "::dra-infra:index:GpuClaimTemplate$" in template.urn
    assert str(template.component) == 'GpuClaimTemplate("trainer")'


def test_a_class_named_by_an_output_of_another_stack_is_known_to_be_elsewhere() -> None:
    def program() -> None:
        name = pulumi.Output.from_input("team-h100")
        dra.GpuClaimTemplate("trainer", device_class=dra.class_ref(name), count=1, namespace="ml")

    assert run(program).elsewhere == ("team-h100",)


@pytest.mark.parametrize("known", [True, False])
def test_the_name_of_a_class_may_be_an_output(known: bool):
    def body() -> None:
        stack = pulumi.StackReference("acme/platform/prod")
        name = pulumi.Output.from_input("h100") if known else stack.get_output("class")
        dra.GpuClaimTemplate("t", device_class=name)
        dra.GpuClaimTemplate("u", requests=[dra.DeviceRequest("gpu", device_class=name)])

    program = run(body)
    plain = only(run(lambda: dra.GpuClaimTemplate("t", device_class="h100")), "ResourceClaimTemplate")

    templates = [each for each in program.objects if each.ref.kind == "ResourceClaimTemplate"]
    classes = [
        each.manifest["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"]
        for each in templates
    ]
    assert classes == (["h100", "h100"] if known else [UNKNOWN, UNKNOWN])
    assert (templates[0].manifest == plain.manifest) == known
