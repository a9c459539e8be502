"""Every program and command of README, docs and examples is run, and every link leads somewhere."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.catalog import load_fleet
from dra_infra.catalog.workload_kinds import read_workload_kinds
from dra_infra.migration.needs import Settings
from dra_infra.plugin.back_ends.sim_commands import read_commands
from dra_infra.plugin.command.settings_reading import read_settings
from dra_infra.program.stand_ins import read_stand_ins
from dra_infra.program.synth import synth_function
from dra_infra.sources.patches import patches_in, remark_on_part
from tests.contract.conftest import ENVIRONMENT, paths
from tests.support.components.constructing import construct
from tests.support.pages.documents import (
    MARKERS,
    PAGES,
    ROOT,
    Block,
    blocks_in,
    blocks_of,
    pages_with,
    without_fences,
)

LANGUAGES = {"", "console", "diff", "json", "python", "yaml"}
ELSEWHERE = {"pulumi", "kubectl", "helm", "jq", "docker"}
"""Programs that need real parts, a cluster or a network: blocks with them name the test that runs them."""

QUIET = {"make", "$EDITOR", "git", "cd", "export", "sed", "python", "pip"}


def short(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def workplace(repository: Path, tmp_path: Path) -> Callable[[Path], Path]:
    """A copy of the repository for one page, with the `infra/` that it asks for."""

    def make(page: Path) -> Path:
        folder = tmp_path / "repository"
        shutil.copytree(repository, folder, symlinks=True)
        for block in blocks_of(page):
            if project := block.markers.get("project"):
                shutil.rmtree(folder / "infra")
                shutil.copytree(ROOT / project, folder / "infra")
            if files := block.markers.get("files"):
                for each in (ROOT / files).iterdir():
                    shutil.rmtree(folder / each.name, ignore_errors=True)
                shutil.copytree(ROOT / files, folder, dirs_exist_ok=True)
        return folder

    return make


def test_pages_are_found():
    assert len(PAGES) >= 36
    assert {"README.md", "docs/tutorial.md", "examples/00-quickstart/README.md"} <= set(map(short, PAGES))


@pytest.mark.parametrize("page", PAGES, ids=short)
def test_blocks_are_in_languages_that_are_run(page: Path):
    for block in blocks_of(page):
        assert block.language in LANGUAGES, block
        assert set(block.markers) <= set(MARKERS), block
    assert page.read_text().count("```") == 2 * len(blocks_of(page))


@pytest.mark.parametrize("block", [each for page in PAGES for each in blocks_of(page)], ids=str)
def test_what_runs_elsewhere_runs_there(block: Block):
    for key in ("runs in", "made by"):
        if named := block.markers.get(key):
            file, _, test = named.partition("::")
            assert file.startswith("tests/"), block
            assert (ROOT / file).exists(), block
            assert not test or f"def {test}(" in (ROOT / file).read_text(), block


@pytest.mark.parametrize("page", pages_with("python"), ids=short)
def test_the_python_of_a_page_runs(
    page: Path, workplace: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
):
    """Blocks share names; each is a program of its own, for pages show components of one name several times."""
    monkeypatch.chdir(workplace(page))
    names: dict[str, object] = {"dra": dra}
    for block in blocks_of(page):
        # The modules of a page that run in another test import each other there.
        if block.language != "python" or {"made by", "runs in"} & set(block.markers):
            continue

        def body(block: Block = block) -> None:
            exec(block.markers.get("given", ""), names)  # noqa: S102  (our own documentation)
            exec(compile(block.text, str(block), "exec"), names)  # noqa: S102

        program = synth_function(body)
        assert [str(each) for each in check_program(program) if each.severity == "error"] == [], block
    for name in [each for each in names if each.startswith("test_")]:
        names.pop(name)()  # type: ignore[operator]


PROGRAM = "runtime: yaml\n"
"""Stands in the programs in YAML."""


@pytest.mark.parametrize(
    "block",
    [each for each in blocks_in("yaml") if PROGRAM in each.text and "dra-infra:" in each.text],
    ids=str,
)
def test_the_components_of_a_program_in_yaml_have_no_problems(block: Block):
    components = {
        name: resource
        for name, resource in yaml.safe_load(block.text)["resources"].items()
        if resource["type"].startswith("dra-infra:")
    }
    assert components, block
    for name, resource in components.items():
        kind = resource["type"].removeprefix("dra-infra:")
        # Only the engine knows what `${vision.namespace}` is.
        text = re.sub(r"\$\{[^}]*\}", "known-later", json.dumps(resource["properties"]))
        assert construct(kind, json.loads(text), name=name).problems == [], block


@pytest.mark.parametrize("block", [each for each in blocks_in("yaml") if PROGRAM not in each.text], ids=str)
def test_yaml_is_what_it_says(block: Block, tmp_path: Path):
    documents = list(yaml.safe_load_all(block.text))
    assert documents, block
    for document in documents:
        if isinstance(document, dict) and "nodeGroups" in document:
            (tmp_path / "fleet.yaml").write_text(block.text)
            assert load_fleet(str(tmp_path / "fleet.yaml")).nodes
        elif isinstance(document, dict) and "kinds" in document:
            assert read_workload_kinds(document, "kinds.yaml").kinds
        elif isinstance(document, dict) and "pools" in document:
            (tmp_path / "fleet.yaml").write_text(block.text)
            (tmp_path / "prices.json").write_text('{"a3-h100": 98.32, "l4": "0.70"}')
            assert load_fleet(str(tmp_path / "fleet.yaml")).pools
        elif isinstance(document, dict) and "apiVersion" in document:
            assert [each for each in dra.validate([document]) if each.severity == "error"] == []
        elif isinstance(document, dict) and "backEnd" in document:
            (tmp_path / "plugin.yaml").write_text(block.text)
            assert read_settings({}, (), {"NODE_NAME": "node-1"}, tmp_path / "plugin.yaml")[1] == ()
        elif isinstance(document, dict) and "bindingConditions" in document:
            (tmp_path / "commands.yaml").write_text(block.text)
            assert read_commands(tmp_path / "commands.yaml").devices
        elif isinstance(document, dict) and "outputs" in document:
            (tmp_path / "dra-infra.yaml").write_text(block.text)
            for file in (
                *document["outputs"].values(),
                *document["objects"],
                *document["functions"].values(),
            ):
                (tmp_path / file).write_text('{"a": 1}')
            assert read_stand_ins(tmp_path).outputs
        else:
            # Pieces of CI files: their own tests compare them with the action and the template.
            assert short(block.page) in {
                "docs/ci.md",
                "docs/gitops.md",
                "docs/tutorial.md",
            } or is_of_kustomize(document), block


def is_of_kustomize(document: dict[str, Any]) -> bool:
    """Whether it is a kustomization whose patches ask no device plugin, or says where pods name claim templates."""
    parts = [each for _, text, _ in patches_in(document) for each in yaml.safe_load_all(text)]
    assert not any(remark_on_part(each, Settings(plugin=None), "") for each in parts)
    fields = [each for named in document.get("nameReference", ()) for each in named["fieldSpecs"]]
    assert all(each["path"].endswith("spec/resourceClaims/resourceClaimTemplateName") for each in fields)
    return bool(parts or fields)


@pytest.mark.parametrize("block", blocks_in("json"), ids=str)
def test_json_is_json(block: Block):
    assert json.loads(block.text)


@pytest.mark.parametrize("page", pages_with("console"), ids=short)
def test_the_commands_of_a_page_run_and_print_what_is_shown(page: Path, workplace: Callable[[Path], Path]):
    folder = workplace(page)
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    # A CI says which commit it reviews.
    script = ["exec 2>&1", "export COMMIT=$(git rev-parse HEAD 2> /dev/null)"]
    expected: list[tuple[Block, str, int, list[str]]] = []
    for block in blocks_of(page):
        if block.language == "diff":
            file = folder.parent / f"{block.line}.diff"
            file.write_text(block.text)
            # Python's cache takes a program that was changed within a second, to one of the same size, for the old one.
            script += [f"git apply --recount {file} || exit 99", "rm -rf __pycache__"]
        if block.language != "console" or "made by" in block.markers:
            continue
        commands = block.commands
        assert commands, block
        codes = itertools.chain(map(int, block.markers.get("exits", "").split()), itertools.repeat(0))
        for command in commands:
            if command.program == "make":
                words = command.text.partition("#")[0].split()[1:]
                assert {word for word in words if "=" not in word} <= targets, block
            elif command.program in ELSEWHERE or ("runs in" in block.markers and not is_ours(command.text)):
                assert "runs in" in block.markers, f"{block}: {command.text}"
            elif "runs in" not in block.markers or is_ours(command.text):
                expected.append((block, command.text, next(codes), command.shown))
                script += [f'{command.text}\ncode=$?; echo; echo "<{len(expected)}> $code"']
    result = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "PATH": paths(folder / "bin")},
    )
    parts = re.split(r"\n<\d+> (\d+)\n", f"\n{result.stdout}")
    assert len(parts) == 2 * len(expected) + 1, result.stdout
    for (block, text, code, shown), printed, returned in zip(expected, parts[::2], parts[1::2], strict=False):
        assert int(returned) == code, f"{block}: {text}\n{printed}"
        assert "Traceback" not in printed, f"{block}: {text}\n{printed}"
        if shown:
            assert is_shown(shown, printed), f"{block}: {text}\n{printed}"


def is_ours(command: str) -> bool:
    """Whether it needs nothing but this package: no helm, no engine, no forge."""
    return bool(re.match(r"dra-infra (?!comment)", command)) and not re.search(
        r"--(charts|engine)\b", command
    )


def is_shown(shown: list[str], printed: str) -> bool:
    """Whether *printed* is *shown*; a line `...` stands for any lines, and dots within one for any text."""
    parts = [
        r"(?:.*\n)*?"
        if line.strip() == "..."
        else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"\s*\n"
        for line in shown
    ]
    return re.fullmatch("".join(parts) + r"\s*", printed.strip("\n") + "\n") is not None


def test_what_is_shown_is_compared():
    assert is_shown(["a", "...", "d"], "a\nb\nc\nd\n")
    assert is_shown(["in ... s"], "in 1.2 s")
    assert not is_shown(["a", "c"], "a\nb\n")
    assert not is_shown(["a"], "a\nb\n")


ANCHORED = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def anchors_of(page: Path) -> set[str]:
    """As GitHub and the site make them of headings."""
    found: set[str] = set()
    for title in ANCHORED.findall(
        re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    ):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs/adr").glob("*.md"))], ids=short)
def test_links_lead_somewhere(page: Path):
    for target in LINK.findall(without_fences(page.read_text())):
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https://"), target
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / unquote(path)).resolve() if path else page
        assert linked.exists(), f"{short(page)}: {target}"
        assert linked.is_relative_to(ROOT), f"{short(page)}: {target}"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors_of(linked), f"{short(page)}: {target}"
