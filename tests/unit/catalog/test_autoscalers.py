"""What is known of autoscalers: the record holds together, and Deployments are read as they are written."""

from __future__ import annotations

import pytest

from dra_infra.catalog.autoscalers import (
    Autoscaler,
    autoscalers,
    find_scaler,
    is_autoscaler,
    order_of,
    read_deployed,
)
from dra_infra.catalog.pool_objects import pool_kinds


def a_deployment(image, *, args=(), env=(), **more):
    container = {
        "name": "c",
        "image": image,
        "args": [*args],
        "env": [{"name": k, "value": v} for k, v in env],
    }
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec, **more}


@pytest.mark.parametrize("autoscaler", autoscalers().values(), ids=lambda each: each.name)
def test_each_release_of_an_autoscaler_says_what_is_needed_and_why(autoscaler: Autoscaler):
    orders = [order_of(each.since) for each in autoscaler.releases]
    assert orders == sorted(set(orders))
    assert orders[0] == ()
    for release in autoscaler.releases:
        assert (release.setting is not None) == (release.claims == "setting")
        if "does-not-grow" in (release.state_of(0), release.state_of(1)):
            assert release.because
            assert release.instead
        if release.mark is not None:
            assert bool(release.mark.label) != bool(release.mark.annotation)
        assert "unknown" not in release.source


def test_every_kind_of_pools_that_a_file_may_have_has_an_autoscaler():
    served = {(each.group, each.kind) for known in autoscalers().values() for each in known.serves}
    assert served == set(pool_kinds())


@pytest.mark.parametrize(
    ("version", "since"),
    [("", "1.36"), ("1.31", ""), ("1.34.2", ""), ("v1.35.0", "1.35"), ("1.36.1", "1.36"), ("1.40", "1.36")],
)
def test_a_version_has_the_rules_of_the_last_release_before_it(version, since):
    assert autoscalers()["cluster-autoscaler-aws"].release_of(version).since == since


@pytest.mark.parametrize(
    ("image", "args", "env", "read"),
    [
        (
            "public.ecr.aws/karpenter/controller:1.15.0@sha256:12",
            (),
            (("IGNORE_DRA_REQUESTS", "false"),),
            ("1.15.0", True),
        ),
        ("host:5000/karpenter/controller:1.15.0", (), (), ("1.15.0", False)),
        ("karpenter/controller:1.14.1", ("--ignore-dra-requests=false",), (), ("1.14.1", True)),
        # A flag comes before the variable.
        (
            "karpenter/controller:1.15.0",
            ("--ignore-dra-requests=true",),
            (("IGNORE_DRA_REQUESTS", "false"),),
            ("1.15.0", False),
        ),
        ("karpenter/controller:latest", (), (), ("", False)),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0",
            ("--enable-dynamic-resource-allocation",),
            (),
            ("1.34.0", True),
        ),
        (
            "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0",
            ("--enable-dynamic-resource-allocation=false",),
            (),
            ("1.34.0", False),
        ),
        ("registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.1", (), (), ("1.36.1", None)),
    ],
)
def test_a_deployment_says_the_version_and_whether_claims_count(image, args, env, read):
    manifest = a_deployment(image, args=args, env=env)
    assert is_autoscaler(manifest)
    (found,) = read_deployed([manifest]).values()
    assert (found.version, found.counts_claims) == read


@pytest.mark.parametrize(
    "manifest",
    [
        a_deployment("registry.example/notkarpenter/controller2:1.15.0"),
        a_deployment("karpenter/controller:1.15.0", kind="StatefulSet"),
        a_deployment("karpenter/controller:1.15.0", apiVersion="v1"),
        a_deployment("karpenter/controller:1.15.0", spec={"template": []}),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"template": {"spec": {"containers": [3, {"image": 7}]}}},
        },
    ],
)
def test_other_objects_are_no_autoscaler(manifest):
    assert not is_autoscaler(manifest)
    assert read_deployed([manifest]) == {}


def test_a_nodepool_without_a_known_node_class_has_no_autoscaler():
    kind = ("karpenter.sh", "NodePool")
    assert find_scaler(kind, "", {}, {}, {}) is None
    assert find_scaler(kind, "other.example", {}, {}, {}) is None
    assert find_scaler(kind, "karpenter.azure.com", {}, {}, {}).autoscaler == "karpenter-azure"
