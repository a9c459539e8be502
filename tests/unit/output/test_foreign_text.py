"""What strangers write, in every medium: none of what steers it comes through, and what can be read stays."""

from __future__ import annotations

import json
import re
import unicodedata
from xml.etree import ElementTree as ET

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from dra_infra.documents.yaml import write_manifest
from dra_infra.output.escaping import (
    block,
    has_command,
    json_text,
    log_block,
    log_line,
    markdown,
    markdown_code,
    one_line,
    paragraph,
    workflow_command,
    xml_attribute,
    xml_text,
)
from tests.support.rendered_markdown import REFERENCES, rendered

CATEGORIES = ("Cc", "Cf", "Zl", "Zp", "Co", "Cs", "Cn")
NAMED = [
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029, 0x00AD, 0x034F, 0x115F, 0x1160, 0x17B4, 0x180B, 0x180E, 0x2800),
    *(
        0x3164,
        0xFEFF,
        0xFFA0,
        0xFE00,
        0xFE0E,
        0xFE0F,
        0xE0001,
        0xE007F,
        0xE0100,
        0xFFFE,
        0x1FFFF,
        0xFDD0,
        0x85,
    ),
    *range(0x202A, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xE0020, 0xE007F, 16),
]
HIDDEN = st.characters(categories=CATEGORIES) | st.sampled_from([chr(point) for point in NAMED])
PIECES = st.sampled_from(
    [
        "::error::x",
        "##[error]x",
        "\n",
        "\r\n",
        "@all",
        "#12",
        "]]>",
        "<b>",
        "%0A",
        "\x1b[31m",
        "⚠\ufe0f",
        "`",
        "|",
    ]
)
TEXTS = st.lists(st.text(max_size=5) | HIDDEN | PIECES | st.characters(), max_size=12).map("".join)


def hidden_in(text: str, *, allowed: str = "") -> set[str]:
    """The same question as the module's, asked otherwise: by category, and by Unicode's list of what shows nothing."""
    found = set()
    for before, each in zip(f" {text}", text, strict=False):
        point = ord(each)
        ignorable = point in NAMED or 0xFE00 <= point <= 0xFE0F or 0xE0000 <= point <= 0xE0FFF
        selects = (
            each in "\ufe0e\ufe0f" and unicodedata.category(before) in ("So", "Sm") and before != "\u2800"
        )
        if (unicodedata.category(each) in CATEGORIES or ignorable) and each not in allowed and not selects:
            found.add(each)
    return found


def is_command(line: str) -> bool:
    """What the runner of GitHub's workflows takes for a command."""
    return line.strip().startswith("::") or "##[" in line


@given(TEXTS)
@example("\u200d")
def test_one_line_is_one_line_without_anything_hidden(text: str):
    shown = one_line(text)
    assert not hidden_in(shown)
    assert len(shown.splitlines()) <= 1
    assert one_line(shown) == shown


@given(TEXTS)
def test_a_block_keeps_nothing_hidden_but_lines_and_tabs(text: str):
    shown = block(text)
    assert not hidden_in(shown, allowed="\n\t")
    assert shown.count("\n") == text.count("\n")
    assert len(shown.splitlines()) <= text.count("\n") + 1


@given(TEXTS)
def test_no_line_of_a_paragraph_begins_where_ours_do(text: str):
    first, *others = paragraph(text).split("\n")
    assert all(not line or line[0] in " \t" for line in others)
    assert not hidden_in(first, allowed="\t")


@given(TEXTS)
def test_no_line_of_a_log_is_a_command(text: str):
    assert not is_command(log_line(text))
    assert not any(map(is_command, log_block(text).split("\n")))
    assert has_command(block(text)) == any(map(is_command, block(text).split("\n")))


@given(TEXTS, TEXTS, TEXTS)
def test_a_command_of_ours_is_one_and_says_what_was_given(message: str, file: str, code: str):
    line = workflow_command("error", message, {"file": file, "line": 3, "title": code})
    assert not hidden_in(line)
    found = re.fullmatch(r"::error ([^:]*)::(.*)", line)
    assert found
    properties = dict(each.split("=", 1) for each in found[1].split(","))
    unquoted = {"%3A": ":", "%2C": ",", "%0D": "\r", "%0A": "\n", "%25": "%"}
    read = {
        name: re.sub("%(3A|2C|0D|0A|25)", lambda each: unquoted[each[0]], value)
        for name, value in properties.items()
    }
    expected = {"file": one_line(file), "line": "3", "title": one_line(code)}
    assert read == {name: value for name, value in expected.items() if value}
    assert re.sub("%(0D|0A|25)", lambda each: unquoted[each[0]], found[2]) == block(message).replace(
        "\t", "\\t"
    )


@given(TEXTS)
def test_xml_is_read_back(text: str):
    root = ET.fromstring(f"<a b={xml_attribute(text)}>{xml_text(text)}</a>".encode())  # noqa: S314  (what the parser takes is the question)
    assert (root.text or "") == block(text)
    assert root.attrib["b"] == block(text)
    assert not hidden_in(root.text or "", allowed="\n\t")


