"""What becomes of old DRA, shown to the real API servers of every minor under strict field validation."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from dra_infra.migration.old_dra.conversion import migrate_old_dra
from tests.support.components.objects import make_namespaces, refusal
from tests.support.migration.old_dra_cases import case, cases, made
from tests.unit.migration.test_old_dra_meaning import SELECTORS, migrated

pytestmark = pytest.mark.e2e

DRAWN = 40
"""Selectors for each minor."""


def test_every_object_that_is_written_is_taken(server):
    written = [found for each in cases() for found in made(each)]
    make_namespaces(server, written)
    assert [refused for each in written if (refused := refusal(server, each))] == []
    assert len(written) > 30


@pytest.mark.parametrize(
    "name", ["v1-flat", "v1-basic", "alternatives-exactly", "v1-mixed", "pod-source", "cron-job-source"]
)
def test_the_server_refuses_what_was(server, name):
    # Else the test above would be about objects that nobody has to migrate.
    found = [refusal(server, each) for each in case(name).input]
    assert any("unknown field" in each for each in found)


def test_a_namespace_needs_the_label_of_which_the_migration_tells(server):
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "unlabelled"}}
    server.apply(namespace)
    [claim] = made(case("v1beta1-admin"))
    refused = refusal(server, {**claim, "metadata": {"name": "monitor", "namespace": "unlabelled"}})
    assert "resource.kubernetes.io/admin-access" in refused
    [found] = migrate_old_dra(case("v1beta1-admin").input).values()
    assert "admin-access-label" in {each.code for each in found.remarks}


def test_every_selector_of_old_parameters_compiles(server):
    taken = 0

    @settings(
        max_examples=DRAWN,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(SELECTORS)
    def compiles(selector):
        nonlocal taken
        exactly = migrated({"kind": "GpuClaimParameters", "spec": {"selector": selector}})
        claim = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "drawn", "namespace": "default"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        }
        assert refusal(server, claim) == ""
        taken += 1

    compiles()
    assert taken >= DRAWN // 2
