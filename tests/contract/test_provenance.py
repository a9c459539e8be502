"""Every report that judges something says what it was checked for, and every form of it says the same."""

from __future__ import annotations

import html
import json
import re
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dra_infra import __version__
from dra_infra.catalog import load_fleet
from dra_infra.cli.app import app
from tests.contract.conftest import git
from tests.support.pages.documents import ROOT
from tests.unit.cluster.conftest import Server, server

__all__ = ["server"]

GATE = "DRADeviceTaints"
RELEASE = ("--kubernetes", "1.35", "--gate", f"{GATE}=true")
FLEET = ("--fleet", "hgx-h100 driver=25.3")
DRIVER = ("--driver", "25.8")
KUBERNETES = f"checked for Kubernetes 1.35 (rules of 1.35.9), gate {GATE}=true"
ON_FLEET = (
    f"{KUBERNETES}, NVIDIA DRA driver 25.8, fleet with NVIDIA DRA driver 25.3, by dra-infra {__version__}"
)
OBJECTS = f"{KUBERNETES}, NVIDIA DRA driver 25.8, by dra-infra {__version__}"
CLUSTER = (
    f"checked for Kubernetes 1.36.2 (rules of 1.36.4), which the API server reports as v1.36.2, gate {GATE}=false, "
    f"by dra-infra {__version__}"
)

COMMANDS = {
    "validate": (("validate", "objects.yaml", *RELEASE, *DRIVER), OBJECTS),
    "simulate": (("simulate", ".", *FLEET, *RELEASE, *DRIVER), ON_FLEET),
    "explain": (("explain", "job/train", ".", *FLEET, *RELEASE, *DRIVER), ON_FLEET),
    "explain a snapshot": (
        ("explain", "job/train", "--snapshot", "cluster.yaml", *RELEASE),
        f"{KUBERNETES}, by dra-infra {__version__}",
    ),
    "review": (("review", ".", "--base", "v1.4", *FLEET, *RELEASE, *DRIVER), ON_FLEET),
    "review a folder": (("review", ".", "--base-path", "former", *RELEASE, *DRIVER), OBJECTS),
    "migrate": (("migrate", "objects.yaml", *RELEASE, *DRIVER), OBJECTS),
    "explain a cluster": (("explain", "job/train", "--kubeconfig", "kubeconfig"), CLUSTER),
    "doctor": (("doctor", "--kubeconfig", "kubeconfig"), CLUSTER),
}
FORMS = {
    "validate": ("text", "github", "json", "sarif", "junit"),
    "review": ("text", "markdown", "json", "html", "sarif", "junit", "brief text", "brief markdown"),
    "migrate": ("text", "markdown", "json", "html"),
    "simulate": ("text", "brief text", "json"),
    "explain": ("text", "json"),
    "doctor": ("text", "json"),
}


@pytest.fixture
def folder(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of the quickstart's objects with a change, a snapshot with them, and a cluster that has them."""
    folder = tmp_path / "repository"
    folder.mkdir()
    text = (ROOT / "examples/00-quickstart/expected.yaml").read_text()
    (folder / "objects.yaml").write_text(text)
    (folder / ".gitignore").write_text("cluster.yaml\nkubeconfig\nformer/\n")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "--message", "Start")
    git(folder, "tag", "v1.4")
    (folder / "objects.yaml").write_text(text.replace("replicas: 2", "replicas: 3"))
    (folder / "former").mkdir()
    shutil.copy(folder / "objects.yaml", folder / "former")
    objects = [*load_fleet("hgx-h100").to_manifests(), *yaml.safe_load_all(text)]
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all(objects))
    paths = {
        "Node": "/api/v1/nodes",
        "Pod": "/api/v1/pods",
        "Job": "/apis/batch/v1/jobs",
        **{
            each: f"/apis/resource.k8s.io/v1/{each.lower()}{'e' * each.endswith('s')}s"
            for each in ("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate")
        },
    }
    for kind, path in paths.items():
        items = [each for each in objects if each["kind"] == kind]
        server.says(path, (200, {"metadata": {"resourceVersion": "1"}, "items": items}))
    server.says("/version", (200, {"gitVersion": "v1.36.2"}))
    server.says("/metrics", (200, f'kubernetes_feature_enabled{{name="{GATE}",stage="BETA"}} 0\n'.encode()))
    server.says("/apis/resource.k8s.io", (200, {"versions": [{"version": "v1"}]}))
    (folder / "kubeconfig").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": server.url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    monkeypatch.chdir(folder)
    return folder


def in_text(text: str) -> tuple[str, Any]:
    (line,) = (each for each in text.splitlines() if each.startswith("checked for "))
    assert text.splitlines()[-1] == line
    return line, None


def in_markup(text: str) -> tuple[str, Any]:
    (found,) = re.findall(r"checked for .*", text)
    return html.unescape(re.sub(r"<[^>]*>", "", found)).replace("\u200b", ""), None


def in_json(text: str) -> tuple[str, Any]:
    found = json.loads(text)["provenance"]
    return found["text"], found


def in_sarif(text: str) -> tuple[str, Any]:
    (run,) = json.loads(text)["runs"]
    assert run["tool"]["driver"]["version"] == __version__
    found = run["properties"]["provenance"]
    return found["text"], found


