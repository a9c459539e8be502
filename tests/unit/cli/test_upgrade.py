from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dra_infra.cli.app import app
from dra_infra.errors import ProblemsError

TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "four", "namespace": "ml"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any"}}]}}},
}


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump(TEMPLATE))
    return file


def shared(**request: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "shared", "namespace": "ml"},
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any", **request}}]}
        },
    }


def run(*arguments: object) -> Result:
    words = ["upgrade", *map(str, arguments)]
    return CliRunner().invoke(app, words, standalone_mode=False)


def test_the_exit_code_is_that_of_the_level_that_fails(manifests: Path) -> None:
    asked = [manifests, "--from", "1.36", "--to", "1.37"]
    codes = {
        level: run(*asked, "--fail-on", level).return_value
        for level in ("breaks", "changes", "note", "never")
    }
    assert codes == {"breaks": 0, "changes": 0, "note": 1, "never": 0}


def test_what_breaks_ends_with_one(manifests: Path) -> None:
    manifests.write_text(yaml.safe_dump(shared(capacity={"requests": {"memory": "1Gi"}})))
    result = run(manifests, "--from", "1.34", "--to", "1.37")
    assert result.return_value == 1
    assert "[upgrade-apply-refused]" in result.stdout


def test_a_downgrade_has_no_answer(manifests: Path) -> None:
    with pytest.raises(ProblemsError) as raised:
        CliRunner().invoke(
            app,
            ["upgrade", str(manifests), "--from", "1.37", "--to", "1.34"],
            catch_exceptions=False,
            standalone_mode=False,
        )
    assert [each.code for each in raised.value.problems] == ["upgrade-order"]


@pytest.mark.parametrize("form", ["text", "markdown", "json", "html"])
def test_every_form_names_what_was_not_compared(form: str, manifests: Path) -> None:
    result = run(manifests, "--from", "1.34", "--to", "1.37", "--format", form)
    assert "hgx-h100 x 4" in result.stdout, result.output
    assert "kubelet" in result.stdout


def test_files_have_the_form_of_their_names(manifests: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"upgrade.{end}" for end in ("html", "md", "json", "txt")]
    given = [word for file in files for word in ("--output", file)]
    assert run(manifests, "--from", "1.34", "--to", "1.37", *given).return_value == 0
    page, text, data, lines = (file.read_text() for file in files)
    assert page.startswith("<!doctype html>")
    assert text.startswith("### ")
    assert json.loads(data)["schema"] == "dra-infra.upgrade/v1"
    assert lines.startswith("✓ ")


def test_a_page_escapes_what_objects_say(manifests: Path) -> None:
    manifests.write_text(yaml.safe_dump({**shared(count=-1), "metadata": {"name": "<script>x</script>"}}))
    result = run(manifests, "--from", "1.34", "--to", "1.37", "--format", "html")
    assert "<script" not in result.stdout
    assert "&lt;script&gt;" in result.stdout
