"""What people type who do not know the quotes, units and forms by heart: it is taken, or the message says what to write."""

from __future__ import annotations

import json
import os
import threading

import pytest

from dra_infra.cli.options import Seconds, version_of

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""


@pytest.fixture
def run(tree, command):
    tree.write("claim.yaml", CLAIM)
    return lambda *words: command(*words, cwd=tree.root)


def fleet_of(answer) -> str:
    assert answer.code in (0, 1), answer.err
    return json.loads(answer.out)["fleet"]["name"]


@pytest.mark.parametrize(
    ("words", "fleet"),
    [
        (("--fleet", "hgx-h100", "x", "4"), "hgx-h100 x 4"),
        (("-f", "hgx-h100", "x", "4"), "hgx-h100 x 4"),
        (("--fleet=hgx-h100", "x", "4"), "hgx-h100 x 4"),
        (("--fleet", "hgx-h100", "X", "4"), "hgx-h100 x 4"),
        (("--fleet", "hgx-h100", "x", "4,", "a100-80gb", "x", "2"), "hgx-h100 x 4, a100-80gb x 2"),
        (("--fleet", "hgx-h100", "x", "4,", "a100-80gb"), "hgx-h100 x 4, a100-80gb x 1"),
        (("--fleet", "hgx-h100", "--add", "a100-80gb", "x", "2"), "hgx-h100 x 1"),
    ],
)
def test_a_fleet_without_quotes_is_one_value(run, words, fleet):
    for order in (("claim.yaml", *words), (*words, "claim.yaml")):
        assert fleet_of(run("simulate", "--json", *order)) == fleet.replace("X", "x")


def test_other_words_behind_a_fleet_are_no_part_of_it(run, tree):
    tree.write("x/claim.yaml", CLAIM)
    assert fleet_of(run("simulate", "--json", "--fleet", "hgx-h100", "x")) == "hgx-h100 x 1"
    answer = run("simulate", "--fleet", "hgx-h100", "x", "four")
    assert (answer.code, "unexpected extra argument" in answer.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("fleet.txt", "hgx-h100 x 4\na100-80gb x 2\n"),
        ("fleet.txt", "# ours\nhgx-h100 x 4,\n\na100-80gb x 2 # old\n"),
        ("fleet.txt", "hgx-h100 x 4, a100-80gb x 2"),
        ("fleet.yaml", "- hgx-h100 x 4\n- a100-80gb x 2\n"),
        ("fleet.yaml", "---\n- \"hgx-h100 x 4\"\n- 'a100-80gb x 2'\n"),
        ("./fleet", "hgx-h100 x 4\na100-80gb x 2\n"),
    ],
)
def test_a_file_may_list_the_terms_of_a_fleet(run, tree, name, text):
    tree.write(name, text)
    fleet = fleet_of(run("simulate", "claim.yaml", "--json", "--fleet", name))
    assert fleet == "hgx-h100 x 4, a100-80gb x 2"


@pytest.mark.parametrize("text", ["hgx-h100 x 4\n", "nodeGroups: [{kind: hgx-h100, count: 4}]\n"])
def test_a_fleet_may_come_through_a_pipe(run, tree, text):
    os.mkfifo(tree.root / "fleet.yaml")
    writer = threading.Thread(target=(tree.root / "fleet.yaml").write_text, args=(text,), daemon=True)
    writer.start()
    assert json.loads(run("simulate", "claim.yaml", "--json", "--fleet", "fleet.yaml").out)["headroom"]
    writer.join()


def test_a_term_of_a_file_that_is_not_known_is_told(run, tree):
    tree.write("fleet.txt", "hgx-h100 x 4\nhgx-h10 x 2\n")
    answer = run("simulate", "claim.yaml", "--fleet", "fleet.txt")
    assert (answer.code, answer.codes) == (2, {"fleet-unknown"})
    assert "'hgx-h10'" in answer.err
    assert run("simulate", "claim.yaml", "--fleet", "absent.txt").codes == {"fleet-unreadable"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 10),
        ("10s", 10),
        ("1.5", 1.5),
        (".5s", 0.5),
        ("2m", 120),
        ("1m30s", 90),
        ("1h", 3600),
        ("1h2m3.5s", 3723.5),
    ],
)
def test_a_time_may_have_units(text, seconds):
    assert Seconds(0.1).convert(text, None, None) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "10x", "ten", "-5", "1s30m", "1e9", "nan", "inf", "0", "0s", "10 m"]
)
def test_what_is_no_time_is_refused_with_what_to_write(run, text):
    answer = run("simulate", "claim.yaml", "--fleet", "hgx-h100", f"--timeout={text}")
    assert answer.code == 2
    assert "Write seconds, or 90s, 5m or 1m30s." in answer.err or "is less than 0.1 s." in answer.err


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.36", "1.36"),
        ("v1.36", "1.36"),
        ("1.36.2", "1.36.2"),
        ("v1.36.2", "1.36.2"),
        ("v1.36.2-gke.1234", "1.36.2"),
        ("v1.36.2-eks-abc12", "1.36.2"),
        ("1.36.2+k3s1", "1.36.2"),
        ("1.3", "1.3"),
        ("36", "36"),
        ("latest", "latest"),
        ("1.36.2.1", "1.36.2.1"),
    ],
)
def test_a_version_of_a_cluster_has_one_spelling(text, version):
    assert version_of(None, None, text) == version  # type: ignore[arg-type]


def test_the_report_says_which_rules_a_patch_got(run):
    answer = run("validate", "claim.yaml", "-k", "v1.36.2-gke.1")
    assert answer.code == 0
    assert "checked for Kubernetes 1.36.2 (rules of 1.36.4)" in answer.err


@pytest.mark.parametrize(
    ("name", "language", "hint"),
    [
        ("prog.py", "a Python program", "dra-infra synth . | dra-infra validate -"),
        ("infra/__main__.py", "a Python program", "dra-infra synth infra | dra-infra validate -"),
        ("index.ts", "a TypeScript program", "| dra-infra validate -"),
        ("main.go", "a Go program", "| dra-infra validate -"),
        ("main.tf", "Terraform", "| dra-infra validate -"),
        ("claim.jsonnet", "Jsonnet", "| dra-infra validate -"),
        ("claim.cue", "CUE", "| dra-infra validate -"),
        ("_helpers.tpl", "a template", "| dra-infra validate -"),
    ],
)
def test_a_file_of_a_language_is_one_problem_with_the_way(run, tree, name, language, hint):
    tree.write(name, "import pulumi\n\nx: [1\n")
    answer = run("validate", name)
    assert (answer.code, answer.codes) == (2, {"program-not-read"})
    assert language in answer.err
    assert hint in answer.err


def test_an_address_is_not_fetched_and_the_message_says_how(run):
    answer = run("validate", "https://example.com/a b/claim.yaml")
    assert answer.codes == {"file-unreadable"}
    assert "curl -fsSL 'https://example.com/a b/claim.yaml' | dra-infra validate -" in answer.err
