from __future__ import annotations

import pytest
from hypothesis import given, settings

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from tests.support.parity.compare import judged
from tests.support.parity.differential import run
from tests.support.parity.gate_sets import GATE_SETS
from tests.support.parity.generation import BUILDERS, cases
from tests.support.parity.mutants import survivors
from tests.support.parity.plan import REPEAT_EVERY, SWEEP_EVERY, counts
from tests.support.parity.rows import ROWS
from tests.support.parity.server import running

pytestmark = pytest.mark.e2e


@pytest.fixture(
    scope="module", params=[(minor, gates) for minor in SUPPORTED_MINORS for gates in GATE_SETS], ids="-".join
)
def server(request, binaries):
    minor, gates = request.param
    with running(minor, gates, binaries=binaries) as started:
        yield started


@pytest.fixture(scope="module")
def tally(server):
    done = run(server, counts()[server.gate_set], repeat_every=REPEAT_EVERY, sweep_every=SWEEP_EVERY)
    done.write()
    return done


def test_server_and_we_answer_alike(tally):
    assert tally.count == 0, tally.report()


def test_every_row_of_the_reference_that_the_server_knows_is_answered_as_known(tally):
    expected = {
        row.id: True for row in ROWS.values() if row.gate_set == tally.gates and row.exists_in(tally.minor)
    }
    assert tally.rows == expected


def test_enough_objects_are_accepted_and_refused_to_mean_something(tally):
    outcomes = {"accepted": 0, "400": 0, "422": 0}
    for name, count in tally.asked.items():
        outcome = name.rpartition(" ")[2]
        # Beside these: what admission refuses after validation, and requests over which the server fails.
        if outcome in outcomes:
            outcomes[outcome] += count
    assert min(outcomes.values()) > counts()[tally.gates] // 10


def test_no_rule_can_be_switched_off_unnoticed(tally):
    reached = set(tally.rules)
    assert reached
    assert not reached & set(survivors(tally.kept))


@pytest.mark.parametrize("strategy", BUILDERS)
def test_search_finds_no_difference(server, strategy):
    @settings(max_examples=25, database=None, deadline=None, derandomize=True)
    @given(cases(strategy))
    def agree(case):
        if not server.serves(case):
            return
        found = [difference for _, differing in judged(server.ask(case)) for difference in differing]
        assert not found, case.object

    agree()
