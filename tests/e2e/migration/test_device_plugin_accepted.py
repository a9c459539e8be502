"""What becomes of requests to device plugins, shown to the real API servers of every minor under strict field validation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from dra_infra.migration.bridge import bridge_classes
from tests.support.charts import find_testdata
from tests.support.components.objects import define, definitions, make_namespaces, refusal
from tests.support.migration.device_plugin_cases import Case, case, cases
from tools import workload_crds

pytestmark = pytest.mark.e2e


IN_TEST_DATA = {"apps.nvidia.com/NIMService"}
"""Kinds whose definition is only in the test data: no module of the NIM operator is served."""

UNDEFINED = {
    "apps.nvidia.com/NIMPipeline": "its definition holds that of a NIMService, which is taken",
    "keda.sh/ScaledJob": "no module has its definition",
    "actions.github.com/AutoscalingRunnerSet": "no module has its definition",
    "apps.kruise.io/CloneSet": "its pod template has no schema, so servers take whatever is there",
    "grove.io/PodCliqueSet": "no module has its definition",
    "helm.toolkit.fluxcd.io/HelmRelease": "its values have no schema, so servers take whatever is there",
}
"""Kinds of other projects whose definitions are not here."""


def kind_of(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['apiVersion'].rpartition('/')[0]}/{manifest['kind']}"


@cache
def definitions_by_kind() -> Mapping[str, Any]:
    """The definitions of kinds of other projects, by group and kind."""
    of_kinds = [*workload_crds.all_definitions()]
    if folder := find_testdata(os.environ):
        of_kinds += definitions(folder / "crds" / "nim-operator-main-f63f74d7")
    return {f"{each['spec']['group']}/{each['spec']['names']['kind']}": each for each in of_kinds}


def define_kinds_of(server: Any, manifests: list[Any]) -> list[Any]:
    """The objects whose kinds the server has now: those of other projects by their definitions."""
    found = definitions_by_kind()
    kinds = {kind_of(each) for each in manifests}
    define(server, [each for kind, each in found.items() if kind in kinds])
    return only_defined(manifests)


def only_defined(manifests: list[Any]) -> list[Any]:
    """The objects of kinds that Kubernetes has, or that there is a definition of here."""
    found = definitions_by_kind()
    assert not UNDEFINED.keys() & found.keys()
    not_here = UNDEFINED.keys() | (IN_TEST_DATA - found.keys())
    return [each for each in manifests if kind_of(each) not in not_here]


def made_for(row: Case, minor: str) -> list[Mapping[str, Any]]:
    """What a row writes for a minor; nothing of shares where they are behind a gate, for there `no-shares` refuses them."""
    made = row.made()
    is_shared = any(word in str(made) for word in ("allowMultipleAllocations", "].shares"))
    return [] if is_shared and minor in ("1.34", "1.35") else made


def test_every_object_that_is_written_is_taken(server, request):
    minor = request.node.callspec.params["server"]
    written = [found for each in cases() for found in made_for(each, minor)]
    written = define_kinds_of(server, written)
    make_namespaces(server, written)
    assert [refused for each in written if (refused := refusal(server, each))] == []
    assert {"RayCluster", "JobSet", "JobTemplate", "ResourceQuota"} < {each["kind"] for each in written}
    assert len(written) > 40


def test_the_bridge_is_taken_and_its_name_kept_from_the_minor_on_that_has_it(server, request):
    (found,) = bridge_classes(case("whole-gpu").input, case("whole-gpu").settings)
    (made,) = found.added
    stored = server.create(dict(made), dry_run=True)
    # Before 1.36 the gate DRAExtendedResource is off, and the server drops the field without a word.
    expected = None if request.node.callspec.params["server"] in ("1.34", "1.35") else "nvidia.com/gpu"
    assert stored["spec"].get("extendedResourceName") == expected
