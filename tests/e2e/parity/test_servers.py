"""The API servers of all minors side by side."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from tests.support.parity.gate_sets import ALL, GATE_SETS, gates_of
from tools.cluster.api_server import api_server

pytestmark = pytest.mark.e2e


def test_api_servers_of_all_minors_run_at_once_and_leave_nothing(binaries):
    with contextlib.ExitStack() as stack:
        planes = {
            minor: stack.enter_context(api_server(minor, binaries=binaries)) for minor in SUPPORTED_MINORS
        }
        for minor, plane in planes.items():
            with plane.connection.client() as client:
                assert client.get("/version").json()["gitVersion"].startswith(f"v{minor}.")
        folders = [plane.folder for plane in planes.values()]
        processes = [Path(f"/proc/{pid}") for plane in planes.values() for pid in plane.pids.values()]
        assert all(path.exists() for path in (*folders, *processes))
    assert not any(path.exists() for path in (*folders, *processes))


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_api_server_serves_every_version_of_the_group_that_it_has(binaries, minor):
    with (
        api_server(minor, feature_gates=gates_of(minor, ALL), binaries=binaries) as plane,
        plane.connection.client() as client,
    ):
        served = {entry["version"] for entry in client.get("/apis/resource.k8s.io").json()["versions"]}
    assert served == {"v1", "v1beta1", "v1beta2", "v1alpha3"}


@pytest.mark.parametrize("gate_set", GATE_SETS)
@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_gate_sets_differ_from_the_defaults_only_in_gates_that_may_be_set(minor, gate_set):
    gates = gates_of(minor, gate_set)
    assert bool(gates) == (gate_set != "default")
    assert "DynamicResourceAllocation" not in gates
