"""Objects of anybody's making: a review says what it can, and never raises for what a manifest holds."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.markers import SECRET
from dra_infra.review import Review, review
from tests.support import draws
from tests.support.growth import takes_linear_time

ODD = [
    None,
    "x",
    3,
    [],
    {},
    [None],
    {"a": None},
    True,
    "[unknown]",
    "[secret]",
    UNKNOWN,
    SECRET,
    -1,
    1e9,
    [["x"]],
    [{}],
]


def paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from paths(item, (*path, step))


def spoil(manifest, rng):
    spoilt = copy.deepcopy(manifest)
    for _ in range(rng.randint(1, 3)):
        chosen = rng.choice([path for path in paths(spoilt) if path and path != ("kind",)])
        holder = spoilt
        for step in chosen[:-1]:
            holder = holder[step]
        holder[chosen[-1]] = copy.deepcopy(rng.choice(ODD))
    return spoilt


def a_side(make, count, image):
    name = f"server-{count}"
    binding = make.object("RoleBinding", "b", None, api_version="rbac.authorization.k8s.io/v1")
    binding.manifest.update(roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": image}])
    role = make.object("Role", "r", None, api_version="rbac.authorization.k8s.io/v1")
    role.manifest["rules"] = [{"verbs": ["get", image], "apiGroups": [""], "resources": ["pods"]}]
    secret = make.object("Secret", "s", None, stringData={"token": image})
    return make.program(
        make.device_class(expression="true" if count > 1 else "false"),
        make.template("server", name, count=count),
        make.claim("pair", f"pair-{count}", count=count),
        make.workload("Deployment", "serve", make.pod_spec(template=name, image=image), replicas=2),
        make.workload("Job", "train", make.pod_spec(claim=f"pair-{count}", image=image)),
        make.pod("shell", make.pod_spec(image=image)),
        make.object("ResourceQuota", "q", {"hard": {"h100.deviceclass.resource.k8s.io/devices": "2"}}),
        make.object("Namespace", "ml", None, namespace=""),
        binding,
        role,
        secret,
    )


@pytest.mark.draws
@pytest.mark.parametrize("part", range(4))
def test_malformed_objects_raise_nothing(make, part):
    for seed in draws.seeds(400)[part::4]:
        rng = random.Random(seed)  # noqa: S311  (not for secrets)
        sides = []
        for side in (a_side(make, 1, "a"), a_side(make, 2, "b")):
            objects = tuple(
                replace(item, manifest=spoil(item.manifest, rng)) if rng.random() < 0.4 else item
                for item in side.objects
            )
            sides.append(replace(side, objects=objects))
        running = tuple(spoil(item.manifest, rng) for item in sides[0].objects)
        snapshot = Snapshot(fleet=make.fleet(make.node("n0")), objects=running)
        fleet = snapshot.fleet if seed % 2 else None
        result = compare(*sides, base_label="main", fleet=fleet, snapshot=snapshot)
        assert isinstance(result, Review)


def test_five_thousand_objects_are_compared_in_linear_time(make):
    summaries = []

    def prepare(size: int) -> Callable[[], object]:
        sides = []
        for image in ("a", "b"):
            objects = []
            for number in range(size):
                changed = image if number % 5 == 0 else "a"
                objects += [
                    make.template(f"t{number}", f"t{number}-{changed}", expression=changed),
                    make.workload("Deployment", f"d{number}", make.pod_spec(template=f"t{number}-{changed}")),
                    make.object("ConfigMap", f"c{number}", None, data={"a": "b" * 100}),
                    make.object("Service", f"s{number}", {"ports": [{"port": 80}]}),
                ]
            sides.append(make.program(*objects))
        return lambda: summaries.append(review(*sides, base_label="main").summary)

    assert takes_linear_time(prepare, 1250)
    assert "250 replaced, 250 changed, 4,500 unchanged" in summaries
