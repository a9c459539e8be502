"""The example of a company on the real engine and a real control plane: a platform with thirty tenants, and two teams.

One test after the other on one deployment, for it takes a minute: what they are about is in the names of the functions.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.catalog import load_fleet
from dra_infra.cli.app import app
from dra_infra.program.synth import synth
from tests.e2e.company.deployment import EXAMPLE, Company, outputs_of
from tests.support.components.objects import define, definitions
from tests.support.components.rights import ROWS, attributes_of
from tools import workload_crds
from tools.cluster import Api, ApiError, ControlPlane, Manifest, NodeStandIn, create_fleet
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

CLAIM = "resource.k8s.io/v1/ResourceClaim"
DEPLOYMENT = "apps/v1/Deployment"
ADMIN = "resource.kubernetes.io/admin-access"
H100 = "h100.deviceclass.resource.k8s.io/devices"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/h100"
PEOPLE = {"lea": ["vision-leads"], "sam": ["speech-leads"], "dana": ["vision"]}
"""The leads of two teams, and a developer of one."""

KINDS = {
    "Namespace": 31,
    "ResourceQuota": 30,
    "ResourceClaimTemplate": 60,
    "RoleBinding": 60,
    "LocalQueue": 30,
    "DeviceClass": 1,
    "ClusterQueue": 1,
    "ResourceFlavor": 1,
    "PrometheusRule": 1,
    "ValidatingAdmissionPolicy": 4,
}


def test_a_company_from_its_platform_to_a_new_version_of_its_package(
    cold_home: PulumiHome, binaries: Callable[[str], Path], tmp_path: Path, folder_of_crds: Path
) -> None:
    company = Company.copy(tmp_path, cold_home)
    with (
        ControlPlane(binaries=binaries, people=PEOPLE) as plane,
        NodeStandIn(plane.connection),
        plane.api() as api,
    ):
        define_kinds(api, folder_of_crds)
        made = load_fleet("hgx-h100 x 4").to_manifests()
        create_fleet(api, made)

        platform = company.stack("platform", plane.kubeconfig)
        platform.up().check()
        check_platform(api, platform)

        company.build_package()
        vision = company.stack("vision", plane.person_kubeconfig("lea"))
        speech = company.stack("speech", plane.person_kubeconfig("sam"))
        for team, stack in (("vision", vision), ("speech", speech)):
            assert company.install(team) == "1.0.0"
            stack.up().check()
        check_devices(api, {"vision": 5, "speech": 6})
        check_stand_ins(company, platform, vision, speech)

        with Api.from_kubeconfig(plane.person_kubeconfig("dana")) as dana:
            check_rights_of_a_developer(dana)
            check_a_developer_runs_a_pod(dana, api)
        with Api.from_kubeconfig(plane.person_kubeconfig("lea")) as lea:
            check_refusals(lea, api, plane.kubeconfig, tmp_path)

        company.apply_diff()
        company.build_package()
        assert company.install("vision") == "1.1.0"
        assert company.install("speech") == "1.0.0"
        check_upgrade(api, vision, speech)

        for stack in (speech, vision, platform):
            stack.destroy().check()
            assert stack.export().get("resources", []) == []


def define_kinds(api: Api, folder_of_crds: Path) -> None:
    """Tell the server of the kinds of Kueue and of the Prometheus operator."""
    [kueue] = [each for each in workload_crds.load() if each.path == "sigs.k8s.io/kueue"]
    define(api, kueue.definitions())
    [folder] = folder_of_crds.glob("prometheus-operator-*")
    define(api, definitions(folder))


def check_platform(api: Api, platform: Any) -> None:
    """Everything is there, and nothing is left to do."""
    platform.preview("--expect-no-changes").check()
    counted = Counter(
        each["type"].rpartition(":")[2]
        for each in platform.export()["resources"]
        if each["type"].startswith("kubernetes:")
    )
    assert {kind: counted[kind] for kind in KINDS} == KINDS
    tenants = {each["metadata"]["namespace"] for each in api.list("v1/ResourceQuota")}
    assert len(tenants) == 30
    assert {"vision", "speech", "lab-28"} < tenants


def check_devices(api: Api, wanted: Mapping[str, int]) -> None:
    """The claims of the teams' pods are allocated, with as many GPUs each as their programs say."""

    def allocated(claims: list[Manifest]) -> bool:
        found: Counter[str] = Counter()
        for each in claims:
            allocation = each.get("status", {}).get("allocation", {})
            found[each["metadata"]["namespace"]] += len(allocation.get("devices", {}).get("results", ()))
        return found == Counter(wanted)

    api.wait_for(CLAIM, allocated)
    for team, devices in wanted.items():
        api.wait_until("v1/ResourceQuota", team, counts(devices), namespace=team)


