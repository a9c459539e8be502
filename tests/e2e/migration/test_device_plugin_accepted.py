"""What becomes of requests to device plugins, shown to the real API servers of every minor under strict field validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.migration.bridge import bridge_classes
from tests.e2e.components.objects import define, make_namespaces, refusal
from tests.unit.migration.device_plugin_cases import Case, case, cases
from tools import workload_crds

pytestmark = pytest.mark.e2e


def define_kinds_of(server: Any, manifests: list[Any]) -> None:
    kinds = {(each["apiVersion"].partition("/")[0], each["kind"]) for each in manifests}
    of_kinds = (each for module in workload_crds.load() for each in module.definitions())
    define(
        server, [each for each in of_kinds if (each["spec"]["group"], each["spec"]["names"]["kind"]) in kinds]
    )


def made_for(row: Case, minor: str) -> list[Mapping[str, Any]]:
    """What a row writes for a minor; nothing of shares where they are behind a gate, for there `no-shares` refuses them."""
    made = row.made()
    is_shared = "allowMultipleAllocations" in str(made)
    return [] if is_shared and minor in ("1.34", "1.35") else made


def test_every_object_that_is_written_is_taken(server, request):
    minor = request.node.callspec.params["server"]
    written = [found for each in cases() for found in made_for(each, minor)]
    define_kinds_of(server, written)
    make_namespaces(server, written)
    assert [refused for each in written if (refused := refusal(server, each))] == []
    assert {"RayCluster", "JobSet", "ResourceQuota"} < {each["kind"] for each in written}
    assert len(written) > 40


def test_the_bridge_is_taken_and_its_name_kept_from_the_minor_on_that_has_it(server, request):
    (found,) = bridge_classes(case("whole-gpu").input, case("whole-gpu").settings)
    (made,) = found.added
    stored = server.create(dict(made), dry_run=True)
    # Before 1.36 the gate DRAExtendedResource is off, and the server drops the field without a word.
    expected = None if request.node.callspec.params["server"] in ("1.34", "1.35") else "nvidia.com/gpu"
    assert stored["spec"].get("extendedResourceName") == expected
