from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.advice.objects import validate
from dra_infra.catalog.driver_gates import gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.gpus import systems, systems_with
from dra_infra.catalog.records import gpu_products
from dra_infra.errors import InvalidSpecError
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.specs.claims import compile_claim
from dra_infra.specs.compute_domains import (
    API_VERSION,
    channel_template,
    check_options,
    check_template_names,
    compile_compute_domain,
)
from dra_infra.specs.nvlink_groups import check_workload, plan_group
from dra_infra.specs.requests import DeviceRequest
from dra_infra.target import ClusterTarget

LINES = list(drivers()["gpu.nvidia.com"].by_line)
PARTITIONED = {"FabricManagerPartitioning": True}
CRDS = Path(os.environ.get("DRA_INFRA_TESTDATA") or "not-named", "crds")


def refused(gpus, line="0.5", **arguments):
    with pytest.raises(InvalidSpecError) as raised:
        plan_group(gpus, line=line, **arguments)
    return {problem.path: problem for problem in raised.value.problems}


def codes(*arguments, **named):
    return {path: problem.code for path, problem in refused(*arguments, **named).items()}


@settings(max_examples=400, deadline=None)
@given(name=st.sampled_from(sorted(systems())), gpus=st.integers(1, 100), line=st.sampled_from(LINES))
def test_a_system_promises_what_the_catalogue_says(name, gpus, line):
    system = systems()[name]
    promise = system.promise_of(gpus)
    # One pod per node, all of one size: what no size divides cannot be had, though NVLink joins it.
    sizes = range(1, (system.gpus_per_node or 0) + 1)
    divisible = any(gpus % size == 0 and gpus // size <= (system.nodes_per_rack or 0) for size in sizes)
    if promise == "none":
        assert codes(gpus, on=name, line=line) == {"gpus": "nvlink-not-promised"}
    elif promise == "compute-domain" and not divisible:
        assert codes(gpus, on=name, line=line) == {"gpus": "nvlink-group-shape"}
    else:
        plan = plan_group(gpus, on=name, line=line)
        assert (plan.promise, plan.pods * plan.gpus_per_pod) == (promise, gpus)
        assert plan.products == system.gpus
        assert plan.pods == 1 or plan.pods <= system.nodes_per_rack


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(sorted(systems())),
    gpus=st.integers(1, 80),
    size=st.none() | st.integers(1, 10),
)
def test_what_a_refusal_proposes_is_taken(name, gpus, size):
    arguments = {"on": name, "gpus_per_pod": size}
    try:
        plan = plan_group(gpus, line="0.5", **arguments)
    except InvalidSpecError as error:
        for problem in error.problems:
            for change in proposals(problem.hint):
                # What is not promised is another group, whose pods are of another size.
                kept = arguments if problem.code == "nvlink-group-shape" else {"on": name}
                assert plan_group(**{"gpus": gpus, **kept, **change}, line="0.5")
    else:
        assert plan.pods * plan.gpus_per_pod == gpus


def proposals(hint):
    for word in hint.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if equals and name in ("gpus", "gpus_per_pod"):
            yield {name: int(value)}
        elif equals and name == "on":
            yield {"on": value.strip('"')}


@settings(max_examples=200, deadline=None)
@given(product=st.sampled_from(sorted(gpu_products())), gpus=st.integers(2, 8))
def test_a_product_is_enough_only_where_nothing_takes_it_without_joining_it(product, gpus):
    owners = systems_with(product).values()
    holding = [each for each in owners if each.gpus_per_node is None or each.gpus_per_node >= gpus]
    certain = bool(holding) and all(each.promise_of(gpus) == "count" for each in holding)
    try:
        promise = plan_group(gpus, gpu=product, line="0.5").promise
    except InvalidSpecError:
        promise = "refused"
    assert (promise == "count") == certain


@pytest.mark.parametrize("name", [name for name, each in systems().items() if each.promise != "none"])
def test_the_products_of_a_board_are_joined_wherever_they_land(name):
    # What `on=` selects by product may land on any system with that product.
    for gpus in range(2, systems()[name].joined + 1):
        for product in systems()[name].gpus:
            for other in systems_with(product).values():
                assert other.promise_of(gpus) == "count" or (other.gpus_per_node or gpus) < gpus


