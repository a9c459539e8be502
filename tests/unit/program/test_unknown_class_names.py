"""DeviceClasses whose names are only known after `pulumi up`: claims that take the name from the class are placed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.answers.explaining import explain
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import simulate
from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.api import Placeholder, is_placeholder
from dra_infra.program.synth import synth_function

FLEET = "hgx-h100 x 1"
CONTAINERS: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
NONE = dra.gpu.uuid == "none"


def named(name: str) -> pulumi.Output[str]:
    return pulumi.Output.concat(name, "-", pulumi.StackReference("acme/platform/prod").get_output("suffix"))


def make_class(name: str = "h100", **more: Any) -> dra.GpuDeviceClass:
    return dra.GpuDeviceClass(name, object_name=named(name), **more)


def pod(name: str, claim: Any) -> None:
    k8s.core.v1.Pod(name, metadata={"name": name, "namespace": "ml"}, spec=claim.attach(CONTAINERS))


def use(name: str, **asked: Any) -> None:
    pod(name, dra.GpuClaimTemplate(name, namespace="ml", **asked))


def verdicts(program: Any, *names: str) -> list[str]:
    return [program.fits(FLEET, name).placement.verdict for name in names]


WAYS: dict[str, Callable[[dra.GpuDeviceClass, int], dict[str, Any]]] = {
    "component": lambda h100, count: {"device_class": h100, "count": count},
    "name": lambda h100, count: {"device_class": h100.object_name, "count": count},
    "class_ref": lambda h100, count: {"device_class": dra.class_ref(h100.object_name), "count": count},
    "request": lambda h100, count: {
        "requests": [dra.DeviceRequest("gpu", device_class=h100.object_name, count=count)]
    },
    "alternative": lambda h100, count: {
        "requests": [
            dra.DeviceRequest("gpu", first_available=[dra.Alternative("a", device_class=h100, count=count)])
        ]
    },
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("count", "verdict"), [(8, "fits"), (9, "does-not-fit")])
def test_a_claim_of_such_a_class_is_placed(way: str, count: int, verdict: str):
    program = dra.testing.synth(lambda: use("p", **WAYS[way](make_class(), count)))
    assert program.problems == ()
    assert verdicts(program, "p") == [verdict]


def test_the_selectors_of_the_class_count():
    assert verdicts(dra.testing.synth(lambda: use("p", device_class=make_class(select=NONE))), "p") == [
        "does-not-fit"
    ]


@pytest.mark.parametrize("take", [lambda made: made.metadata["name"], lambda made: made.metadata.name])
@pytest.mark.parametrize(("count", "verdict"), [(8, "fits"), (9, "does-not-fit")])
def test_a_class_of_pulumis_own_class_is_found_by_its_metadata(
    take: Callable[[Any], Any], count: int, verdict: str
):
    def body() -> None:
        expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
        made = k8s.resource.v1.DeviceClass(
            "h100",
            metadata={"name": named("h100")},
            spec={"selectors": [{"cel": {"expression": expression}}]},
        )
        request = {"name": "gpu", "exactly": {"deviceClassName": take(made), "count": count}}
        k8s.resource.v1.ResourceClaimTemplate(
            "t",
            metadata={"name": "t", "namespace": "ml"},
            spec={"spec": {"devices": {"requests": [request]}}},
        )
        container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
        entries = [{"name": "gpu", "resource_claim_template_name": "t"}]
        spec = {"containers": [container], "resource_claims": entries}
        k8s.core.v1.Pod("p", metadata={"name": "p", "namespace": "ml"}, spec=spec)

    assert verdicts(dra.testing.synth(body), "p") == [verdict]


def test_classes_of_one_name_under_several_parents_are_told_apart():
    class Team(pulumi.ComponentResource):
        def __init__(self, name: str, kind: str, select: Any) -> None:
            super().__init__(f"acme:index:{kind}", name)
            opts = pulumi.ResourceOptions(parent=self)
            use(name, device_class=make_class(select=select, opts=opts))

    def body() -> None:
        Team("a", "A", None)
        Team("b", "B", NONE)

    program = dra.testing.synth(body)
    assert program.problems == ()
    assert verdicts(program, "a", "b") == ["fits", "does-not-fit"]


def test_names_with_results_of_functions_are_told_apart_although_they_look_alike():
    def looked_up(key: str) -> str:
        return f"h100-{pulumi.runtime.invoke('cloud:index:lookup', {'key': key}).value['suffix']}"

    def body() -> None:
        free = dra.GpuDeviceClass("a", object_name=looked_up("a"))
        none = dra.GpuDeviceClass("b", object_name=looked_up("b"), select=NONE)
        use("free", device_class=free)
        use("none", device_class=none)
        use("other", device_class=looked_up("c"))

    program = dra.testing.synth(body)
    assert verdicts(program, "free", "none", "other") == ["fits", "does-not-fit", "not-decided"]


def test_a_claim_that_is_named_by_its_content_has_an_unknown_name():
    program = synth_function(lambda: use("p", device_class=make_class()))
    (template,) = [each for each in program.objects if each.ref.kind == "ResourceClaimTemplate"]
    assert is_placeholder(template.ref.name)
    assert template.ref.name.startswith("[unknown] (p ")
    (request,) = template.manifest["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == Placeholder("[unknown] (h100)")
    # A class that is read as one of another program would be warned of by nobody.
    assert program.elsewhere == ()


def test_a_name_that_is_of_no_class_here_is_not_decided():
    def body() -> None:
        make_class()
        use("p", device_class=dra.class_ref(named("h100")))

    placed = dra.testing.synth(body).fits(FLEET, "p")
    assert placed.placement.verdict == "not-decided"
    assert "deviceClassName is only known after" in repr(placed)


def test_a_plain_name_is_not_that_of_a_class_whose_name_is_known_later():
    def body() -> None:
        make_class()
        use("p", device_class=dra.class_ref("h100-abc"))

    placed = dra.testing.synth(body).fits(FLEET, "p")
    assert placed.placement.verdict == "not-decided"
    assert "class h100-abc not known here" in repr(placed)


def ask(name: str, limits: Any) -> None:
    containers = [{"name": "c", "image": "i", "resources": {"limits": limits}}]
    k8s.core.v1.Pod(name, metadata={"name": name, "namespace": "ml"}, spec={"containers": containers})


def implicit(name: Any) -> Any:
    return pulumi.Output.from_input(name).apply(
        lambda known: {f"deviceclass.resource.kubernetes.io/{known}": "8"}
    )


def test_pods_find_the_class_by_its_extended_resource_name():
    def body() -> None:
        make_class(extended_resource_name="example.com/gpu")
        ask("few", {"example.com/gpu": "8"})
        ask("many", {"example.com/gpu": "9"})

    assert verdicts(dra.testing.synth(body), "few", "many") == ["fits", "does-not-fit"]


def test_the_resource_that_every_class_has_is_found_by_the_name_of_the_class_alone():
    def body() -> None:
        ask("traced", implicit(make_class().object_name))
        ask("unknown", implicit(named("h100")))
        ask("plain", implicit("h100-abc"))

    program = dra.testing.synth(body)
    assert verdicts(program, "traced", "unknown", "plain") == ["fits", "not-decided", "not-decided"]
    assert [each.path.partition(".")[0] for each in program.problems] == ["Pod ml/plain"]


@pytest.mark.parametrize(("limit", "verdict"), [(8, "fits"), (7, "does-not-fit")])
def test_the_quota_of_a_tenant_counts_devices_of_the_class(limit: int, verdict: str):
    def body() -> None:
        h100 = make_class()
        trainer = partial(dra.GpuClaimTemplate, device_class=h100, count=8)
        pod("p", dra.GpuTenant("ml", quota={h100: limit}, templates={"t": trainer}).templates["t"])

    program = dra.testing.synth(body)
    assert program.problems == ()
    assert verdicts(program, "p") == [verdict]


@pytest.mark.parametrize(
    ("hard", "note"),
    [
        (
            lambda: {"h100-a.deviceclass.resource.k8s.io/devices": "0"},
            "may limit a class whose name is only known",
        ),
        (lambda: implicit(named("h100")), "spec.hard of ResourceQuota ml/q are not taken into account"),
        (lambda: {"count/pods": named("4")}, "count/pods of ResourceQuota ml/q are not taken into account"),
    ],
)
def test_a_quota_that_may_be_about_the_class_is_named(hard: Callable[[], Any], note: str):
    def body() -> None:
        k8s.core.v1.ResourceQuota("q", metadata={"name": "q", "namespace": "ml"}, spec={"hard": hard()})
        use("p", device_class=make_class())

    scene = Scene.of(synth_function(body), fleet=load_fleet(FLEET))
    assert note in "\n".join(simulate(scene).placement.notes)


@pytest.mark.parametrize(("amount", "codes"), [(8, []), (7, ["queue-too-small"])])
def test_a_queue_counts_devices_of_the_class(amount: int, codes: list[str]):
    def body() -> None:
        h100 = make_class()
        queue = dra.KueueQueue("gpus", quota={h100: amount}, namespaces=["ml"])
        claim = dra.GpuClaimTemplate("t", namespace="ml", device_class=h100, count=8)
        spec = {"template": {"spec": {**claim.attach(CONTAINERS), "restart_policy": "Never"}}}
        metadata = {"name": "p", "namespace": "ml", "labels": queue.workload_labels}
        k8s.batch.v1.Job("p", metadata=metadata, spec=spec)

    assert [each.code for each in dra.testing.synth(body).problems] == codes


def test_guardrails_refuse_the_class_at_their_argument():
    def body() -> None:
        # The SDK leaves coroutines of a stack's outputs alone where a run ends early, and Python warns of those.
        h100 = dra.GpuDeviceClass("h100", object_name=k8s.core.v1.ConfigMap("c").id)
        dra.GpuGuardrails("g", classes={"ml": [h100]})

    program = dra.testing.synth(body)
    assert [each.path for each in program.problems] == ["GpuGuardrails(\"g\").classes['ml'][0]"]


def test_a_policy_does_not_refuse_a_claim_for_a_name_that_is_not_known():
    def body() -> None:
        dra.GpuGuardrails("g", classes={"ml": ["h200"]})
        use("p", device_class=make_class())

    assert dra.testing.synth(body).problems == ()


@pytest.mark.parametrize(("count", "verdict"), [(8, "fits"), (9, "does-not-fit")])
def test_explain_places_the_claim_too(count: int, verdict: str):
    program = synth_function(lambda: use("p", device_class=make_class(), count=count))
    assert explain(Scene.of(program, fleet=load_fleet(FLEET)), "p").verdict == verdict
