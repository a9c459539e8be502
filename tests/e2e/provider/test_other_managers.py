"""Objects that somebody else made or changed."""

from __future__ import annotations

import pytest

from tests.support.lab import Lab
from tools.cluster import Api

pytestmark = pytest.mark.e2e

CLASS = "resource.k8s.io/v1/DeviceClass"
PROGRAM = """
k8s.resource.v1.DeviceClass("class", metadata={{"name": NAMESPACE, "labels": {{"revision": "{label}"}}}},
    spec={{"selectors": [{{"cel": {{"expression": "device.driver == '{driver}'"}}}}]}})
"""


def edit_selector(api: Api, lab: Lab, driver: str) -> None:
    """Change the selectors as `kubectl edit` would."""
    selectors = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
    api.request(
        "PATCH",
        f"/apis/resource.k8s.io/v1/deviceclasses/{lab.namespace}",
        json={"spec": {"selectors": selectors}},
        headers={"Content-Type": "application/merge-patch+json"},
        params={"fieldManager": "other"},
    )


def selector_of(api: Api, lab: Lab) -> str:
    expression: str = api.get(CLASS, lab.namespace)["spec"]["selectors"][0]["cel"]["expression"]
    return expression


@pytest.fixture
def drifted(lab: Lab, cluster_api: Api) -> Lab:
    """A class that was deployed and updated, and whose selectors another manager then took over."""
    lab.up(PROGRAM.format(label="1", driver="a"))
    lab.up(PROGRAM.format(label="2", driver="a"))
    edit_selector(cluster_api, lab, "b")
    return lab


def test_a_name_that_is_taken_passes_preview_and_fails_in_up(lab: Lab, cluster_api: Api) -> None:
    taken = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"owner": "other"}}
    cluster_api.create({**taken, "metadata": {"name": "taken", "namespace": lab.namespace}})
    lab.write('config_map("object", {"owner": "us"}, name="taken")\n')

    preview = lab.stack.preview()
    up = lab.stack.up()

    assert (preview.exit_code, up.exit_code) == (0, 1)
    assert '"taken" already exists' in up.text
    assert lab.names() == []
    found = cluster_api.get("v1/ConfigMap", "taken", namespace=lab.namespace)
    assert found["data"] == {"owner": "other"}


def test_an_object_that_is_there_can_be_imported(lab: Lab, cluster_api: Api) -> None:
    taken = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"owner": "us"}}
    cluster_api.create({**taken, "metadata": {"name": "taken", "namespace": lab.namespace}})
    imported = f'opts=ResourceOptions(import_="{lab.namespace}/taken")'

    lab.up(f'config_map("object", {{"owner": "us"}}, name="taken", {imported})\n')
    lab.write('config_map("object", {"owner": "us"}, name="taken")\n')

    lab.stack.preview("--expect-no-changes").check()


def test_drift_is_invisible_without_refresh(drifted: Lab) -> None:
    drifted.stack.preview("--expect-no-changes").check()


def test_drift_is_an_update_after_refresh(drifted: Lab) -> None:
    refresh = drifted.stack.refresh().check()

    assert "update" in refresh.text
    stored = drifted.resource("class")["inputs"]["spec"]["selectors"][0]["cel"]["expression"]
    assert stored == "device.driver == 'b'"


def test_correcting_drift_conflicts_with_the_other_manager(drifted: Lab, cluster_api: Api) -> None:
    drifted.stack.refresh().check()

    preview = drifted.stack.preview()
    up = drifted.stack.up()

    assert (preview.exit_code, up.exit_code) == (1, 1)
    for result in (preview, up):
        assert 'conflict with "other" using resource.k8s.io/v1: .spec.selectors' in result.text
    assert selector_of(cluster_api, drifted) == "device.driver == 'b'"


def test_correcting_drift_by_force_takes_the_field_back(drifted: Lab, cluster_api: Api) -> None:
    drifted.stack.refresh().check()

    drifted.up(
        PROGRAM.format(label="2", driver="a").replace(
            '"labels"', '"annotations": {"pulumi.com/patchForce": "true"}, "labels"'
        )
    )

    assert selector_of(cluster_api, drifted) == "device.driver == 'a'"


