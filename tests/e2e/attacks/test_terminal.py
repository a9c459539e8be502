"""An attacker who writes names, values, files and answers wants to steer a terminal, a log, or who reads a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from dra_infra.cluster.capture import MOST_PRETTY
from dra_infra.documents.json_texts import are_lines, read_lines, without_half_pairs
from tests.e2e.attacks.conftest import Loot
from tests.e2e.attacks.hostile_text import (
    STRINGS,
    commands_in,
    fleet_with,
    hidden_in,
    manifests_with,
    run_all,
    stolen,
    write_objects,
)

pytestmark = pytest.mark.e2e

SCRIPT = Path(sys.executable).parent / "dra-infra"
NAMES = [
    each
    for each in STRINGS
    if "\0" not in each and not any("\ud800" <= letter <= "\udfff" for letter in each)
]
"""Strings that arguments and names of files can hold at all."""


def together(strings: Sequence[str]) -> list[str]:
    """Four of *strings* in one each: where a run is needed for each, there are fewer."""
    return ["".join(strings[start : start + 4]) for start in range(0, len(strings), 4)]


WORKLOADS = """
    apiVersion: resource.k8s.io/v1
    kind: ResourceClaimTemplate
    metadata: {name: gpu, namespace: ml}
    spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: inference, namespace: ml}
    spec:
      replicas: 1
      selector: {matchLabels: {app: inference}}
      template:
        metadata: {labels: {app: inference}}
        spec:
          containers: [{name: main, image: registry.example/a:1, resources: {claims: [{name: gpu}]}}]
          resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
