from __future__ import annotations

from dra_infra.advice.program import check_program
from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.program_objects import Program, ProgramObject


def test_two_entries_of_one_name_are_a_problem():
    entry = {"name": "gpu", "resourceClaimName": UNKNOWN}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train"},
        "spec": {"resourceClaims": [entry, entry], "containers": []},
    }
    program = Program(project="p", stack="s", objects=(ProgramObject(urn="u", manifest=manifest),))
    (problem,) = check_program(program)
    assert (problem.path, problem.code) == ("Pod train.spec.resourceClaims[1].name", "duplicate-claim")