def test_the_cards_of_a_similar_name_do_not_pass_the_selector():
    plan = plan_group(8, on="hgx-h100", line="0.5")
    assert plan.select.expression().endswith('productName == "NVIDIA H100 80GB HBM3"')
    assert plan.constraints == ()
    both = plan_group(4, on="hgx-a100", line="0.5").select.expression()
    assert "NVIDIA A100-SXM4-40GB" in both
    assert "NVIDIA A100-SXM4-80GB" in both


def test_a_product_narrows_a_system():
    assert plan_group(8, on="hgx-a100", gpu="A100-80GB", line="0.5").products == ("NVIDIA A100-SXM4-80GB",)


def test_a_product_that_is_sold_as_a_card_too_asks_for_the_system():
    problem = refused(8, gpu="H100")["gpu"]
    assert problem.code == "nvlink-not-promised"
    assert "NVIDIA H100 PCIe and h100-nvl" in problem.message
    assert problem.hint == 'write on="hgx-h100"'


def test_smaller_boards_that_cannot_hold_the_group_do_no_harm():
    assert plan_group(8, gpu="H100-SXM", line="0.5").promise == "count"


def test_a_rack_of_whole_nodes():
    plan = plan_group(72, on="gb200-nvl72", line="0.5")
    assert (plan.promise, plan.pods, plan.gpus_per_pod, plan.warnings) == ("compute-domain", 18, 4, ())


def test_a_product_is_enough_for_a_rack_because_the_clique_says_where_it_is():
    assert plan_group(72, gpu="GB200", line="0.5").promise == "compute-domain"


def test_pods_that_leave_gpus_of_their_node_are_warned_of():
    (warning,) = plan_group(36, on="gb200-nvl72", gpus_per_pod=2, line="0.5").warnings
    assert (warning.path, warning.code, warning.severity) == ("gpus_per_pod", "nvlink-group-shape", "warning")
    assert "gpus_per_pod=4" in warning.hint


