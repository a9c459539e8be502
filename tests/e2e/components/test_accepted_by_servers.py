"""What components make of arguments drawn at random, shown to the real API servers; and what they refuse for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

import dra_infra as dra
from dra_infra.program.synth import synth, synth_function
from tests.support.arguments.calls import Call, Drawn, run
from tests.support.arguments.programs import FAMILY, sane
from tests.support.components.objects import CRDS, define, definitions, make_namespaces, refusal
from tools import workload_crds

pytestmark = pytest.mark.e2e

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[3] / "examples").glob("*/Pulumi.yaml"))
PROGRAMS = 60
"""For each family and minor."""

FOREIGN = "ComputeDomain"
"""The one kind of a custom resource that components make themselves."""

drawn_programs = settings(
    max_examples=PROGRAMS,
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


def made(drawn: Drawn) -> list[Any]:
    """The objects of a program; none where a component is refused."""
    program = run(drawn)
    if any(problem.severity == "error" for problem in program.problems):
        return []
    return [each.manifest for each in program.objects]


def define_kinds_of(family, server, request):
    """Tell the server of the kinds of others that components of a family make."""
    if family == "queues":
        [kueue] = [each for each in workload_crds.load() if each.path == "sigs.k8s.io/kueue"]
        define(server, kueue.definitions())
    elif family == "monitoring":
        [folder] = request.getfixturevalue("folder_of_crds").glob("prometheus-operator-*")
        define(server, definitions(folder))


@pytest.mark.parametrize("family", FAMILY)
def test_what_components_make_is_taken_by_the_server_of_their_target(family, minor, server, request):
    define_kinds_of(family, server, request)
    shown: list[int] = []

    @drawn_programs
    @given(sane(family, minor))
    def taken(drawn):
        manifests = [each for each in made(drawn) if each["kind"] != FOREIGN]
        make_namespaces(server, manifests)
        assert [refused for each in manifests if (refused := refusal(server, each))] == []
        shown.append(len(manifests))

    taken()
    assert sum(shown) > PROGRAMS // 2


@pytest.mark.parametrize("line", CRDS)
def test_a_compute_domain_is_taken_under_the_definition_of_its_driver(line, minor, server, folder_of_crds):
    define(server, definitions(folder_of_crds / CRDS[line]))
    shown = 0

    @settings(drawn_programs, max_examples=PROGRAMS // 2)
    @given(sane("nvlink", minor))
    def taken(drawn):
        nonlocal shown
        call = drawn.calls[-1]
        assume(call.arguments.get("on") in ("gb200-nvl72", "gb300-nvl72"))
        arguments = {**call.arguments, "driver_release": line}
        manifests = made(Drawn((*drawn.calls[:-1], Call(call.kind, call.name, arguments)), drawn.settings))
        domains = [each for each in manifests if each["kind"] == FOREIGN]
        make_namespaces(server, domains)
        assert [refused for each in domains if (refused := refusal(server, each))] == []
        shown += len(domains)

    taken()
    assert shown > 0


@pytest.mark.parametrize("version", ["25.8.1", "0.4.1"])
def test_definitions_that_go_before_a_chart_are_taken(version, minor, server, folder_of_crds):
    line = version.rpartition(".")[0]
    folder = str(folder_of_crds / CRDS[line])
    program = synth_function(
        lambda: dra.DraDriver("driver", version=version, crds=folder, gpu_resources_enabled_override=True),
        config={"dra-infra:kubernetes": minor},
    )
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    manifests = [each.manifest for each in program.objects]
    assert {each["kind"] for each in manifests} == {"CustomResourceDefinition", "Namespace"}
    assert [refused for each in manifests if (refused := refusal(server, each))] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_taken_by_the_server_of_every_minor(example, minor, server, request):
    program = synth(example, config={"dra-infra:kubernetes": minor})
    # No example asks for what one of the supported minors lacks.
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    manifests = [each.manifest for each in program.objects]
    if any(each["kind"] == FOREIGN for each in manifests):
        define(server, definitions(request.getfixturevalue("folder_of_crds") / CRDS["0.5"]))
    kinds = {(each["apiVersion"].partition("/")[0], each["kind"]) for each in manifests}
    of_kinds = workload_crds.all_definitions()
    define(
        server, [each for each in of_kinds if (each["spec"]["group"], each["spec"]["names"]["kind"]) in kinds]
    )
    make_namespaces(server, [each for each in manifests if each["kind"] != "Namespace"])
    assert [told for each in manifests if (told := refusal(server, each))] == []


@dataclass(frozen=True)
class Refused:
    """Something that a component refuses, with the place of the same in an object that it makes else."""

    code: str
    arguments: dict[str, Any]
    path: tuple[Any, ...]
    value: Any
    taken_by: tuple[str, ...] = ()
    """Minors whose servers take it, which is held against them too."""


REQUEST = ("spec", "devices", "requests", 0)
LEAF = (*REQUEST, "exactly")
TOLERATION = {"key": "a", "operator": "Exists"}
DROPPED = ("1.35",)
"""With its gate off, 1.35 drops tolerations before it looks at them; 1.34 keeps and judges them (kubernetes/api/dropping.py)."""
EARLIER = ("1.34", "1.35", "1.36")
"""The generated rules have a say from 1.37 on."""
REFUSED = [
    Refused("count-below-one", {"count": 0}, (*LEAF, "count"), -1),
    Refused("invalid-name", {"device_class": "A"}, (*LEAF, "deviceClassName"), "A"),
    Refused("invalid-name", {"requests": [dra.DeviceRequest("a.b", device_class="a")]}, (*REQUEST, "name"), "a.b"),
    Refused("invalid-name", {"object_name": "A"}, ("metadata", "name"), "A"),
    Refused("invalid-label", {"labels": {"a b": "x"}}, ("metadata", "labels"), {"a b": "x"}),
    Refused("invalid-label", {"labels": {"a/b/c": "x"}}, ("metadata", "labels"), {"a/b/c": "x"}),
    Refused("invalid-label", {"labels": {"a": "x y"}}, ("metadata", "labels"), {"a": "x y"}),
    Refused("invalid-label", {"annotations": {"A b": "x"}}, ("metadata", "annotations"), {"A b": "x"}),
    Refused("value-too-long", {"annotations": {"a": "é" * 131_072}}, ("metadata", "annotations"), {"a": "é" * 131_072}),
    Refused("cel-too-long", {"select": dra.cel("true" + " " * 10_240)}, (*LEAF, "selectors"), [{"cel": {"expression": "true" + " " * 10_240}}]),
    Refused("cel-syntax", {"select": dra.cel("device.")}, (*LEAF, "selectors"), [{"cel": {"expression": "device."}}]),
    Refused("cel-type", {"select": dra.cel("1")}, (*LEAF, "selectors"), [{"cel": {"expression": "1"}}]),
    Refused("too-many-items", {"requests": [dra.DeviceRequest(f"r{n}", device_class="a") for n in range(33)]}, ("spec", "devices", "requests"), [{"name": f"r{n}", "exactly": {"deviceClassName": "a"}} for n in range(33)]),
    Refused("duplicate-request", {"requests": [dra.DeviceRequest("r", device_class="a")] * 2}, ("spec", "devices", "requests"), [{"name": "r", "exactly": {"deviceClassName": "a"}}] * 2),
    Refused("unknown-request", {"constraints": [dra.MatchAttribute("a/b", requests=["x"])]}, ("spec", "devices", "constraints"), [{"requests": ["x"], "matchAttribute": "a/b"}]),
    Refused("duplicate-item", {"constraints": [dra.MatchAttribute("a/b", requests=["gpu", "gpu"])]}, ("spec", "devices", "constraints"), [{"requests": ["gpu", "gpu"], "matchAttribute": "a/b"}]),
    Refused("invalid-attribute-name", {"constraints": [dra.MatchAttribute("memory")]}, ("spec", "devices", "constraints"), [{"matchAttribute": "memory"}]),
    Refused("invalid-attribute-name", {"constraints": [dra.MatchAttribute("A.b/c")]}, ("spec", "devices", "constraints"), [{"matchAttribute": "A.b/c"}], taken_by=EARLIER),
    Refused("value-too-long", {"configs": [dra.OpaqueConfig(driver="a", parameters={"a": "x" * 10_240})]}, ("spec", "devices", "config"), [{"opaque": {"driver": "a", "parameters": {"a": "x" * 10_240}}}]),
    Refused("invalid-parameters", {"configs": [dra.OpaqueConfig(driver="a", parameters=[])]}, ("spec", "devices", "config"), [{"opaque": {"driver": "a", "parameters": []}}]),
    Refused("invalid-name", {"configs": [dra.OpaqueConfig(driver="A b", parameters={})]}, ("spec", "devices", "config"), [{"opaque": {"driver": "A b", "parameters": {}}}]),
    Refused("invalid-toleration", {"tolerations": [dra.Toleration(key="a", value="b")]}, (*LEAF, "tolerations"), [{**TOLERATION, "value": "b"}], taken_by=DROPPED),
    Refused("invalid-label", {"tolerations": [dra.Toleration(key="a b")]}, (*LEAF, "tolerations"), [{**TOLERATION, "key": "a b"}], taken_by=DROPPED),
    Refused("unsupported-value", {"tolerations": [dra.Toleration(key="a", effect="x")]}, (*LEAF, "tolerations"), [{**TOLERATION, "effect": "x"}], taken_by=DROPPED),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.code} {case.path[-1]}")
def test_what_a_component_refuses_for_the_server_is_refused_by_it(case, minor, server):
    base = Call("GpuClaim", "c", {"device_class": "a", "object_name": "c"})
    arguments = case.arguments if "requests" in case.arguments else {**base.arguments, **case.arguments}
    settings_of_stack = {"kubernetes": minor}
    is_refused = minor not in case.taken_by
    if is_refused:
        program = run(Drawn((Call("GpuClaim", "c", arguments),), settings_of_stack))
        assert case.code in {each.code for each in program.problems}
    (manifest,) = made(Drawn((base,), settings_of_stack))
    assert refusal(server, manifest) == ""
    target = manifest
    for step in case.path[:-1]:
        target = target[step]
    target[case.path[-1]] = case.value
    assert (refusal(server, manifest) != "") is is_refused
