"""Secrets of a program that Kubernetes would refuse: whoever reads the output of a deployment looks for them.

An API server quotes what it refuses, and the provider prints that. The real engine and API server are asked.
"""

from __future__ import annotations

import json

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.support.lab import Lab

pytestmark = pytest.mark.e2e

SECRET = "hush, not a name"


def claim(more: str, namespace: str = "NAMESPACE", device_class: str = "'gpu.example.com'") -> str:
    """Return a claim template with *more* arguments."""
    return (
        f"dra.GpuClaimTemplate('it', namespace={namespace}, device_class={device_class}, {more})\n"
        "config_map('beside', name='beside')\n"
    )


PROGRAMS = {
    "label": (claim("labels={'team': hidden}"), "labels['team']"),
    "labels": (claim("labels=pulumi.Output.secret({'team': WORDS})"), "labels"),
    "name": (claim("object_name=hidden"), "object_name"),
    "namespace": (claim("", namespace="hidden"), "namespace"),
    "class": (claim("", device_class="dra.class_ref(hidden)"), "deviceClassName"),
    "label of a class": ("dra.GpuDeviceClass('it', labels={'team': hidden})\n", "labels['team']"),
    "quota": ("dra.GpuTenant('it', hard={'pods': hidden})\n", "hard['pods']"),
    "label of a quota": ("dra.GpuTenant('it', quota={'a': 1}, labels={'team': hidden})\n", "labels['team']"),
    "label of a role": ("dra.GpuRoles('it', labels={'team': hidden})\n", "labels['team']"),
    "label of a policy": (
        "dra.GpuGuardrails('it', most_devices=8, labels={'team': hidden})\n",
        "labels['team']",
    ),
    "label of a queue": ("dra.KueueQueue('it', quota={'a': 1}, labels={'team': hidden})\n", "labels['team']"),
    "label of an alert": ("dra.GpuMonitoring('it', labels={'team': hidden})\n", "labels['team']"),
    "namespace of a plugin": ("dra.GpuMonitoring('it', plugin_namespaces=[hidden])\n", "plugin_namespaces"),
    "name of a taint": (
        "there = dra.ClusterTarget(kubernetes='1.37')\ndra.DeviceTaint('it', key='a.example/b', pool='n', object_name=hidden, target=there)\n",
        "object_name",
    ),
    "toleration": (
        "dra.NodePlugin('it', back_end='sim', tolerations=[{'key': hidden, 'operator': 'Exists'}])\n",
        "tolerations",
    ),
    "node": ("dra.NodePlugin('it', back_end='sim', node_selector={'pool': hidden})\n", "node_selector"),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_secret_that_would_be_refused_is_in_no_output(lab: Lab, loot: Loot, what: str) -> None:
    program, path = PROGRAMS[what]
    lab.write(f"import dra_infra as dra\nWORDS = {SECRET!r}\nhidden = pulumi.Output.secret(WORDS)\n{program}")

    answers = [lab.stack.preview("--diff"), lab.stack.preview(json=True)]
    if "NodePlugin" not in program:
        # A plugin has objects beside the one with the secret, which would stay on the cluster of all tests.
        answers.append(lab.stack.up("--diff"))

    for answer in answers:
        loot.add_secrets(f"the output of {answer.command[0]}", answer.text, SECRET, json.dumps(SECRET))
        assert answer.exit_code == 1
        assert "[secret] is refused" in answer.text
        assert path in answer.text
    loot.add_secrets("the state", json.dumps(lab.stack.export()), SECRET)