@pytest.mark.parametrize("size", [1, 2])
def test_a_group_of_one_node_may_be_spread_over_a_rack(size):
    plan = plan_group(4, on="gb200-nvl72", gpus_per_pod=size, line="0.5")
    assert (plan.promise, plan.pods) == ("compute-domain", 4 // size)


@pytest.mark.parametrize(
    ("arguments", "path", "code", "hint"),
    [
        ({"gpus": 2, "on": "h100-nvl"}, "gpus", "nvlink-not-promised", 'on="hgx-h100"'),
        ({"gpus": 2, "on": "l40s"}, "gpus", "nvlink-not-promised", "dra.GpuClaimTemplate(..., count=2)"),
        (
            {"gpus": 2, "gpu": "H100 PCIe"},
            "gpus",
            "nvlink-not-promised",
            "dra.GpuClaimTemplate(..., count=2)",
        ),
        ({"gpus": 73, "on": "gb200-nvl72"}, "gpus", "nvlink-not-promised", "write gpus=72"),
        ({"gpus": 71, "on": "gb300-nvl72"}, "gpus", "nvlink-group-shape", "write gpus=68 or gpus=72"),
        ({"gpus": 16, "on": "hgx-h100"}, "gpus", "nvlink-not-promised", 'write gpus=8, or on="gb200-nvl72"'),
        ({"gpus": 8, "on": "hgx-a100-4gpu"}, "gpus", "nvlink-not-promised", 'on="hgx-a100"'),
        (
            {"gpus": 8, "on": "hgx-h100", "gpus_per_pod": 4},
            "gpus_per_pod",
            "nvlink-not-promised",
            "write gpus_per_pod=8",
        ),
        (
            {"gpus": 36, "on": "gb200-nvl72", "gpus_per_pod": 1},
            "gpus_per_pod",
            "nvlink-not-promised",
            "write gpus_per_pod=4",
        ),
        (
            {"gpus": 6, "on": "gb200-nvl72", "gpus_per_pod": 6},
            "gpus_per_pod",
            "nvlink-not-promised",
            "write gpus_per_pod=3",
        ),
        (
            {"gpus": 10, "on": "gb200-nvl72", "gpus_per_pod": 4},
            "gpus",
            "nvlink-group-shape",
            "write gpus=8 or gpus=12",
        ),
        (
            {"gpus": 3, "on": "gb200-nvl72", "gpus_per_pod": 4},
            "gpus_per_pod",
            "nvlink-group-shape",
            "leave gpus_per_pod out",
        ),
        ({"gpus": 8, "on": "hgx-h10"}, "on", "unknown-system", "did you mean 'hgx-h100'?"),
        ({"gpus": 8, "on": "???"}, "on", "unknown-system", "known are hgx-a100"),
        ({"gpus": 8, "gpu": "H1000"}, "gpu", "product-not-known", 'did you mean "H100"?'),
        (
            {"gpus": 8, "on": "hgx-h100", "gpu": "B200"},
            "gpu",
            "nvlink-not-promised",
            'leave gpu out, or write on="hgx-b200"',
        ),
        ({"gpus": 72}, "on", "missing-argument", 'write on="gb200-nvl72" or on="gb300-nvl72"'),
        ({"gpus": 720}, "on", "missing-argument", "no system that is known here joins 720 GPUs"),
        ({"gpus": 0, "on": "hgx-h100"}, "gpus", "count-below-one", "write gpus=4"),
        ({"gpus": True, "on": "hgx-h100"}, "gpus", "wrong-type", "write gpus=4"),
        ({"gpus": 8, "on": 3}, "on", "wrong-type", 'write on="hgx-h100"'),
        ({"gpus": 8, "gpu": 3}, "gpu", "wrong-type", 'write gpu="B200"'),
        ({"gpus": 8, "on": "hgx-h100", "gpus_per_pod": "4"}, "gpus_per_pod", "wrong-type", "gpus_per_pod=4"),
        ({"gpus": 8, "on": "hgx-h100", "gates": ["x"]}, "driver_gates", "wrong-type", "driver_gates={"),
    ],
)
def test_a_group_that_cannot_be_had_is_refused_with_the_nearest_that_can(arguments, path, code, hint):
    found = refused(**arguments)
    assert list(found) == [path]
    assert found[path].code == code
    assert hint in found[path].hint


def test_all_problems_come_at_once():
    assert codes(0, on="gb200-nvl7", gpu="H1000", gpus_per_pod=-1, gates={"Foo": True}) == {
        "gpus": "count-below-one",
        "gpus_per_pod": "count-below-one",
        "on": "unknown-system",
        "gpu": "product-not-known",
        "driver_gates.Foo": "unknown-driver-gate",
    }


def test_what_is_only_likely_is_said():
    (warning,) = plan_group(4, on="gb200-nvl4", line="0.5").warnings
    assert (warning.path, warning.code, warning.severity) == ("gpus", "nvlink-not-measured", "warning")
    assert plan_group(1, on="gb200-nvl4", line="0.5").warnings == ()


@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("named", [{"on": "hgx-h100"}, {"gpu": "H100"}, {"gpu": "H100-SXM"}])
def test_a_fabric_partition_is_matched_by_its_attribute(gpus, named):
    plan = plan_group(gpus, line="0.5", gates=PARTITIONED, **named)
    (constraint,) = plan.constraints
    assert (plan.promise, plan.pods, plan.gpus_per_pod) == ("partition", 1, gpus)
    assert constraint.attribute == f"gpu.nvidia.com/partition{gpus}"
    assert constraint.attribute in drivers()["gpu.nvidia.com"].by_line["0.5"].devices["gpu"].attributes
    assert plan.products == ("NVIDIA H100 80GB HBM3",)


def test_one_gpu_is_a_partition_by_itself():
    assert plan_group(1, on="hgx-h100", line="0.5", gates=PARTITIONED).constraints == ()


def test_a_gate_that_is_on_with_all_alpha_gates_counts():
    gates = {"AllAlpha": True, "DynamicMIG": False, "PassthroughSupport": False, "DeviceMetadata": False}
    assert plan_group(4, on="hgx-h100", line="0.5", gates=gates).promise == "partition"


@pytest.mark.parametrize(
    ("gpus", "on", "path", "hint"),
    [
        (3, "hgx-h100", "gpus", "write gpus=2 or gpus=4"),
        (7, "hgx-h200", "gpus", "write gpus=4 or gpus=8"),
        (4, "hgx-b300", "driver_gates", '{"FabricManagerPartitioning": False}'),
        (72, "gb200-nvl72", "driver_gates", '{"FabricManagerPartitioning": False}'),
    ],
)
def test_with_the_partition_gate_only_partitions_can_be_had(gpus, on, path, hint):
    found = refused(gpus, on=on, gates=PARTITIONED)
    assert {path: "nvlink-not-promised"} == {path: each.code for path, each in found.items()}
    assert hint in found[path].hint


@pytest.mark.parametrize(
    "line", [line for line in LINES if "FabricManagerPartitioning" not in gates_of(line)]
)
def test_a_line_without_partitions_says_which_has_them(line):
    found = refused(4, on="hgx-h100", line=line, gates=PARTITIONED)
    problem = found["driver_gates.FabricManagerPartitioning"]
    assert problem.code == "unknown-driver-gate"
    if line != "25.3":
        assert "0.5" in problem.hint


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
@pytest.mark.parametrize("gates", [None, PARTITIONED])
@pytest.mark.parametrize("on", ["hgx-h100", "hgx-a100", "gb200-nvl72", "l40s"])
def test_every_claim_is_accepted(minor, gates, on):
    for gpus in range(1, 80):
        try:
            plan = plan_group(gpus, on=on, line="0.5", gates=gates)
        except InvalidSpecError:
            continue
        asked = DeviceRequest(
            "gpu", device_class="gpu.nvidia.com", count=plan.gpus_per_pod, select=plan.select
        )
        spec = compile_claim([asked], plan.constraints).to_manifest()
        template = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "group", "namespace": "ml"},
            "spec": {"spec": spec},
        }
        assert validate([template], ClusterTarget(kubernetes=minor)) == ()


