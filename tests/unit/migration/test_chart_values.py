"""Values files of charts that serve models."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.migration.chart_values import migrate_values
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
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
    hub = {"singleuser": {"extraResource": {"limits": {"nvidia.com/gpu": "1"}}}}
    assert told(hub) == [
        ("singleuser.extraResource.limits[nvidia.com/gpu]", "decide", "values-without-claims")
    ]


@pytest.mark.parametrize("manifest", [{"kind": "X", "ollama": {"gpu": {"enabled": True}}}, {"replicas": 2}])
def test_objects_and_other_files_are_no_values_with_devices(manifest: dict[str, Any]):
    assert migrate_values(manifest, WHOLE) is None