def in_junit(text: str) -> tuple[str, Any]:
    found = {each.get("name"): each.get("value") or "" for each in ET.fromstring(text).iter("property")}  # noqa: S314
    assert (found["version"], found["kubernetes"]) == (__version__, "1.35.9")
    return found["provenance"], None


READERS: dict[str, Callable[[str], tuple[str, Any]]] = {
    "text": in_text,
    "github": in_text,
    "markdown": in_markup,
    "html": in_markup,
    "json": in_json,
    "sarif": in_sarif,
    "junit": in_junit,
}


def read(arguments: tuple[str, ...], form: str) -> tuple[str, Any]:
    """The line of one form of a report, and the data where the form has data."""
    *brief, kind = form.split()
    options = [f"--{each}" for each in brief]
    if kind != "text":
        options += ["--format", kind] if arguments[0] in ("validate", "review", "migrate") else ["--json"]
    result = CliRunner().invoke(app, [*arguments, *options], standalone_mode=False)
    assert result.exception is None, result.output
    # The reports of these two for people go to standard error, beside files that standard output may be for.
    is_beside = kind == "text" and arguments[0] in ("validate", "migrate")
    text = result.stderr if is_beside else result.stdout
    if is_beside and arguments[0] == "migrate":
        text = "\n".join(each for each in text.splitlines() if not each.startswith("nothing was written"))
    return READERS[kind](text)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_form_of_every_report_says_what_it_was_checked_for(name: str, folder: Path) -> None:
    arguments, expected = COMMANDS[name]
    found = {form: read(arguments, form) for form in FORMS[arguments[0]]}

    (line,) = {line for line, _ in found.values()}
    data = [data for _, data in found.values() if data is not None]
    assert all(each == data[0] for each in data)
    assert line.partition("; ")[0] == expected
    assert str(folder.parent) not in json.dumps(data) + line
    if arguments[0] == "review":
        commit = data[0]["head"]["commit"]
        tree = f"working tree on {commit[:12]} with files that are not committed"
        assert re.fullmatch("[0-9a-f]{40}", commit)
        assert data[0]["head"] == {
            "origin": "working tree",
            "label": "",
            "commit": commit,
            "uncommitted": True,
        }
        base = f"v1.4 at {commit[:12]}" if "--base" in arguments else "files of no known commit"
        assert line.partition("; ")[2] == f"base {base}, head {tree}"


def test_without_a_minor_the_oldest_and_the_newest_are_named(folder: Path) -> None:
    line, data = read(("validate", "objects.yaml"), "json")
    assert [each["minor"] for each in data["kubernetes"]] == ["1.34", "1.37"]
    assert "Kubernetes 1.34 (rules of 1.34.12) and 1.37 (rules of 1.37.2)," in line
    line, data = read(("review", ".", *FLEET), "json")
    assert data["placement"] == "1.37"
    assert "placed by the rules of 1.37" in line


def test_a_compiled_head_is_named_by_the_commit_that_it_was_compiled_from(folder: Path) -> None:
    git(folder, "commit", "--all", "--message", "More")
    result = CliRunner().invoke(app, ["compile", ".", "--output", "../head.json"], standalone_mode=False)
    assert result.return_value == 0, result.output
    line, data = read(("review", ".", "--base", "v1.4", "--head", "../head.json"), "json")
    assert (data["head"]["origin"], data["base"]["label"]) == ("compiled", "v1.4")
    assert data["head"]["commit"] != data["base"]["commit"]
    assert not data["head"]["uncommitted"]
    assert line.endswith(f"head compiled from {data['head']['commit'][:12]}")


def test_a_compiled_head_says_whether_its_tree_had_files_that_are_not_committed(folder: Path) -> None:
    for output in ("../head.json", "head.json", "head.json"):
        git(folder, "checkout", "--quiet", "v1.4", "objects.yaml")
        is_clean = CliRunner().invoke(app, ["compile", ".", "--output", output], standalone_mode=False)
        assert is_clean.return_value == 0, is_clean.output
        assert not json.loads((folder / output).read_text())["is_changed"], output
    (folder / "head.json").unlink()
    (folder / "objects.yaml").write_text((folder / "objects.yaml").read_text() + "# more\n")
    result = CliRunner().invoke(app, ["compile", ".", "--output", "../head.json"], standalone_mode=False)
    assert result.return_value == 0, result.output
    line, data = read(("review", ".", "--base", "v1.4", "--head", "../head.json"), "json")
    assert data["head"]["uncommitted"]
    assert line.endswith(
        f"head compiled from {data['head']['commit'][:12]} with files that are not committed"
    )


def test_every_form_of_a_validation_says_which_versions_are_served(folder: Path) -> None:
    arguments = ("validate", "objects.yaml", *RELEASE, *DRIVER, "--serves", "v1beta1")
    found = {form: read(arguments, form) for form in FORMS["validate"]}
    (line,) = {line for line, _ in found.values()}
    assert line == OBJECTS.replace(", NVIDIA", ", served as v1beta1 too, NVIDIA")
    assert found["json"][1]["serves"] == ["v1beta1"]