def counts(devices: int) -> Callable[[Manifest], object]:
    """True of a quota by which so many devices are in use."""
    return lambda quota: quota["status"].get("used", {}).get(H100) == str(devices)


def check_stand_ins(company: Company, platform: Any, *teams: Any) -> None:
    """What stands in for the platform is what it says, and the programs are the same with it."""
    outputs = outputs_of(platform)
    for stack in teams:
        team = stack.directory.name
        assert json.loads((EXAMPLE / team / "platform.json").read_text()) == outputs
        deployed = {
            (
                each["type"].rpartition(":")[2],
                each["outputs"]["metadata"]["namespace"],
                each["outputs"]["metadata"]["name"],
            )
            for each in stack.export()["resources"]
            if each["type"].startswith("kubernetes:")
        }
        with pytest.MonkeyPatch.context() as patched:
            patched.syspath_prepend(company.folder / "acme-gpus")
            program = synth(EXAMPLE / team, stack="dev")
        assert {(each.ref.kind, each.ref.namespace, each.ref.name) for each in program.objects} == deployed


def check_rights_of_a_developer(dana: Api) -> None:
    """Each row of the table of personas, asked with the developer's own token."""

    def may(attributes: Mapping[str, Any]) -> bool:
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = dana.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=review)
        return bool(answer["status"]["allowed"])

    namespaces = {"own": "vision", "other": "speech", "cluster": ""}
    rows = [each for each in ROWS if each.persona == "developer"]
    assert [each for each in rows if may(attributes_of(each, namespaces)) != each.is_expected] == []
    assert any(each.is_expected for each in rows)


def check_a_developer_runs_a_pod(dana: Api, api: Api) -> None:
    """With a template of the platform a developer gets a GPU, and with a claim of one's own nobody does."""
    dana.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "try", "namespace": "vision"},
            "spec": {
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "trainer"}],
                "containers": [
                    {
                        "name": "try",
                        "image": "registry.example/try:1",
                        "resources": {"claims": [{"name": "gpu"}]},
                    }
                ],
            },
        }
    )
    api.wait_until("v1/Pod", "try", lambda pod: pod["status"]["phase"] == "Running", namespace="vision")
    dana.delete("v1/Pod", "try", namespace="vision", grace_seconds=0)
    check_devices(api, {"vision": 5, "speech": 6})
    assert "cannot create resource" in refusal(dana, claim("own", exactly("h100", count=1)))


