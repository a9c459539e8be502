"""What a path is read as: a program, a chart, a kustomization or manifests."""

from __future__ import annotations

import pytest

from dra_infra.sources.subject import find_source


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("Chart.yaml", "chart"),
        ("kustomization.yaml", "kustomization"),
        ("Kustomization", "kustomization"),
        ("pods.yaml", "manifests"),
        ("gpus.py", "program"),
        ("notes.txt", "program"),
    ],
)
def test_a_folder_inside_a_project_is_what_its_own_files_say(tmp_path, file, kind):
    (tmp_path / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    folder = tmp_path / "deploy"
    folder.mkdir()
    (folder / file).write_text("{}\n")
    assert find_source(folder).kind == kind
    assert find_source(tmp_path).kind == "program"
    (folder / "__main__.py").touch()
    assert find_source(folder).kind == ("program" if kind == "manifests" else kind)


@pytest.mark.parametrize("installed", [".venv/lib", "node_modules/gyp", "deep/node_modules/gyp"])
def test_python_that_is_installed_does_not_make_manifests_a_program(tmp_path, installed):
    (tmp_path / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    folder = tmp_path / "deploy"
    for name in ("apps", "apps/web", installed):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "apps/web/pods.yaml").write_text("{}\n")
    (folder / installed / "x.py").touch()
    assert find_source(folder).kind == "manifests"
    (folder / "apps/gpus.py").touch()
    assert find_source(folder).kind == "program"
