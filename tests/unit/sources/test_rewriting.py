"""Files with objects changed, taken away and added."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from dra_infra.documents.yaml import read_manifests
from dra_infra.sources.files import SourceObject, read_sources
from dra_infra.sources.rewriting import ChangedFile, Replacement, diff_of, rewrite

ONE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one   # the first\n"
TWO = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n"
NEW = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}}


def sources(folder: Path, text: str, name: str = "file.yaml") -> list[SourceObject]:
    file = folder / name
    file.write_text(text)
    return [each for each in read_sources([str(file)], io.BytesIO()) if isinstance(each, SourceObject)]


def renamed(source: SourceObject, name: str) -> Replacement:
    return Replacement(source, {**source.manifest, "metadata": {"name": name}})


def same(source: SourceObject) -> Replacement:
    return Replacement(source, source.manifest)


def names(text: str) -> list[Any]:
    return [each["metadata"]["name"] for each in read_manifests(text)]


def test_one_document_changes_and_the_others_stay_as_they_are(tmp_path: Path):
    text = f"# head\n{ONE}---\n{TWO}"
    first, second = sources(tmp_path, text)
    assert rewrite(text, [same(first), renamed(second, "three")]).text == text.replace(
        "name: two", "name: three"
    )


def test_a_new_object_stands_behind_its_own(tmp_path: Path):
    text = f"{ONE}---\n{TWO}"
    first, second = sources(tmp_path, text)
    found = rewrite(text, [Replacement(first, first.manifest, [NEW]), same(second)]).text
    assert names(found) == ["one", "new", "two"]
    assert found.startswith(ONE)


def test_an_object_goes_with_its_document(tmp_path: Path):
    text = f"{ONE}---\n{TWO}"
    first, second = sources(tmp_path, text)
    assert names(rewrite(text, [Replacement(first, None), same(second)]).text) == ["two"]
    assert names(rewrite(text, [same(first), Replacement(second, None)]).text) == ["one"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_comment_in_front_of_the_separator_stays_for_the_next_object(tmp_path: Path, end: str):
    text = f"# Copyright\n{ONE}# more\n\n# of two\n---\n{TWO}# the end\n".replace("\n", end)
    (tmp_path / "file.yaml").write_bytes(text.encode())
    read = read_sources([str(tmp_path / "file.yaml")], io.BytesIO())
    first, second = [each for each in read if isinstance(each, SourceObject)]
    assert first.document is not None
    whole = first.document.whole
    gone = rewrite(whole, [Replacement(first, None), same(second)]).text
    assert gone == f"# Copyright\n# more\n\n# of two\n---\n{TWO}# the end\n".replace("\n", end)
    added = rewrite(whole, [Replacement(first, None, [NEW]), same(second)]).text
    assert added.endswith(gone.removeprefix(f"# Copyright{end}"))
    assert names(added) == ["new", "two"]
    assert rewrite(whole, [Replacement(first, None), Replacement(second, None)]).text == f"# Copyright{end}"


@pytest.mark.parametrize("head", ["# Copyright\n# of ours\n", "---\n# Copyright\n# of ours\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_comment_at_the_top_of_the_file_stays_where_the_first_object_goes(
    tmp_path: Path, head: str, end: str
):
    text = f"{head}\n# one\n{ONE}---\n# two\n{TWO}".replace("\n", end)
    (tmp_path / "file.yaml").write_bytes(text.encode())
    first, second = [
        each
        for each in read_sources([str(tmp_path / "file.yaml")], io.BytesIO())
        if isinstance(each, SourceObject)
    ]
    whole = first.document.whole
    gone = rewrite(whole, [Replacement(first, None), same(second)]).text
    assert gone == f"# Copyright\n# of ours\n---\n# two\n{TWO}".replace("\n", end)
    kept = rewrite(whole, [same(first), Replacement(second, None)]).text
    assert "# two" not in kept
    new = rewrite(whole, [Replacement(first, None, [NEW]), same(second)]).text
    assert names(new) == ["new", "two"]
    assert new.startswith("# Copyright")


def test_objects_that_are_given_twice_are_refused(tmp_path: Path):
    (only,) = sources(tmp_path, TWO)
    (again,) = sources(tmp_path, TWO)
    with pytest.raises(ValueError, match="line 1 is not behind"):
        rewrite(TWO, [renamed(only, "three"), renamed(again, "three")])


def test_lines_of_a_diff_end_where_those_of_patch_tools_do():
    before = "# a\u2028b\x85c\x0cd\none: 1\ntwo: 2\r\n"
    file = ChangedFile("x.yaml", before, before.replace("1", "3"))
    assert diff_of([file]) == (
        "--- a/x.yaml\n+++ b/x.yaml\n@@ -1,3 +1,3 @@\n # a\u2028b\x85c\x0cd\n-one: 1\n+one: 3\n two: 2\r\n"
    )


def test_the_last_line_without_a_break_gets_one_before_what_is_new(tmp_path: Path):
    text = TWO.rstrip("\n")
    (only,) = sources(tmp_path, text)
    assert names(rewrite(text, [Replacement(only, only.manifest, [NEW])]).text) == ["two", "new"]


def test_items_of_a_list_change_go_and_come(tmp_path: Path):
    items = "".join(f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n" for name in "abc")
    text = f"apiVersion: v1\nkind: List\nitems:\n{items}"
    first, second, third = sources(tmp_path, text)
    changed = [renamed(first, "x"), Replacement(second, None), Replacement(third, third.manifest, [NEW])]
    assert names(rewrite(text, changed).text) == ["x", "c", "new"]


def test_a_comment_below_a_list_whose_items_go_stays_once(tmp_path: Path):
    item = "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
    text = f"apiVersion: v1\nkind: List\nitems:\n{item}{item}# of two\n---\n{TWO}"
    *gone, two = sources(tmp_path, text)
    found = rewrite(text, [*(Replacement(each, None) for each in gone), same(two)]).text
    assert found == f"apiVersion: v1\nkind: List\nitems: []\n# of two\n---\n{TWO}"


def test_items_of_a_typed_list_go_on_not_to_say_what_they_are(tmp_path: Path):
    text = "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: a}\n"
    (only,) = sources(tmp_path, text)
    changed = Replacement(only, {**only.manifest, "immutable": True})
    assert rewrite(text, [changed]).text == f"{text}  immutable: true\n"


def test_json_stays_json_with_its_indentation(tmp_path: Path):
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, indent=4) + "\n"
    (only,) = sources(tmp_path, text, "file.json")
    assert rewrite(text, [renamed(only, "b")]).text == text.replace('"a"', '"b"')


def test_json_with_more_objects_is_one_list(tmp_path: Path):
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    text = json.dumps(manifest, indent=2)
    (only,) = sources(tmp_path, text, "file.json")
    made = json.loads(rewrite(text, [Replacement(only, only.manifest, [NEW])]).text)
    assert made == {"apiVersion": "v1", "kind": "List", "items": [manifest, NEW]}


def test_a_document_that_cannot_be_patched_is_written_anew_and_named(tmp_path: Path):
    text = f"{TWO}---\napiVersion: v1\nkind: ConfigMap\nmetadata: &m {{name: one}}\ndata: *m\n"
    first, second = sources(tmp_path, text)
    found = rewrite(text, [same(first), renamed(second, "new")])
    ((line, why),) = found.anew
    assert line == 3
    assert "no anchor 'm'" in why
    assert read_manifests(found.text)[1] == {**second.manifest, "metadata": {"name": "new"}}
    assert found.text.startswith(TWO)


def test_a_document_that_something_else_than_yaml_follows_stays_as_it_is(tmp_path: Path):
    text = f"{ONE}%YAML 1.1\n  nothing: at all\n---\n{TWO}"
    first, second = sources(tmp_path, text)
    found = rewrite(text, [renamed(first, "three"), renamed(second, "four")])
    assert found.text == text.replace("name: two", "name: four")
    assert found.kept == (0,)


def test_half_of_a_surrogate_pair_stays_an_escape_in_what_is_no_object(tmp_path: Path):
    text = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [NEW, {"kind": ["\ud800", "\U0001f600"]}]}
    )
    (first,) = sources(tmp_path, text, "file.json")
    changed = rewrite(text, [renamed(first, "three")]).text
    assert '["\\ud800", "\U0001f600"]' in changed
    assert changed.encode()


ARRANGED = """{
  "apiVersion": "v1", "kind": "ConfigMap",
  "metadata": {"name": "a", "labels": {"app": "a"}},
  "data": {"x": "1",
           "y": "2"}
}
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_arranged_json_keeps_its_lines(tmp_path: Path, line_end: str):
    text = ARRANGED.replace("\n", line_end)
    (tmp_path / "file.json").write_bytes(text.encode())
    (only,) = read_sources([str(tmp_path / "file.json")], io.BytesIO())
    assert isinstance(only, SourceObject)
    changed = {**only.manifest, "data": {"x": "1", "y": "3"}}
    assert rewrite(text, [Replacement(only, changed)]).text == text.replace('"2"', '"3"')
    both = rewrite(text, [Replacement(only, changed, [NEW])]).text
    assert json.loads(both)["items"] == [changed, NEW]
    assert text.strip().replace('"2"', '"3"') in both
    assert rewrite(text, [Replacement(only, None)]).text.strip() == ""
