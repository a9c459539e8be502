from __future__ import annotations

import itertools
from typing import Any

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS, VERSIONS, convert, decode
from tests.support.parity.gate_sets import ALL
from tests.support.parity.round_trips import round_trips
from tests.support.parity.server import running

pytestmark = pytest.mark.e2e

COUNT = 150
SEED = 20
KINDS = {"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"}


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def minor(request):
    return request.param


@pytest.fixture(scope="module")
def stored(minor, binaries):
    """Objects with the gates of every field on, each in the versions that the server gives out and we know."""
    with running(minor, ALL, binaries=binaries) as server:
        found = list(round_trips(server, COUNT, seed=SEED))
    return [
        (trip.id, {version: each for version, each in trip.versions.items() if version in VERSIONS})
        for trip in found
    ]


def number(minor: str) -> int:
    return int(minor.partition(".")[2])


OPAQUE = ("parameters", "data")


def told(value: Any) -> Any:
    """*value* without what Go writes although it is not there: lists as null, the class of a v1beta1 request as ""."""
    if isinstance(value, list):
        return [told(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: item if key in OPAQUE else told(item)
        for key, item in value.items()
        if key in OPAQUE or not (item is None or (key == "deviceClassName" and item == ""))
    }


def test_every_kind_is_read_back_in_every_version(minor, stored):
    kinds = {next(iter(versions.values()))["kind"] for _, versions in stored if versions}
    rules = {"DeviceTaintRule"} if number(minor) >= 36 else set()
    assert kinds == KINDS | rules
    assert all(
        set(versions) == set(VERSIONS)
        for _, versions in stored
        if versions and next(iter(versions.values()))["kind"] in KINDS
    )


def test_statuses_are_among_what_is_read_back(stored):
    status = dict(stored)["allocated claim"]["v1"]["status"]
    assert set(status) == {"allocation", "reservedFor", "devices"}


def test_conversion_between_any_two_versions_is_the_servers(minor, stored):
    differing = [
        (name, source, target)
        for name, versions in stored
        for source, target in itertools.permutations(versions, 2)
        if told(convert(versions[source], target)) != told(versions[target])
    ]
    assert differing == []


def test_everything_that_a_server_gives_out_is_known(minor, stored):
    for name, versions in stored:
        for manifest in versions.values():
            decoded = decode(manifest, minor=number(minor))
            assert (name, decoded.unknown_fields, decoded.type_errors) == (name, (), ())


def test_the_record_of_a_stored_object_holds_all_of_it(stored):
    for name, versions in stored:
        for version, manifest in versions.items():
            again = convert(decode(manifest).record.to_manifest(), version)
            assert (name, told(again)) == (name, told(manifest))


def test_records_are_equal_whatever_version_was_read(stored):
    for name, versions in stored:
        records = [decode(manifest).record for manifest in versions.values()]
        assert (name, records) == (name, records[:1] * len(records))
