"""Fields of the API server's own kinds: what is kept here of its description, and what it refuses of random objects."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
from importlib import resources

import pytest
import yaml

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.kubernetes.apiserver.core_fields import find_faults
from dra_infra.kubernetes.apiserver.core_schemas import DATA, file_name, read_core_schemas
from tests.e2e.core_fields.counts import keep
from tests.e2e.core_fields.generator import objects, with_repeated_items
from tests.support.draws import SEED
from tests.support.parity.plan import VARIABLE
from tests.support.parity.server import Server
from tools.cluster.api_server import api_server
from tools.core_schemas import ALL_APIS, EVERYTHING, SAMPLES, describe, measure

pytestmark = [pytest.mark.e2e, pytest.mark.draws]

ROUNDS = max(2, int(os.environ.get(VARIABLE, "0")) // 1000)
"""Times that each kind is drawn, with three objects each."""

DECODING = ("strict decoding error", "cannot be handled as a", "the object provided is unrecognized")
"""What the server's answer has in it where it could not decode an object, or found a field that it does not know."""


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def minor(request):
    return request.param


@pytest.fixture(scope="module")
def plane(minor, binaries):
    with api_server(minor, feature_gates=EVERYTHING, more_apis=ALL_APIS, binaries=binaries) as running:
        yield running


@pytest.fixture(scope="module")
def server(minor, plane):
    with contextlib.closing(Server(minor, "everything", plane.connection)) as asked:
        yield asked


def kept(minor):
    packed = resources.files("dra_infra.kubernetes.apiserver").joinpath(DATA, file_name(minor)).read_bytes()
    return json.loads(gzip.decompress(packed))


def paths(plane, api_versions):
    """Where objects are created, by version and kind."""
    with plane.connection.client() as client:
        for api_version in api_versions:
            root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            for resource in client.get(root).json()["resources"]:
                if "/" not in resource["name"] and "create" in resource["verbs"]:
                    inside = "/namespaces/default" if resource["namespaced"] else ""
                    yield api_version, resource["kind"], f"{root}{inside}/{resource['name']}"


def test_what_is_kept_is_what_the_server_describes_and_holds_objects_to(minor, plane):
    assert kept(minor) == measure(plane, describe(plane)), "run: make core-schemas"


def test_the_server_refuses_what_is_reported_and_nothing_else(minor, plane, server):
    schemas = read_core_schemas(minor)
    draw = random.Random(f"{SEED} {minor}")  # noqa: S311
    kinds = [
        each
        for each in paths(plane, kept(minor)["kinds"])
        if schemas.find({"apiVersion": each[0], "kind": each[1]})
    ]
    differing, refused, asked = [], 0, 0
    for api_version, kind, path in kinds:
        for manifest in (each for _ in range(ROUNDS) for each in objects(schemas, api_version, kind, draw)):
            answer = server.send("POST", path, manifest, field_validation="Strict")
            is_refused = any(text in answer.message for text in DECODING)
            faults = [fault for _, found in find_faults(manifest, [minor]) for fault in found]
            asked += 1
            refused += is_refused
            is_unreadable = any(fault.fault in ("unknown", "type") for fault in faults)
            if is_refused != is_unreadable or (faults and answer.is_accepted):
                differing.append((answer.message, faults, json.dumps(manifest)))
    keep(minor, len(kinds), asked, refused, len(differing))
    assert not differing, f"{len(differing)} of {asked}: {differing[:3]}"
    assert asked > 400
    assert 0.4 < refused / asked < 0.7


def test_server_side_apply_refuses_what_is_there_twice(minor, plane, server):
    schemas = read_core_schemas(minor)
    places = {(api_version, kind): path for api_version, kind, path in paths(plane, kept(minor)["kinds"])}
    asked = 0
    for sample in yaml.safe_load_all(SAMPLES.read_text()):
        path = f"{places[sample['apiVersion'], sample['kind']]}/{sample['metadata']['name']}"
        assert server.send("PATCH", path, sample, field_validation="Strict").is_accepted
        for repeated in with_repeated_items(schemas, sample):
            faults = [fault for _, found in find_faults(repeated, [minor]) for fault in found]
            is_reported = any(fault.fault == "twice" for fault in faults)
            answer = server.send("PATCH", path, repeated, field_validation="Strict")
            assert ("duplicate entries" in answer.message) == is_reported, (answer.message, repeated)
            asked += is_reported
    assert asked > 25
