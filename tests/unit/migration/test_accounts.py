"""Quotas, limits, autoscalers, queues, and resources that stand where nothing reads them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dra_infra.migration import accounts
from dra_infra.migration.accounts import migrate_account
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.mentions import find_mentions
from dra_infra.migration.needs import Settings

WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))
KEY = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"


def quota(**hard: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}


def test_a_quota_that_counts_claims_already_keeps_its_number():
    was = quota(**{"requests.nvidia.com/gpu": "8", KEY: "4"})
    found = migrate_account(was, WHOLE)
    assert found is not None
    assert found.manifest is was
    assert [(each.outcome, each.code) for each in found.remarks] == [("kept", "quota-kept")]


def test_keys_of_profiles_are_one_number():
    was = quota(**{"requests.nvidia.com/mig-1g.10gb": "8", "requests.nvidia.com/mig-2g.20gb": 2})
    found = migrate_account(was, WHOLE)
    assert found is not None
    assert found.manifest is not None
    assert found.manifest["spec"]["hard"]["mig.nvidia.com.deviceclass.resource.k8s.io/devices"] == "10"


@pytest.mark.parametrize(
    "scopes",
    [
        {"scopes": ["NotTerminating"]},
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}},
    ],
)
@pytest.mark.parametrize("more", [{}, {KEY: "4"}])
def test_a_quota_with_scopes_gets_no_key_for_claims_which_no_scope_matches(
    scopes: dict[str, Any], more: dict[str, str]
):
    was = quota(**{"requests.nvidia.com/gpu": "8", **more})
    was["spec"] |= scopes
    found = migrate_account(was, WHOLE)
    assert found is not None
    assert found.manifest is was
    assert [(each.outcome, each.code, each.path) for each in found.remarks] == [
        ("lost", "quota-with-scopes", "spec.hard[requests.nvidia.com/gpu]")
    ]


def test_a_quota_with_a_selector_that_names_no_scope_counts_claims():
    was = quota(**{"requests.nvidia.com/gpu": "8"})
    was["spec"]["scopeSelector"] = {}
    found = migrate_account(was, WHOLE)
    assert found is not None
    assert [each.code for each in found.remarks] == ["quota-for-claims"]


SMALL, MIDDLE, LARGE = (f"requests.nvidia.com/mig-{each}" for each in ("1g.10gb", "2g.20gb", "3g.40gb"))
MIG_KEY = "mig.nvidia.com.deviceclass.resource.k8s.io/devices"


def quotas(*hards: dict[str, Any], namespace: str | None = "ml") -> list[dict[str, Any]]:
    return [
        {**quota(**hard), "metadata": {"name": f"q{number}", "namespace": namespace}}
        for number, hard in enumerate(hards)
    ]


def mig_limits(objects: list[dict[str, Any]]) -> list[Any]:
    """What each quota limits claims of MIG devices to after the migration; None where it does not."""
    done = migrate_objects(objects, WHOLE)
    return [each.manifest["spec"]["hard"].get(MIG_KEY) for each in done if each.manifest is not None]


@pytest.mark.parametrize(
    ("hards", "expected"),
    [
        ([{SMALL: "7"}, {LARGE: 2}], ["9", "9"]),
        ([{SMALL: "7"}, {LARGE: "2"}, {MIDDLE: "1"}], ["10", "10", "10"]),
        # The smaller of two limits of one resource is in force.
        ([{SMALL: "7"}, {LARGE: "4"}, {LARGE: "2"}], ["9", "11", "9"]),
        ([{SMALL: "7"}, {SMALL: "3"}], ["7", "3"]),
        ([{SMALL: "7", MIG_KEY: "7"}, {LARGE: "2"}], ["7", "9"]),
        ([{SMALL: "7"}, {"pods": "3"}], ["7", None]),
        ([{SMALL: "7"}, {"requests.nvidia.com/gpu": "3"}], ["7", None]),
        ([{SMALL: "7"}, {LARGE: "${LARGE}"}], [None, None]),
    ],
)
def test_each_quota_of_a_namespace_lets_all_its_quotas_claims_pass(
    hards: list[dict[str, Any]], expected: list[Any]
):
    objects = quotas(*hards)
    assert mig_limits(objects) == expected
    assert mig_limits(quotas(*hards, namespace=None)) == [
        each.get(MIG_KEY, each.get(SMALL, each.get(LARGE, each.get(MIDDLE)))) for each in hards
    ]


def test_quotas_of_other_namespaces_or_with_scopes_add_nothing():
    one, other, scoped = quotas({SMALL: "7"}, {LARGE: "2"}, {MIDDLE: "1"})
    other["metadata"]["namespace"] = "web"
    scoped["spec"]["scopes"] = ["NotTerminating"]
    assert mig_limits([one, other, scoped]) == ["7", "2", None]


@pytest.mark.parametrize(("held", "is_told"), [(7, True), ("8", True), ("9", False), ("1k", False)])
def test_a_key_for_claims_of_another_quota_that_is_less_than_all_count_is_told(held: Any, is_told: bool):
    kept, done = migrate_objects(quotas({SMALL: "7", MIG_KEY: held}, {LARGE: 2}), WHOLE)
    assert [each.outcome for each in kept.remarks] == ["kept"]
    told = [(each.path, each.code) for each in done.remarks if each.outcome == "decide"]
    assert told == [(f"spec.hard[{LARGE}]", "quota-kept")] * is_told
    assert not any(
        each.outcome == "decide"
        for each in migrate_objects([kept.manifest or {}, done.manifest or {}], WHOLE)[1].remarks
    )


def test_a_smaller_quota_of_whole_gpus_is_in_force_as_before():
    done = migrate_objects(
        quotas({"requests.nvidia.com/gpu": 4, KEY: 4}, {"requests.nvidia.com/gpu": 8}), WHOLE
    )
    assert [each.outcome for one in done for each in one.remarks] == ["kept", "changed"]


def test_quotas_of_two_overlays_are_not_added_up():
    dev, prod = quotas({SMALL: "4"}, {MIDDLE: "1"}), quotas({LARGE: "2"}, {MIDDLE: "3"})
    assert mig_limits([*dev, *prod]) == ["5", "5", "5", "5"]
    assert mig_limits([dev[0], prod[0]]) == ["4", "2"]


def test_keys_of_a_namespace_are_read_once_however_many_quotas_it_has(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    read = accounts.read_resource
    monkeypatch.setattr(
        accounts, "read_resource", lambda name, plugin: asked.append(name) or read(name, plugin)
    )
    limits = mig_limits(quotas(*({f"requests.nvidia.com/mig-1g.{each}gb": 2} for each in range(1, 101))))
    assert limits == ["200"] * 100
    assert len(asked) <= 200


BESIDE = Settings(
    plugin=DevicePlugin(
        replicas={"nvidia.com/gpu": Replicas("time-slicing", 4, renamed=True, one_each=False)}
    )
)


def test_keys_of_one_class_are_added_however_they_are_written():
    found = migrate_account(
        quota(**{"requests.nvidia.com/gpu": 4, "requests.nvidia.com/gpu.shared": "2k"}), BESIDE
    )
    assert found is not None
    assert found.manifest is not None
    assert found.manifest["spec"]["hard"][KEY] == "2004"
    assert [each.code for each in found.remarks] == ["quota-for-claims"] * 2
    assert all(f"{KEY}: 2004 " in each.message for each in found.remarks)


@pytest.mark.parametrize("amount", ["${GPUS}", "500m", True])
def test_keys_that_have_no_sum_are_to_decide(amount: Any):
    was = quota(**{"requests.nvidia.com/gpu": 4, "requests.nvidia.com/gpu.shared": amount})
    found = migrate_account(was, BESIDE)
    assert found is not None
    assert found.manifest is was
    assert [(each.outcome, each.code) for each in found.remarks] == [("decide", "quantity-not-a-number")] * 2


APART = Settings(plugin=DevicePlugin(strategy="mixed", apart=frozenset({"nvidia.com/mig-1g.5gb"})))


def test_no_quota_is_made_of_profiles_while_one_of_them_is_not_clear():
    was = quota(**{"requests.nvidia.com/mig-1g.5gb": 4, "requests.nvidia.com/mig-2g.10gb": 8})
    found = migrate_account(was, APART)
    assert found is not None
    assert found.manifest is was
    assert [(each.outcome, each.code) for each in found.remarks] == [("decide", "resource-not-clear")] * 2
    assert "--plugin-config" in found.remarks[0].hint


def test_no_quota_of_a_queue_is_made_of_profiles_while_one_of_them_is_not_clear():
    names = ["nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"]
    flavor = {"name": "f", "resources": [{"name": each, "nominalQuota": 4} for each in names]}
    spec = {"resourceGroups": [{"coveredResources": names, "flavors": [flavor]}]}
    was = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": spec}
    found = migrate_account(was, APART)
    assert found is not None
    assert found.manifest is was
    assert [(each.outcome, each.code) for each in found.remarks] == [("decide", "queue-of-resource")] * 2


def test_a_quota_without_a_number_names_no_others():
    found = migrate_account(quota(**{"requests.nvidia.com/gpu": None}), WHOLE)
    assert found is not None
    assert [each.code for each in found.remarks] == ["quantity-not-a-number"]
    assert "others" not in found.remarks[0].message


@pytest.mark.parametrize("amount", [[2], {"a": "b"}, "many", True, "-1"])
def test_an_amount_that_is_no_number_is_not_copied(amount: Any):
    was = quota(**{"requests.nvidia.com/gpu": amount})
    found = migrate_account(was, WHOLE)
    assert found is not None
    assert found.manifest is was
    assert [(each.outcome, each.code) for each in found.remarks] == [("decide", "quantity-not-a-number")]


@pytest.mark.parametrize("amount", ["${GPUS}", "{{ .Values.gpus }}", "2k", 0])
def test_an_amount_that_is_filled_in_later_limits_claims_as_well(amount: Any):
    found = migrate_account(quota(**{"requests.nvidia.com/gpu": amount}), WHOLE)
    assert found is not None
    assert found.manifest is not None
    assert found.manifest["spec"]["hard"][KEY] == amount


def test_a_quota_without_devices_has_nothing_to_migrate():
    assert migrate_account(quota(pods="10", **{"requests.cpu": "4"}), WHOLE) is None


def test_the_taint_and_labels_of_nodes_are_no_resources():
    spec = {
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "nodeSelector": {"nvidia.com/gpu": "true"},
        "note": "nodes with nvidia.com/gpu.product",
    }
    assert list(find_mentions({"spec": spec})) == []


@pytest.mark.parametrize(
    "text",
    [
        'sum(kube_pod_container_resource_requests{resource="nvidia_com_gpu"})',
        "/spec/containers/0/resources/limits/nvidia.com~1gpu",
        "/spec/containers/0/resources/limits/nvidia.com~1mig-1g.10gb",
        "resource=nvidia_com_mig_1g_10gb",
        "--set=resources.limits.nvidia\\.com/gpu=1",
        "nvidia.com/mig-1g.10gb.me",
        "nvidia.com/mig-1g.24gb.gfx",
        "nvidia_com_mig_1g_24gb_me_all",
        "nvidia.com/mig-1g.24gb-me",
    ],
)
def test_other_spellings_of_the_resource_are_found(text: str):
    assert [each.path for each in find_mentions({"spec": {"text": text}})] == ["spec.text"]


def test_labels_in_other_spellings_are_no_resources():
    text = "nvidia_com_gpu_product and nvidia_com_gpu_count and nvidia.com/mig-1g.24gb.memory"
    assert list(find_mentions({"data": {"query": text}})) == []


@pytest.mark.parametrize("kind", ["external", "object", "pods"])
def test_a_metric_that_counts_the_resource_is_told(kind: str):
    selector = {"matchLabels": {"resource": "nvidia_com_gpu"}}
    metric = {"name": "kube_pod_container_resource_requests", "selector": selector}
    spec = {"metrics": [{"type": kind.title(), kind: {"metric": metric}}]}
    found = migrate_account(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": spec}, WHOLE
    )
    assert found is not None
    assert [(each.path, each.code) for each in found.remarks] == [
        (f"spec.metrics[0].{kind}.metric", "metric-of-resource")
    ]


def test_a_quota_for_devices_of_another_form_says_so():
    found = migrate_account(quota(**{"requests.nvidia.com/pgpu": 2}), WHOLE)
    assert found is not None
    assert [(each.path, each.code) for each in found.remarks] == [
        ("spec.hard[requests.nvidia.com/pgpu]", "other-device-form")
    ]


@pytest.mark.parametrize("number", [20, 21, 100])
def test_twenty_places_are_told_and_the_number_of_those_left(number: int):
    texts = {f"k{each}": "nvidia.com/gpu: 1" for each in range(number)}
    found = list(find_mentions({"data": texts}))
    assert [each.path for each in found[:20]] == [f"data.k{each}" for each in range(20)]
    assert [each.message.split()[0] for each in found[20:]] == ([] if number == 20 else [str(number - 20)])
    assert {each.path for each in found[20:]} <= {""}
    assert all(("1 more place " in each.message) == (number == 21) for each in found[20:])


def queue(*groups: dict[str, Any], kind: str = "ClusterQueue") -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "q"},
        "spec": {"resourceGroups": list(groups)},
    }


def group(**quotas: Any) -> dict[str, Any]:
    resources = [each if isinstance(each, dict) else {"nominalQuota": each} for each in quotas.values()]
    held = [{"name": name, **each} for name, each in zip(quotas, resources, strict=True)]
    return {
        "coveredResources": list(quotas),
        "flavors": [{"name": "a", "resources": held}, {"name": "b", "resources": held}],
    }


def outcomes(manifest: dict[str, Any]) -> list[str]:
    found = migrate_account(manifest, WHOLE)
    assert found is not None
    return [f"{each.code} {each.outcome}" for each in found.remarks]


def test_a_cohort_counts_claims_in_every_flavour():
    found = migrate_account(queue(group(**{"nvidia.com/gpu": 8}), kind="Cohort"), WHOLE)
    assert found is not None
    assert found.manifest is not None
    [made] = found.manifest["spec"]["resourceGroups"]
    assert made["coveredResources"] == ["nvidia.com/gpu", KEY]
    assert [each["resources"][-1] for each in made["flavors"]] == [{"name": KEY, "nominalQuota": 8}] * 2


def test_a_queue_that_counts_claims_already_stays():
    was = queue(group(**{"nvidia.com/gpu": 8, KEY: 4}))
    assert outcomes(was) == ["queue-for-claims kept"]
    found = migrate_account(was, WHOLE)
    assert found is not None
    assert found.manifest is was


def test_profiles_whose_quotas_cannot_be_added_are_to_decide():
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"
    lent = {"nominalQuota": 4, "lendingLimit": 2}
    assert outcomes(queue(group(**{small: lent, large: 2}))) == ["queue-of-resource decide"] * 2
    assert outcomes(queue(group(**{small: "4k", large: 2}))) == ["queue-of-resource decide"] * 2
    assert outcomes(queue(group(**{small: 4}), group(**{large: 2}))) == [
        "quota-of-profile lost",
        "queue-of-resource decide",
    ]


@pytest.mark.parametrize(
    "spec", [None, {"resourceGroups": "all"}, {"resourceGroups": [None, {"coveredResources": 1}]}]
)
def test_a_queue_of_another_shape_has_nothing_to_migrate(spec: Any):
    assert migrate_account({"kind": "ClusterQueue", "spec": spec}, WHOLE) is None


def test_a_key_that_another_group_of_the_queue_covers_is_told():
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"
    found = migrate_account(
        queue(group(**{small: 4}), group(**{large: 2}), group(**{"nvidia.com/gpu": "x"})), WHOLE
    )
    assert found is not None
    _, taken, no_number = found.remarks
    assert taken.path == "spec.resourceGroups[1].coveredResources[0]"
    assert taken.message.startswith(f"{MIG_KEY} is in another group of the queue, ")
    assert "have no quota that follows" in no_number.message


def test_a_queue_with_a_flavour_or_quota_that_is_none_loses_nothing():
    flavor = {"name": "f", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 4}]}
    for flavors in (
        ["x", flavor],
        [{**flavor, "resources": [{"name": "nvidia.com/gpu"}]}],
        [{**flavor, "resources": [{"name": "nvidia.com/gpu", "nominalQuota": {}}]}],
    ):
        was = queue({"coveredResources": ["nvidia.com/gpu"], "flavors": flavors})
        assert outcomes(was) == ["queue-of-resource decide"]
    odd = {"coveredResources": [{"a": "b"}, "nvidia.com/gpu"], "flavors": [flavor]}
    found = migrate_account(queue(odd), WHOLE)
    assert found is not None
    assert found.manifest is not None
    assert found.manifest["spec"]["resourceGroups"][0]["coveredResources"] == [*odd["coveredResources"], KEY]


def test_a_queue_without_flavours_of_the_resource_is_to_decide():
    bare = {"coveredResources": ["nvidia.com/gpu"]}
    assert outcomes(queue(bare)) == ["queue-of-resource decide"]
    assert outcomes(queue(bare | {"flavors": [{"name": "a"}]})) == ["queue-of-resource decide"]


def test_a_quota_that_nobody_can_read_says_that_a_cluster_can_be_asked():
    was = {"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"requests.nvidia.com/gpu": "8"}}}
    (done,) = migrate_objects([was], Settings())
    assert [each.code for each in done.remarks] == ["plugin-not-known"]
    assert "--context NAME" in done.remarks[0].hint


def test_what_counts_shares_of_intels_gpus_counts_no_claims():
    shared, alone = Settings(intel_shares=4), Settings()
    of_intel = quota(**{"requests.gpu.intel.com/i915": "8"}), queue(group(**{"gpu.intel.com/i915": 8}))
    assert [migrate_account(each, shared) for each in of_intel] == [None, None]
    assert None not in [migrate_account(each, alone) for each in of_intel]


def test_values_in_a_text_that_configure_the_plugin_ask_for_nothing():
    sharing = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    values = yaml.safe_dump({"config": {"map": {"a": f"version: v1\n{sharing}"}}})
    for text, outcome in (
        (values, "kept"),
        (f"limits: {{nvidia.com/gpu: 1}}\n{values}", "kept"),
        (sharing, "decide"),
    ):
        chart = {"apiVersion": "helm.cattle.io/v1", "kind": "HelmChart", "spec": {"valuesContent": text}}
        assert [each.outcome for each in find_mentions(chart)] == [outcome]
