from __future__ import annotations

import pytest

from dra_infra.sources.revision import read_package_pins


@pytest.mark.parametrize(
    ("file", "text", "pins"),
    [
        ("requirements.txt", "dra_infra==1.2.0  # ours\nrequests==2\n", {"dra-infra": "1.2.0"}),
        ("requirements-prod.txt", "Pulumi.Kubernetes[x]>=4.1,<5 ; python_version > '3'\n", {"pulumi-kubernetes": ">=4.1,<5"}),
        ("requirements.txt", "pulumi==3.1 \\\n    --hash=sha256:00\n-r other.txt\n", {"pulumi": "3.1"}),
        ("uv.lock", '[[package]]\nname = "dra-infra"\nversion = "1.3.0"\n', {"dra-infra": "1.3.0"}),
        ("pylock.toml", '[[packages]]\nname = "pulumi"\nversion = "3.2"\n', {"pulumi": "3.2"}),
        ("pyproject.toml", '[project]\ndependencies = ["dra-infra~=1.2", "x"]\n', {"dra-infra": "~=1.2"}),
        ("uv.lock", "not toml [", {}),
        ("pyproject.toml", "project = 3\n", {}),
        ("requirements.txt", "\xff\x00==", {}),
    ],
)  # fmt: skip
def test_pins_are_read_from_what_projects_keep_them_in(tmp_path, file, text, pins):
    (tmp_path / file).write_text(text)
    assert read_package_pins(tmp_path) == pins


def test_a_lock_file_counts_before_ranges(tmp_path):
    (tmp_path / "poetry.lock").write_text('[[package]]\nname = "dra-infra"\nversion = "1.3.0"\n')
    (tmp_path / "requirements.txt").write_text("dra-infra>=1\npulumi==3.1\n")
    assert read_package_pins(tmp_path) == {"dra-infra": "1.3.0", "pulumi": "3.1"}


def test_a_folder_without_such_files_pins_nothing(tmp_path):
    assert read_package_pins(tmp_path / "missing") == {}
