"""What an attacker can hand to the commands as files, as an API server or as a forge: each command gives an answer in its time."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from tests.e2e.attacks.conftest import Loot

pytestmark = pytest.mark.e2e

MEMORY: Final = 3 << 30
"""Bytes of address space that a command may take."""

SOAK: Final = bool(os.environ.get("DRA_INFRA_SOAK"))
PART: Final = 1 if SOAK else 3
"""By how much the largest inputs are smaller than the promised ones, but in `make soak`; their commands then get half the memory."""

CLAIM: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a, namespace: ml}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: -1}}]
"""
DOMAIN: Final = """\
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: domain, namespace: ml}
spec: {numNodes: 0, channel: {resourceClaimTemplate: {name: t}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: {a: b}, namespace: ml}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""


@dataclass(frozen=True)
class Answer:
    """How a command ended; `code` is None when it had to be killed."""

    code: int | None
    printed: str
    seconds: float


def run(
    *arguments: str | Path,
    folder: Path,
    seconds: float = 60.0,
    memory: int = MEMORY,
    before: str = "",
    **environment: str,
) -> Answer:
    """A command in a process of its own, with *memory* bytes; *before* are lines of Python that run in it first."""
    program = f"{before}\nfrom dra_infra.cli.app import main\nmain()"
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),  # noqa: PLW1509  (no thread runs yet)
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        # What it started may hold its output open.
        printed, _ = process.communicate(timeout=seconds)
        code = None
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    return Answer(code, printed.decode("utf-8", "replace"), spent)


def judge(loot: Loot, name: str, answer: Answer, *codes: int) -> None:
    """Note what a command lost: its time, its memory, its composure or its exit code."""
    loot.add_if(answer.code is None, f"a command that never ends: {name}")
    loot.add_if("Traceback" in answer.printed, f"a traceback: {name}")
    loot.add_if(
        "MemoryError" in answer.printed or (answer.code or 0) < 0, f"the memory of the machine: {name}"
    )
    loot.add_if(answer.code not in (None, *codes), f"exit code {answer.code} instead of {codes}: {name}")


FILES: Final[Mapping[str, tuple[str, tuple[str, ...], int]]] = {
    "an attribute that is not ASCII": (
        CLAIM.replace("count: -1", "count: 2")
        + '    constraints: [{requests: [gpu], matchAttribute: "é.io/x"}]\n',
        ("validate", "FILE"),
        1,
    ),
    "a directive behind a bad object": (f"{CLAIM}%YAML 1.1\n", ("validate", "FILE"), 1),
    "a snapshot of a kind that is a list": (
        "apiVersion: v1\nkind: [Node]\nmetadata: {name: n}\n",
        ("simulate", "GOOD", "--snapshot", "FILE"),
        2,
    ),
    "a fleet of a kind that is a list": (
        "apiVersion: v1\nkind: [Node]\nmetadata: {name: n}\n",
        ("simulate", "GOOD", "--fleet", "FILE"),
        2,
    ),
    "a template whose name is a mapping": (DOMAIN, ("validate", "FILE"), 1),
    "the same in a review": (DOMAIN, ("review", "FILE", "--base-path", "GOOD"), 1),
    "a kind without a version": ("kind: Pod\nmetadata: {name: p}\n", ("validate", "FILE"), 2),
    "nothing at all": ("", ("validate", "FILE"), 2),
    "a file that is not there": ("", ("validate", "nosuch.yaml"), 2),
    "several documents behind a brace": (
        '{"apiVersion": "v1", "kind": "Namespace"}\n---\n{"apiVersion": "v1", "kind": "Namespace"}\n',
        ("validate", "FILE"),
        0,
    ),
    "a fleet for a folder of nothing": ("", ("simulate", "EMPTY", "--fleet", "hgx-h100"), 2),
    "aliases of aliases": (
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
            for old, new in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        ("validate", "FILE"),
        1,
    ),
    "300 lists in each other": (
        "apiVersion: v1\nkind: Pod\nspec: " + "[" * 300 + "]" * 300,
        ("validate", "FILE"),
        1,
    ),
    "objects without an end to their line": ('{"a":1}' * 100_000, ("validate", "FILE"), 0),
    "a kind that is null": ("kind: null\na: 1\n", ("validate", "FILE"), 0),
    "comments and directives before each marker": (
        "# nothing\n" * 30_000 + "%YAML 1.1\n" + "---\na: b\n" * 100_000,
        ("validate", "FILE"),
        0,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_gets_an_answer(name: str, loot: Loot, tmp_path: Path):
    content, arguments, code = FILES[name]
    (tmp_path / "file.yaml").write_text(content, "utf-8")
    (tmp_path / "good.yaml").write_text(CLAIM.replace("count: -1", "count: 1"), "utf-8")
    (tmp_path / "empty").mkdir()
    places = {"FILE": "file.yaml", "GOOD": "good.yaml", "EMPTY": "empty"}
    answer = run(*(places.get(each, each) for each in arguments), folder=tmp_path, seconds=120)
    judge(loot, name, answer, code)


def test_settings_of_a_stack_that_unfold_without_end_are_refused(loot: Loot, tmp_path: Path):
    (tmp_path / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("")
    lines = ["config:", "  infra:a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"  infra:{new}: &{new} [{', '.join([f'*{old}'] * 9)}]"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    (tmp_path / "Pulumi.dev.yaml").write_text("\n".join(lines))
    judge(loot, "aliases of aliases in a stack file", run("synth", folder=tmp_path), 2)


def objects(number: int) -> Iterator[str]:
    for each in range(number // 2):
        yield (
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
            f"metadata: {{name: claim-{each}, namespace: ns-{each % 50}}}\n"
            f"spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com, count: {1 + each % 4}}}}}]}}}}\n"
        )
        yield (
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: pod-{each}, namespace: ns-{each % 50}}}\n"
            f"spec: {{resourceClaims: [{{name: gpu, resourceClaimName: claim-{each}}}], containers: [{{name: main, image: x, "
            "resources: {claims: [{name: gpu}]}}]}\n"
        )


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (("validate", "all.yaml"), (0,)),
        (("review", "all.yaml", "--base-path", "base.yaml"), (0, 1)),
        (("simulate", "all.yaml", "--fleet", "hgx-h100 x 4", "--timeout", "20"), (0, 1)),
    ],
    ids=["validate", "review", "simulate"],
)
def test_many_objects_get_an_answer(
    arguments: tuple[str, ...], codes: tuple[int, ...], loot: Loot, tmp_path: Path
):
    (tmp_path / "all.yaml").write_text("---\n".join(objects(60_000 // PART)))
    (tmp_path / "base.yaml").write_text("---\n".join(objects(59_000 // PART)))
    answer = run(*arguments, folder=tmp_path, seconds=300, memory=MEMORY if SOAK else MEMORY // 2)
    judge(loot, f"{60_000 // PART:,} objects for {arguments[0]}", answer, *codes)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("validate", "all.jsonl"), 0),
        (("review", "all.jsonl", "--base-path", "base.jsonl"), 2),
        (("review", "base.jsonl", "--base-path", "all.jsonl"), 2),
        (("simulate", "all.jsonl", "--fleet", "hgx-h100"), 2),
    ],
    ids=["validate", "review", "base", "simulate"],
)
def test_very_many_objects_get_an_answer_or_a_refusal(
    arguments: tuple[str, ...], code: int, loot: Loot, tmp_path: Path
):
    line = '{"apiVersion":"example.com/v1","kind":"A"}\n'
    (tmp_path / "all.jsonl").write_text(line * (1_000_000 // PART))
    (tmp_path / "base.jsonl").write_text(line)
    answer = run(*arguments, folder=tmp_path, seconds=600)
    judge(loot, f"{1_000_000 // PART:,} objects for {arguments[0]}", answer, code)
    assert loot.taken or code == 0 or "[yaml-too-large]" in answer.printed


@pytest.mark.parametrize(
    ("unit", "count"),
    [("{},", 80_000_000), ('{"a":0},', 30_000_000), ("", 0)],
    ids=["empty", "small", "10 GiB"],
)
def test_a_small_artefact_that_unpacks_to_much_is_refused(loot: Loot, tmp_path: Path, unit: str, count: int):
    """What a forge unpacks for the job with the token compresses to a thousandth."""
    for folder in ("k", "base"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_text(CLAIM)
    made = '{"urn": "urn:pulumi:s::p::kubernetes:core/v1:ConfigMap::x", "manifest": {"a": [%s0]}}'
    head = '{"format": "dra-infra/compiled/3", "kind": "manifests", "program": {"project": "p", "stack": "s", "objects": [%s]}}'
    with (tmp_path / "head.json").open("w") as file:
        file.write(head % made % (unit * count))
        file.truncate(file.tell() if count else 10 << 30)
    options = ("--head", "head.json", "--base-path", "base", "--markdown", "review.md")
    answer = run("review", "k", *options, folder=tmp_path, seconds=120)
    judge(loot, "an artefact", answer, 2)
    loot.add_if("[compiled-unreadable]" not in answer.printed, "no refusal")
    loot.add_if(not (tmp_path / "review.md").exists(), "an older verdict that stands")


def test_a_large_yaml_file_gets_an_answer(loot: Loot, tmp_path: Path):
    pod = "- apiVersion: v1\n  kind: Pod\n  metadata: {{name: p{}}}\n  spec: {{containers: [{{name: x}}]}}\n"
    file = tmp_path / "all.yaml"
    file.write_text("apiVersion: v1\nkind: List\nitems:\n" + "".join(map(pod.format, range(350_000 // PART))))
    answer = run("validate", file, folder=tmp_path, seconds=300, memory=MEMORY if SOAK else MEMORY // 2)
    judge(loot, f"{30 // PART} MB of valid YAML", answer, 0)
    # Beside what libyaml itself takes, so that a slow machine says nothing about the code: it was nine times as long.
    began = time.process_time()
    parser = yaml.CSafeLoader(file.read_text())
    while type(parser.get_event()) is not yaml.StreamEndEvent:
        pass
    parsing = time.process_time() - began
    told = (
        f"{answer.seconds:.0f} s of processor time for {30 // PART} MB that libyaml reads in {parsing:.0f} s"
    )
    loot.add_if(answer.seconds > 5 * parsing, told)


# An API server that means harm

Reply = Callable[[Any, dict[str, str]], None]


@contextmanager
def api_server(reply: Reply) -> Iterator[str]:
    """An address whose lists all get *reply*; other paths are not found."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path in ("/version", "/metrics") or parts.path.startswith(
                "/apis/resource.k8s.io/v1beta"
            ):
                send(self, b'{"message": "no"}', status=404)
                return
            try:
                reply(self, dict(parse_qsl(parts.query)))
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Who is attacked hangs up."""

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send(handler: Any, body: bytes, *, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def kubeconfig(folder: Path, server: str) -> Path:
    file = folder / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": server}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "planted-token"}}]
    file.write_text(
        json.dumps({"clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"})
    )
    return file


def listed(*items: Any) -> Reply:
    return lambda handler, _query: send(handler, json.dumps({"metadata": {}, "items": list(items)}).encode())


COMMANDS: Final = (("snapshot", "--output", "-"), ("doctor",), ("status",), ("explain", "pod/x", "-n", "ml"))


@pytest.mark.parametrize("item", [1, None, [], {"metadata": [1]}, {"metadata": None}], ids=str)
def test_lists_of_what_are_no_objects_are_refused(item: Any, loot: Loot, tmp_path: Path):
    with api_server(listed(item)) as address:
        file = kubeconfig(tmp_path, address)
        for command in COMMANDS:
            answer = run(*command, "--kubeconfig", file, folder=tmp_path)
            judge(loot, f"{command[0]} on items {item}", answer, 2)


def drip(handler: Any, _query: dict[str, str]) -> None:
    """A byte each 20 ms for as long as somebody listens."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000000")
    handler.end_headers()
    # The one that is attacked hangs up; no byte is ever awaited.
    handler.connection.settimeout(0.02)
    while True:
        handler.wfile.write(b" ")
        handler.wfile.flush()
        try:
            if not handler.connection.recv(1):
                return
        except TimeoutError:
            continue


