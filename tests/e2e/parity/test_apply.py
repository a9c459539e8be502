"""Server-side apply, as `pulumi up` and Argo CD use it, beside the creation that verdicts are about.

Both take and refuse the same objects, and store the same, but for two things: items of a list that are there twice, which are
reported as a warning, and whole numbers written as 1000.0, which an apply reads as 1000.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from dra_infra.kubernetes.apiserver.core_fields import find_faults
from tests.support.parity import generation
from tests.support.parity.server import _path, running

pytestmark = pytest.mark.e2e

SEED = 5
COUNT = 250
WHOLE = re.compile(r"cannot unmarshal number -?\d+\.0+ ")
"""What a creation is refused for, and an apply is not."""


def name_of(manifest):
    name = (manifest.get("metadata") or {}).get("name")
    return name if isinstance(name, str) and name and "/" not in name else ""


@pytest.mark.parametrize("minor", ["1.34", "1.37"])
def test_an_apply_takes_what_a_creation_takes(binaries, minor):
    outcomes = {True: 0, False: 0}
    twice = 0
    with running(minor, binaries=binaries) as server:
        for each in generation.names(SEED, COUNT):
            case = generation.case(each)
            if not (name := name_of(case.object)) or not server.serves(case):
                continue
            created = server.answer(case, field_validation="Strict")
            if WHOLE.search(created.message):
                continue
            path = quote(f"{_path(case.object, case.namespace)}/{name}")
            applied = server.send("PATCH", path, case.object, field_validation="Strict")
            faults = [fault.fault for _, found in find_faults(case.object, [minor]) for fault in found]
            assert applied.is_accepted == (created.is_accepted and "twice" not in faults), (each, applied)
            if applied.is_accepted and case.kind not in ("Job", "CronJob"):
                assert applied.stored == created.stored, each
            outcomes[applied.is_accepted] += 1
            twice += "twice" in faults
    assert min(outcomes.values()) > COUNT // 5
    assert twice > 0