RACK = plan_group(72, on="gb200-nvl72", line="0.5")


@pytest.mark.parametrize(
    "view",
    [
        {"parallelism": 18},
        {"parallelism": 18, "completions": 18},
        {"parallelism": 18.0, "completions": 18, "completion_mode": "Indexed"},
        {"replicas": 18},
        {"replicas": 0},
        {"parallelism": 0},
    ],
)
def test_a_workload_that_runs_the_whole_group_is_taken(view):
    assert check_workload(view, RACK) == []


@pytest.mark.parametrize(
    ("view", "path", "code", "hint"),
    [
        ({"replicas": 16}, "replicas", "nvlink-group-shape", "write replicas=18, or gpus=64"),
        ({"parallelism": 1, "completions": 18}, "parallelism", "nvlink-group-shape", "parallelism=18"),
        ({"completions": 18}, "parallelism", "nvlink-group-shape", "parallelism=18"),
        ({"parallelism": 18, "completions": 36}, "completions", "nvlink-group-shape", "completions=18"),
        (
            {"parallelism": 18, "completion_mode": "Indexed"},
            "completions",
            "nvlink-group-shape",
            "completions=18",
        ),
        ({}, "", "nvlink-group-shape", "parallelism=18, completions=18 in a Job"),
        ({"replicas": "18"}, "replicas", "wrong-type", "plain value"),
    ],
)
def test_a_workload_of_another_size_is_refused(view, path, code, hint):
    (problem,) = check_workload(view, RACK)
    assert (problem.path, problem.code) == (path, code)
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("line", "gates", "written"),
    [
        ("25.3", None, 18),
        ("25.8", None, 18),
        ("25.12", None, 18),
        ("0.4", None, 0),
        ("0.5", {}, 0),
        ("0.5", {"IMEXDaemonsWithDNSNames": False, "ComputeDomainCliques": False}, 18),
    ],
)
def test_the_number_of_nodes_is_written_where_the_release_needs_it(line, gates, written):
    spec = compile_compute_domain("group-channel", nodes=18, line=line, gates=gates)
    assert spec == {"numNodes": written, "channel": {"resourceClaimTemplate": {"name": "group-channel"}}}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"allocation_mode": "All", "line": "25.8"}, {}),
        ({"allocation_mode": "All", "line": "25.3"}, {"allocation_mode": "compute-domain-option"}),
        ({"allocation_mode": "all", "line": "0.5"}, {"allocation_mode": "unsupported-value"}),
        ({"allocation_mode": 1, "line": "0.5"}, {"allocation_mode": "wrong-type"}),
        ({"imex_mode": "driverManaged", "line": "25.3"}, {}),
        ({"imex_mode": "hostmanaged", "line": "0.5"}, {"imex_mode": "unsupported-value"}),
        ({"imex_mode": "hostManaged", "line": "0.4"}, {"imex_mode": "compute-domain-option"}),
        ({"imex_mode": "hostManaged", "line": "0.5"}, {}),
        ({"imex_mode": "hostManaged", "line": "0.5", "gates": {}}, {"imex_mode": "compute-domain-option"}),
        ({"imex_mode": "hostManaged", "line": "0.5", "gates": {"HostManagedIMEXDaemon": True}}, {}),
        (
            {"imex_mode": "hostManaged", "allocation_mode": "All", "line": "0.5"},
            {"allocation_mode": "compute-domain-option"},
        ),
    ],
)
def test_options_need_a_release_and_gates_that_have_them(arguments, expected):
    given = {"allocation_mode": None, "imex_mode": None, **arguments}
    assert {each.path: each.code for each in check_options(**given)} == expected


