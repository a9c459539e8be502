"""What the plugin's configuration and the labels of nodes say of its resources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api import Node
from dra_infra.migration.bridge import bridge_classes
from dra_infra.migration.device_plugin import (
    DevicePlugin,
    Replicas,
    RequestedDevices,
    find_other_form,
    read_node_labels,
    read_plugin_config,
    read_resource,
)
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings, read_needs
from dra_infra.migration.node_labels import Requirement, read_requirements
from dra_infra.migration.plugin_configs import (
    FoundConfig,
    as_discovered,
    find_intel_shares,
    find_plugin_config,
    hold_to_nodes,
    read_nodes,
    read_plugin_configs,
)


def config(**parts: Any) -> DevicePlugin:
    return read_plugin_config({"version": "v1", **parts}, file="plugin.yaml")


def test_an_empty_configuration_gives_whole_gpus():
    assert config() == DevicePlugin()
    assert read_resource("nvidia.com/gpu", config()) == RequestedDevices("nvidia.com/gpu", "gpu")


@pytest.mark.parametrize(
    ("key", "way", "one_each"), [("timeSlicing", "time-slicing", False), ("mps", "mps", True)]
)
def test_what_is_not_said_of_large_requests_differs_by_the_way_of_sharing(key: str, way: str, one_each: bool):
    found = config(sharing={key: {"resources": [{"name": "gpu", "replicas": 4}]}})
    assert found.replicas["nvidia.com/gpu"] == Replicas(way, 4, renamed=False, one_each=one_each)  # type: ignore[arg-type]  # one of two


def test_a_configuration_with_both_ways_of_sharing_goes_by_mps_alone():
    def resources(name: str) -> dict[str, Any]:
        return {"resources": [{"name": name, "replicas": 2}]}

    both = {"timeSlicing": resources("nvidia.com/gpu"), "mps": resources("nvidia.com/mig-1g.5gb")}
    found = config(sharing=both)
    assert {name: how.way for name, how in found.replicas.items()} == {"nvidia.com/mig-1g.5gb": "mps"}
    assert config(sharing={**both, "mps": None}).replicas["nvidia.com/gpu"].way == "time-slicing"


@pytest.mark.parametrize("strategy", ["none", "single", "mixed", None])
def test_a_strategy_that_serves_no_names_of_mig_devices_leaves_them_open(strategy: str | None):
    found = config(**({"flags": {"migStrategy": strategy}} if strategy else {}))
    for name in ("nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.shared"):
        told = read_resource(name, found)
        assert (isinstance(told, str) and "strategy is not mixed" in told) == (strategy in ("none", "single"))


def test_one_replica_is_the_device_itself():
    assert (
        config(sharing={"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 1}]}}).replicas
        == {}
    )


def test_a_renamed_resource_is_a_replica_and_the_plain_one_a_device():
    shared = {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}
    found = config(sharing={"timeSlicing": shared})
    assert read_resource("nvidia.com/gpu", found) == RequestedDevices(
        "nvidia.com/gpu", "gpu", others=frozenset({2})
    )
    renamed = read_resource("nvidia.com/gpu.shared", found)
    assert isinstance(renamed, RequestedDevices)
    assert renamed.what == "replica"


def test_a_renamed_resource_that_the_configuration_does_not_share_is_not_clear():
    assert isinstance(read_resource("nvidia.com/gpu.shared", config()), str)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (None, "plugin.yaml"),
        ({"version": "v2"}, "plugin.yaml"),
        ({"version": "v1", "flags": {"migStrategy": "both"}}, "plugin.yaml.flags.migStrategy"),
        (
            {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu"}]}}},
            "plugin.yaml.sharing.mps.resources[0]",
        ),
        (
            {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": 1, "replicas": 2}]}}},
            "plugin.yaml.sharing.timeSlicing.resources[0]",
        ),
    ],
)
def test_what_is_no_configuration_is_told_where_it_is_wrong(document: Any, path: str):
    with pytest.raises(ProblemsError) as caught:
        read_plugin_config(document, file="plugin.yaml")
    assert [(each.path, each.code) for each in caught.value.problems] == [(path, "plugin-config-malformed")]


def labels(product: str, **more: str) -> dict[str, str]:
    return {"nvidia.com/gpu.product": product} | {f"nvidia.com/{key}": value for key, value in more.items()}


def test_nodes_without_labels_of_gpus_say_nothing():
    assert read_node_labels([{}, {"kubernetes.io/hostname": "a"}]) is None


def test_labels_say_the_strategy_and_the_profile():
    nodes = [labels("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb") | {"nvidia.com/mig.strategy": "single"}]
    assert read_node_labels(nodes) == DevicePlugin(strategy="single", profiles=("1g.10gb",))


def test_whole_gpus_under_the_strategy_single_are_whole():
    nodes = [labels("Tesla-T4") | {"nvidia.com/mig.strategy": "single"}]
    assert read_node_labels(nodes) == DevicePlugin()


def test_nodes_that_serve_in_different_ways_leave_it_open():
    shared = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    found = read_node_labels([labels("Tesla-T4-SHARED") | shared, labels("Tesla-T4")])
    assert found is not None
    said = read_resource("nvidia.com/gpu", found)
    assert said == "nodes serve it in different ways: a whole GPU, one of 4 replicas of a whole GPU"


def test_nodes_whose_mig_devices_the_strategy_single_refuses_say_nothing():
    single = {"nvidia.com/mig.strategy": "single"}
    of_profile = labels("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb") | single
    assert read_node_labels(
        [of_profile, labels("NVIDIA-A100-SXM4-80GB-MIG-INVALID") | single]
    ) == DevicePlugin(strategy="single", profiles=("1g.10gb",))


def test_nodes_of_different_products_that_serve_alike_are_clear():
    assert read_node_labels([labels("Tesla-T4"), labels("NVIDIA-L4")]) == DevicePlugin()


GKE = "cloud.google.com/gke-"
ON_L4 = {f"{GKE}accelerator": "nvidia-l4"}
SHARED_ON_GKE = {f"{GKE}gpu-sharing-strategy": "time-sharing", f"{GKE}max-shared-clients-per-gpu": "4"}


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        (ON_L4, DevicePlugin()),
        ({f"{GKE}accelerator": "nvidia-tesla-p100"}, DevicePlugin()),
        (
            ON_L4 | SHARED_ON_GKE,
            DevicePlugin(replicas={"nvidia.com/gpu": Replicas("time-slicing", 4, False, False)}),
        ),
        (
            ON_L4 | SHARED_ON_GKE | {f"{GKE}gpu-sharing-strategy": "mps"},
            DevicePlugin(replicas={"nvidia.com/gpu": Replicas("mps", 4, False, True)}),
        ),
        (
            {f"{GKE}accelerator": "nvidia-tesla-a100", f"{GKE}gpu-partition-size": "1g.5gb"},
            DevicePlugin(strategy="single", profiles=("1g.5gb",)),
        ),
        (SHARED_ON_GKE, None),
        (ON_L4 | {f"{GKE}gpu-sharing-strategy": "time-sharing"}, None),
    ],
)
def test_labels_of_gke_say_it_where_nobody_discovers_features(node: dict[str, str], wanted: DevicePlugin):
    assert read_node_labels([as_discovered(node)]) == wanted
    assert as_discovered(labels("Tesla-T4") | node) == labels("Tesla-T4") | node


@pytest.mark.parametrize(
    ("label", "value", "said"),
    [
        ("gpu-sharing-strategy", "time-sharing", f"{GKE}gpu-sharing-strategy"),
        ("max-shared-clients-per-gpu", "abc", f"{GKE}max-shared-clients-per-gpu"),
        ("gpu-partition-size", "zzz", f"{GKE}gpu-partition-size"),
    ],
)
def test_a_node_of_gke_that_leaves_it_open_is_told_beside_a_clear_one(label: str, value: str, said: str):
    odd = ON_L4 | {f"{GKE}{label}": value}
    for nodes in ([odd], [ON_L4, odd], [odd, labels("Tesla-T4")]):
        told = read_resource("nvidia.com/gpu", read_nodes(nodes))
        assert isinstance(told, str)
        assert said in told
    assert read_nodes([ON_L4, labels("Tesla-T4") | odd]) == DevicePlugin()
    assert read_nodes([{}]) is None


def test_labels_say_the_replicas():
    shared = {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "4"}
    found = read_node_labels([labels("Tesla-T4-SHARED") | shared])
    assert found is not None
    assert found.replicas == {"nvidia.com/gpu": Replicas("time-slicing", 4, renamed=False, one_each=False)}


def of_part(profile: str, way: str = "time-slicing", *, shared: bool = True) -> dict[str, str]:
    """Labels of a node with MIG devices under the strategy mixed, four replicas of each but for the way `none`."""
    part = f"mig-{profile}"
    product = f"NVIDIA-A100-SXM4-40GB-MIG-{profile}{'-SHARED' if shared else ''}"
    more = {f"{part}.product": product, f"{part}.replicas": "1" if way == "none" else "4"}
    more |= {f"{part}.sharing-strategy": way} if way else {}
    return labels("NVIDIA-A100-SXM4-40GB", **{"mig.strategy": "mixed"}, **more)


@pytest.mark.parametrize(
    ("node", "replicas"),
    [
        (of_part("1g.5gb"), Replicas("time-slicing", 4, renamed=False, one_each=False)),
        (of_part("1g.5gb", shared=False), Replicas("time-slicing", 4, renamed=True, one_each=False)),
        # The label for the way came with MPS.
        (of_part("1g.5gb", way=""), Replicas("time-slicing", 4, renamed=False, one_each=False)),
        (of_part("1g.5gb", way="none", shared=False), None),
    ],
)
def test_labels_say_the_replicas_of_mig_devices(node: dict[str, str], replicas: Replicas | None):
    found = read_node_labels([node, labels("Tesla-T4")])
    assert found is not None
    assert found.replicas == ({} if replicas is None else {"nvidia.com/mig-1g.5gb": replicas})
    assert read_resource("nvidia.com/gpu", found) == RequestedDevices("nvidia.com/gpu", "gpu")


def test_two_replicas_of_a_mig_device_are_no_two_devices():
    requested = {"resources": {"limits": {"nvidia.com/mig-1g.5gb": 2}}}
    settings = Settings(plugin=read_node_labels([of_part("1g.5gb")]))
    [remark] = read_needs("containers[0]", requested, settings).remarks
    assert (remark.outcome, remark.code) == ("decide", "several-replicas")


def test_mig_devices_that_nodes_share_in_different_ways_leave_it_open():
    found = read_node_labels([of_part("1g.5gb"), of_part("2g.10gb"), of_part("1g.5gb", "none", shared=False)])
    assert found is not None
    assert read_resource("nvidia.com/mig-1g.5gb", found) == "nodes share it in different ways"
    assert isinstance(read_resource("nvidia.com/mig-2g.10gb", found), RequestedDevices)


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("1g.24gb", "1g.24gb"),
        ("1g.24gb.me", "1g.24gb+me"),
        ("1g.24gb.gfx", "1g.24gb+gfx"),
        ("1g.24gb.me.all", "1g.24gb+me.all"),
        ("1g.24gb-me", "1g.24gb-me"),
    ],
)
def test_names_of_profiles_are_read_as_their_devices_have_them(name: str, profile: str):
    requested = read_resource(f"nvidia.com/mig-{name}", DevicePlugin(strategy="mixed"))
    assert isinstance(requested, RequestedDevices)
    assert requested.profile == profile
    assert read_node_labels([labels(f"NVIDIA-RTX-PRO-6000-MIG-{name}")]) == DevicePlugin(
        strategy="single", profiles=(profile,)
    )
    read = read_requirements([Requirement("nvidia.com/gpu.product", "In", (f"X-MIG-{name}-SHARED",))])
    assert read.profiles == (profile,)


@pytest.mark.parametrize(
    ("resource", "word"),
    [
        ("amd.com/cpx_nps4", "partition mode"),
        ("amd.com/spx_nps1", "partition mode"),
        ("gpu.intel.com/monitoring", "all GPUs of a node"),
        ("gpu.intel.com/i915_monitoring", "all GPUs of a node"),
        ("gpu.intel.com/xe_monitoring", "all GPUs of a node"),
        ("gpu.intel.com/memory.max", "a part of a GPU"),
        ("gpu.intel.com/millicores", "a part of a GPU"),
        ("gpu.intel.com/tiles", "all tiles"),
        ("nvidia.com/pgpu", "passed through"),
        ("nvidia.com/GP102GL_Tesla_P40", "passed through"),
        ("nvidia.com/GRID_T4-1Q", "a vGPU"),
        ("nvidia.com/gpumem-percentage", "HAMi"),
        ("volcano.sh/vgpu-memory", "HAMi"),
        ("google.com/tpu", "all chips of a node"),
    ],
)
def test_names_of_other_forms_of_devices_are_told_as_what_they_are(resource: str, word: str):
    form = find_other_form(resource)
    assert form is not None
    assert word in form.what


@pytest.mark.parametrize(
    "resource",
    [
        "amd.com/gpu",
        "gpu.intel.com/i915",
        "nvidia.com/gpu",
        "nvidia.com/mig-1g.10gb",
        "aws.amazon.com/neuron",
    ],
)
def test_other_names_are_no_other_form(resource: str):
    assert find_other_form(resource) is None


WHOLE = "version: v1"
SINGLE = "version: v1\nflags: {migStrategy: single}"
MIXED = "version: v1\nflags: {migStrategy: mixed}"
SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
IN_FOUR = DevicePlugin(
    replicas={"nvidia.com/gpu": Replicas("time-slicing", 4, renamed=False, one_each=False)}
)
ONE_G = labels("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", **{"mig.strategy": "single"})
TWO_G = labels("NVIDIA-A100-SXM4-80GB-MIG-2g.20gb", **{"mig.strategy": "single"})


def served(document: dict[str, Any] | list[Any], *nodes: dict[str, str]) -> DevicePlugin:
    documents = document if isinstance(document, list) else [document]
    return read_plugin_configs(*documents, file="plugin.yaml").serve(nodes)


def config_map(**texts: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plugin"}, "data": texts}


def chosen(name: str) -> dict[str, str]:
    return labels("Tesla-T4", **{"device-plugin.config": name})


def refusal(document: dict[str, Any] | list[Any], *nodes: dict[str, str]) -> tuple[str, str, str]:
    with pytest.raises(ProblemsError) as caught:
        served(document, *nodes)
    [problem] = caught.value.problems
    return problem.path, problem.code, problem.message


def test_labels_say_the_profile_of_a_configuration_with_the_strategy_single():
    single = {"version": "v1", "flags": {"migStrategy": "single"}}
    assert served(single) == DevicePlugin(strategy="single")
    assert served(single, ONE_G, {}) == DevicePlugin(strategy="single", profiles=("1g.10gb",))
    assert served(single, labels("Tesla-T4")) == DevicePlugin()


OF_OPERATOR = {"devicePlugin": {"config": {"default": "any", "data": {"any": SHARED}}}}
OF_CHART = {"config": {"map": {"any": SHARED}}}


@pytest.mark.parametrize(
    "values",
    [
        {"mig": {"strategy": "single"}, **OF_OPERATOR},
        # The chart of the GPU Operator has it where its values do not.
        OF_OPERATOR,
        {"mig": {}, **OF_OPERATOR},
        {"migStrategy": "single", **OF_CHART},
        {
            "migStrategy": "single",
            "config": {"map": {"any": f"{SHARED}\nflags: {{migStrategy: none}}"}},
        },
    ],
)
def test_the_strategy_of_a_chart_counts_before_that_of_its_configurations(values: dict[str, Any]):
    told = read_resource("nvidia.com/gpu", served(values))
    assert told == "the plugin's MIG strategy is single, and nothing says which profile it is"
    requested = read_resource("nvidia.com/gpu", served(values, ONE_G))
    assert isinstance(requested, RequestedDevices)
    assert (requested.profile, requested.what) == ("1g.10gb", "replica")
    assert served(values, labels("Tesla-T4")) == IN_FOUR


@pytest.mark.parametrize(
    ("values", "strategy"),
    [
        ({"mig": {"strategy": "mixed"}, **OF_OPERATOR}, "mixed"),
        ({"mig": {"strategy": "none"}, **OF_OPERATOR}, "none"),
        ({"mig": {"strategy": ""}, **OF_OPERATOR}, "none"),
        ({"migStrategy": "mixed", **OF_CHART}, "mixed"),
        ({"migStrategy": None, **OF_CHART}, "none"),
        (OF_CHART, "none"),
    ],
)
def test_a_chart_that_gives_no_strategy_leaves_that_of_the_file(values: dict[str, Any], strategy: str):
    assert served(values).strategy == strategy


def policy(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize(
    ("document", "strategy"),
    [
        ({"mig": {"strategy": "mixed"}, "devicePlugin": {"enabled": True}}, "mixed"),
        ({"driver": {"enabled": False}}, "single"),
        ({"devicePlugin": {"config": {"name": ""}}}, "single"),
        (policy(mig={"strategy": "mixed"}), "mixed"),
        (policy(devicePlugin={"enabled": True}), "none"),
        ({"migStrategy": "single", "failOnInitError": True}, "single"),
        ({"migStrategy": "none", "devicePlugin": {"enabled": True}}, "none"),
    ],
)
def test_a_strategy_is_read_where_there_is_no_configuration(document: dict[str, Any], strategy: str):
    assert served(document) == DevicePlugin(strategy=strategy)  # type: ignore[arg-type]  # one of three
    # Without the container that reads the label it chooses nothing.
    assert served(document, chosen("a")).unclear == ""


def release(chart: str, values: Any) -> dict[str, Any]:
    spec = {"chart": {"spec": {"chart": chart}}, "values": values}
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "spec": spec}


def application(**source: Any) -> dict[str, Any]:
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": {"source": source}}


def helm_chart(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "helm.cattle.io/v1", "kind": "HelmChart", "spec": spec}


PLUGIN, OPERATOR = "nvidia-device-plugin", "gpu-operator"


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        (release(PLUGIN, OF_CHART), IN_FOUR),
        (release("of-our-own", OF_CHART), IN_FOUR),
        (release(PLUGIN, {"runtimeClassName": "nvidia"}), DevicePlugin()),
        (release(PLUGIN, None), DevicePlugin()),
        (release(OPERATOR, {}), DevicePlugin(strategy="single")),
        ({**release("", {}), "spec": {"chartRef": {"name": PLUGIN}, "values": OF_CHART}}, IN_FOUR),
        (application(chart=PLUGIN, helm={"valuesObject": OF_CHART}), IN_FOUR),
        (application(chart=PLUGIN, helm={"values": yaml.safe_dump(OF_CHART)}), IN_FOUR),
        (helm_chart(chart=PLUGIN, valuesContent=yaml.safe_dump(OF_CHART)), IN_FOUR),
        (
            helm_chart(chart=f"nvidia/{OPERATOR}", values={"mig": {"strategy": "mixed"}}),
            DevicePlugin(strategy="mixed"),
        ),
        (
            {
                **application(),
                "spec": {"sources": [{"ref": "v"}, {"chart": PLUGIN, "helm": {"valuesObject": OF_CHART}}]},
            },
            IN_FOUR,
        ),
    ],
)
def test_the_values_in_a_release_of_a_chart_are_read_as_a_file_of_them(
    document: dict[str, Any], wanted: DevicePlugin
):
    assert served(document) == wanted


def test_other_objects_in_the_file_of_a_configuration_are_passed_over():
    repository = {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "HelmRepository", "spec": {"url": "x"}}
    assert served([repository, DEPLOYMENT, release(PLUGIN, OF_CHART)]) == IN_FOUR
    assert served([DEPLOYMENT, config_map(any=SHARED), policy(**WHOLE_POLICY)]) == IN_FOUR
    assert served([DEPLOYMENT, config_map(any=SHARED)]) == IN_FOUR
    assert (
        served([{"migStrategy": "mixed", "config": {"name": "plugin"}}, config_map(any=SHARED)]).strategy
        == "mixed"
    )


def test_a_release_of_another_chart_that_configures_nothing_is_told():
    told = "is no configuration of NVIDIA's device plugin: version is not v1"
    assert refusal(release("web", {"replicas": 2})) == ("plugin.yaml", "plugin-config-malformed", told)


NAMING = policy(mig={"strategy": "single"}, devicePlugin={"config": {"name": "plugin", "default": "any"}})


def test_a_config_map_beside_what_names_it_has_the_configurations():
    other = {**config_map(any=WHOLE), "metadata": {"name": "other"}}
    for documents in ([NAMING, other, config_map(any=SHARED)], [config_map(any=SHARED), other, NAMING]):
        requested = read_resource("nvidia.com/gpu", served(documents, ONE_G))
        assert isinstance(requested, RequestedDevices)
        assert (requested.profile, requested.what) == ("1g.10gb", "replica")


@pytest.mark.parametrize(
    "documents",
    [
        [NAMING],
        [NAMING, {**config_map(any=WHOLE), "metadata": {"name": "other"}}],
        [{"config": {"name": "plugin"}}],
        [{"mig": {"strategy": "none"}, "devicePlugin": {"config": {"name": "plugin"}}}],
    ],
)
def test_a_config_map_that_is_not_there_is_told(documents: list[Any]):
    told = "names the ConfigMap 'plugin', which is not in it"
    assert refusal(documents) == ("plugin.yaml", "plugin-config-malformed", told)


@pytest.mark.parametrize(
    ("values", "path"),
    [
        (policy(mig={"strategy": "both"}), "plugin.yaml.spec.mig.strategy"),
        ({"mig": {"strategy": "both"}, **OF_OPERATOR}, "plugin.yaml.mig.strategy"),
        ({"migStrategy": ["single"], **OF_CHART}, "plugin.yaml.migStrategy"),
    ],
)
def test_a_strategy_of_a_chart_that_the_plugin_does_not_know_is_told(values: dict[str, Any], path: str):
    assert refusal(values)[:2] == (path, "plugin-config-malformed")


def test_labels_say_the_strategy_that_no_file_says():
    assert served({"version": "v1"}, ONE_G) == DevicePlugin(strategy="single", profiles=("1g.10gb",))
    assert served({"version": "v1"}, of_part("1g.5gb", "none", shared=False)).strategy == "mixed"


A_FOURTH = "one of 4 replicas of a whole GPU by time-slicing"
SAYS = {"gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing"}
NOT_SHARED = {"gpu.replicas": "1", "gpu.sharing-strategy": "none"}


@pytest.mark.parametrize(
    ("text", "node", "told"),
    [
        (
            SINGLE,
            labels("A-MIG-1g.10gb-SHARED", **SAYS),
            "one of 4 replicas of a MIG device 1g.10gb by time-slicing, and its configuration a MIG device 1g.10gb",
        ),
        (
            f"{WHOLE}\nflags: {{migStrategy: none}}",
            labels("A-MIG-1g.10gb"),
            "a MIG device 1g.10gb, and its configuration a whole GPU",
        ),
        (
            SHARED,
            labels("Tesla-T4", **NOT_SHARED),
            f"a whole GPU, and its configuration {A_FOURTH}",
        ),
        (
            SHARED.replace("timeSlicing: {", "timeSlicing: {renameByDefault: true, "),
            labels("Tesla-T4-SHARED", **SAYS),
            f"{A_FOURTH}, and its configuration {A_FOURTH}, as nvidia.com/gpu.shared",
        ),
        (
            SHARED.replace("timeSlicing", "mps"),
            labels("Tesla-T4-SHARED", **SAYS),
            f"{A_FOURTH}, and its configuration one of 4 replicas of a whole GPU by mps",
        ),
    ],
)
def test_labels_that_say_something_else_than_the_configuration_leave_it_open(
    text: str, node: dict[str, str], told: str
):
    for nodes in ((node,), (node, labels("NVIDIA-L4"))):
        said = read_resource("nvidia.com/gpu", served(config_map(a=text), *nodes))
        assert said == f"labels of a node say {told}"


def test_labels_that_say_the_same_as_the_configuration_are_clear():
    assert served(config_map(a=SHARED), labels("Tesla-T4-SHARED", **SAYS)) == IN_FOUR
    # A GPU with MIG devices has these labels beside others that are shared.
    is_part = labels("NVIDIA-A100", **{"gpu.replicas": "0", "gpu.sharing-strategy": "none"})
    assert served(config_map(a=SHARED), is_part) == IN_FOUR


ONE_PART = DevicePlugin(strategy="single", profiles=("1g.10gb",))


@pytest.mark.parametrize(
    ("plugin", "nodes", "is_clear"),
    [
        (DevicePlugin(), [], True),
        (DevicePlugin(), [{}, labels("Tesla-T4")], True),
        (DevicePlugin(), [ONE_G, labels("Tesla-T4")], True),
        (DevicePlugin(), [ONE_G], False),
        (DevicePlugin(), [labels("Tesla-T4-SHARED", **SAYS)], False),
        (ONE_PART, [ONE_G, TWO_G], True),
        (ONE_PART, [TWO_G, labels("Tesla-T4")], False),
    ],
)
def test_what_is_said_of_the_plugin_has_to_be_so_on_a_node(
    plugin: DevicePlugin, nodes: list[dict[str, str]], is_clear: bool
):
    assert (hold_to_nodes(plugin, nodes) == plugin) == is_clear
    assert (
        isinstance(read_resource("nvidia.com/gpu", hold_to_nodes(plugin, nodes)), RequestedDevices)
        == is_clear
    )


OF_POOL = {
    "nodeSelector": {"pool": "b"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    },
}


@pytest.mark.parametrize("field", [None, *OF_POOL])
@pytest.mark.parametrize(
    ("resource", "nodes"),
    [
        ("nvidia.com/gpu", [labels("Tesla-T4-SHARED", **SAYS), labels("Tesla-T4")]),
        ("nvidia.com/mig-1g.5gb", [of_part("1g.5gb"), of_part("1g.5gb", "none", shared=False)]),
    ],
)
def test_a_resource_that_nodes_serve_in_different_ways_is_clear_on_those_that_a_pod_selects(
    resource: str, nodes: list[dict[str, str]], field: str | None
):
    there = tuple(
        Node(name=pool, labels={**each, "pool": pool}) for pool, each in zip("ab", nodes, strict=True)
    )
    plugin = read_nodes([each.labels for each in there])
    assert plugin is not None
    spec = {"containers": [{"name": "main", "resources": {"limits": {resource: 1}}}]}
    spec |= {field: OF_POOL[field]} if field else {}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    (done,) = migrate_objects([pod], Settings(plugin=replace(plugin, nodes=there)))
    limit = f"spec.containers[0].resources.limits[{resource}]"
    told = [each.code for each in done.remarks if each.path == limit]
    assert told == ["resource-to-claim" if field else "resource-not-clear"]


def found(*documents: dict[str, Any], nodes: tuple[dict[str, str], ...] = ()) -> FoundConfig:
    return find_plugin_config([(f"{index}.yaml", each) for index, each in enumerate(documents)], nodes)


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
WHOLE_POLICY = {"mig": {"strategy": "none"}, "devicePlugin": {"config": {"name": "plugin", "default": "any"}}}


@pytest.mark.parametrize(
    "documents",
    [
        (DEPLOYMENT, release(PLUGIN, OF_CHART)),
        (DEPLOYMENT, application(chart=PLUGIN, helm={"valuesObject": OF_CHART})),
        (config_map(any=SHARED), policy(**WHOLE_POLICY)),
        (DEPLOYMENT, helm_chart(chart=PLUGIN, valuesContent=yaml.safe_dump(OF_CHART))),
    ],
)
def test_a_configuration_that_the_input_applies_counts(documents: tuple[dict[str, Any], ...]):
    assert found(*documents) == FoundConfig("1.yaml", IN_FOUR, is_applied=True)


@pytest.mark.parametrize(
    "documents",
    [
        (config_map(any=SHARED),),
        ({"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "gpu", "replicas": 4}]}}},),
        (OF_CHART,),
        # Values from elsewhere are not seen.
        (application(chart=PLUGIN, helm={"valuesObject": OF_CHART, "valueFiles": ["more.yaml"]}),),
        ({**release(PLUGIN, {}), "spec": {**release(PLUGIN, OF_CHART)["spec"], "valuesFrom": [{}]}},),
        (helm_chart(chart=PLUGIN, valuesContent=yaml.safe_dump(OF_CHART), set={"failOnInitError": "false"}),),
        (helm_chart(chart=PLUGIN, values=OF_CHART, valuesContent="migStrategy: none"),),
        # That of Flux.
        (helm_chart(chart=PLUGIN, valuesContent=yaml.safe_dump(OF_CHART), sourceRef={"name": "nvidia"}),),
        (
            release(
                OPERATOR,
                {
                    "mig": {"strategy": "none"},
                    "devicePlugin": {**OF_OPERATOR["devicePlugin"], "enabled": False},
                },
            ),
        ),
        (release(PLUGIN, OF_CHART), release(PLUGIN, OF_CHART)),
    ],
)
def test_a_configuration_that_nobody_is_known_to_apply_is_named(documents: tuple[dict[str, Any], ...]):
    assert found(*documents) == FoundConfig("0.yaml", IN_FOUR, is_applied=False)


@pytest.mark.parametrize(
    "documents",
    [
        (release(PLUGIN, OF_CHART), release(PLUGIN, {})),
        (policy(**WHOLE_POLICY),),
        (policy(**WHOLE_POLICY), config_map(any=SHARED), config_map(any=MIXED)),
        (config_map(a=SHARED, b=WHOLE),),
        (release(PLUGIN, {"config": {"map": {"a": "version: v1\nflags: {migStrategy: both}"}}}),),
    ],
)
def test_configurations_of_which_none_is_sure_to_count_are_named_without_an_answer(
    documents: tuple[dict[str, Any], ...],
):
    assert found(*documents)[1:] == (None, False)
    assert found(*documents).file


def test_a_release_of_another_chart_applies_no_configuration_of_the_plugin():
    assert found(DEPLOYMENT, release("nextcloud", OF_CHART)) == FoundConfig("1.yaml", IN_FOUR)
    comment = {"config": {"map": {"smb.conf": "# sharing: by group\nversion: v1"}}}
    assert found(DEPLOYMENT, release("samba", comment)) == FoundConfig()


def test_a_configuration_beside_a_release_that_names_another_is_not_applied():
    own = yaml.safe_load(SHARED)
    of_operator = release(OPERATOR, {"devicePlugin": {"config": {"name": "plugin", "default": "any"}}})
    assert found(of_operator, own) == FoundConfig("1.yaml", IN_FOUR, is_applied=False)


def test_a_strategy_without_a_profile_is_no_answer_and_labels_of_nodes_give_one():
    of_operator = release(OPERATOR, {})
    assert found(of_operator) == FoundConfig("0.yaml", DevicePlugin(strategy="single"), is_applied=False)
    assert found(of_operator, nodes=(ONE_G,)) == FoundConfig("0.yaml", ONE_PART, is_applied=True)


@pytest.mark.parametrize(
    "other",
    [
        DEPLOYMENT,
        {"kind": "ClusterPolicy", "apiVersion": "kyverno.io/v1", "spec": {}},
        config_map(**{"nginx.conf": "version: v1"}),
        {"replicas": 2, "driver": {"enabled": True}},
        {"version": "v1"},
        release("web", {"driver": {}}),
        application(chart="web"),
        application(chart=PLUGIN, helm={"values": "a: [}"}),
    ],
)
def test_other_objects_configure_no_plugin(other: dict[str, Any]):
    assert found(other) == FoundConfig()


def test_what_is_said_has_to_be_what_a_configuration_of_the_input_says():
    shared, none = (
        FoundConfig("a.yaml", IN_FOUR),
        FoundConfig("a.yaml", config(flags={"migStrategy": "none"})),
    )
    told = "it is said to be a whole GPU, and a.yaml says one of 4 replicas of a whole GPU"
    assert shared.hold(DevicePlugin()).unclear == told
    assert none.hold(ONE_PART).unclear == "it is said to be a MIG device 1g.10gb, and a.yaml says a whole GPU"
    for each in (shared, FoundConfig(), FoundConfig("a.yaml", DevicePlugin(strategy="single"))):
        assert each.hold(IN_FOUR) == IN_FOUR
    assert FoundConfig("a.yaml", DevicePlugin(strategy="single")).hold(DevicePlugin()) == DevicePlugin()
    assert FoundConfig().hold(ONE_PART) == ONE_PART
    # A plugin without a strategy in its file may have one by its environment, and one that renames serves whole GPUs too.
    assert FoundConfig("a.yaml", config()).hold(ONE_PART) == ONE_PART
    gpu = {"name": "nvidia.com/gpu", "replicas": 4}
    renamed = config(sharing={"timeSlicing": {"renameByDefault": True, "resources": [gpu]}})
    assert FoundConfig("a.yaml", renamed).hold(DevicePlugin()) == DevicePlugin()


def test_profiles_that_differ_from_node_to_node_are_not_clear():
    found = served({"version": "v1", "flags": {"migStrategy": "single"}}, ONE_G, TWO_G)
    told = "a MIG device 1g.10gb, a MIG device 2g.20gb"
    assert read_resource("nvidia.com/gpu", found) == f"nodes serve it in different ways: {told}"


@pytest.mark.parametrize(
    "document",
    [
        config_map(whole=WHOLE, shared=SHARED),
        {"config": {"map": {"whole": WHOLE, "shared": SHARED}}},
        {"devicePlugin": {"config": {"data": {"whole": WHOLE, "shared": SHARED}}}},
    ],
)
def test_the_label_of_nodes_chooses_among_configurations(document: dict[str, Any]):
    assert served(document, chosen("shared"), chosen("shared"), {"nodes": "without GPUs"}) == IN_FOUR
    assert served(document, chosen("whole")) == DevicePlugin()


def test_nodes_without_the_label_have_the_default():
    texts = {"default": WHOLE, "shared": SHARED}
    named = {"config": {"map": texts, "default": "shared"}}
    assert served(named) == served(named, labels("Tesla-T4")) == IN_FOUR
    assert served({"config": {"map": texts}}, labels("Tesla-T4")) == DevicePlugin()
    assert served(config_map(**texts)) == DevicePlugin()
    assert served(named, chosen("default")) == DevicePlugin()


def test_the_operator_gives_nodes_without_the_label_an_empty_configuration():
    values = {
        "mig": {"strategy": "none"},
        "devicePlugin": {"config": {"data": {"default": SHARED, "a": SHARED}}},
    }
    assert served(values, labels("Tesla-T4")) == DevicePlugin()
    assert served(values, chosen("a")) == IN_FOUR
    told = "nodes serve it in different ways: a whole GPU, one of 4 replicas of a whole GPU"
    assert served(values, chosen("a"), labels("Tesla-T4")).unclear == told
    assert refusal(values)[2] == "holds 2 configurations, and nothing says which a node has"


@pytest.mark.parametrize(
    ("fallbacks", "texts", "wanted"),
    [
        (["named", "single"], {"a": SHARED}, IN_FOUR),
        (["named", "single"], {"a": WHOLE, "default": SHARED}, IN_FOUR),
        (["empty", "single"], {"a": SHARED}, DevicePlugin()),
        (["single", "empty"], {"a": SHARED, "b": SHARED}, DevicePlugin()),
    ],
)
def test_the_chart_of_the_plugin_falls_back_in_the_order_of_its_values(
    fallbacks: list[str], texts: dict[str, str], wanted: DevicePlugin
):
    values = {"config": {"map": texts, "fallbackStrategies": fallbacks}}
    assert served(values, labels("Tesla-T4")) == wanted


def got(plugin: DevicePlugin, **selects: Any) -> str:
    """What becomes of the GPU of a pod with these node selectors."""
    asks = [{"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": asks, **selects},
    }
    [migrated] = migrate_objects([pod], Settings(plugin=plugin))
    [bridged] = bridge_classes([pod], Settings(plugin=plugin))
    codes = {each.code for each in migrated.remarks} & GETS.keys()
    gets = GETS[codes.pop()]
    assert (bridged.remarks[0].code == "resource-bridged") == (gets == "whole" and plugin == DevicePlugin())
    return gets


GETS = {"resource-to-claim": "whole", "replica-to-share": "shared", "resource-not-clear": "not clear"}


@pytest.mark.parametrize("default", ["whole", "shared"])
@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["whole"], "whole"),
        (["shared"], "shared"),
        (["whole", "shared"], "not clear"),
        (["any"], "not clear"),
        (["${CONFIG}"], "not clear"),
    ],
)
def test_a_pod_has_the_configuration_that_its_node_selector_names(
    default: str, names: list[str], wanted: str
):
    plugin = served({"config": {"map": {"whole": WHOLE, "shared": SHARED}, "default": default}})
    expression = {"key": "nvidia.com/device-plugin.config", "operator": "In", "values": names}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert got(plugin, affinity=affinity) == wanted
    if len(names) == 1:
        assert got(plugin, nodeSelector={"nvidia.com/device-plugin.config": names[0]}) == wanted
    assert got(plugin) == default


def test_a_pod_has_the_configuration_of_the_nodes_that_it_selects():
    configs = {"config": {"map": {"whole": WHOLE, "shared": SHARED, "new": SHARED}, "default": "whole"}}
    nodes = [Node(name=name, labels={"pool": name, **chosen(name)}) for name in ("whole", "shared")]
    plugin = replace(served(configs, *(each.labels for each in nodes)), nodes=tuple(nodes))
    for name in ("whole", "shared"):
        assert got(plugin, nodeSelector={"pool": name}) == name
        assert got(plugin, nodeSelector={"nvidia.com/device-plugin.config": name}) == name
    assert got(plugin, nodeSelector={"nvidia.com/device-plugin.config": "new"}) == "shared"
    assert got(plugin, nodeSelector={"pool": "new"}) == got(plugin) == "not clear"


NO_MIG, IN_PARTS = "version: v1\nflags: {migStrategy: none}", "version: v1\nflags: {migStrategy: mixed}"


def test_whole_gpus_are_bridged_where_configurations_differ_in_mig_devices_alone():
    plugin = served(config_map(none=NO_MIG, parts=IN_PARTS), chosen("none"), chosen("parts"))
    limits = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    spec = {
        "containers": [{"name": "main", **limits}],
        "nodeSelector": {"nvidia.com/device-plugin.config": "parts"},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    [bridged] = bridge_classes([pod], Settings(plugin=plugin))
    assert [each.code for each in bridged.remarks] == ["resource-bridged"]


def test_mig_devices_are_bridged_on_nodes_whose_configuration_serves_them():
    plugin = served({"config": {"map": {"none": NO_MIG, "parts": IN_PARTS}, "default": "none"}})
    asks = [{"name": "main", "resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}}]
    for name, code in (("parts", "resource-bridged"), ("none", "resource-not-clear")):
        spec = {"containers": asks, "nodeSelector": {"nvidia.com/device-plugin.config": name}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
        [bridged] = bridge_classes([pod], Settings(plugin=plugin))
        assert [each.code for each in bridged.remarks] == [code]


def test_no_resource_is_clear_on_nodes_whose_configuration_is_lacking():
    plugin = served({"config": {"map": {"none": NO_MIG, "parts": IN_PARTS}, "default": "none"}})
    assert plugin.by_labels is not None
    lacking, there = (plugin.by_labels([chosen(each)]) for each in ("new", "parts"))
    for name in ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb"):
        assert str(read_resource(name, lacking)).endswith("none is called 'new'")
        assert isinstance(read_resource(name, there), RequestedDevices)


def test_a_pod_has_the_profile_of_the_nodes_that_it_selects():
    nodes = [Node(name=name, labels={"pool": name, **own}) for name, own in (("one", ONE_G), ("two", TWO_G))]
    single = {"version": "v1", "flags": {"migStrategy": "single"}}
    plugin = replace(served(single, *(each.labels for each in nodes)), nodes=tuple(nodes))
    assert got(plugin, nodeSelector={"pool": "one"}) == "whole"
    assert got(plugin) == "not clear"


def test_a_configuration_of_the_input_is_read_for_each_pod():
    values = {"config": {"map": {"whole": WHOLE, "shared": SHARED}, "default": "whole"}}
    plugin = found(release(PLUGIN, {**values, "migStrategy": "none"})).plugin
    assert plugin is not None
    assert got(plugin, nodeSelector={"nvidia.com/device-plugin.config": "shared"}) == "shared"


def test_configurations_that_say_the_same_need_no_choice():
    assert served(config_map(a=SHARED, b=SHARED)) == IN_FOUR


def test_nodes_with_different_configurations_leave_it_open():
    found = served(config_map(a=WHOLE, b=SHARED), chosen("a"), chosen("b"))
    told = "a whole GPU, one of 4 replicas of a whole GPU"
    assert read_resource("nvidia.com/gpu", found) == f"nodes serve it in different ways: {told}"


def test_nodes_that_serve_profiles_beside_others_are_clear():
    profile = "version: v1\nflags: {migStrategy: mixed}\nsharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.10gb, replicas: 2}]}}"
    found = served(config_map(a=WHOLE, b=profile), chosen("a"), chosen("b"))
    assert found.strategy == "mixed"
    assert read_resource("nvidia.com/gpu", found) == RequestedDevices("nvidia.com/gpu", "gpu")
    of_profile = read_resource("nvidia.com/mig-1g.10gb", found)
    assert isinstance(of_profile, RequestedDevices)
    assert of_profile.what == "replica"
    apart = served(config_map(a=MIXED, b=profile), chosen("a"), chosen("b"))
    assert read_resource("nvidia.com/mig-1g.10gb", apart) == "nodes share it in different ways"
    assert read_resource("nvidia.com/gpu", apart) == RequestedDevices("nvidia.com/gpu", "gpu")


def test_a_configuration_that_nobody_chose_is_told():
    texts = config_map(a=WHOLE, b=SHARED)
    nobody = "holds 2 configurations, and nothing says which a node has"
    assert refusal(texts) == ("plugin.yaml", "plugin-config-malformed", nobody)
    assert refusal(texts, labels("Tesla-T4"))[2] == nobody
    assert refusal(texts, chosen("c"))[2] == "holds 2 configurations, and none is called 'c'"
    one = "holds 1 configuration, and none is called 'c'"
    assert refusal(config_map(a=SHARED), chosen("c"))[2] == one
    assert served({"version": "v1"}, chosen("c")) == DevicePlugin()
    assert refusal(config_map())[:2] == ("plugin.yaml", "plugin-config-malformed")
    assert refusal(config_map(a=WHOLE, b="version: v2"))[0] == "plugin.yaml[b]"


@pytest.mark.parametrize(
    ("way", "replicas", "mps", "mig"),
    [
        ("time-slicing", 4, "active_thread_percentage=25", "1/4"),
        ("mps", 10, "active_thread_percentage=10", "1/10"),
        ("time-slicing", 49, "", "1/49"),
    ],
)
def test_replicas_that_claims_cannot_share_are_told_with_mps_and_mig(
    way: Any, replicas: int, mps: str, mig: str
):
    plugin = DevicePlugin(replicas={"nvidia.com/gpu": Replicas(way, replicas, renamed=False, one_each=True)})
    requested = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    [remark] = read_needs("containers[0]", requested, Settings(plugin=plugin, no_shares="no gate")).remarks
    assert (remark.outcome, remark.code) == ("decide", "mps-replicas" if way == "mps" else "no-shares")
    assert ("dra.Mps" in remark.hint) == bool(mps)
    assert mps in remark.hint
    assert f"dra.MigPartition with {mig} of the memory" in remark.hint


def test_replicas_of_mig_devices_are_told_with_smaller_ones():
    plugin = DevicePlugin(
        replicas={"nvidia.com/mig-3g.40gb": Replicas("time-slicing", 2, renamed=False, one_each=True)}
    )
    requested = {"resources": {"limits": {"nvidia.com/mig-3g.40gb": 1}}}
    [remark] = read_needs("containers[0]", requested, Settings(plugin=plugin, no_shares="no gate")).remarks
    assert remark.code == "no-shares"
    assert "smaller MIG devices" in remark.hint
    assert "dra.Mps" not in remark.hint


def of_intel(kind: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "gpu"}, "spec": spec}


def daemon_set(*args: str, name: str = "gpu", image: str = "intel/intel-gpu-plugin:0.36.0") -> dict[str, Any]:
    containers = [{"name": name, "image": image, "args": list(args)}]
    return of_intel("DaemonSet", template={"spec": {"containers": containers}})


def release_of_intel(chart: str, number: Any) -> dict[str, Any]:
    return of_intel("HelmRelease", chart={"spec": {"chart": chart}}, values={"sharedDevNum": number})


@pytest.mark.parametrize(
    ("objects", "shares"),
    [
        ([], 1),
        ([of_intel("GpuDevicePlugin", sharedDevNum=10)], 10),
        ([of_intel("GpuDevicePlugin")], 1),
        ([of_intel("GpuDevicePlugin", sharedDevNum="${NUMBER}")], 1),
        ([of_intel("DsaDevicePlugin", sharedDevNum=10)], 1),
        ([daemon_set("-v=2", "-shared-dev-num=30")], 30),
        ([daemon_set("--shared-dev-num", "4")], 4),
        ([daemon_set("-shared-dev-num=4", image="intel/intel-npu-plugin:0.36.0", name="npu")], 1),
        ([of_intel("DaemonSet", template={"spec": {"containers": [{"name": "gpu-plugin", "args": 3}]}})], 1),
        ([release_of_intel("intel-device-plugins-gpu", 5)], 5),
        ([release_of_intel("intel-device-plugins-gpu", "10")], 10),
        ([release_of_intel("intel-device-plugins-dsa", 5)], 1),
        ([daemon_set("-shared-dev-num=3"), of_intel("GpuDevicePlugin", sharedDevNum=2)], 3),
    ],
)
def test_what_deploys_intels_plugin_says_how_many_containers_share_a_gpu(objects: list[Any], shares: int):
    assert find_intel_shares(objects) == shares


@pytest.mark.parametrize("resource", ["gpu.intel.com/i915", "gpu.intel.com/xe"])
def test_a_share_of_intels_gpu_is_to_decide(resource: str):
    container = {"name": "main", "resources": {"limits": {resource: 2, "amd.com/gpu": 1}}}
    alone = read_needs("", container, Settings())
    assert [each.requested.resource for each in alone.needs] == [resource, "amd.com/gpu"]
    shared = read_needs("", container, Settings(intel_shares=4))
    assert [each.requested.resource for each in shared.needs] == ["amd.com/gpu"]
    assert [(each.code, each.outcome) for each in shared.remarks] == [("other-device-form", "decide")]
