"""Values files of charts that serve models."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.kubernetes.api import show_steps
from dra_infra.migration.chart_values import migrate_values
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings

WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))
SHARED = Settings(
    plugin=DevicePlugin(
        replicas={"nvidia.com/gpu": Replicas("time-slicing", 4, renamed=False, one_each=False)}
    )
)


def ollama(**gpu: Any) -> dict[str, Any]:
    return {"ollama": {"gpu": {"enabled": True, **gpu}, "port": 11434}}


def llm_d(limit: Any, *, accelerator: Any = None, **parallelism: Any) -> dict[str, Any]:
    resources = {"limits": {"memory": "16Gi", "nvidia.com/gpu": limit}, "requests": {"nvidia.com/gpu": limit}}
    values = {
        "modelArtifacts": {"name": "model"},
        "decode": {"parallelism": parallelism, "containers": [{"name": "vllm", "resources": resources}]},
    }
    return values if accelerator is None else {**values, "accelerator": accelerator}


def told(values: dict[str, Any], settings: Settings = WHOLE) -> list[tuple[str, str, str]]:
    """Path, outcome and code of each remark on values that stay as they are."""
    found = migrate_values(values, settings)
    assert found is not None
    assert found.manifest is values
    return [(each.path, each.outcome, each.code) for each in found.remarks]


def test_ollama_makes_the_claims_itself():
    found = migrate_values(ollama(number=2), WHOLE)
    assert found is not None
    assert found.manifest == ollama(number=2, draEnabled=True)
    (remark,) = found.remarks
    assert remark[:3] == ("ollama.gpu.draEnabled", "changed", "values-to-claims")
    assert "2 of gpu.nvidia.com" in remark.message


@pytest.mark.parametrize("gpu", [{"draEnabled": True}, {"enabled": False}])
def test_ollama_that_asks_no_plugin_has_nothing_to_migrate(gpu: dict[str, Any]):
    assert migrate_values(ollama(**gpu), WHOLE) is None


@pytest.mark.parametrize(
    ("gpu", "settings"),
    [
        ({"nvidiaResource": "nvidia.com/mig-1g.10gb"}, WHOLE),
        ({"mig": {"enabled": True, "devices": {"1g.10gb": 1, "3g.40gb": 1}}}, WHOLE),
        # Its class has partitions, too, and the claim of the chart has no selector.
        ({"type": "amd"}, WHOLE),
    ],
)
def test_what_the_claim_of_ollama_cannot_say_needs_a_template(gpu: dict[str, Any], settings: Settings):
    assert ("ollama.gpu", "decide", "values-need-template") in told(ollama(**gpu), settings)


def test_nobody_guesses_what_ollama_is_given():
    assert told(ollama(), Settings())[0] == ("ollama.gpu", "decide", "plugin-not-known")
    assert told(ollama(number="${GPUS}"))[0] == ("ollama.gpu", "decide", "quantity-not-a-number")


def test_llm_d_makes_the_claims_of_its_parallelism():
    found = migrate_values(llm_d("4", tensor=2, dataLocal=2), WHOLE)
    assert found is not None
    assert found.manifest == {
        "modelArtifacts": {"name": "model"},
        "decode": {
            "parallelism": {"tensor": 2, "dataLocal": 2},
            "containers": [{"name": "vllm", "resources": {"limits": {"memory": "16Gi"}}}],
        },
        "accelerator": {"dra": True},
    }
    assert [each[:3] for each in found.remarks] == [("decode", "changed", "values-to-claims")]


def test_llm_d_with_another_number_than_its_parallelism_is_to_decide():
    assert told(llm_d("4", tensor=2)) == [
        ("decode.containers[0].resources", "decide", "values-need-template")
    ]
    templates = {"resourceClaimTemplates": {"nvidia": {"count": 4}}}
    found = migrate_values(llm_d("4", tensor=2, accelerator=templates), WHOLE)
    assert found is not None
    assert [each.code for each in found.remarks] == ["values-to-claims"]


def test_llm_d_with_replicas_stays():
    codes = {code for _, _, code in told(llm_d("1"), SHARED)}
    assert codes >= {"values-need-template"}


@pytest.mark.parametrize("accelerator", [{"dra": True}, {"type": "google"}])
def test_llm_d_on_claims_or_with_other_devices_makes_no_claims_of_ours(accelerator: dict[str, Any]):
    values = llm_d("1", accelerator=accelerator)
    assert {code for _, _, code in told(values)} == {"values-without-claims"}


def test_groups_of_ray_take_a_template_that_is_there():
    group = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    values = {"head": group, "additionalWorkerGroups": {"small": group}}
    assert told(values) == [
        ("head.resources", "decide", "values-need-template"),
        ("additionalWorkerGroups.small.resources", "decide", "values-need-template"),
    ]
    found = migrate_values(values, WHOLE)
    assert found is not None
    assert 'rayStartParams.num-gpus: "2"' in found.remarks[0].hint


def app_template(kind: str, amount: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": amount}, "requests": {"nvidia.com/gpu": amount}}
    return {"controllers": {"plex": {kind: {"app": {"image": {"tag": "1"}, "resources": resources}}}}}


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_containers_of_app_template_take_a_template_that_is_there(kind: str):
    at = f"controllers.plex.{kind}.app"
    assert told(app_template(kind, 1)) == [(f"{at}.resources", "decide", "values-need-template")]
    found = migrate_values(app_template(kind, 1), WHOLE)
    assert found is not None
    assert "in controllers.plex.pod, which app-template 5.1 takes" in found.remarks[0].hint
    limits = f"{at}.resources.limits[nvidia.com/gpu]"
    assert told(app_template(kind, 1), Settings()) == [(limits, "decide", "plugin-not-known")]
    assert told(app_template(kind, "${GPUS}")) == [(limits, "decide", "quantity-not-a-number")]


@pytest.mark.parametrize("amount", [1, "${GPUS}"])
def test_a_release_whose_values_stay_is_the_very_object(amount: Any):
    release = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "a"}}
    release["spec"] = {"values": app_template("containers", amount)}
    (found,) = migrate_objects([release], WHOLE)
    assert found.remarks
    assert found.manifest is release


CONFIG = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"


@pytest.mark.parametrize(
    "manifest",
    [
        {"devicePlugin": {"config": {"data": {"any": CONFIG}}}},
        {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"any": CONFIG}},
        {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "a"}}
        | {"spec": {"values": {"config": {"map": {"any": CONFIG}}}}},
    ],
)
def test_a_configuration_of_the_plugin_asks_for_nothing(manifest: dict[str, Any]):
    (found,) = migrate_objects([manifest], WHOLE)
    assert [(each.outcome, each.code) for each in found.remarks] == [("kept", "resource-in-text")]
    assert "--plugin-config" in found.remarks[0].hint


@pytest.mark.parametrize(
    "text",
    [
        f"{CONFIG}---\nlimits: {{nvidia.com/gpu: 1}}",
        "# sharing: timeSlicing: is not for us\nrequests: {nvidia.com/gpu: 4}",
        "sharing {{ .Values.mps }} nvidia.com/gpu",
    ],
)
def test_a_text_that_is_not_a_configuration_of_the_plugin_alone_is_told(text: str):
    texts = {"any": text}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": texts}
    (found,) = migrate_objects([manifest], WHOLE)
    assert [(each.path, each.outcome) for each in found.remarks] == [("data.any", "decide")]


@pytest.mark.parametrize(
    ("limits", "number"),
    [
        ({"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-1g.10gb.me": 1}, '"2"'),
        ({"nvidia.com/mig-1g.10gb.me": 1}, ""),
    ],
)
def test_groups_of_ray_are_told_the_number_that_kuberay_counted(limits: dict[str, int], number: str):
    found = migrate_values({"head": {"resources": {"limits": limits}}}, WHOLE)
    assert found is not None
    [remark] = found.remarks
    assert remark.hint.partition("num-gpus: ")[2].partition(",")[0] == number


def test_what_stands_beside_the_fields_that_were_read_is_told():
    values = llm_d("2", tensor=2)
    values["decode"]["containers"][0]["env"] = [{"name": "RESOURCE", "value": "nvidia.com/gpu"}]
    found = migrate_values(values, WHOLE)
    assert found is not None
    assert [(each.path, each.code) for each in found.remarks] == [
        ("decode", "values-to-claims"),
        ("decode.containers[0].env[0].value", "values-without-claims"),
    ]


def test_fields_that_were_read_are_told_once():
    found = migrate_values(ollama(nvidiaResource="nvidia.com/gpu"), WHOLE)
    assert found is not None
    assert [each.code for each in found.remarks] == ["values-to-claims"]
    models = [{"requestGPU": 1, "requestGPUType": "nvidia.com/gpu"}]
    assert len(told({"servingEngineSpec": {"modelSpec": models}})) == 1


def test_charts_without_claims_are_told():
    models = [{"name": "small"}, {"name": "large", "requestGPU": 1}]
    assert told({"servingEngineSpec": {"modelSpec": models}}) == [
        ("servingEngineSpec.modelSpec[1].requestGPU", "decide", "values-without-claims")
    ]


@pytest.mark.parametrize("above", [(), ("jupyterhub",)])
def test_the_hub_of_jupyter_has_the_values_that_name_a_template(above: tuple[str, ...]):
    profile = {"kubespawner_override": {"extra_resource_limits": {"nvidia.com/gpu": "1"}}}
    hub = {"extraResource": {"limits": {"nvidia.com/gpu": "1"}}, "profileList": [profile]}
    values: dict[str, Any] = {"singleuser": hub}
    for name in above:
        values = {name: values}
    at = ".".join((*above, "singleuser"))
    assert told(values) == [
        (f"{at}.extraResource.limits[nvidia.com/gpu]", "decide", "values-need-template"),
        (
            f"{at}.profileList[0].kubespawner_override.extra_resource_limits[nvidia.com/gpu]",
            "decide",
            "values-need-template",
        ),
    ]
    found = migrate_values(values, WHOLE)
    assert found is not None
    assert "extra_pod_config: {resourceClaims: [{name: gpu, " in found.remarks[0].hint


@pytest.mark.parametrize(("enabled", "number"), [(True, 2), (False, 1)])
def test_the_head_of_a_ray_cluster_of_the_vllm_chart_is_told_where_there_is_one(
    *, enabled: bool, number: int
):
    ray = {"enabled": enabled, "headNode": {"requestGPU": 1}}
    values = {"servingEngineSpec": {"modelSpec": [{"requestGPU": 1, "raySpec": ray}]}}
    paths = ["requestGPU", "raySpec.headNode.requestGPU"][:number]
    assert [path for path, _, _ in told(values)] == [
        f"servingEngineSpec.modelSpec[0].{each}" for each in paths
    ]


@pytest.mark.parametrize("gpu", [{}, {"draEnabled": True}])
def test_ollama_on_knative_gets_no_claims(gpu: dict[str, Any]):
    values = ollama(**gpu) | {"knative": {"enabled": True}}
    assert told(values) == [("ollama.gpu", "decide", "values-without-claims")]
    assert migrate_values(ollama(draEnabled=True) | {"knative": {"enabled": False}}, WHOLE) is None


def release(kind: str, **spec: Any) -> dict[str, Any]:
    group = {"HelmRelease": "helm.toolkit.fluxcd.io/v2", "Application": "argoproj.io/v1alpha1"}[kind]
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "a", "namespace": "ml"}, "spec": spec}


@pytest.mark.parametrize(
    ("was", "path"),
    [
        (release("HelmRelease", values=ollama()), ["spec", "values"]),
        (
            release("Application", source={"helm": {"valuesObject": ollama()}}),
            ["spec", "source", "helm", "valuesObject"],
        ),
        (
            release("Application", sources=[{"ref": "v"}, {"helm": {"valuesObject": ollama()}}]),
            ["spec", "sources", 1, "helm", "valuesObject"],
        ),
    ],
)
def test_values_inside_an_object_of_flux_or_argo_cd_are_migrated(was: dict[str, Any], path: list[Any]):
    (done,) = migrate_objects([was], WHOLE)
    assert done.manifest is not None
    found = done.manifest
    for step in path:
        found = found[step]
    assert found == ollama(draEnabled=True)
    (remark,) = done.remarks
    assert remark[:3] == (f"{show_steps(tuple(path))}.ollama.gpu.draEnabled", "changed", "values-to-claims")


def test_what_stands_beside_values_in_a_release_is_told_and_what_is_in_them_once():
    patches = [{"patch": "limits: {nvidia.com/gpu: 1}"}]
    was = release(
        "HelmRelease",
        values={**ollama(nvidiaResource="nvidia.com/gpu"), "extra": "nvidia.com/gpu"},
        postRenderers=patches,
    )
    (done,) = migrate_objects([was], WHOLE)
    assert [(each.path, each.code) for each in done.remarks] == [
        ("spec.values.ollama.gpu.draEnabled", "values-to-claims"),
        ("spec.values.extra", "values-without-claims"),
        ("spec.postRenderers[0].patch", "resource-in-text"),
    ]


@pytest.mark.parametrize("values", [None, "x", [], {"replicas": 1}])
def test_releases_without_devices_have_nothing_to_migrate(values: Any):
    assert migrate_values(release("HelmRelease", values=values), WHOLE) is None


@pytest.mark.parametrize("manifest", [{"kind": "X", "ollama": {"gpu": {"enabled": True}}}, {"replicas": 2}])
def test_objects_and_other_files_are_no_values_with_devices(manifest: dict[str, Any]):
    assert migrate_values(manifest, WHOLE) is None


@pytest.mark.parametrize(
    ("values", "roles"),
    [
        ({"accelerator": {"type": "intel-gaudi"}, "decode": {}, "prefill": {"create": False}}, ["decode"]),
        ({"decode": {"accelerator": {"dra": True}}, "prefill": {}}, ["prefill"]),
        (
            {"accelerator": {"dra": True}, "decode": {"accelerator": {"dra": False}}, "prefill": {}},
            ["decode"],
        ),
        ({"accelerator": {"type": "google"}, "decode": {}}, []),
        ({"accelerator": {"type": "cpu"}, "decode": {}}, []),
    ],
)
def test_roles_of_llm_d_with_other_accelerators_are_told(values: dict[str, Any], roles: list[str]):
    found = migrate_values({"modelArtifacts": {"name": "m"}, **values}, WHOLE)
    assert (found is None) == (not roles)
    told_of = found.remarks if found else ()
    assert [each[:3] for each in told_of] == [(name, "decide", "values-need-template") for name in roles]


@pytest.mark.parametrize(
    "values", [{"ollama": {"gpu": {"enabled": False, "nvidiaResource": "nvidia.com/gpu"}}}]
)
def test_values_that_ask_for_nothing_are_not_searched_again(values: dict[str, Any]):
    both = migrate_objects([values, release("HelmRelease", values=values)], WHOLE)
    assert [each.remarks for each in both] == [(), ()]