"""


def run(*arguments: str | Path, cwd: Path, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [SCRIPT, *arguments],
        check=False,
        cwd=cwd,
        capture_output=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    return done.returncode, (done.stdout + b"\n" + done.stderr).decode("utf-8", "surrogateescape")


class Haul:
    """What came through, by where it did."""

    def __init__(self, loot: Loot) -> None:
        self._loot = loot
        self._found: dict[str, set[str]] = {}

    def take(self, where: str, text: str, *, ours: tuple[str, ...] = ()) -> None:
        """Note which of the strings came through, and that the program lost its way."""
        self._found.setdefault(where, set()).update(stolen(text, ours=ours))
        self._loot.add_if("Traceback" in text, f"a traceback of {where}")

    def tell(self) -> None:
        """Give it to the loot: how many strings, and the first of them."""
        for where, names in self._found.items():
            self._loot.add_if(
                names, f"{len(names)} of {len(STRINGS)} strings by {where} ({' '.join(sorted(names)[:9])})"
            )


@pytest.fixture
def haul(loot: Loot) -> Haul:
    """Collects what comes through in this test."""
    return Haul(loot)


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    """A folder with a file for each string, called by it where a file can be."""
    folder = tmp_path / "head"
    folder.mkdir()
    for number, text in enumerate(STRINGS):
        name = text if text in NAMES and "/" not in text else str(number)
        write_objects(folder / f"{name}.json", manifests_with(text))
    return folder


@pytest.fixture
def workloads(tmp_path: Path) -> Path:
    folder = tmp_path / "workloads"
    folder.mkdir()
    (folder / "workloads.yaml").write_text(textwrap.dedent(WORKLOADS))
    return folder


def test_there_are_enough_strings():
    assert len(STRINGS) >= 60
    assert len(set(STRINGS)) == len(STRINGS)


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_validate(form: str, manifests: Path, loot: Loot, haul: Haul):
    code, said = run("validate", manifests.name, "--format", form, cwd=manifests.parent)
    assert code == 1
    assert all(text[:3] in said for text in STRINGS)
    haul.take(
        f"validate as {form}", said, ours=("::error file=", "::warning file=") if form == "github" else ()
    )
    haul.tell()
    if form == "github":
        _, counted = run("validate", manifests.name, "--json", cwd=manifests.parent)
        problems = json.loads(counted.partition("\n}\n")[0] + "}")["problems"]
        loot.add_if(len(commands_in(said)) != len(problems), "commands beside those of problems")
        for line in commands_in(said):
            loot.add_if("::" in line.split("::", 2)[1], f"a property that ends itself: {line[:60]}")
    if form in ("json", "sarif"):
        json.loads(said)
    if form == "junit":
        ET.fromstring(said)  # noqa: S314  (what the parser takes is the question)


@pytest.mark.parametrize("form", ["text", "markdown", "json", "html", "sarif", "junit"])
def test_review(form: str, manifests: Path, workloads: Path, loot: Loot, haul: Haul):
    arguments = ["--base-path", workloads, "--fleet", "hgx-h100 x 1", "--format", form]
    ending = {"text": "txt", "markdown": "md", "junit": "xml"}.get(form, form)
    file = manifests.parent / f"report.{ending}"
    code, said = run("review", manifests, *arguments, "--output", file, cwd=manifests.parent)
    assert code == 1
    haul.take(f"review as {form}", said)
    haul.tell()
    if form != "text":
        report = file.read_text("utf-8")
        assert all(text[:3] in report for text in STRINGS[:5])
        loot.add_if(hidden_in(report), f"{len(hidden_in(report))} characters in the file of {form}")
        if form in ("json", "sarif"):
            json.loads(report)
        if form == "junit":
            ET.fromstring(report)  # noqa: S314  (as above)


@pytest.mark.parametrize("option", ["--fleet", "--snapshot"])
def test_fleets_and_snapshots(option: str, workloads: Path, loot: Loot, haul: Haul):
    top = workloads.parent
    jobs = []
    for number, text in enumerate(together(STRINGS)):
        for kind in ("sound", "broken"):
            file = top / f"{kind}{number}.json"
            write_objects(file, [*manifests_with(text)[:5], *fleet_with(text, sound=kind == "sound")])
            jobs.append(["simulate", str(workloads), option, str(file)])
        jobs.append(
            ["explain", "deployment/inference", str(workloads), option, str(top / f"sound{number}.json")]
        )
    for text in together(NAMES):
        jobs.append(["simulate", str(workloads), option, text])
        if "/" not in text:
            (top / text).write_text(f"{{{text}")
            jobs.append(["simulate", str(workloads), option, text])
    ended = run_all(top / "runs", jobs, cwd=top)
    for each in ended:
        haul.take(f"{each.arguments[0]} {option}", each.text)
    haul.tell()


def test_names_that_are_asked_for(workloads: Path, loot: Loot, haul: Haul):
    jobs = [
        arguments
        for text in together(NAMES)
        for arguments in (
            ["catalog", text],
            ["catalog", "models", text],
            ["explain", text, str(workloads), "--fleet", "hgx-h100 x 1"],
            ["init", f"new/{text}", "--name", text, "--json"],
            ["init", f"newer/{text}", "--fleet", "example x 1"],
            ["validate", text],
            ["validate", str(workloads), "--format", text],
            ["review", str(workloads), "--base", text],
            ["simulate", str(workloads), "--fleet", "hgx-h100 x 1", "--scale", f"deployment/{text}=2"],
            ["synth", text],
            [text],
            [f"--{text}"],
            ["comment", text, "--dry-run", "--repository", text, "--number", "1"],
        )
    ]
    for each in run_all(workloads.parent / "runs", jobs, cwd=workloads.parent):
        haul.take(
            f"{each.arguments[0] if each.arguments[0][:1].isalpha() and len(each.arguments) > 1 else 'usage'}",
            each.text,
        )
    haul.tell()


def test_synth(tmp_path: Path, loot: Loot, haul: Haul):
    texts = [each for each in STRINGS if not any("\ud800" <= letter <= "\udfff" for letter in each)]
    (tmp_path / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(
        textwrap.dedent(f"""
        import json, pulumi_kubernetes as k8s
        texts = json.loads({json.dumps(texts)!r})
        for number, text in enumerate(texts):
            data = {{"script": f"a\\n{{text}}\\n{{text}}", "line": text, f"key{{text}}": text, text: "x"}}
            k8s.core.v1.ConfigMap(f"c{{number}}", metadata={{"name": f"c{{number}}"}}, data=data)
        """)
    )
    code, said = run("synth", cwd=tmp_path)
    assert code == 0, said
    haul.take("synth", said)
    data = {each["metadata"]["name"]: each["data"] for each in yaml.safe_load_all(said)}
    assert len(data) == len(texts)
    for number, text in enumerate(texts):
        expected = {"script": f"a\n{text}\n{text}", "line": text, f"key{text}": text, text: "x"}
        loot.add_if(data[f"c{number}"] != expected, f"other data than {text!r}")
    haul.take("synth --json", run("synth", "--json", cwd=tmp_path)[1])
    haul.tell()


def test_a_program_that_fails(tmp_path: Path, loot: Loot, haul: Haul):
    (tmp_path / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    main = tmp_path / "__main__.py"
    for body in ("raise ValueError(text)", "import os; os.write(2, text.encode()); os._exit(3)"):
        text = "\n".join(each for each in STRINGS if "\ud800" not in each and "\udfff" not in each)
        main.write_text(f"import json\ntext = json.loads({json.dumps(json.dumps(text))})\n{body}\n")
        code, said = run("review", ".", "--base-path", ".", cwd=tmp_path)
        assert code == 2
        haul.take(f"a program with {body[:12]!r}", said)
    haul.tell()


@contextmanager
def server(answers: Any) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, reason = answers(self.path)
            self.send_response(status, reason)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def test_a_cluster_that_lies(tmp_path: Path, loot: Loot, haul: Haul):
    filler: list[dict[str, Any]] = []

    def answers(path: str) -> tuple[int, bytes, str]:
        if "events" in path or "nodes" in path:
            refused = {"kind": "Status", "code": 403, "message": "".join(STRINGS[:40]), "reason": STRINGS[0]}
            return 403, json.dumps(refused).encode(), "no\x1b[31m"
        kinds = {"resourceclaims": [], "pods": [], "resourceslices": []}
        for text in STRINGS:
            made = manifests_with(text)
            made[1]["status"] = {
                "reservedFor": [{"resource": text, "name": text, "uid": text}],
                "allocation": {
                    "devices": {"results": [{"driver": text, "pool": text, "device": text, "request": text}]}
                },
            }
            kinds["resourceclaims"].append(made[1])
            kinds["resourceslices"].append(fleet_with(text, sound=True)[1])
            pod = {"containers": [], "resourceClaims": [{"name": text, "resourceClaimName": text}]}
            status = {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "message": text}],
            }
            kinds["pods"].append({"metadata": made[1]["metadata"], "spec": pod, "status": status})
        kinds["pods"] += filler
        for name, items in kinds.items():
            if path.partition("?")[0].endswith(f"/{name}"):
                return 200, json.dumps({"kind": "List", "metadata": {}, "items": items}).encode(), "OK"
        return 404, json.dumps({"kind": "Status", "message": STRINGS[0]}).encode(), "no"

    with server(answers) as address:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            json.dumps(
                {
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {"server": address}}],
                    "users": [{"name": "u", "user": {}}],
                }
            )
        )
        forms = [["status", "--format", form] for form in ("text", "json", "graph", "dot", "mermaid")]
        jobs = [*forms, ["doctor"], ["doctor", "--json"], ["snapshot", "--output", "-"]]
        for each in run_all(
            tmp_path / "runs", [[*job, "--kubeconfig", str(kubeconfig)] for job in jobs], cwd=tmp_path
        ):
            haul.take(" ".join(each.arguments[:3]), each.text)
        # Many objects are written as lines of JSON, which have other escapes.
        filler.extend(
            {"metadata": {"name": f"p{number}", "namespace": "ml"}} for number in range(MOST_PRETTY)
        )
        (written,) = run_all(tmp_path / "many", [[*jobs[-1], "--kubeconfig", str(kubeconfig)]], cwd=tmp_path)
    haul.take("snapshot of many objects", written.text)
    text = written.out.decode()
    loot.add_if(not are_lines(text), "a snapshot of many objects in another form")
    names = {value["metadata"]["name"] for _, value in read_lines(text) if value["kind"] == "Pod"}
    lost = {each for each in STRINGS if without_half_pairs(each) not in names}
    loot.add_if(lost, f"{len(lost)} names that are not read back as they were: {sorted(lost)[:3]}")
    haul.tell()


def test_a_forge_that_lies(tmp_path: Path, loot: Loot, haul: Haul):
    def answers(path: str) -> tuple[int, bytes, str]:
        number = path.rpartition("issues/")[2].partition("/")[0] if "issues/" in path else "0"
        text = together(STRINGS)[int(number)]
        return 422, json.dumps({"message": text, "errors": [{"message": text}]}).encode(), "no"

    (tmp_path / "review.md").write_text("<!-- dra-infra review p/s -->\n# a\n")
    with server(answers) as address:
        jobs = [
            ["comment", "review.md", "--dry-run", "--api", address, "-r", "a/b", "-n", str(number + 1), *more]
            for number in range(len(together(STRINGS)) - 1)
            for more in ([], ["--json"])
        ]
        environment = {**os.environ, "GITHUB_TOKEN": "none", "GITHUB_ACTIONS": "true"}
        for each in run_all(tmp_path / "runs", jobs, cwd=tmp_path, environment=environment):
            haul.take("comment", each.text)
    haul.tell()
