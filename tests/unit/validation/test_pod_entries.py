from __future__ import annotations

from dra_infra.model.program import Program, ProgramObject
from dra_infra.validation import check_program


def test_two_entries_of_one_name_are_a_problem():
    entry = {"name": "gpu", "resourceClaimName": "[unknown]"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train"},
        "spec": {"resourceClaims": [entry, entry], "containers": []},
    }
    program = Program(project="p", stack="s", objects=(ProgramObject(urn="u", manifest=manifest),))
    (problem,) = check_program(program)
    assert (problem.path, problem.code) == ("Pod train.spec.resourceClaims[1].name", "duplicate-claim")
