"""Objects of written programs, shown to the real API servers of every minor: they are stored as those of the plain migration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.program_writing.program import write_program
from tests.e2e.migration.test_device_plugin_accepted import define_kinds_of, made_for, only_defined
from tests.support.components.objects import make_namespaces
from tests.support.migration.device_plugin_cases import cases
from tests.support.migration.program_cases import made_by

pytestmark = pytest.mark.e2e


def stored(server: Any, manifest: Mapping[str, Any]) -> Any:
    """What the server stores of an object, without what is of the moment."""
    found = server.create(dict(manifest), dry_run=True)
    moment = ("uid", "creationTimestamp", "managedFields", "resourceVersion")
    found["metadata"] = {key: value for key, value in found["metadata"].items() if key not in moment}
    return found


def by_name(manifests: list[Any]) -> dict[tuple[str, str], Any]:
    return {(each["kind"], each["metadata"]["name"]): each for each in manifests}


def test_a_server_stores_what_a_program_makes_as_what_the_plain_migration_gives(server, request):
    count = 0
    minor = request.node.callspec.params["server"]
    every = [plain for case in cases() if (plain := made_for(case, minor))]
    define_kinds_of(server, [each for plain in every for each in plain])
    for plain in every:
        made = made_by(write_program(plain).text)
        there = only_defined(plain)
        make_namespaces(server, plain)
        assert by_name(made).keys() == by_name(plain).keys()
        for name, manifest in by_name(there).items():
            assert without_uids(stored(server, by_name(made)[name])) == without_uids(stored(server, manifest))
            count += 1
    assert count > 40


def without_uids(value: Any) -> Any:
    """The data without IDs and names that a server makes up: of a Job's pods, of a pod's token."""
    if isinstance(value, Mapping):
        return {
            key: without_uids(each)
            for key, each in value.items()
            if not key.endswith(("controller-uid", "time"))
        }
    if isinstance(value, list):
        return [without_uids(each) for each in value]
    return "made up" if isinstance(value, str) and value.startswith("kube-api-access-") else value
