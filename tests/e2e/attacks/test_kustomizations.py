"""Kustomizations of a stranger, built by the real kubectl: what they ask for, read, run and print."""

from __future__ import annotations

import http.server
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.kustomizations import build

pytestmark = pytest.mark.e2e

Write = Callable[..., Path]
Server = tuple[str, list[str]]

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {planted: secret-of-the-machine}\n"


@pytest.fixture
def write(tmp_path: Path, binaries: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a repository with a kustomization in `deploy/prod`, and puts kubectl alone on PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "kubectl").symlink_to(binaries("kubectl"))
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    top = tmp_path / "repository"

    def write(kustomization: str, **files: str) -> Path:
        for name, text in {"prod/kustomization.yaml": kustomization, **files}.items():
            file = top / "deploy" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return top / "deploy/prod"

    return write


def built(folder: Path) -> str:
    try:
        return str(build(folder, inside=folder.parents[1], timeout=30))
    except ProgramError as error:
        (problem,) = error.problems
        assert problem.code == "kustomization-not-built"
        return f"refused: {problem.message}"


def test_an_innocent_one_is_built_with_its_base(write: Write) -> None:
    folder = write(
        'resources: [../base]\nnamePrefix: prod-\npatches:\n- patch: \'[{"op": "add", "path": "/data/more", "value": "x"}]\'\n  target: {kind: ConfigMap}\n',
        **{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": CONFIG},
    )
    (found,) = build(folder, inside=folder.parents[1])
    assert (found["metadata"]["name"], found["data"]["more"]) == ("prod-a", "x")


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback that notes what it is asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(CONFIG.encode())

        def log_message(self, *_arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()


@pytest.mark.parametrize(
    "kustomization",
    [
        "resources: [{url}/a.yaml]\n",
        "resources: ['git::{url}/a.git']\n",
        "configMapGenerator: [{{name: a, files: ['{url}/a.yaml']}}]\n",
        "components: ['{url}/a.git//component?ref=main']\n",
        "helmCharts: [{{name: a, repo: '{url}', version: 1.0.0}}]\n",
    ],
)
def test_a_kustomization_asks_an_address(write: Write, server: Server, kustomization: str) -> None:
    url, asked = server
    assert built(write(kustomization.format(url=url))).startswith("refused")
    assert asked == []


def test_the_server_would_have_answered(write: Write, server: Server) -> None:
    url, asked = server
    folder = write(f"resources: [{url}/a.yaml]\n")
    subprocess.run(["kubectl", "kustomize", "."], cwd=folder, capture_output=True, check=True)
    assert asked == ["/a.yaml"]


@pytest.mark.parametrize(
    "kustomization",
    [
        "resources: [../../../outside]\n",
        "resources: [../link]\n",
        "resources: [link.yaml]\n",
        "configMapGenerator: [{name: a, files: [../../../outside/a.yaml]}]\n",
        "configMapGenerator: [{name: a, files: [link.yaml]}]\n",
        "configMapGenerator: [{name: a, files: [/etc/hostname]}]\n",
        "configMapGenerator: [{name: a, envs: [/proc/self/environ]}]\n",
        "resources: [../../.git/x]\n",
    ],
)
def test_a_kustomization_reads_files_of_the_machine(write: Write, tmp_path: Path, kustomization: str) -> None:
    for outside in (tmp_path / "outside", tmp_path / "repository/.git/x"):
        outside.mkdir(parents=True)
        (outside / "a.yaml").write_text(CONFIG)
        (outside / "kustomization.yaml").write_text("resources: [a.yaml]\n")
    folder = write(kustomization)
    (folder / "link.yaml").symlink_to(tmp_path / "outside/a.yaml")
    (folder.parent / "link").symlink_to(tmp_path / "outside")
    told = built(folder)
    assert told.startswith("refused")
    assert "secret-of-the-machine" not in told


def test_a_kustomization_runs_a_command(write: Write, tmp_path: Path) -> None:
    made = tmp_path / "made"
    plugin = (
        "apiVersion: a.io/v1\nkind: Gen\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n"
        "      exec: {path: ./run.sh}\n"
    )
    folder = write(
        "generators: [gen.yaml]\n", **{"prod/gen.yaml": plugin, "prod/run.sh": f"#!/bin/sh\ntouch {made}\n"}
    )
    (folder / "run.sh").chmod(0o755)
    assert built(folder).startswith("refused")
    assert not made.exists()


def test_a_kustomization_floods(write: Write) -> None:
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 9)]
    bomb = "apiVersion: v1\nkind: A\nmetadata: {name: a}\na0: &a0 [x, x]\n" + "\n".join(levels) + "\n"
    assert built(write("resources: [a.yaml]\n", **{"prod/a.yaml": bomb})).startswith("refused")
    assert built(write("resources: [.]\n")).startswith("refused")
