from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from dra_infra.errors import Place, Problem
from dra_infra.sources import files
from tests.support.warm_commands import warm

ROOT = Path(__file__).parents[3]
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: c
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
        count: {count}
"""


def validate(
    *arguments: str | Path, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [warm().command, "validate", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )
    assert b"Traceback" not in done.stderr
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def problems(*arguments: str | Path, stdin: bytes = b"") -> list[tuple[int, int, str]]:
    done = validate(*arguments, "--format", "json", "--kubernetes", "1.37", stdin=stdin)
    assert done.returncode in (0, 1, 2), done.stderr
    return [
        (each["place"]["line"], each["place"]["column"], each["code"])
        for each in json.loads(done.stdout)["problems"]
    ]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    file = tmp_path / "claim.yaml"
    file.write_text("# a comment\n" + CLAIM.format(count=-1))
    return file


def sources_of(folder: Path, text: str) -> list[files.SourceObject | Problem]:
    file = folder / "all.json"
    file.write_text(text)
    return list(files.read_sources([str(file)], io.BytesIO()))


def test_objects_of_one_line_take_the_memory_of_their_text(tmp_path: Path):
    text = '{"kind": "A", "apiVersion": "b"} ' * 100
    found = sources_of(tmp_path, f"{{}}\n{text}")
    assert sum(len(each.document.text) for each in found) < len(text)
    assert found[-1].place("apiVersion") == Place(file=found[0].file, line=2, column=99 * 33 + 15)


@pytest.mark.parametrize("part", ['{"a": [1, 1, 1]}', "{a: [1, 1, 1]}"], ids=["JSON", "YAML"])
def test_documents_behind_a_brace_have_one_limit_together(part: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(files, "MAX_NODES", 20)
    found = sources_of(tmp_path, '{"a": 1}\n' + f"---\n{part}\n" * 100)
    assert [each.code for each in found if isinstance(each, Problem)] == ["yaml-too-large"]
    assert len(found) < 8


def test_an_empty_kind_is_none(tmp_path: Path):
    file = tmp_path / "a.yaml"
    file.write_text("kind: null\na: 1\n")
    assert problems(file) == []


def test_a_problem_names_file_line_and_column(broken: Path):
    done = validate(broken, "--kubernetes", "1.37")
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"✗ {broken}:12:9: ResourceClaim c.spec.devices.requests[0].exactly.count: "
        "Invalid value: -1: must be greater than zero [count-below-one]"
    )
    assert done.stdout == ""


def test_clean_files_exit_with_nothing_wrong(tmp_path: Path):
    (tmp_path / "claim.yaml").write_text(CLAIM.format(count=2))
    (tmp_path / "other.json").write_text('{"apiVersion": "example.com/v1", "kind": "Widget"}')
    done = validate(tmp_path)
    assert done.returncode == 0
    assert (
        done.stderr.splitlines()[0]
        == "checked 1 object on Kubernetes 1.34 and 1.37, 1 other passed through: 0 errors, 0 warnings"
    )


def test_advice_fails_only_when_strict(tmp_path: Path):
    file = tmp_path / "claim.yaml"
    file.write_text(CLAIM.format(count=2).replace("gpu.nvidia.com", "gpu.nvidia.con"))
    assert validate(file).returncode == 0
    assert validate(file, "--strict").returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kubernetes", "1.33"],
        ["--gate", "DRAAdminAcess=true"],
        ["--gate", "DRAAdminAccess"],
        ["--gate", "DRAAdminAccess=perhaps"],
        ["--driver", "12"],
        ["--format", "xml"],
    ],
)
def test_wrong_usage_exits_with_2(broken: Path, arguments: list[str]):
    assert validate(broken, *arguments).returncode == 2


def test_a_gate_decides_what_is_dropped(tmp_path: Path):
    file = tmp_path / "claim.yaml"
    file.write_text(CLAIM.format(count=2) + "        capacity: {requests: {memory: 40Gi}}\n")
    assert "[field-dropped]" in validate(file, "-k", "1.34").stderr
    assert (
        "[field-dropped]" not in validate(file, "-k", "1.34", "--gate", "DRAConsumableCapacity=true").stderr
    )


def test_one_broken_document_does_not_hide_the_others(tmp_path: Path):
    file = tmp_path / "all.yaml"
    file.write_text(
        "a: [\n---\n" + CLAIM.format(count=-1) + "---\n- 1\n---\na: 1\na: 2\n---\n" + CLAIM.format(count=-2)
    )
    assert problems(file) == [
        (2, 1, "yaml-syntax"),
        (13, 9, "count-below-one"),
        (14, 0, "yaml-not-an-object"),
        (18, 1, "yaml-duplicate-key"),
        (30, 9, "count-below-one"),
    ]


def test_items_of_lists_and_lines_of_json_have_places(tmp_path: Path):
    listed = tmp_path / "list.yaml"
    item = CLAIM.format(count=-1).replace("\n", "\n  ").rstrip()
    listed.write_text(f"apiVersion: v1\nkind: List\nitems:\n- {item}\n")
    assert problems(listed) == [(14, 11, "count-below-one")]
    lines = tmp_path / "lines.jsonl"
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "A"}]}},
    }
    lines.write_text("\n\n" + json.dumps(claim) + "\n{\n")
    assert [(line, code) for line, _, code in problems(lines)] == [
        (3, "one-of"),
        (3, "invalid-name"),
        (4, "yaml-syntax"),
    ]


def test_standard_input_is_yaml_or_json():
    assert problems("-", stdin=CLAIM.format(count=-1).encode()) == [(11, 9, "count-below-one")]
    assert problems("-", stdin=b'{"apiVersion": "resource.k8s.io/v1", "kind": "Claim"}') == [
        (1, 38, "unknown-kind")
    ]


@pytest.mark.parametrize("data", [b"", b"\n \n", b"# nothing\n", b"---\n---\n"])
def test_an_input_without_an_object_is_no_clean_one(data: bytes):
    result = validate("-", stdin=data)
    code = "nothing-checked"
    assert (result.returncode, f"[{code}]" in result.stderr) == (2, True)


def test_an_empty_standard_input_beside_a_file_is_told(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(CLAIM.format(count=1))
    result = validate("-", tmp_path / "a.yaml", stdin=b"")
    assert (result.returncode, "standard input is empty" in result.stderr) == (2, True)


HOSTILE: list[tuple[str, bytes, str]] = [
    ("a.yaml", b"\tkey: value", "yaml-syntax"),
    ("a.yaml", "a: b".encode("utf-16"), "not-utf-8"),
    ("a.yaml", b"a: \xff", "not-utf-8"),
    ("a.yaml", b"a: .nan", "yaml-syntax"),
    ("a.yaml", b"a: &a [*a]", "yaml-syntax"),
    ("a.yaml", b"[" * 100_000, "yaml-too-large"),
    (
        "a.yaml",
        b"a0: &a0 [x, x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)),
        "yaml-too-large",
    ),
    ("a.yaml", b"? {a: b}\n: c", "yaml-syntax"),
    ("a.yaml", b"a: !!python/object:os.system x", "yaml-syntax"),
    ("a.yaml", b"just text", "yaml-not-an-object"),
    ("a.yaml", b"a: b\x00c", "yaml-syntax"),
    ("a.json", b"[1, 2]", "yaml-not-an-object"),
    ("a.json", b'{"a": NaN}', "yaml-syntax"),
    ("a.json", b'{"a": 1, "a": 2}', "yaml-duplicate-key"),
    ("a.json", b'{"a": ' * 5_000, "yaml-too-large"),
    ("a.json", b"[" * 200_000 + b"]" * 200_000, "yaml-too-large"),
    ("a.json", b'{"a": ' * 70 + b"1" + b"}" * 70, "yaml-too-large"),
    ("a.json", b'{"a": ' + b"9" * 5_000 + b"}", "yaml-syntax"),
    ("a.json", b" " * (33 * 2**20), "yaml-too-large"),
]


@pytest.mark.parametrize(
    ("name", "data", "code"), HOSTILE, ids=[f"{code} {n}" for n, (_, _, code) in enumerate(HOSTILE)]
)
def test_hostile_input_is_one_problem_with_its_place(tmp_path: Path, name: str, data: bytes, code: str):
    file = tmp_path / name
    file.write_bytes(data)
    assert [found for _, _, found in problems(file)] == [code]


@pytest.mark.parametrize("expression", ["true || " * 100_000 + "true", "(" * 5_000, '"\\ud83d"'])
def test_hostile_expressions_end(tmp_path: Path, expression: str):
    file = tmp_path / "class.json"
    selectors = [{"cel": {"expression": expression}}]
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "c"},
        "spec": {"selectors": selectors},
    }
    file.write_text(json.dumps(manifest))
    assert problems(file)


def test_numbers_and_texts_mean_what_they_mean_to_kubectl(tmp_path: Path):
    file = tmp_path / "claim.yaml"
    for text, found in [
        ("2.0", []),
        ("1e0", []),
        ("0o17", []),
        ('"2"', ["wrong-type"]),
        ("yes", ["wrong-type"]),
        ("9223372036854775808", ["wrong-type"]),
        ("~", []),
        ("1.5", ["wrong-type"]),
    ]:
        file.write_text(CLAIM.format(count=text))
        assert [code for _, _, code in problems(file)] == found, text


def test_what_is_no_file_is_a_problem(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "empty").mkdir()
    for name in ("pipe.yaml", "circle", "empty", "missing"):
        assert [code for _, _, code in problems(tmp_path / name)] == ["file-unreadable"], name


def test_what_nobody_looked_at_is_no_answer(tmp_path: Path, broken: Path):
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    (tmp_path / "pod.yaml").write_text("kind: Pod\nmetadata: {name: p}\n")
    for name in ("empty.yaml", "missing.yaml", "pod.yaml"):
        assert validate(tmp_path / name).returncode == 2, name
    for name in ("missing.yaml", "pod.yaml"):
        assert validate(broken, tmp_path / name).returncode == 2, name
    assert validate(broken, tmp_path / "empty.yaml").returncode == 1


def test_an_object_without_a_version_is_told_with_the_line_to_write(tmp_path: Path):
    file = tmp_path / "pods.yaml"
    file.write_text(
        "# first\nkind: Pod\nmetadata: {name: p}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: q}\n"
    )
    assert problems(file) == [(1, 1, "api-version-missing")]
    assert "write apiVersion: v1" in validate(file).stderr
    file.write_text("apiVersion: v1\nkind: List\nitems:\n- kind: Pod\n")
    assert problems(file) == [(4, 3, "api-version-missing")]
    file.write_text("apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: p}\n")
    assert problems(file) == []


BOTH_FORMS = """\
{"apiVersion": "resource.k8s.io/v1", "kind": "Claim", "metadata": {"name": "a"}}
--- {"apiVersion": "resource.k8s.io/v1", "kind": "Klaim", "metadata": {"name": "b"}}
---
apiVersion: resource.k8s.io/v1
kind: Glaim
...
{"kind": unquoted,
 "apiVersion": resource.k8s.io/v1}
