"""What the simulated driver offers, published to the real API servers: every fleet, every minor, gates on and as shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_infra.kubernetes.api import GATES
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from tests.e2e.plugin.conftest import make_node, plugin_api
from tests.support.parity.gate_sets import ALL, DEFAULT
from tests.support.plugin.publishing import PATIENCE, names_of, pool_of
from tests.unit.catalog.test_publication import PLAIN, SET
from tools.cluster import ControlPlane

pytestmark = pytest.mark.e2e

SLICE = "resource.k8s.io/v1/ResourceSlice"
FLEETS = {
    ALL: (*PLAIN[::8], *SET),
    DEFAULT: [each for each in SET if "dynamic-mig" in each or "partitions" in each or "share" in each],
}
"""Those that are set in some way, and some of the plain ones, which differ in attributes; those that gates decide on."""


def test_every_fleet_is_published_whole_or_without_what_would_be_given_out_wrongly(
    minor: str, gate_set: str, server_of_minor: ControlPlane, publish, tmp_path: Path
) -> None:
    api = plugin_api(server_of_minor)
    held_back: set[str] = set()
    with server_of_minor.api() as admin:
        for number, text in enumerate(FLEETS[gate_set]):
            node = f"node-{number}"
            make_node(admin, node)
            back_end = SimulatedBackEnd(text, node=node, folder=tmp_path / str(number))
            publisher, observer = publish(api, back_end, node)
            assert publisher.wait(PATIENCE), (text, observer.publishings)
            publisher.stop()
            back_end.close()
            slices = [each for each in admin.list(SLICE) if each["spec"]["nodeName"] == node]
            published = pool_of(slices)
            offered = [each.name for each in back_end.inventory().devices]
            if gate_set == ALL:
                assert observer.problems == [], text
                assert sorted(names_of(published) or ()) == sorted(offered), text
                assert minor == "1.34" or names_of(published) == offered, text
            left_out = set(offered) - set(names_of(published) or ())
            held_back |= left_out
            assert not left_out or [each.code for each in observer.problems] == ["slice-fields-dropped"], text
            # Never a part of a device without what it consumes.
            counted = {each.name for each in back_end.inventory().devices if each.consumes_counters}
            assert all("consumesCounters" in each for each in published or () if each["name"] in counted), (
                text
            )
            for each in slices:
                admin.delete(SLICE, each["metadata"]["name"])
    gate = GATES["DRAPartitionableDevices"][minor]
    assert bool(held_back) == (gate_set == DEFAULT and not gate.default)