@given(TEXTS, st.booleans())
def test_json_is_the_same_data_with_nothing_hidden(text: str, letters: bool):
    shown = json_text({text: [text]}, letters=letters)
    assert not hidden_in(shown, allowed="\n")
    assert "\ufe0f" not in shown
    assert not any(map(is_command, shown.split("\n")))
    shown.encode()
    # Two halves of a pair beside each other are a pair in JSON.
    assert json.loads(shown) == json.loads(json.dumps({text: [text]}))


@given(TEXTS.filter(lambda text: not any("\ud800" <= each <= "\udfff" for each in text)))
@example("  ::error::x\ny")
@example("a\n\u202e")
@example("k##[error]x")
def test_yaml_is_the_same_data_with_nothing_hidden(text: str):
    manifest = {"kind": "ConfigMap", "data": {"a": text, "b": f"x\n{text}\n{text}\n", f"k{text}": [text]}}
    shown = write_manifest(manifest)
    assert log_block(shown) == shown
    assert yaml.safe_load(shown) == manifest
    assert yaml.load(shown, yaml.CSafeLoader) == manifest


@given(
    st.text(
        st.characters(categories=["L", "N", "P", "S"], exclude_characters=[chr(point) for point in NAMED])
    )
)
def test_what_can_be_seen_stays(text: str):
    assert one_line(text) == text
    assert block(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Größe in GiB",
        "数据集 训练",
        "обучение",
        "تدريب",
        "प्रशिक्षण",
        "학습",
        "⚠️ 🚀 ↔️",
        "e\u0301",
        "50 % of 8 (a/b)",
    ],
)
def test_other_languages_and_emoji_stay(text: str):
    assert one_line(text) == log_line(text) == text


def test_a_selector_stays_behind_a_symbol_only():
    assert one_line("⚠\ufe0f\ufe0f a\ufe0f \u2800\ufe0f") == "⚠\ufe0f\\ufe0f a\\ufe0f \\u2800\\ufe0f"


def test_a_project_is_no_reference():
    assert markdown("see o/r> and a -> b") == "see o/r&#8203;&#62; and a -&#8203;&#62; b"


def test_hidden_characters_are_spelled_out():
    assert one_line("a\x1b[31m\u202eb\nc\td\U000e0041") == "a\\u001b[31m\\u202eb\\nc\\td\\U000e0041"


TABLE = ("table", "thead", "tbody", "tr", "th", "td")
MARKUP = [
    "![a](http://x)", "[a](javascript:x)", "<b>", "</td>", "a|b", "**b**", "__b__", "~~s~~", "`c`", "# h", "<!-- x -->",
    "http://evil.example", "www.evil.example", "a@b.example", "@all", "@team/x", "#12", "o/r#12", "GH-12", "gh-12", "!12",
    "fixes #12", "closes https://github.com/o/r/issues/1", "~bug", '~"a b"', "%v1", '%"a b"', "&12", "$12", "$`x`$", "[[x]]",
    "{+ a +}", "[- a -]", ":tada:", "/merge", "\n/merge\n", "1f3e5a7", "1f3e5a7b9c0d1f3e5a7b9c0d1f3e5a7b9c0d1f3e", "&#64;all",
    "o/r>", "[vulnerability:1]", "*iteration:1", "^alert#1", "<details>", "&amp;", "\\", "1. a", "- a", "> a", "=", "---", "\t", "    c",
]  # fmt: skip


@given(st.lists(st.sampled_from(MARKUP) | st.text(max_size=4) | HIDDEN, max_size=8).map(" ".join) | TEXTS)
@example("@all")
@example("a@b.example")
@example("fixes #12")
@example("1f3e5a7b9c0d1f3e5a7b9c0d1f3e5a7b9c0d1f3e")
@example("1F3E5A7B")
@example("see http://evil.example/x")
@example("see o/r>")
def test_markdown_is_text_and_no_reference(text: str):
    for form in ("- ❌ {}", "| a | b |\n|---|---|\n| a | {} |", "in **a {} a**", "### ✅ {}"):
        source = form.format(markdown(text))
        assert not hidden_in(source, allowed="\n")
        assert not any(line.startswith("/") for line in source.split("\n"))
        page = rendered(source)
        assert page.elements <= {"p", "ul", "li", "strong", "h3", *TABLE}
        assert not REFERENCES.search(page.text), page.text
    # Parted where a forge would see a reference, and else as it was.
    shown = rendered(f"a {markdown(text)} a").text.replace("\u200b", "")
    assert shown.split() == f"a {one_line(text)} a".split()


@given(st.lists(st.sampled_from(MARKUP) | st.text(max_size=4) | HIDDEN, max_size=8).map(" ".join) | TEXTS)
def test_code_in_markdown_is_what_it_was(text: str):
    page = rendered(f"- ❌ {markdown_code(text)}: a")
    assert page.elements <= {"p", "ul", "li", "code"}
    assert "\u200b" not in page.code
    assert page.text.strip() == "❌ : a"
    assert page.code.split() == one_line(text).split()
