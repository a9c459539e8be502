from __future__ import annotations

import base64
from pathlib import Path

import pytest

from dra_infra.errors import ForgeError
from dra_infra.forge.messages import Mask, read_message
from dra_infra.review.markdown_report import marker_of
from tests.unit.forge.conftest import MARKER


def code_of(file: Path, forge: str = "github") -> str:
    with pytest.raises(ForgeError) as error:
        read_message(file, forge=forge, mask=Mask())
    (problem,) = error.value.problems
    assert problem.path == str(file)
    return problem.code


@pytest.mark.parametrize("names", [("infra", "prod"), ("a b/c", "-->"), ("übung", "\n"), ("", "")])
def test_any_review_has_a_marker(tmp_path: Path, names: tuple[str, str]):
    file = tmp_path / "review.md"
    file.write_text(f"{marker_of(*names)}\ntext\n")
    assert read_message(file, forge="github", mask=Mask()).marker == marker_of(*names)


@pytest.mark.parametrize("text", ["", "hello", "<!-- other -->\n", f"hello\n{MARKER}\n", f"{MARKER} more\n"])
def test_a_file_without_a_marker_in_its_first_line_is_refused(tmp_path: Path, text: str):
    file = tmp_path / "review.md"
    file.write_text(text)
    assert code_of(file) == "comment-without-marker"


def test_files_that_cannot_be_read_are_said(tmp_path: Path):
    file = tmp_path / "review.md"
    assert code_of(file) == "file-unreadable"
    assert code_of(tmp_path) == "file-unreadable"
    file.write_bytes(b"\xff\xfe")
    assert code_of(file) == "not-utf-8"


def test_the_limit_is_the_forges(tmp_path: Path):
    file = tmp_path / "review.md"
    file.write_text(MARKER + "\n" + "é" * (65_536 - len(MARKER) - 1))
    assert len(read_message(file, forge="github", mask=Mask()).body) == 65_536
    file.write_text(MARKER + "\n" + "é" * (65_536 - len(MARKER)))
    assert code_of(file) == "comment-too-long"
    assert read_message(file, forge="gitlab", mask=Mask()).body


def test_secrets_of_the_environment_are_not_posted(tmp_path: Path):
    file = tmp_path / "review.md"
    file.write_text(f"{MARKER}\nimage: registry/hunter2-hunter2:v1\nmode: debug\n")
    environment = {"REGISTRY_PASSWORD": "hunter2-hunter2", "MODE": "debug", "API_TOKEN": "v1"}
    body = read_message(file, forge="github", mask=Mask("", environment)).body
    assert body == f"{MARKER}\nimage: registry/***:v1\nmode: debug\n"


def test_a_secret_is_found_in_every_form_and_before_a_part_of_it():
    secret = 'p@ss/word "1"'
    mask = Mask(secret, {"DB_PASSWORD": secret + "-longer"})
    encoded = base64.b64encode(secret.encode()).decode()
    text = f'{secret}-longer p%40ss%2Fword%20%221%22 p@ss/word \\"1\\" {encoded}'
    assert mask.hide(text) == "*** *** *** ***" + "=" * (len(encoded) - len(encoded.rstrip("=")))


def test_foreign_words_are_one_short_line_without_control_characters():
    quoted = Mask("s3cret-s3cret").quote("a\nb\x1b[31m \u202e s3cret-s3cret " + "x" * 1_000_000)
    assert quoted.startswith("a b\\u001b[31m \\u202e *** xxx")
    assert len(quoted) < 330