def test_creates_and_updates_leave_the_vendors_field_managers(lab: Lab, cluster_api: Api) -> None:
    lab.up(PROGRAM.format(label="1", driver="a"))
    created = cluster_api.get(CLASS, lab.namespace)["metadata"]["managedFields"]
    lab.up(PROGRAM.format(label="2", driver="a"))
    updated = cluster_api.get(CLASS, lab.namespace)["metadata"]["managedFields"]

    assert [(entry["manager"], entry["operation"]) for entry in created] == [("pulumi-kubernetes", "Update")]
    assert [entry["operation"] for entry in updated] == ["Apply"]
    prefix, _, suffix = updated[0]["manager"].rpartition("-")
    assert (prefix, len(suffix)) == ("pulumi-kubernetes", 8)


def test_an_object_that_somebody_deleted_is_made_again_after_refresh(lab: Lab, cluster_api: Api) -> None:
    lab.up('config_map("object", name="object")\n')
    cluster_api.delete("v1/ConfigMap", "object", namespace=lab.namespace)
    cluster_api.wait_gone("v1/ConfigMap", "object", namespace=lab.namespace)

    lab.stack.refresh().check()
    up = lab.stack.up().check()

    assert up.operations("object") == ("create",)


def test_fields_that_the_server_or_others_add_are_no_drift(lab: Lab, cluster_api: Api) -> None:
    lab.up('config_map("object", {"key": "1"}, name="object")\n')
    added = {"metadata": {"labels": {"added": "by-other"}}}
    cluster_api.patch("v1/ConfigMap", "object", added, namespace=lab.namespace)
    lab.stack.refresh().check()

    lab.stack.preview("--expect-no-changes").check()


APPLIED = """config_map("object", {{"key": "1"}}, name="applied", labels={{"owner": "{owner}"}}, {more})"""


@pytest.fixture(params=["kubectl-client-side-apply", "kubectl-edit"])
def applied(request: pytest.FixtureRequest, lab: Lab, cluster_api: Api) -> Lab:
    """An object that kubectl made, in the state by an import."""
    metadata = {"name": "applied", "labels": {"owner": "kubectl"}}
    cluster_api.request(
        "POST",
        f"/api/v1/namespaces/{lab.namespace}/configmaps",
        json={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "1"}},
        params={"fieldManager": request.param},
    )
    imported = f'opts=ResourceOptions(import_="{lab.namespace}/applied")'
    lab.up(APPLIED.format(owner="kubectl", more=imported))
    return lab


def test_up_takes_over_what_kubectl_applied_though_the_preview_stops(applied: Lab, cluster_api: Api) -> None:
    applied.write(APPLIED.format(owner="us", more=""))

    preview = applied.stack.preview()
    up = applied.stack.up()

    assert (preview.exit_code, up.exit_code) == (1, 0)
    assert "conflict with" in preview.text
    found = cluster_api.get("v1/ConfigMap", "applied", namespace=applied.namespace)
    assert found["metadata"]["labels"] == {"owner": "us"}
    managers = [(entry["manager"], entry["operation"]) for entry in found["metadata"]["managedFields"]]
    assert [(name[:18], operation) for name, operation in managers] == [("pulumi-kubernetes-", "Apply")]
    applied.write(APPLIED.format(owner="us-again", more=""))
    applied.stack.preview().check()


def test_by_force_the_preview_takes_over_too(applied: Lab, cluster_api: Api) -> None:
    force = 'annotations={"pulumi.com/patchForce": "true"}'
    applied.write(APPLIED.format(owner="us", more=force))

    applied.stack.preview().check()
    applied.stack.up().check()

    found = cluster_api.get("v1/ConfigMap", "applied", namespace=applied.namespace)
    assert found["metadata"]["labels"] == {"owner": "us"}


def test_secrets_stay_secret_in_state_and_stand_in_refusals(lab: Lab) -> None:
    lab.up(
        'k8s.core.v1.Secret("plain", metadata={"namespace": NAMESPACE}, string_data={"key": "hush-plain"})\n'
        'config_map("object", {"key": pulumi.Output.secret("hush-known")})\n'
    )
    state = lab.stack.run("stack", "export", "--stack", "dev").check().text
    lab.write('config_map("object", labels={"key": pulumi.Output.secret("hush not a label")})\n')
    refusals = [lab.stack.preview(), lab.stack.up()]

    assert "hush" not in state
    assert "aHVzaC" not in state
    # The server quotes what it refuses, and the provider passes that on: docs/security.md says so.
    assert [each.exit_code for each in refusals] == [1, 1]
    assert all("hush not a label" in each.text for each in refusals)
