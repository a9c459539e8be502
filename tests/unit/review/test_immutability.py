from __future__ import annotations

from dataclasses import replace

from dra_infra.errors import Place
from dra_infra.review.changes import compare_programs, find_refused, find_undecided


def problems(make, before, after):
    head = make.program(after)
    return find_refused(compare_programs(make.program(before), head), head)


def test_the_spec_of_a_claim_under_a_name_that_stays_is_a_problem(make):
    after = make.claim("pair", "pair", count=2, place=Place(file="app.py", line=3))
    (problem,) = problems(make, make.claim("pair", "pair"), after)
    assert (problem.code, problem.path, str(problem.place)) == (
        "claim-spec-immutable",
        'GpuClaim("pair")',
        "app.py:3",
    )
    assert 'replace="delete-first"' in problem.hint


def test_the_users_own_template_gets_a_hint_in_pulumis_words(make):
    before = make.template("t", "t")
    after = replace(make.template("t", "t", count=2), component=None)
    (problem,) = problems(make, before, after)
    assert (problem.code, problem.path) == ("claim-spec-immutable", "ResourceClaimTemplate ml/t")
    assert 'replace_on_changes=["spec"], delete_before_replace=True' in problem.hint


def test_a_name_that_follows_the_content_is_no_problem(make):
    assert problems(make, make.claim("pair", "pair-1"), make.claim("pair", "pair-2", count=2)) == ()


def test_delete_first_is_no_problem(make):
    after = make.claim("pair", "pair", count=2, replacement="delete-first")
    assert problems(make, make.claim("pair", "pair"), after) == ()


def test_the_claims_of_a_bare_pod_are_a_problem(make):
    (problem,) = problems(
        make, make.pod("p", make.pod_spec(claim="a")), make.pod("p", make.pod_spec(claim="b"))
    )
    assert (problem.code, problem.path) == ("pod-claims-immutable", "Pod ml/p.spec.resourceClaims")


def test_a_claim_that_pulumi_names_is_not_decided(make):
    before, after = make.claim("pair", ""), make.claim("pair", "", count=2)
    head = make.program(after)
    changes = compare_programs(make.program(before), head)
    assert find_refused(changes, head) == ()
    (open_question,) = find_undecided(changes)
    assert (open_question.what, open_question.name) == ("ResourceClaim", "pair")


def test_a_slice_that_changes_its_driver_is_refused(make):
    def published(driver):
        where = {"name": "a", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "pool": where, "nodeName": "a", "devices": []}
        return make.object("ResourceSlice", "a", spec, api_version="resource.k8s.io/v1", namespace="")

    (problem,) = problems(make, published("gpu.example.com"), published("other.example.com"))
    assert (problem.code, problem.path) == ("field-immutable", "ResourceSlice a")
    assert "spec.driver" in problem.message


def test_a_claim_that_is_only_written_in_more_words_is_accepted(make):
    before, after = make.claim("pair", "pair", count=1), make.claim("pair", "pair", count=1)
    del before.manifest["spec"]["devices"]["requests"][0]["exactly"]["count"]
    (change,) = compare_programs(make.program(before), make.program(after))
    assert (change.action, change.refused) == ("changed", ())
