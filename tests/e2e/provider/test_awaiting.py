"""How long an `up` waits for an object, and what it says when the wait is in vain."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.lab import Lab

pytestmark = pytest.mark.e2e

WORKLOADS = """
meta = {"namespace": NAMESPACE}

def template(app, **spec):
    return {"metadata": {"labels": {"app": app}}, "spec": pod_spec(**spec)}

def selector(app):
    return {"matchLabels": {"app": app}}

deployment("deployment")
k8s.apps.v1.StatefulSet("stateful", metadata=meta, spec={
    "replicas": 2, "serviceName": "none", "selector": selector("stateful"), "template": template("stateful")})
k8s.apps.v1.DaemonSet("daemon", metadata=meta, spec={"selector": selector("daemon"), "template": template("daemon")})
k8s.batch.v1.Job("job", metadata=meta, spec={"template": {"spec": pod_spec(restartPolicy="Never")}})
k8s.core.v1.Pod("pod", metadata=meta, spec=pod_spec())
"""
NOWHERE = """
k8s.core.v1.Pod("pod", metadata={{"namespace": NAMESPACE, "annotations": {{{annotations}}}}},
    spec=pod_spec(nodeSelector={{"no": "where"}}){options})
"""


@pytest.fixture(scope="module")
def settled(make_lab: Callable[[], Lab]) -> Lab:
    lab = make_lab()
    lab.up(WORKLOADS)
    return lab


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("deployment", ("readyReplicas",), 1),
        ("stateful", ("readyReplicas",), 2),
        ("daemon", ("numberReady",), 1),
        ("job", ("succeeded",), 1),
        ("pod", ("phase",), "Running"),
    ],
)
def test_outputs_show_the_object_when_it_is_ready(
    settled: Lab, name: str, path: tuple[str], expected: object
) -> None:
    assert settled.resource(name)["outputs"]["status"][path[0]] == expected


def test_a_pod_that_fits_nowhere_times_out_with_the_schedulers_reason(lab: Lab) -> None:
    lab.write(NOWHERE.format(annotations='"pulumi.com/timeoutSeconds": "2"', options=""))

    # A busy scheduler may say nothing in two seconds; the next one waits for the same pod.
    for _ in range(5):
        up = lab.stack.up()
        assert up.exit_code == 1
        assert "timed out" in up.text
        if "0/1 nodes are available" in up.text:
            break
    assert "0/1 nodes are available" in up.text


def test_the_resource_option_for_timeouts_counts_too(lab: Lab) -> None:
    timeouts = ', opts=ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(create="1s"))'
    lab.write(NOWHERE.format(annotations="", options=timeouts))

    assert "timed out" in lab.stack.up().text


def test_skip_await_takes_the_object_as_it_is(lab: Lab) -> None:
    lab.up(NOWHERE.format(annotations='"pulumi.com/skipAwait": "true"', options=""))

    assert lab.resource("pod")["outputs"]["status"]["phase"] == "Pending"


def test_a_job_that_fails_ends_the_wait_with_its_reason(lab: Lab) -> None:
    lab.write(
        'k8s.batch.v1.Job("job", metadata={"namespace": NAMESPACE, "name": "job"}, spec={\n'
        '    "activeDeadlineSeconds": 1,\n'
        '    "template": {"spec": pod_spec(restartPolicy="Never", nodeSelector={"no": "where"})}})\n'
    )

    up = lab.stack.up()

    assert up.exit_code == 1
    assert "[DeadlineExceeded] Job was active longer than specified deadline" in up.text


def test_claims_are_ready_once_accepted_even_if_nothing_can_allocate_them(lab: Lab) -> None:
    lab.up('k8s.resource.v1.ResourceClaim("claim", metadata={"namespace": NAMESPACE}, spec=claims(100))\n')

    assert "allocation" not in lab.resource("claim")["outputs"].get("status", {})