def compute_domain(template="group-channel", **channel):
    spec = {"channel": {"resourceClaimTemplate": {"name": template}, **channel}}
    metadata = {"name": "group", "namespace": "ml"}
    return {"apiVersion": API_VERSION, "kind": "ComputeDomain", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
@pytest.mark.parametrize("mode", ["Single", "All"])
def test_the_template_of_the_controller_is_accepted(minor, mode):
    template = channel_template(compute_domain(allocationMode=mode))
    assert template["metadata"] == {"name": "group-channel", "namespace": "ml"}
    assert validate([template], ClusterTarget(kubernetes=minor)) == ()
    (config,) = template["spec"]["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"]["allocationMode"] == mode


@pytest.mark.parametrize("spec", [None, [], {}, {"channel": None}, {"channel": {"resourceClaimTemplate": 3}}])
def test_a_compute_domain_that_names_no_template_has_none(spec):
    manifest = {**compute_domain(), "spec": spec}
    assert channel_template(manifest) is None
    assert list(check_template_names([manifest, {"kind": "ResourceClaimTemplate", "metadata": None}])) == []


def test_an_own_template_of_the_name_that_the_controller_uses_is_found():
    template = channel_template(compute_domain())
    elsewhere = {**template, "metadata": {**template["metadata"], "namespace": "other"}}
    assert list(check_template_names([compute_domain("other"), template])) == []
    assert list(check_template_names([compute_domain(), elsewhere])) == []
    ((index, problem),) = check_template_names([template, compute_domain()])
    assert (index, problem.path) == (1, "spec.channel.resourceClaimTemplate.name")
    assert problem.code == "channel-template-taken"


RELEASES = {"v25.3": "25.3", "v25.8": "25.8", "v25.12": "25.12", "v0.4": "0.4", "main": "0.5", "v26.7": "0.5"}


def crds():
    return sorted(CRDS.glob("*/resource.nvidia.com_computedomains.yaml")) or [None]


@pytest.mark.parametrize("path", crds(), ids=lambda path: path.parent.name if path else "absent")
def test_compute_domains_are_what_the_crd_of_the_release_takes(path):
    if path is None:
        pytest.skip(f"{CRDS} has no CRDs: set DRA_INFRA_TESTDATA to the folder with crds/")
    (version,) = yaml.safe_load(path.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    (line,) = [line for tag, line in RELEASES.items() if f"-{tag}" in path.parent.name]
    modes = [None] if check_options("All", None, line=line) else [None, "Single", "All"]
    assert version["name"] == API_VERSION.rpartition("/")[2]
    for mode in modes:
        spec = compile_compute_domain("group-channel", nodes=18, line=line, allocation_mode=mode)
        manifest = {**compute_domain(), "spec": spec}
        assert list(violations(manifest, schema)) == []
        # The check itself can fail.
        assert list(violations({**manifest, "spec": {"numNodes": "x", "chanel": {}}}, schema))
    if line == "25.3":
        spec = compile_compute_domain("group-channel", nodes=18, line=line, allocation_mode="All")
        assert list(violations({**compute_domain(), "spec": spec}, schema)) == [
            ".spec.channel.allocationMode: unknown"
        ]


def test_every_release_that_has_a_crd_was_checked():
    if not CRDS.is_dir():
        pytest.skip(f"{CRDS} is not here: set DRA_INFRA_TESTDATA to the folder with crds/")
    found = {line for path in crds() for tag, line in RELEASES.items() if f"-{tag}" in path.parent.name}
    assert found == set(LINES)


def violations(value, schema, path=""):
    """What a server with strict field validation refuses of the parts of a schema that ComputeDomains use."""
    types = {"object": dict, "array": list, "string": str, "integer": int}
    if not isinstance(value, types[schema["type"]]):
        yield f"{path}: not of type {schema['type']}"
        return
    if value not in schema.get("enum", [value]):
        yield f"{path}: not in enum"
    if schema["type"] == "integer" and value < schema.get("minimum", value):
        yield f"{path}: too small"
    if schema["type"] != "object" or "properties" not in schema:
        return
    yield from (f"{path}.{name}: required" for name in schema.get("required", ()) if name not in value)
    for name, each in value.items():
        if name in schema["properties"]:
            yield from violations(each, schema["properties"][name], f"{path}.{name}")
        else:
            yield f"{path}.{name}: unknown"
