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