def test_an_api_server_that_sends_a_byte_now_and_then_is_left(loot: Loot, tmp_path: Path):
    # A whole answer has twice the time; without the option that is two minutes.
    bound = ("--request-timeout", "1s")
    with api_server(drip) as address:
        file = kubeconfig(tmp_path, address)
        for command in COMMANDS:
            answer = run(*command, "--kubeconfig", file, *bound, folder=tmp_path, seconds=120)
            judge(loot, f"{command[0]} on a byte now and then", answer, 2)


def test_an_api_server_that_pages_for_ever_is_left(loot: Loot, tmp_path: Path):
    def endless(handler: Any, query: dict[str, str]) -> None:
        number = int(query.get("continue", "0")) + 1
        item = {"metadata": {"name": f"p{number}", "namespace": "ml"}}
        send(handler, json.dumps({"metadata": {"continue": str(number)}, "items": [item]}).encode())

    # The real bound is 20,000 pages.
    fewer = "import dra_infra.cluster.reading as reading; reading.MOST_PAGES = 100"
    with api_server(endless) as address:
        file = kubeconfig(tmp_path, address)
        for command in COMMANDS:
            answer = run(*command, "--kubeconfig", file, folder=tmp_path, before=fewer, seconds=120)
            judge(loot, f"{command[0]} on pages without an end", answer, 2)


def test_an_api_server_that_redirects_gets_no_token_elsewhere(loot: Loot, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.settimeout(0.2)
        there = f"http://127.0.0.1:{other.getsockname()[1]}/"
        with api_server(lambda handler, _: send(handler, b"", status=302, Location=there)) as address:
            answer = run("status", "--kubeconfig", kubeconfig(tmp_path, address), folder=tmp_path)
        judge(loot, "status on a redirect", answer, 2)
        try:
            connection, _ = other.accept()
        except TimeoutError:
            return
        with connection:
            loot.add_secrets("a request to another server", connection.recv(65_536).decode(), "planted-token")
