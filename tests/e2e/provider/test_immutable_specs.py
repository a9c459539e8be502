"""The table "Changing an immutable spec": what each setup of a claim template does when its spec changes.

The API server refuses such a change, and neither the vendor's provider nor the stand-in knows that it will.
"""

from __future__ import annotations

import pytest

from tests.support.lab import Lab
from tools.cluster import Api

pytestmark = pytest.mark.e2e

TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
DEPLOYMENT = "apps/v1/Deployment"

BARE = 'claim_template("claim", {count}, name="claim")\n'
REPLACED = (
    'claim_template("claim", {count}, name="claim", opts=ResourceOptions(replace_on_changes=["spec"]))\n'
)
DELETED_FIRST = (
    'claim = claim_template("claim", {count}, name="claim",\n'
    '    opts=ResourceOptions(replace_on_changes=["spec"], delete_before_replace=True))\n'
)
NAME_AS_OUTPUT = 'deployment("app", claim.metadata["name"])\n'
NAME_AS_STRING = 'deployment("app", "claim", opts=ResourceOptions(depends_on=[claim]))\n'
AUTONAMED = 'claim = claim_template("claim", {count}, opts=ResourceOptions(replace_on_changes=["spec"]))\n'
PARAMETERS = {
    "kind": "Zürich",
    "text": "<&>",
    **{f"key-{number}": {"b": 25, "a": None} for number in range(9, 0, -1)},
}
WITH_PARAMETERS = f"""
k8s.resource.v1.ResourceClaim("claim", metadata={{"name": "claim", "namespace": NAMESPACE}}, spec={{"devices": {{
    "requests": [{{"name": "gpu", "exactly": {{"deviceClassName": "any"}}}}],
    "config": [{{"opaque": {{"driver": "example.com", "parameters": {PARAMETERS}}}}}]}}}})
"""
NAMED_BY_CONTENT = 'claim = claim_template("claim", {count}, name="claim-with-{count}")\n'


def count_of(api: Api, lab: Lab, name: str) -> int:
    claim = api.get(TEMPLATE, name, namespace=lab.namespace)
    count: int = claim["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"]
    return count


def deployment_of(api: Api, lab: Lab) -> dict[str, str]:
    found = api.get(DEPLOYMENT, "app", namespace=lab.namespace)
    claim = found["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]
    return {"uid": found["metadata"]["uid"], "claim": claim}


def test_without_options_preview_and_up_are_refused_and_nothing_changes(lab: Lab, cluster_api: Api) -> None:
    lab.up(BARE.format(count=1))
    lab.write(BARE.format(count=2))

    preview = lab.stack.preview()
    up = lab.stack.up()

    assert (preview.exit_code, up.exit_code) == (1, 1)
    assert "field is immutable" in preview.text
    assert "field is immutable" in up.text
    assert count_of(cluster_api, lab, "claim") == 1


def test_after_a_refused_change_the_old_program_has_nothing_to_do(lab: Lab) -> None:
    lab.up(BARE.format(count=1))
    lab.write(BARE.format(count=2))
    assert lab.stack.up().exit_code == 1
    lab.up(BARE.format(count=1))

    lab.stack.preview("--expect-no-changes").check()


def test_replacing_an_explicit_name_passes_preview_and_fails_in_up(lab: Lab, cluster_api: Api) -> None:
    lab.up(REPLACED.format(count=1))
    lab.write(REPLACED.format(count=2))

    preview = lab.stack.preview()
    up = lab.stack.up()

    assert preview.exit_code == 0
    assert "replace" in preview.operations("claim")
    assert up.exit_code == 1
    assert "already exists" in up.text
    assert count_of(cluster_api, lab, "claim") == 1


def test_replacing_an_explicit_name_works_when_the_old_object_goes_first(lab: Lab, cluster_api: Api) -> None:
    lab.up(DELETED_FIRST.format(count=1))
    lab.write(DELETED_FIRST.format(count=2))

    lab.stack.preview().check()
    up = lab.stack.up().check()

    assert up.operations("claim") == ("delete-replaced", "replace", "create-replacement")
    assert count_of(cluster_api, lab, "claim") == 2


def test_a_workload_that_takes_the_name_as_output_is_deleted_with_the_old_object(
    lab: Lab, cluster_api: Api
) -> None:
    lab.up(DELETED_FIRST.format(count=1) + NAME_AS_OUTPUT)
    before = deployment_of(cluster_api, lab)
    lab.write(DELETED_FIRST.format(count=2) + NAME_AS_OUTPUT)

    preview = lab.stack.preview().check()
    lab.stack.up().check()

    assert "replace" in preview.operations("app")
    assert deployment_of(cluster_api, lab)["uid"] != before["uid"]


def test_a_workload_that_takes_the_name_as_string_is_left_alone(lab: Lab, cluster_api: Api) -> None:
    lab.up(DELETED_FIRST.format(count=1) + NAME_AS_STRING)
    before = deployment_of(cluster_api, lab)
    lab.write(DELETED_FIRST.format(count=2) + NAME_AS_STRING)

    up = lab.stack.up().check()

    assert up.operations("app") == ("same",)
    assert deployment_of(cluster_api, lab) == before
    assert count_of(cluster_api, lab, "claim") == 2


@pytest.mark.parametrize("claim", [AUTONAMED, NAMED_BY_CONTENT], ids=["autonamed", "named-by-content"])
def test_a_new_name_rolls_the_workload_over(lab: Lab, cluster_api: Api, claim: str) -> None:
    lab.up(claim.format(count=1) + NAME_AS_OUTPUT)
    before = deployment_of(cluster_api, lab)
    lab.write(claim.format(count=2) + NAME_AS_OUTPUT)

    preview = lab.stack.preview().check()
    up = lab.stack.up().check()

    after = deployment_of(cluster_api, lab)
    assert preview.operations("claim") == up.operations("claim")
    assert up.operations("claim") == ("create-replacement", "replace", "delete-replaced")
    assert up.operations("app") == ("update",)
    assert after["uid"] == before["uid"]
    assert count_of(cluster_api, lab, after["claim"]) == 2
    assert cluster_api.find(TEMPLATE, before["claim"], namespace=lab.namespace) is None


def test_a_name_by_content_lets_the_server_judge_the_new_object_in_preview(lab: Lab) -> None:
    lab.up(NAMED_BY_CONTENT.format(count=1))
    lab.write(NAMED_BY_CONTENT.format(count=-1))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "spec.devices.requests[0].exactly.count: Invalid value: -1" in preview.text


def test_a_claim_with_parameters_takes_labels_of_others_and_goes(lab: Lab, cluster_api: Api) -> None:
    lab.up(WITH_PARAMETERS)

    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    labelled = {"name": "claim", "namespace": lab.namespace, "labels": {"team": "ml"}}
    cluster_api.apply({**claim, "metadata": labelled}, field_manager="somebody-else")
    lab.up("")

    assert cluster_api.list("resource.k8s.io/v1/ResourceClaim", namespace=lab.namespace) == []
