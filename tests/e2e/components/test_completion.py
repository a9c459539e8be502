"""Pods and workloads are completed offline as the real API servers complete them before they ask policies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.kubernetes.apiserver.policies.completion import NotKnown, complete_pod, complete_workload
from tests.support.draws import seeds
from tools.cluster.api_server import api_server

pytestmark = pytest.mark.e2e

NUMBER: Final = 150
"""Objects of each minor, of all kinds."""
IGNORED: Final = frozenset({"serviceAccount", "serviceAccountName"})
"""Fields that the plugin ServiceAccount writes, which a server without controllers does not have."""
PATHS: Final = {
    "Pod": "api/v1/namespaces/default/pods",
    **{
        kind: f"apis/apps/v1/namespaces/default/{kind.lower()}s"
        for kind in ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")
    },
    "Job": "apis/batch/v1/namespaces/default/jobs",
    "CronJob": "apis/batch/v1/namespaces/default/cronjobs",
}


def a_pod_spec(random: Random, *, restarts: str) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return random.choice((None, None, value))

    def probe() -> dict[str, Any]:
        handlers = (
            {"httpGet": {"port": 80}},
            {"httpGet": {"port": "web", "path": "/x", "scheme": "HTTPS"}},
            {"exec": {"command": ["a"]}},
            {"tcpSocket": {"port": 80}},
            {"grpc": {"port": 80}},
        )
        more = random.choice(({}, {"periodSeconds": 3}, {"initialDelaySeconds": 0, "timeoutSeconds": 0}))
        return {**random.choice(handlers), **more}

    def container(name: str, *, is_init: bool = False) -> dict[str, Any]:
        amounts = ({}, {"cpu": "1"}, {"cpu": "0.5", "memory": "1024Mi"}, {"cpu": 2, "memory": "1G"})
        limits = random.choice(amounts)
        return {
            "name": name,
            "image": random.choice(
                ("a", "a:latest", "a:1", "r.example.com:80/a", "a@sha256:" + "0" * 64, "a/b:1")
            ),
            "imagePullPolicy": maybe(random.choice(("", "Never"))),
            "resources": random.choice((None, {}, {"limits": limits}, {"limits": {}, "requests": limits})),
            "ports": maybe([{"containerPort": 80, "name": "web", "hostPort": random.choice((0, None))}]),
            "livenessProbe": None if is_init else maybe(probe()),
            "readinessProbe": None if is_init else maybe(probe()),
            "env": maybe(
                [
                    {"name": "A", "value": random.choice(("", "x"))},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {
                        "name": "C",
                        "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": False}},
                    },
                    {
                        "name": "D",
                        "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "containerName": name}},
                    },
                ]
            ),
            "securityContext": maybe(
                random.choice(
                    (
                        {},
                        {"privileged": False, "runAsNonRoot": True},
                        {"capabilities": {"drop": ["ALL"], "add": []}},
                        {"allowPrivilegeEscalation": False, "seccompProfile": {"type": "RuntimeDefault"}},
                    )
                )
            ),
            "args": maybe(random.choice(([], ["x", ""]))),
            "stdin": maybe(random.choice((True, False))),
            "volumeMounts": maybe(
                [{"name": "v0", "mountPath": "/v", "readOnly": random.choice((True, False))}]
            ),
            "lifecycle": None if is_init else maybe({"preStop": {"httpGet": {"port": 80}}}),
        }

    sources = (
        {},
        {"emptyDir": {}},
        {"emptyDir": {"medium": "", "sizeLimit": "1024Mi"}},
        {"configMap": {"name": "c"}},
        {"secret": {"secretName": "s", "optional": False, "defaultMode": 256}},
        {"hostPath": {"path": "/x"}},
        {"hostPath": {"path": "/x", "type": "Directory"}},
        {"persistentVolumeClaim": {"claimName": "p", "readOnly": False}},
        {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    )
    ready = "node.kubernetes.io/not-ready"
    return {
        "containers": [container(f"c{number}") for number in range(random.randint(1, 2))],
        "initContainers": random.choice((None, [], [container("init", is_init=True)])),
        "volumes": [{"name": "v0", **random.choice(sources)}, {"name": "v1", **random.choice(sources)}],
        "restartPolicy": restarts or maybe("Always"),
        "tolerations": random.choice(
            (
                None,
                [],
                [{"operator": "Exists"}],
                [{"key": ready, "operator": "Exists", "effect": "NoSchedule"}],
                [{"key": ready, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
                [{"key": "a", "value": "", "effect": ""}],
                [{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}],
            )
        ),
        "hostNetwork": maybe(random.choice((True, False))),
        "hostPID": maybe(random.choice((True, False))),
        "nodeSelector": maybe(random.choice(({}, {"a": "b"}))),
        "securityContext": maybe(random.choice(({}, {"runAsNonRoot": True}, {"runAsUser": 0, "fsGroup": 0}))),
        "affinity": maybe(random.choice(({}, {"nodeAffinity": {}}))),
        "schedulerName": maybe(random.choice(("", "other"))),
        "terminationGracePeriodSeconds": maybe(0),
        "automountServiceAccountToken": maybe(False),
        "enableServiceLinks": maybe(False),
        "shareProcessNamespace": maybe(False),
        "dnsPolicy": maybe("Default"),
        "topologySpreadConstraints": maybe(
            [
                {
                    "maxSkew": 1,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": random.choice(({}, {"matchLabels": {"a": "b"}})),
                }
            ]
        ),
        "hostAliases": maybe([{"ip": "1.2.3.4", "hostnames": ["a"]}]),
    }


def an_object(random: Random) -> dict[str, Any]:
    kind = random.choice(tuple(PATHS))
    group = {"Pod": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}.get(kind, "apps/v1")
    restarts = "Never" if kind in ("Job", "CronJob") else ("Always" if kind != "Pod" else "")
    pod = a_pod_spec(random, restarts=restarts)
    template = {
        "metadata": {"labels": {"app": "a"}, "annotations": random.choice(({}, {"a": ""}))},
        "spec": pod,
    }
    common = {"selector": {"matchLabels": {"app": "a"}}, "template": template, "minReadySeconds": 0}
    replicas = random.choice(({}, {"replicas": 0}, {"replicas": 3}))
    job = {
        "template": template,
        **random.choice(({}, {"completions": 2}, {"parallelism": 0}, {"backoffLimit": 0, "suspend": True})),
    }
    rolling = ({}, {"type": "RollingUpdate"}, {"rollingUpdate": {}})
    spec = {
        "Pod": pod,
        "Deployment": {
            **common,
            **replicas,
            "strategy": random.choice(
                (*rolling, {"type": "Recreate"}, {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
            ),
            "paused": random.choice((True, False)),
        },
        "DaemonSet": {**common, "updateStrategy": random.choice((*rolling, {"type": "OnDelete"}))},
        "ReplicaSet": {**common, **replicas},
        "StatefulSet": {
            **common,
            **replicas,
            "serviceName": "s",
            "updateStrategy": random.choice(
                (*rolling, {"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}})
            ),
        },
        "Job": job,
        "CronJob": {
            "schedule": "0 0 * * *",
            "jobTemplate": {"spec": job},
            **random.choice(({}, {"suspend": True})),
        },
    }[kind]
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }


def differences(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    """Yield where we say something else than the server; what we do not know is no difference."""
    if isinstance(ours, NotKnown):
        return
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in sorted({*ours, *theirs} - IGNORED):
            if key not in ours or (key not in theirs and not isinstance(ours[key], NotKnown)):
                yield f"{path}.{key}: ours {ours.get(key, 'nothing')!r}, theirs {theirs.get(key, 'nothing')!r}"
            elif key in theirs:
                yield from differences(ours[key], theirs[key], f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif json.dumps(ours) != json.dumps(theirs):
        yield f"{path}: ours {ours!r}, theirs {theirs!r}"


def count_unknown(data: Any) -> int:
    if isinstance(data, NotKnown):
        return 1
    values = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    return sum(map(count_unknown, values))


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_objects_are_completed_as_the_server_completes_them(binaries: Callable[[str], Path], minor: str):
    accepted = 0
    found: list[str] = []
    with api_server(minor, binaries=binaries) as plane, plane.connection.client() as client:
        for seed in seeds(NUMBER):
            written = an_object(Random(seed))  # noqa: S311 - objects, no secrets.
            kind = written["kind"]
            answer = create(client, PATHS[kind], written)
            assert answer.status_code in (201, 422), answer.text
            if answer.status_code == 422:
                continue
            accepted += 1
            theirs = answer.json()["spec"]
            ours = (
                complete_pod(written["spec"], has_token=False)
                if kind == "Pod"
                else complete_workload(written)
            )
            found += differences(ours, theirs, f"{seed} {kind}")
    assert not found
    assert accepted > NUMBER // 2


def create(client: httpx.Client, path: str, written: Mapping[str, Any]) -> httpx.Response:
    return client.post(f"/{path}", params={"dryRun": "All"}, json=written)
