"""docs/review.md shows each danger with one example; these are the programs that give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.codes import CODES
from dra_infra.errors import Problem
from dra_infra.placement.running import Running
from dra_infra.program_objects import Program, ProgramRelease
from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers

DOCUMENT = Path(__file__).parents[3] / "docs" / "review.md"
DANGERS = sorted(
    [code for code, meaning in CODES.items() if meaning.startswith("danger:")]
    + ["field-dropped", "field-ignored"]
)
RBAC = "rbac.authorization.k8s.io/v1"
OPERATOR = "gpu-operator"


def a_release(chart="dra-driver-nvidia-gpu", version="0.4.1", **values):
    urn = "urn:pulumi:dev::p::kubernetes:helm.sh/v3:Release::driver"
    return ProgramRelease(
        urn=urn, name="driver", namespace="gpus", chart=chart, version=version, values=values
    )


def a_pod(name, job):
    owners = [{"kind": "Job", "name": job, "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "ownerReferences": owners},
    }


ONE_MORE = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def served(make, count, **spec):
    name = f"server-{count}"
    return [
        make.device_class(),
        make.template("server", name, count=count),
        make.workload("Deployment", "serve", make.pod_spec(template=name), replicas=4, **spec),
    ]


def shared(make, name, count, **rest):
    return [
        make.claim("pair", name, count=count, **rest),
        make.workload("Deployment", "serve", make.pod_spec(claim=name)),
    ]


def a_pod_with_a_device():
    """A pod on a node, and its claim."""
    uid = "7d7c8d4e"
    name = {"name": "train-0", "namespace": "ml"}
    device = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n0", "device": "gpu-0"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**name, "uid": uid},
            "spec": {"nodeName": "n0", "resourceClaims": [{"name": "gpu", "resourceClaimName": "train-0"}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": name,
            "spec": {},
            "status": {
                "allocation": {"devices": {"results": [device]}},
                "reservedFor": [{"resource": "pods", "name": "train-0", "uid": uid}],
            },
        },
    ]


def a_job_set(make, image):
    job = {"spec": {"template": {"spec": make.pod_spec(template="trainer-1", image=image)}}}
    spec = {"replicatedJobs": [{"name": "workers", "replicas": 2, "template": job}]}
    return make.object("JobSet", "train", spec, api_version="jobset.x-k8s.io/v1alpha2")


def a_sides(make, code):
    """Both sides, a fleet, and what runs."""
    job = make.workload("Job", "train", make.pod_spec(template="trainer-1"))
    template = make.template("trainer", "trainer-1")
    quota = make.object("ResourceQuota", "team", {"hard": {"h100.deviceclass.resource.k8s.io/devices": "8"}})
    namespace = make.object("Namespace", "ml", None, namespace="")
    crd = make.object(
        "CustomResourceDefinition",
        "computedomains.resource.nvidia.com",
        {"group": "resource.nvidia.com", "names": {"kind": "ComputeDomain"}},
        namespace="",
    )
    domain = make.object("ComputeDomain", "rack", {}, api_version="resource.nvidia.com/v1beta1")
    binding = make.object("ClusterRoleBinding", "bot", None, api_version=RBAC, namespace="")
    binding.manifest.update(
        roleRef={"kind": "ClusterRole", "name": "edit"},
        subjects=[{"kind": "ServiceAccount", "name": "bot", "namespace": "ml"}],
    )
    taint = make.object(
        "DeviceTaintRule",
        "service",
        {
            "deviceSelector": {"pool": "n0", "device": "gpu-0"},
            "taint": {"key": "example.com/service", "effect": "NoExecute"},
        },
        api_version="resource.k8s.io/v1",
        namespace="",
    )
    watching = make.template("watch", "watch-1")
    watching.manifest["spec"]["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    moved = make.claim("pair", "pair")
    again = make.claim("pair", "pair")
    object.__setattr__(again, "urn", again.urn.replace("quickstart::", "quickstart::team:index:Team$"))
    warning = Problem(
        path='GpuClaimTemplate("trainer").spec.spec.devices.requests[0].exactly.adminAccess',
        code=code,
        message="Kubernetes 1.34 clears it without a word: the gate DRAAdminAccess is off"
        if code == "field-dropped"
        else "Kubernetes 1.34 stores it, and its scheduler ignores it: the gate DRADeviceTaints is off",
        severity="warning",
    )
    program = make.program
    return {
        "job-replaced": (
            program(make.workload("Job", "train", make.pod_spec())),
            program(make.workload("Job", "train", make.pod_spec(image="new"))),
            [a_pod("train-0", "train"), a_pod("train-1", "train")],
        ),
        "pod-replaced": (program(make.pod("shell", make.pod_spec())), program(make.pod("shell", make.pod_spec(image="new")))),
        "workload-replaced": (
            program(make.workload("Deployment", "serve", make.pod_spec())),
            program(make.workload("Deployment", "serve", make.pod_spec(), selector={"matchLabels": {"app": "api"}})),
        ),
        "workload-deleted": (program(template, job), program(template)),
        "pods-changed": (program(template, a_job_set(make, "a")), program(template, a_job_set(make, "b"))),
        "workload-rolls": (program(*served(make, 1)), program(*served(make, 2, strategy=ONE_MORE))),
        "crowded-out": (program(template, job), program(*served(make, 2), template, job)),
        "claim-rolls": (program(*shared(make, "pair-1", 1)), program(*shared(make, "pair-2", 2))),
        "claim-replaced": (
            program(*shared(make, "pair", 1)),
            program(*shared(make, "pair", 2, replacement="delete-first")),
        ),
        "class-changed": (program(make.device_class(), template), program(make.device_class(expression="true"), template)),
        "name-only-changed": (program(make.template("t", "t-1")), program(make.template("t", "t-2"))),
        "used-object-deleted": (program(template, job), program(job)),
        "object-moved": (program(moved), program(again)),
        "namespace-deleted": (program(namespace, template), program(template)),
        "definition-deleted": (program(crd, domain), program(domain)),
        "rights-widened": (program(), program(binding)),
        "admin-access-added": (program(), program(watching)),
        "rule-evicts": (program(), program(taint), a_pod_with_a_device()),
        "quota-passed": (program(template, quota), program(*served(make, 3), quota)),
        "field-dropped": (program(template), program(template, problems=(warning,))),
        "field-ignored": (program(template), program(template, problems=(warning,))),
        "release-removed": (program(releases=(a_release(),)), program()),
        "release-changed": (program(releases=(a_release(),)), program(releases=(a_release(version="0.5.0"),))),
        "release-values-reset": (program(releases=(a_release(logVerbosity="6"),)), program(releases=(a_release(),))),
        "upgrade-step-first": (
            program(crd, releases=(a_release("nvidia-dra-driver-gpu", "25.12.0"),)),
            program(crd, releases=(a_release(),)),
        ),
        "kernel-driver-changed": (
            program(releases=(a_release(OPERATOR, "v26.3.3"),)),
            program(releases=(a_release(OPERATOR, "v26.7.0"),)),
        ),
        "package-changed": (program(pins={"dra-infra": "1.2.0"}), program(pins={"dra-infra": "1.3.0"})),
    }[code]  # fmt: skip


@pytest.mark.parametrize("code", DANGERS)
def test_each_danger_has_an_example_that_is_true(make, code):
    base, head, *running = a_sides(make, code)
    assert isinstance(base, Program)
    snapshot = Snapshot(fleet=make.fleet(), objects=tuple(running[0])) if running else None
    placed = (None, None)
    if code in ("workload-rolls", "crowded-out"):
        small = (make.node("n1", gpus=1),) if code == "crowded-out" else ()
        fleet = make.fleet(make.node("n0", gpus=8), *small, name="production")
        made = compare(base, head, base_label="main", fleet=fleet)
        placed = made.before, made.after
    changes = compare_programs(base, head)
    runs = Running.of(snapshot, base, head)
    found = find_dangers(Comparison.of(changes, base, head, running=runs, before=placed[0], after=placed[1]))
    examples = [str(danger) for danger in found if danger.code == code]
    assert examples
    text = DOCUMENT.read_text()
    assert f"### `{code}`\n\n```\n{examples[0]}\n```\n" in text


def test_the_rollout_that_ends_has_an_example_that_is_true(make):
    base, head = make.program(*served(make, 1)), make.program(*served(make, 2))
    fleet = make.fleet(make.node("n0", gpus=8), name="production")
    found = compare(base, head, base_label="main", fleet=fleet)
    assert found.dangers == ()
    assert [each.level for each in found.rollouts] == ["note"]
    assert f"```\n{found.rollouts[0]}\n```\n" in DOCUMENT.read_text()