"""


@pytest.mark.parametrize("name", ["all.yaml", "all.json"])
def test_a_file_that_begins_with_a_brace_has_documents_of_both_forms(tmp_path: Path, name: str):
    file = tmp_path / name
    file.write_text(BOTH_FORMS)
    assert problems(file) == [
        (1, 38, "unknown-kind"),
        (2, 42, "unknown-kind"),
        (5, 1, "unknown-kind"),
        (7, 2, "unknown-kind"),
    ]


def test_one_broken_document_among_thousands_takes_no_other_along(tmp_path: Path):
    file = tmp_path / "all.yaml"
    whole = "apiVersion: resource.k8s.io/v1\nkind: Klaim\n---\n"
    file.write_text(whole * 20_000 + "a: [\n---\n" + whole * 20_000 + "...\n%YAML 1.1\n---\n" + whole)
    found = problems(file)
    assert [code for _, _, code in found].count("yaml-syntax") == 1
    assert len(found) == 40_002
    assert (20_000 * 3 + 2, 1, "yaml-syntax") in found
    assert found[-1] == (40_000 * 3 + 2 + 3 + 2, 1, "unknown-kind")


def test_a_patch_of_a_kustomization_may_lack_fields_and_has_none_of_its_own(tmp_path: Path):
    (tmp_path / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\npatches: [{path: patch.yaml}]\n"
    )
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replica: 2}\n"
    (tmp_path / "patch.yaml").write_text(patch)
    assert "[missing-field]" not in validate(tmp_path).stderr
    assert "[unknown-field]" in validate(tmp_path).stderr
    assert "[missing-field]" in validate(tmp_path / "patch.yaml").stderr


def test_a_long_read_tells_on_a_terminal_how_far_it_is(tmp_path: Path):
    file = tmp_path / "all.yaml"
    file.write_text("apiVersion: v1\nkind: Namespace\n---\n" * 12_000)
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "dra_infra.cli.app", "validate", str(file)]
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "DRA_INFRA_PROGRESS": ""}
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65_536):
            shown += part
    except OSError:
        # That is how a terminal ends on Linux.
        assert process.wait() == 0
    finally:
        os.close(ours)
    for told in (b"(5,000 objects)...", b"(10,000 objects)...", b"checking 12,000 objects..."):
        assert told in shown
    assert shown.rpartition(b"\x1b[K")[2].startswith(b"checked 12,000 objects")


def test_what_stands_behind_a_document_is_told_beside_its_problems(tmp_path: Path):
    file = tmp_path / "claim.yaml"
    file.write_text(CLAIM.format(count=-1) + "%YAML 1.1\n")
    assert [code for _, _, code in problems(file)] == ["count-below-one", "yaml-syntax"]


def test_formats_hold_the_same_problems(broken: Path):
    sarif = json.loads(validate(broken, "--format", "sarif").stdout)["runs"][0]
    (result,) = sarif["results"]
    assert sarif["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "count-below-one"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 12, "startColumn": 9}
    suite = ET.fromstring(validate(broken, "--format", "junit").stdout)  # noqa: S314  (our own text)
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    (failure,) = suite.iter("failure")
    assert failure.get("type") == "count-below-one"
    command = validate(broken, "--format", "github").stdout.splitlines()[0]
    assert command.startswith(
        f"::error file={broken},line=12,col=9,title=count-below-one::ResourceClaim c.spec"
    )
    assert "%0Ahint: " in command


def test_the_same_input_gives_the_same_bytes_under_any_hash_seed(tmp_path: Path, broken: Path):
    (tmp_path / "b.yaml").write_text(CLAIM.format(count=-3).replace("name: gpu", "name: -GPU-"))
    texts = {validate(tmp_path, "--format", "sarif", PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "7")}
    assert len(texts) == 1


def test_neither_pulumi_nor_grpc_nor_a_cluster_client_is_imported(broken: Path):
    program = (
        "import sys\nfrom dra_infra.cli.validate import run\n"
        f"run([{str(broken)!r}], kubernetes=None, gates={{}}, serves=[], driver='newest', strict=False, form='text')\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'pulumi', 'grpc', 'kubernetes', 'httpx'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_json_objects_one_after_the_other_are_read_on_any_number_of_lines(tmp_path: Path):
    file = tmp_path / "watch.json"
    file.write_text(
        '{\n  "apiVersion": "resource.k8s.io/v1",\n  "kind": "Claim"\n}\n'
        '{\n  "kind": \n}\n'
        '{"apiVersion": "resource.k8s.io/v1", "kind": "Klaim"}\n'
    )
    assert problems(file) == [(3, 3, "unknown-kind"), (7, 1, "yaml-syntax"), (8, 38, "unknown-kind")]


def test_the_second_of_two_equal_keys_in_json_has_its_place(tmp_path: Path):
    file = tmp_path / "claim.json"
    file.write_text('{"apiVersion": "v1",\n "spec": {"a": 1,\n  "a": 2}}')
    assert problems(file) == [(3, 3, "yaml-duplicate-key")]


@pytest.mark.parametrize(("name", "part"), [("all.yaml", "[\n---\n"), ("all.jsonl", '{"a":}\n')])
def test_a_file_of_nothing_but_broken_parts_is_given_up_soon(tmp_path: Path, name: str, part: str):
    file = tmp_path / name
    file.write_text(part * 500_000)
    assert len(problems(file)) == 100


def test_many_keys_before_a_double_one_take_no_time_of_their_square(tmp_path: Path):
    file = tmp_path / "claim.json"
    file.write_text("{" + ",".join(f'"k{number}": 1' for number in range(100_000)) + ', "k99999": 2}')
    assert [code for _, _, code in problems(file)] == ["yaml-duplicate-key"]


def test_a_number_is_what_kubectl_makes_of_it(tmp_path: Path):
    file = tmp_path / "claim.yaml"
    file.write_text(CLAIM.format(count="2.0") + "        adminAccess: n\n")
    assert problems(file) == []
    file.write_text(CLAIM.format(count=2).replace("name: c", "name: y"))
    assert [code for _, _, code in problems(file)] == ["wrong-type"]


def loaded_to_validate(file: Path) -> set[str]:
    code = (
        "import sys; from dra_infra.cli.app import app\n"
        "try: app(['validate', sys.argv[1]])\n"
        "except SystemExit: print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, file], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_it_loads_no_engine_no_cluster_client_and_no_transport(tmp_path: Path):
    file = tmp_path / "claim.yaml"
    file.write_text(CLAIM.format(count=-1))
    loaded = loaded_to_validate(file)
    assert "dra_infra.advice.objects" in loaded
    assert not loaded & {"pulumi", "pulumi_kubernetes", "grpc", "kubernetes", "httpx", "http.client", "ssl"}


def test_it_loads_what_the_input_needs_and_no_other_command(tmp_path: Path):
    file = tmp_path / "claim.yaml"
    file.write_text(CLAIM.format(count=1))
    names = (
        "kubernetes.api.nodes",
        "fleet",
        "kubernetes.cel.wording",
        "program_objects",
        "output.secret_shapes",
    )
    rare = {f"dra_infra.{name}" for name in (*names, "selectors.selector", "catalog.charts", "placement")}
    loaded = loaded_to_validate(file)
    assert not loaded & (rare | {"rich", "jinja2"})
    assert [name for name in loaded if name.startswith("dra_infra.cli.commands.")] == [
        "dra_infra.cli.commands.validate"
    ]


def test_junit_holds_what_xml_cannot(tmp_path: Path):
    file = tmp_path / "claim.json"
    file.write_text(
        '{"apiVersion": "resource.k8s.io/v1", "kind": "\\u0001<\\"&\\ud800\\uffff", "metadata": {"name": "c"}}'
    )
    done = validate(file, "--format", "junit")
    failure = ET.fromstring(done.stdout).find("testcase/failure")  # noqa: S314  (our own output)
    assert failure is not None
    assert failure.get("type") == "unknown-kind"


def hints(path: Path) -> dict[str, str]:
    found = json.loads(validate(path, "--format", "json", "--kubernetes", "1.37").stdout)["problems"]
    return {each["code"]: each["hint"] for each in found}


def test_a_mistyped_field_is_told_with_the_nearest(tmp_path: Path):
    file = tmp_path / "a.yaml"
    file.write_text(CLAIM.format(count=1).replace("deviceClassName", "deviceClasName"))
    assert hints(file)["unknown-field"] == "did you mean 'deviceClassName'?"


def test_a_number_in_quotes_is_told_to_be_written_without(tmp_path: Path):
    file = tmp_path / "a.yaml"
    file.write_text(CLAIM.format(count='"1"'))
    assert hints(file)["wrong-type"] == "write count: 1, without quotes"
    file.write_text(CLAIM.format(count="two"))
    assert hints(file)["wrong-type"] == "write count: with a number, without quotes"
    file.write_text(CLAIM.format(count="None"))
    assert hints(file)["wrong-type"] == "YAML has null for None: leave count out"


def test_a_program_among_the_input_is_no_answer(tmp_path: Path):
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    assert problems(tmp_path) == [(2, 1, "program-not-read")]
    done = validate(tmp_path, "--strict")
    assert done.returncode == 2
    assert f"dra-infra synth {tmp_path} | dra-infra validate -" in done.stderr


def test_a_program_beside_objects_that_are_checked_is_a_warning(tmp_path: Path):
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "a.yaml").write_text(CLAIM.format(count=1))
    done = validate(tmp_path)
    assert (done.returncode, "[program-not-read]" in done.stderr) == (0, True)
    assert validate(tmp_path, "--strict").returncode == 1


@pytest.mark.parametrize(
    ("number", "code", "text"),
    [
        (
            '"40"',
            "wrong-type",
            "cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        ("1.5", "wrong-type", "cannot unmarshal number 1.5 into"),
        ("-1", "object-malformed", "Invalid value: -1: must be greater than or equal to 0"),
        ("3", "", "0 errors"),
    ],
)
def test_a_number_of_pods_that_the_server_refuses_is_told_in_its_words(
    tmp_path: Path, number: str, code: str, text: str
):
    file = tmp_path / "a.yaml"
    spec = f"spec: {{replicas: {number}, selector: {{}}, template: {{spec: {{containers: []}}}}}}\n"
    file.write_text(f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: d}}\n{spec}")
    assert [each[2] for each in problems(file)] == ([code] if code else [])
    assert text in validate(file).stderr


def test_a_file_that_is_not_there_is_told_with_the_nearest(tmp_path: Path):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "claim.yaml").write_text(CLAIM.format(count=1))
    assert hints(tmp_path / "manifest" / "claim.yaml") == {
        "file-unreadable": f"did you mean {tmp_path / 'manifests' / 'claim.yaml'}?"
    }
    assert hints(tmp_path / "manifests" / "clam.yaml") == {
        "file-unreadable": f"did you mean {tmp_path / 'manifests' / 'claim.yaml'}?"
    }
    assert hints(tmp_path / "manifests" / "other") == {"file-unreadable": "check the path"}


@pytest.mark.parametrize(
    ("gate", "hint"),
    [
        ("DRAConsumable", "did you mean 'DRAConsumableCapacity'?"),
        ("dradevicetaints", "did you mean 'DRADeviceTaints'"),
        ("Taints", "'DRADeviceTaints'"),
        ("Horse", "gates are DynamicResourceAllocation, "),
    ],
)
def test_a_gate_that_is_none_is_told_with_those_near(broken: Path, gate: str, hint: str):
    done = validate(broken, "--gate", f"{gate}=true")
    assert done.returncode == 2
    assert hint in " ".join(done.stderr.split())


def test_a_template_of_a_chart_is_told_to_be_reviewed_as_a_chart(tmp_path: Path):
    file = tmp_path / "a.yaml"
    file.write_text(CLAIM.format(count="{{ .Values.count }}"))
    assert "dra-infra review CHART" in hints(file)["yaml-syntax"]


def test_a_gate_without_a_value_is_told_how_gates_are_written(broken: Path):
    done = validate(broken, "--gate", "DRAConsumableCapacity")
    assert (done.returncode, "NAME=true or NAME=false" in " ".join(done.stderr.split())) == (2, True)


PAGE = ROOT / "tests/contract/pages/validate-policies"


def test_policies_of_a_file_are_asked_and_found_at_the_lines_of_the_objects():
    found = problems(PAGE / "claims.yaml", "--policies", PAGE / "guardrails.yaml")
    assert found == [(5, 1, "policy-not-decided"), (15, 1, "policy-denies")]


def test_policies_of_the_input_are_asked_where_that_is_wanted(tmp_path: Path):
    for name in ("claims.yaml", "guardrails.yaml"):
        (tmp_path / name).write_text((PAGE / name).read_text())
    assert problems(tmp_path) == []
    assert [code for _, _, code in problems(tmp_path, "--policies", "-")] == [
        "policy-not-decided",
        "policy-denies",
    ]


def test_a_class_beside_the_policies_is_known_and_not_judged(tmp_path: Path):
    (tmp_path / "claim.yaml").write_text(CLAIM.format(count=1).replace("gpu.nvidia.com", "mine"))
    policies = tmp_path / "policies.yaml"
    mine = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: mine}\nspec: {wrong: 1}\n"
    policies.write_text(f"{mine}---\n{(PAGE / 'guardrails.yaml').read_text()}")
    before = problems(tmp_path / "claim.yaml", "--policies", PAGE / "guardrails.yaml")
    assert "class-not-known" in {code for _, _, code in before}
    codes = {code for _, _, code in problems(tmp_path / "claim.yaml", "--policies", policies)}
    assert codes.isdisjoint({"class-not-known", "unknown-field"})


def test_a_user_and_groups_decide_what_policies_ask_for():
    asked = (PAGE / "claims.yaml", "--policies", PAGE / "guardrails.yaml", "--as", "alice")
    assert problems(*asked) == [(5, 1, "policy-denies"), (15, 1, "policy-denies")]
    assert problems(*asked, "--as-group", "platform") == [(15, 1, "policy-denies")]


def test_groups_without_a_user_are_a_wrong_usage():
    done = validate(PAGE / "claims.yaml", "--policies", "-", "--as-group", "platform")
    assert done.returncode == 2
    assert "--as-group" in done.stderr


def test_what_is_not_decided_passes_and_fails_when_strict(tmp_path: Path):
    claim = tmp_path / "classes.yaml"
    claim.write_text((PAGE / "claims.yaml").read_text().partition("---")[0])
    asked = (claim, "--policies", PAGE / "guardrails.yaml")
    assert validate(*asked).returncode == 0
    assert validate(*asked, "--strict").returncode == 1


def test_no_policy_to_ask_is_no_answer(tmp_path: Path):
    done = validate(PAGE / "claims.yaml", "--policies", PAGE / "claims.yaml")
    assert done.returncode == 2
    assert "nothing-checked" in done.stderr


def test_json_says_how_many_policies_were_asked_only_where_some_were():
    done = validate(PAGE / "claims.yaml", "--policies", PAGE / "guardrails.yaml", "--json")
    assert json.loads(done.stdout)["policies"] == 2
    assert json.loads(validate(PAGE / "claims.yaml", "--json").stdout)["policies"] is None
