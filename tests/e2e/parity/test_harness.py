"""The harness itself: cases are reproducible, and a difference of any kind is noticed."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from dra_infra.kubernetes.apiserver import RULES
from tests.support.parity import bases, compare, generation
from tests.support.parity.cases import NO_ANSWER, Answer, Case, Recorded
from tests.support.parity.faults import positions
from tests.support.parity.gate_sets import DEFAULT
from tests.support.parity.mutants import NOT_ASKED, kills, survivors
from tests.support.parity.report import page
from tests.support.parity.rows import ALL_ROWS, ROWS
from tests.support.parity.server import Server
from tests.support.parity.shrinking import shrink

RELEASE = compare.release_of("1.37", DEFAULT)
CODES = {"accepted": 201, "bad-request": 400, "invalid": 422}


def answered(case, **changes):
    """What a server would say that agrees with us, but for *changes*."""
    verdict = compare.verdict_of(case, RELEASE, compare.WARN)
    causes = tuple(
        {"field": error.path, "reason": str(error.kind), "message": error.message} for error in verdict.errors
    )
    warnings = tuple(f'unknown field "{field}"' for field in verdict.unknown_fields)
    stored = compare.stored(case, verdict) if verdict.status == compare.ACCEPTED else None
    answer = Answer(code=CODES[verdict.status], causes=causes, warnings=warnings, stored=stored)
    return dataclasses.replace(answer, **changes)


def whats(case, answer):
    verdict = compare.verdict_of(case, RELEASE, compare.WARN)
    return [each.what for each in compare.compare(case, answer, verdict, compare.WARN)]


@pytest.fixture
def refused():
    return ROWS["3.3 class name is a DNS subdomain"].case()


@pytest.fixture
def accepted():
    return Case(id="accepted", object=bases.claim(derived=False), namespace="admin")


def test_case_is_the_same_each_time():
    for name in generation.names(1, 50):
        assert generation.case(name) == generation.case(name)


def test_other_seeds_give_other_cases():
    first, second = ([generation.case(name).object for name in generation.names(seed, 50)] for seed in (1, 2))
    assert first != second


def test_some_cases_are_whole_and_some_broken():
    statuses = {
        compare.verdict_of(generation.case(name), RELEASE, compare.STRICT).status
        for name in itertools.islice(generation.names(1, 200), 200)
    }
    assert statuses == set(CODES)


def test_strictness_is_about_unknown_fields_alone():
    seen = set()
    for case in map(generation.case, generation.names(1, 300)):
        strict, warn = (compare.verdict_of(case, RELEASE, mode) for mode in (compare.STRICT, compare.WARN))
        assert (strict == warn) or strict.unknown_fields
        seen.add(strict == warn)
    assert seen == {True, False}


def test_second_form_is_asked_where_decoding_found_something():
    asked = []

    class Recording(Server):
        def __init__(self, strict):
            self.minor = "1.37"
            self.gate_set = DEFAULT
            self.strict = strict

        def answer(self, case, *, field_validation, dry_run=True):
            asked.append(field_validation)
            return self.strict

    case = Case(id="any", object=bases.claim())
    decoding = Answer(code=400, message='strict decoding error: unknown field "spec.x"')
    for answer, forms in (
        (Answer(code=201), 1),
        (Answer(code=422), 1),
        (Answer(code=400, message="json: cannot unmarshal"), 1),
        (decoding, 2),
        (Answer(code=403), 2),
        (Answer(code=NO_ANSWER), 2),
    ):
        asked.clear()
        recorded = Recording(answer).ask(case, twice=False)
        assert asked == [compare.STRICT, compare.WARN][:forms], answer
        assert (recorded.strict, recorded.warn) == (answer, answer)
    asked.clear()
    Recording(Answer(code=201)).ask(case)
    assert asked == [compare.STRICT, compare.WARN]


def test_sweep_breaks_every_position_of_a_claim():
    claim = bases.claim()
    broken = [case.object for case in bases.sweeps("1.37") if case.id.startswith("sweep claim ")]
    whole = set(positions(claim))
    untouched = {path for path in whole if all(path in set(positions(each)) for each in broken)}
    assert not untouched


def test_answer_survives_the_way_through_a_line(refused):
    answer = answered(refused)
    recorded = Recorded(case=refused, minor="1.37", gates=DEFAULT, strict=answer, warn=answer)
    assert Recorded.from_line(recorded.to_line()) == recorded


def test_agreement_is_no_difference(accepted, refused):
    assert whats(accepted, answered(accepted)) == []
    assert whats(refused, answered(refused)) == []


@pytest.mark.parametrize("code", [201, 400, 409, 500])
def test_other_status_is_a_difference(refused, code):
    assert whats(refused, answered(refused, code=code)) == ["status"]


@pytest.mark.parametrize("key", ["field", "reason"])
def test_other_place_or_kind_is_a_difference_on_both_sides(refused, key):
    answer = answered(refused)
    causes = ({**answer.causes[0], key: "other"}, *answer.causes[1:])
    assert whats(refused, dataclasses.replace(answer, causes=causes)) == ["errors", "errors"]


def test_other_bad_value_is_a_difference_on_both_sides(refused):
    answer = answered(refused)
    causes = ({**answer.causes[0], "message": answer.causes[0]["message"].replace('"A"', '"B"')},)
    assert whats(refused, dataclasses.replace(answer, causes=causes)) == ["errors", "errors"]


def test_other_wording_is_a_difference_of_its_own(refused):
    answer = answered(refused)
    causes = ({**answer.causes[0], "message": 'Invalid value: "A": because'},)
    assert whats(refused, dataclasses.replace(answer, causes=causes)) == ["detail"]


def test_error_that_only_one_side_has_is_a_difference(refused):
    answer = answered(refused)
    more = ({**answer.causes[0], "field": "spec"}, *answer.causes)
    assert whats(refused, dataclasses.replace(answer, causes=more)) == ["errors"]
    assert whats(refused, dataclasses.replace(answer, causes=())) == ["errors"]


def test_unknown_field_that_only_one_side_knows_is_a_difference(accepted):
    assert whats(accepted, answered(accepted, warnings=('unknown field "spec.x"',))) == ["unknown-fields"]


def test_other_stored_object_is_a_difference(accepted):
    stored = {**answered(accepted).stored, "spec": {}}
    assert whats(accepted, answered(accepted, stored=stored)) == ["stored"]


def test_what_a_cluster_adds_is_no_difference(accepted):
    answer = answered(accepted)
    metadata = {**answer.stored["metadata"], "uid": "x", "namespace": "admin", "generation": 1}
    stored = {**answer.stored, "metadata": metadata, "status": {}}
    assert whats(accepted, dataclasses.replace(answer, stored=stored)) == []


def test_shrinking_keeps_only_what_makes_the_difference():
    case = Case(id="wide", object=bases.claim())

    def has_second_request(candidate):
        return len((candidate.object.get("spec") or {}).get("devices", {}).get("requests", ())) > 1

    smallest = shrink(case, has_second_request).object
    assert smallest["spec"] == {"devices": {"requests": [{}, {}]}}


def test_rule_that_is_recorded_is_missed_when_it_is_switched_off(refused):
    answer = answered(refused)
    recorded = Recorded(case=refused, minor="1.37", gates=DEFAULT, strict=answer, warn=answer)
    assert kills([recorded]) == {"request.class-format": 2}
    assert set(survivors([recorded])) == set(RULES) - set(NOT_ASKED) - {"request.class-format"}


def test_page_is_the_same_for_the_same_counts():
    results = {("1.37", DEFAULT): {"asked": {"Pod create 422": 3}, "count": 0, "rules": {}, "rows": {}}}
    assert page(results) == page(results)
    assert "| 1.37.1 | default | 0 | 0 | 3 | 0 | 0 |" in page(results)


def test_rows_have_names_of_their_own():
    assert len(ROWS) == len(ALL_ROWS)
