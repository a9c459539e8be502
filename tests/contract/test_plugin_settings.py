"""Help, environment, file and docs/node-plugin.md have the same settings of the node plugin."""

from __future__ import annotations

import os
import re
from collections import Counter

import pytest

from dra_infra.plugin.command.command_line import parse
from dra_infra.plugin.command.settings import PREFIX, Setting, all_settings
from tests.support.pages.documents import ROOT

PAGE = ROOT / "docs" / "node-plugin.md"
TABLE = re.compile(r"(?<=<!-- settings: tests/contract/test_plugin_settings.py -->\n\n)(?:\|.*\n)*")


def rendered() -> str:
    head = "| Flag | Variable | In the file | Default | |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(map(_row, all_settings()))


def _row(setting: Setting) -> str:
    metavar = setting.about.kind.metavar.replace("|", "\\|")
    default = setting.default or "must be given"
    shown = f"`{default}`" if default == default.split(" ", maxsplit=1)[0] and default != "none" else default
    only = f" (`{setting.about.back_end}`)" if setting.about.back_end else ""
    flag = f"`{setting.flag} {metavar}`"
    return f"| {flag} | `{setting.variable}` | `{setting.key}` | {shown} | {setting.about.meaning}{only} |\n"


def test_the_page_has_the_settings_that_there_are():
    text = PAGE.read_text()
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(TABLE.sub(lambda _: rendered(), text))
    (table,) = TABLE.findall(PAGE.read_text())
    assert table == rendered(), "run `make golden`, and read what it wrote"


def test_help_has_every_setting_with_its_variable(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        parse(["--help"], {})
    assert left.value.code == 0
    text = re.sub(r"\s+", " ", capsys.readouterr().out)
    for setting in all_settings():
        assert f"{setting.flag} {setting.about.kind.metavar} {setting.about.meaning}" in text
        assert f"[{setting.variable};" in text


def test_no_two_settings_are_called_alike_in_any_place():
    settings = all_settings()
    for names in (
        [each.flag for each in settings],
        [each.variable for each in settings],
        [each.key for each in settings],
    ):
        assert set(Counter(names).values()) == {1}


def test_no_variable_is_one_that_the_kubelet_sets_for_a_service():
    for setting in all_settings():
        assert not re.search(r"_PORT|_SERVICE_", setting.variable), setting.variable
        assert setting.variable.startswith(PREFIX) or setting.about.variable


def test_meanings_are_sentences():
    for setting in all_settings():
        assert re.fullmatch(r"[A-Z`].*\.", setting.about.meaning), setting.name
