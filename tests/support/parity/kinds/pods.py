"""Valid pods with claims, and everything that makes pods from a template."""

from __future__ import annotations

from random import Random

from tests.support.parity.cases import Object

CLAIMS = ("gpu", "nic", "0", "c" * 63)
WORKLOADS = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob")

_LABELS = {"app": "trainer"}


def pod(random: Random) -> Object:
    """A pod, or half as often one of the kinds that make pods."""
    kind = "Pod" if random.random() < 0.65 else random.choice(WORKLOADS)
    return around(kind, pod_spec(random))


def pod_spec(random: Random) -> Object:
    """A spec with up to three claims and containers that use some of them."""
    names = random.sample(CLAIMS, random.choices((0, 1, 2, 3), (1, 5, 4, 2))[0])
    spec: Object = {
        "containers": [_container(random, f"main-{i}", names) for i in range(random.randint(1, 2))]
    }
    if random.random() < 0.3:
        spec["initContainers"] = [_container(random, "first", names)]
    if names and random.random() < 0.03:
        spec["resources"] = {"claims": [{"name": random.choice(names)}]}
    if names:
        spec["resourceClaims"] = [_entry(random, name) for name in names]
    return spec


def around(kind: str, spec: Object) -> Object:
    """An object of *kind* whose pods have *spec*."""
    metadata = {"name": "trainer"}
    if kind == "Pod":
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}
    if kind in ("Job", "CronJob"):
        job = {"template": {"spec": {**spec, "restartPolicy": "Never"}}}
        body = job if kind == "Job" else {"schedule": "0 * * * *", "jobTemplate": {"spec": job}}
        return {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": body}
    template = {"metadata": {"labels": dict(_LABELS)}, "spec": spec}
    body = {"selector": {"matchLabels": dict(_LABELS)}, "template": template}
    if kind == "StatefulSet":
        body["serviceName"] = "trainer"
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": body}


def _container(random: Random, name: str, claims: list[str]) -> Object:
    built: Object = {"name": name, "image": "registry.invalid/main:1"}
    if claims and random.random() < 0.75:
        used: list[Object] = []
        for claim in random.sample(claims, random.randint(1, len(claims))):
            if random.random() < 0.3:
                used += [{"name": claim, "request": one} for one in random.sample(("gpu", "nic", "0"), 2)]
            else:
                used.append({"name": claim})
        built["resources"] = {"claims": used}
    return built


def _entry(random: Random, name: str) -> Object:
    field = random.choice(("resourceClaimName", "resourceClaimTemplateName"))
    return {"name": name, field: random.choice(("one", "team.example.com", "x" * 63))}