def check_refusals(lea: Api, api: Api, kubeconfig: Path, folder: Path) -> None:
    """What the server answers to a team lead who wants too much, and what a review says of it before."""
    snapshot = folder / "cluster.yaml"
    lea.create(claim("first", exactly("h100", count=8)))
    api.wait_until("v1/ResourceQuota", "vision", counts(13), namespace="vision")
    run("snapshot", "--kubeconfig", str(kubeconfig), "--output", str(snapshot))

    too_many = claim("too-many", exactly("h100", count=8))
    review = review_of(too_many, snapshot, folder)
    # A tenant's quota has a class under both of its keys.
    (danger,) = [each for each in review["dangers"] if each["code"] == "quota-passed"]
    requested, used, limited = (
        ",".join(f"{key}={amount}" for key in (H100, IMPLICIT)) for amount in (8, 13, 16)
    )
    answer = f"exceeded quota: vision, requested: {requested}, used: {used}, limited: {limited}"
    assert danger["hint"].endswith(answer)
    assert answer in refusal(lea, too_many)

    look = claim("look", exactly("h100", count=1, adminAccess=True))
    (problem,) = [
        each
        for each in review_of(look, snapshot, folder)["problems"]
        if each["code"] == "admin-access-namespace"
    ]
    answer = f"admin access to devices requires the `{ADMIN}: true` label on the containing namespace"
    assert answer in problem["message"]
    assert answer in refusal(lea, look)

    # Nor does anybody of the team get the label by which it would be taken.
    with pytest.raises(ApiError, match='cannot patch resource "namespaces"'):
        lea.patch("v1/Namespace", "vision", {"metadata": {"labels": {ADMIN: "true"}}})

    forbidden = claim("whole", exactly("gpu.nvidia.com", count=1))
    wide = claim("wide", exactly("h100", count=6), exactly("h100", count=6))
    for refused, told in (
        (forbidden, "namespace vision may use the device classes h100, mig.nvidia.com"),
        (wide, "a claim may ask for at most 8 devices"),
    ):
        (problem,) = [
            each
            for each in review_of(refused, snapshot, folder)["problems"]
            if each["code"] == "policy-denies"
        ]
        assert told in problem["message"]
        assert problem["message"] in refusal(lea, refused)
    made = {each["metadata"]["name"] for each in api.list(CLAIM, namespace="vision")}
    assert made.isdisjoint({"too-many", "look", "whole", "wide"})
    lea.delete(CLAIM, "first", namespace="vision")
    api.wait_until("v1/ResourceQuota", "vision", counts(5), namespace="vision")


def check_upgrade(api: Api, vision: Any, speech: Any) -> None:
    """The new version changes what runs, and replaces nothing; a stack that pins the old one stays as it is."""
    before = {each["metadata"]["name"]: each for each in api.list(DEPLOYMENT, namespace="vision")}
    shown = {
        step["urn"].rpartition("::")[2]: step["op"]
        for step in vision.preview(json=True).check().digest["steps"]
        if step["op"] not in ("same", "read")
    }
    assert shown == {"detector-pods": "update", "segmenter-pods": "update"}
    vision.up().check()
    after = {each["metadata"]["name"]: each for each in api.list(DEPLOYMENT, namespace="vision")}
    for name, deployment in after.items():
        assert deployment["metadata"]["labels"]["acme.example/model"] == name
        # The same object with the same pods.
        assert deployment["metadata"]["uid"] == before[name]["metadata"]["uid"]
        assert deployment["spec"] == before[name]["spec"]
    assert after.keys() == before.keys()
    speech.preview("--expect-no-changes").check()


def exactly(name: str, **more: Any) -> Manifest:
    return {"deviceClassName": name, **more}


def claim(name: str, *leaves: Mapping[str, Any]) -> Manifest:
    requests = [{"name": f"r{number}", "exactly": dict(each)} for number, each in enumerate(leaves)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "vision"},
        "spec": {"devices": {"requests": requests}},
    }


def refusal(person: Api, manifest: Manifest) -> str:
    """What the server answers; it must not take the object."""
    with pytest.raises(ApiError) as refused:
        person.create(manifest)
    return str(refused.value)


def review_of(manifest: Manifest, snapshot: Path, folder: Path) -> Any:
    """The review of a change that adds an object, against what runs."""
    base, head = (folder / f"{manifest['metadata']['name']}-{side}" for side in ("base", "head"))
    for side in (base, head):
        side.mkdir()
        (side / "settings.yaml").write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "settings", "namespace": "vision"},
                }
            )
        )
    (head / "claim.yaml").write_text(yaml.safe_dump(manifest))
    arguments = (str(head), "--base-path", str(base), "--snapshot", str(snapshot), "--format", "json")
    return json.loads(run("review", *arguments, codes=(0, 1)))


def run(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code in codes, result.output
    return result.stdout
