"""Metrics: what was observed is counted, under names and labels that stay few, and served over HTTP."""

from __future__ import annotations

import http.client
import re
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import ClaimReference
from dra_infra.plugin.command.metrics import Metrics, MetricsServer
from dra_infra.plugin.command.settings import Address
from dra_infra.plugin.observing import Operation

UID = "00000001-0000-4000-8000-0000000000ab"
CLAIM = ClaimReference(namespace="ml", name="train", uid=UID)


@pytest.fixture
def metrics(tmp_path: Path) -> Metrics:
    return Metrics(tmp_path, driver="gpu.example.com", back_end="sim", version="1.2.3")


def samples(metrics: Metrics) -> dict[str, float]:
    return {
        sample.name + str(dict(sorted(sample.labels.items()))) * bool(sample.labels): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def ask(port: int, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection.getresponse()


def problem(code: str) -> PluginError:
    return PluginError([Problem(path="x", code=code, message="m")])


def test_prepares_and_releases_are_timed_by_their_result(metrics: Metrics):
    prepare, release = (Operation(kind=kind, claim=CLAIM) for kind in ("prepare", "release"))
    metrics.ended(prepare, seconds=0.003, error=None)
    metrics.ended(prepare, seconds=0.02, error=problem("device-held"))
    metrics.ended(release, seconds=0.5, error=None)
    found = samples(metrics)
    name = "dra_infra_plugin_operation_duration_seconds"
    assert found[f"{name}_count{{'operation': 'prepare', 'result': 'success'}}"] == 1
    assert found[f"{name}_sum{{'operation': 'prepare', 'result': 'failure'}}"] == 0.02
    assert found[f"{name}_bucket{{'le': '0.005', 'operation': 'prepare', 'result': 'success'}}"] == 1
    assert found[f"{name}_bucket{{'le': '0.0025', 'operation': 'prepare', 'result': 'success'}}"] == 0
    failures = "dra_infra_plugin_operation_failures_total"
    assert found[f"{failures}{{'code': 'device-held', 'operation': 'prepare'}}"] == 1


def test_a_code_that_nobody_knows_makes_no_label_of_its_own(metrics: Metrics):
    for number in range(3):
        metrics.ended(Operation(kind="prepare", claim=CLAIM), seconds=1, error=problem(f"made-up-{number}"))
    failures = "dra_infra_plugin_operation_failures_total"
    assert samples(metrics)[f"{failures}{{'code': 'other', 'operation': 'prepare'}}"] == 3


def test_publishing_registration_devices_and_reconciling_are_counted(metrics: Metrics):
    assert samples(metrics)["dra_infra_plugin_published"] == 0
    metrics.published(slices=2, generation=7, error=None)
    assert samples(metrics)["dra_infra_plugin_published"] == 1
    metrics.published(slices=9, generation=9, error=problem("device-held"))
    metrics.registered(registered=True, text="")
    metrics.devices({"healthy": 7, "unhealthy": 1})
    metrics.reconciled(prepared=3, released=2, restored=1)
    metrics.noticed([Problem(path="x", code="checkpoint-unreadable", message="m")])
    found = samples(metrics)
    expected = {
        "publishes_total{'result': 'success'}": 1,
        "publishes_total{'result': 'failure'}": 1,
        "published": 0,
        "published_slices": 2,
        "pool_generation": 7,
        "registered": 1,
        "registrations_total{'result': 'success'}": 1,
        "registrations_total{'result': 'failure'}": 0,
        "devices{'state': 'healthy'}": 7,
        "devices{'state': 'unhealthy'}": 1,
        "devices{'state': 'unknown'}": 0,
        "reconciled_claims_total{'action': 'released'}": 2,
        "reconciled_claims_total{'action': 'restored'}": 1,
        "noticed_problems_total{'code': 'checkpoint-unreadable'}": 1,
        "info{'back_end': 'sim', 'driver': 'gpu.example.com', 'version': '1.2.3'}": 1,
    }
    assert {name: found[f"dra_infra_plugin_{name}"] for name in expected} == expected
    metrics.registered(registered=False, text="gone")
    assert samples(metrics)["dra_infra_plugin_registered"] == 0


def test_claims_are_those_that_the_checkpoint_has(metrics: Metrics, tmp_path: Path):
    (tmp_path / f"{UID}.json").touch()
    (tmp_path / f"{UID[:-1]}c.releasing").touch()
    (tmp_path / f".{UID}.json.1234.tmp").touch()
    (tmp_path / "lock").touch()
    found = samples(metrics)
    states = ("prepared", "releasing", "unreadable")
    assert [found[f"dra_infra_plugin_claims{{'state': '{state}'}}"] for state in states] == [1, 1, 0]


def test_a_folder_that_is_gone_leaves_the_other_metrics(tmp_path: Path):
    metrics = Metrics(tmp_path / "gone", driver="d", back_end="sim", version="1")
    found = samples(metrics)
    assert "dra_infra_plugin_published_slices" in found
    assert not [name for name in found if name.startswith("dra_infra_plugin_claims")]


def test_names_follow_the_conventions_of_prometheus(metrics: Metrics):
    families = list(text_string_to_metric_families(metrics.text().decode()))
    assert len(families) > 10
    for family in families:
        assert re.fullmatch(r"(dra_infra_plugin|process)_[a-z_]+", family.name), family.name
        assert family.documentation
        for sample in family.samples:
            assert not set(sample.labels) & {"claim", "uid", "namespace", "pod", "device"}, family.name
            if family.type == "counter":
                assert sample.name.endswith("_total")


def test_they_are_served_at_one_path(metrics: Metrics):
    server = MetricsServer(Address("127.0.0.1", 0), metrics.text)
    try:
        answer = ask(server.port, "/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert "Python" not in answer.headers["Server"]
        assert b"dra_infra_plugin_info{" in answer.read()
        assert ask(server.port, "/secrets").status == 404
    finally:
        server.stop()


def test_a_port_is_free_again_once_its_server_has_stopped(metrics: Metrics):
    for _ in range(10):
        server = MetricsServer(Address("127.0.0.1", 0), metrics.text)
        server.stop()
        # Once it is free, the kernel may give it to somebody else: to a connection of a test beside this one.
        with suppress(PluginError):
            MetricsServer(Address("127.0.0.1", server.port), metrics.text).stop()
            return
    pytest.fail("none of ten ports was free")


@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_an_address_that_is_taken_is_told(metrics: Metrics, host: str):
    with socket.create_server(("0.0.0.0", 0)) as taken:  # noqa: S104
        address = Address(host, taken.getsockname()[1])
        with pytest.raises(PluginError) as raised:
            MetricsServer(address, metrics.text)
    (found,) = raised.value.problems
    assert (found.code, found.path) == ("plugin-address-not-usable", "metricsAddress")
    assert str(address) in found.message
