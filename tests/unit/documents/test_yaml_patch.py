"""Patches of YAML texts: the data that was asked for, and every other line as it was."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.documents.yaml_events import read_documents
from dra_infra.documents.yaml_patch import NotPatchedError, patch_document

TEXT = """\
---
# A deployment
kind: Deployment
metadata:
  name: train   # its name
  labels: {app: "train", tier: gpu}
spec:
    replicas: 2

    template:
      containers:
        # the first
        - image: "x:1"   # pinned
          name: main
          resources:
            limits:
              cpu: 4

              nvidia.com/gpu: 1   # one
        - name: side
          args:
          - --a
          - "--b"
          script: |
            line one

            line two
      empty: {}
# the end
"""


def data(text: str = TEXT) -> Any:
    (found,) = [each.data for each in read_documents(text)]
    return found


def patch(text: str, new: Any) -> str:
    return patch_document(text, data(text), new)


def lines_gone_and_new(before: str, after: str) -> tuple[list[str], list[str]]:
    old, new = before.splitlines(), after.splitlines()
    return [each for each in old if each not in new], [each for each in new if each not in old]


def test_a_scalar_changes_where_it_stands_and_keeps_the_comment_behind_it():
    new = data()
    new["metadata"]["name"] = "serve"
    assert patch(TEXT, new) == TEXT.replace("name: train ", "name: serve ")


def test_a_key_goes_with_its_line_alone():
    new = data()
    del new["spec"]["template"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    assert patch(TEXT, new) == TEXT.replace("              nvidia.com/gpu: 1   # one\n", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# top\na:\n  # of b\n  # and more\n  b: 1\n  # of c\n  c: 2\n", "# top\na:\n  # of c\n  c: 2\n"),
        ("a:\n  c: 2\n  # of b\n  b: 1\n  # last\n", "a:\n  c: 2\n  # last\n"),
        ("a:\n  # of a\n\n  b: 1\n  c: 2\n", "a:\n  # of a\n\n  c: 2\n"),
        ("a:\n  c: |\n    x\n    # y\n  b: 1\n", "a:\n  c: |\n    x\n    # y\n"),
        ("# licence\nb: 1\na: {c: 2}\n", "# licence\na: {c: 2}\n"),
        ("a: {c: 2}\n# of b\n# and more\nb:\n  d: 1\n# of e\ne: 2\n", "a: {c: 2}\n# of e\ne: 2\n"),
        ("a: {c: 2}\n# of b\nb: 1\n# of e\ne: 2\n", "a: {c: 2}\n"),
        ("a: {c: 2}\n# a part\n\nb: 1\n# last\n", "a: {c: 2}\n# a part\n\n# last\n"),
    ],
)
def test_a_comment_right_above_a_key_goes_with_it_alone(before: str, after: str):
    assert patch(before, data(after)) == after


def test_a_mapping_of_which_nothing_stays_is_replaced_as_a_whole():
    new = data()
    new["spec"]["template"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    gone, came = lines_gone_and_new(TEXT, patch(TEXT, new))
    assert gone == ["            limits:", "              cpu: 4", "              nvidia.com/gpu: 1   # one"]
    assert came == ["            claims:", "              - name: gpu"]


def test_a_new_key_stands_behind_the_one_before_it_with_the_indentation_of_the_file():
    new = data()
    template = new["spec"]["template"]
    new["spec"]["template"] = {
        **template,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
    }
    patched = patch(TEXT, new)
    behind = patched[patched.index("      empty: {}\n") :]
    assert behind == (
        "      empty: {}\n"
        "      resourceClaims:\n"
        "        - name: gpu\n"
        "          resourceClaimTemplateName: t\n"
        "# the end\n"
    )


def test_the_first_key_behind_a_dash_goes_and_the_next_takes_its_place():
    new = data()
    del new["spec"]["template"]["containers"][0]["image"]
    assert "        - name: main\n          resources:" in patch(TEXT, new)


def test_an_item_goes_and_another_comes():
    new = data()
    containers = new["spec"]["template"]["containers"]
    new["spec"]["template"]["containers"] = [containers[0], {"name": "third", "tty": True}]
    patched = patch(TEXT, new)
    assert data(patched) == new
    assert patched.startswith(TEXT[: TEXT.index("        - name: side")])


LIST = """\
kind: List
items:
# what serves
- apiVersion: v1
  kind: Pod
  metadata: {name: serve, namespace: ml}
  spec: {nodeName: a}  # of serve
# what trains
- apiVersion: v1
  kind: Pod
  metadata: {name: train, namespace: ml}
  spec: {nodeName: b}  # of train
- apiVersion: v1
  kind: Pod
  metadata: {name: train, namespace: other}
  spec: {nodeName: c}  # of the other
"""


def test_objects_of_a_list_are_known_by_their_names_and_keep_their_comments():
    new = data(LIST)
    del new["items"][0]
    new["items"][0]["spec"]["nodeName"] = "m"
    new["items"].insert(1, {"kind": "Claim", "metadata": {"name": "train", "namespace": "ml"}})
    new["items"][2] |= {"apiVersion": "v2", "spec": {"nodeName": "o"}}
    patched = patch(LIST, new)
    assert "  spec: {nodeName: m}  # of train\n" in patched
    assert "- apiVersion: v2\n" in patched
    assert "  spec: {nodeName: o}  # of the other\n" in patched
    assert "serves" not in patched
    assert "# what trains\n- apiVersion: v1\n" in patched


def test_an_object_in_the_place_of_another_has_none_of_its_comments():
    new = data(LIST)
    new["items"][1] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "ml"}}
    patched = patch(LIST, new)
    assert "of train" not in patched
    assert "what trains" not in patched
    assert "# what serves" in patched
    assert patched.endswith("{nodeName: c}  # of the other\n")


def test_a_flow_mapping_stays_one():
    new = data()
    new["metadata"]["labels"]["more"] = "yes"
    assert """labels: {app: "train", tier: gpu, more: 'yes'}\n""" in patch(TEXT, new)


FLAT = """\
spec:
  # all of it
  devices:
      requests:  # one
      - name: gpu
        deviceClassName: "gpu.nvidia.com"  # whole
        # which of them
        selectors:
        - cel:
            expression: |-
                one &&
                two
      config: [{opaque: {driver: 'x'}}]
"""


def test_what_moves_keeps_its_quotes_comments_and_lines():
    new = data(FLAT)
    (request,) = new["spec"]["devices"]["requests"]
    new["spec"]["devices"]["requests"] = [{"name": request.pop("name"), "exactly": request}]
    assert patch(FLAT, new) == FLAT.replace(
        "        deviceClassName", "        exactly:\n          deviceClassName"
    ).replace(
        """\
        # which of them
        selectors:
        - cel:
            expression: |-
                one &&
                two
""",
        """\
          # which of them
          selectors:
          - cel:
              expression: |-
                  one &&
                  two
""",
    )


def test_what_moves_as_a_whole_is_indented_as_a_whole():
    assert patch(FLAT, {"spec": {"spec": data(FLAT)["spec"]}}) == "".join(
        ["spec:\n  spec:\n", *(f"  {line}" for line in FLAT.splitlines(keepends=True)[1:])]
    )
    deep = patch(FLAT, {"spec": {"spec": data(FLAT)["spec"]}})
    assert patch(deep, data(FLAT)) == FLAT


def test_a_comment_of_less_indent_stays_where_it_is():
    text = "a:\n  b: 1\n# of the file\n  c: '2'\nd: {}\n"
    assert (
        patch(text, {"a": {"b": 1, "e": {"c": "2"}}, "d": {}})
        == "a:\n  b: 1\n  e:\n    c: '2'\n# of the file\nd: {}\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("""a: {b: "8", c: '9', d: e}""", """a: {x: {b: "8", c: '9'}, d: e}"""),
        ("""a: {"b": "8", "c": 9, "d": "e"}""", """a: {"x": {"b": "8", "c": 9}, "d": "e"}"""),
        ("""a: {b: "8", c: [ "x" ], d: e}""", """a: {x: {b: "8", c: [ "x" ]}, d: e}"""),
        # Kustomize reads a text here, and kubectl a truth value.
        ("""a: {b: n, c: 0x1F, d: e}""", """a: {x: {b: n, c: 0x1F}, d: e}"""),
    ],
)
def test_a_value_between_brackets_keeps_its_quotes(before: str, after: str):
    old = data(before + "\n")
    new = {"a": {"x": {key: old["a"][key] for key in ("b", "c")}, "d": "e"}}
    assert patch(before + "\n", new) == after + "\n"


def test_what_comes_into_an_object_has_no_comment_of_what_went_elsewhere():
    text = "a:\n- name: one  # the first\n  b: 1\n- name: two\n  b: 2\nc: 3\n"
    assert (
        patch(text, {"a": [{"name": "two", "b": 2}], "c": 3, "d": {"name": "one"}})
        == "a:\n- name: two\n  b: 2\nc: 3\nd:\n  name: one\n"
    )


def test_an_empty_mapping_becomes_a_block():
    new = data()
    new["spec"]["template"]["empty"] = {"a": [1, 2]}
    assert patch(TEXT, new) == TEXT.replace(
        "empty: {}\n", "empty:\n        a:\n          - 1\n          - 2\n"
    )


def test_a_text_of_lines_is_replaced():
    new = data()
    new["spec"]["template"]["containers"][1]["script"] = "one"
    gone, came = lines_gone_and_new(TEXT, patch(TEXT, new))
    assert gone == ["          script: |", "            line one", "            line two"]
    assert came == ["          script: one"]


def test_the_last_line_without_a_break_gets_none_but_between():
    assert patch("a: 1\nb: 2", {"a": 1, "b": 2, "c": [3]}) == "a: 1\nb: 2\nc:\n- 3\n"
    assert patch("a: 1\nb: 2", {"a": 1, "b": 3}) == "a: 1\nb: 3"


def test_two_changes_behind_a_last_line_without_a_break_have_no_blank_line_between():
    text = "a: 1\nb:\n  c:\n  - d: 1"
    new = {"a": 1, "b": {"c": [{"d": 1}, {"d": 2}], "e": 3}}
    assert patch(text, new) == "a: 1\nb:\n  c:\n  - d: 1\n  - d: 2\n  e: 3\n"


def test_what_an_anchor_gives_elsewhere_too_is_not_patched():
    text = "a: &x {size: 1}\nb: *x\n"
    with pytest.raises(NotPatchedError):
        patch(text, {"a": {"size": 2}, "b": {"size": 1}})


def test_a_value_behind_an_alias_is_written_out():
    text = "a: &x {size: 1}\nb: *x\nc: 3  # three\n"
    assert (
        patch(text, {"a": {"size": 1}, "b": {"size": 2}, "c": 3})
        == "a: &x {size: 1}\nb:\n  size: 2\nc: 3  # three\n"
    )


def test_merged_keys_cannot_go():
    text = "base: &b {x: 1, y: 2}\na:\n  <<: *b\n  z: 3\n"
    with pytest.raises(NotPatchedError):
        patch(text, {"base": {"x": 1, "y": 2}, "a": {"x": 1, "z": 3}})


def test_a_document_that_is_no_mapping_is_not_patched():
    with pytest.raises(NotPatchedError):
        patch("[1, 2]\n", [1])


@pytest.mark.parametrize("comment", ["# why", "#why", '# "why"'])
def test_a_comment_between_brackets_that_change_stands_above_them(comment: str):
    text = f"# first\nm:\n  - a: {{x: '#', {comment}\n    # and\n    z: 2}}  # of a\nb: 1\n"
    patched = patch(text, {"m": [{"a": {"x": "#", "z": 3}}], "b": 1})
    assert patched.replace("'", '"') == (
        f'# first\nm:\n  {comment}\n  # and\n  - a: {{x: "#", z: 3}}  # of a\nb: 1\n'
    )
    assert patch(text, {"m": [{"a": {"x": "#", "z": 2}}], "b": 2}) == text.replace("b: 1", "b: 2")


@pytest.mark.parametrize("text", ["a: [ # none yet\n  ]\nb: 1\n", "a: { # none yet\n  }\nb: 1\n"])
@pytest.mark.parametrize(("new", "written"), [([{"key": "x"}], "[{key: x}]"), (1, "1"), ({"x": 1}, "{x: 1}")])
def test_a_comment_between_empty_brackets_stands_above_what_comes(text: str, new: Any, written: str):
    assert patch(text, {"a": new, "b": 1}) == f"# none yet\na: {written}\nb: 1\n"


@pytest.mark.parametrize(
    "text", ["a:\n  x: []  # c\nb: 1\n", "a:\n  x: {}  # c\nb: 1\n", "a:\n  x: 1  # c\nb: 1\n"]
)
def test_a_comment_behind_a_value_stays_behind_its_key_where_several_lines_come(text: str):
    assert patch(text, {"a": {"x": {"z": 1}}, "b": 1}) == "a:\n  x:  # c\n    z: 1\nb: 1\n"
    assert patch(text, {"a": {"x": [1]}, "b": 1}) == "a:\n  x:  # c\n  - 1\nb: 1\n"


def test_a_comment_behind_an_item_stays_behind_its_first_line():
    assert patch("a:\n- []  # c\n- 1\n", {"a": [{"x": 1, "z": 2}, 1]}) == "a:\n- x: 1  # c\n  z: 2\n- 1\n"


def test_a_number_sign_in_a_text_between_brackets_is_no_comment():
    text = 'a: {x: " # ", "# y": \' #\',\n  z: a#b, v: 1}  # of a\n'
    new = {"a": {"x": " # ", "# y": " #", "z": "a#b", "v": 2}}
    patched = patch(text, new)
    assert data(patched) == new
    assert patched.endswith("}  # of a\n")


@pytest.mark.parametrize("at", [0, 2000, 3999])
def test_a_list_of_items_with_one_name_keeps_its_lines(at: int):
    lines = [f"- name: X\n  value: v{number}  # {number}\n" for number in range(4000)]
    text = "env:\n" + "".join(lines)
    new = data(text)
    new["env"][at]["value"] = "w"
    assert patch(text, new) == text.replace(f"v{at} ", "w ")


def test_new_items_stand_in_the_place_of_those_that_went():
    lines = [f"- name: n{number}  # {number}\n" for number in range(6)]
    text = "env:\n" + "".join(lines)
    new = [{"name": each} for each in ("n1", "n2", "new", "more", "n4", "last", "n5")]
    assert patch(text, {"env": new}) == (
        f"env:\n{lines[1]}{lines[2]}- name: new  # 3\n- name: more\n{lines[4]}- name: last\n{lines[5]}"
    )


def test_an_item_that_moves_and_changes_has_its_comments_with_it():
    text = (
        "a:\n  # first\n  - name: one  # x\n    # of b\n    b: 1  # 1\n    # below b\n  # second\n  - name: two\n    b: [1]\n"
        "  # the end\nc: 1\n"
    )
    new = {"a": [{"name": "two", "b": [1, 2]}, {"name": "one", "b": 2, "d": {"e": 3}}], "c": 1}
    assert patch(text, new) == (
        "a:\n  # second\n  - name: two\n    b: [1, 2]\n  # first\n  - name: one  # x\n    # of b\n    b: 2  # 1\n    d:\n"
        "      e: 3\n    # below b\n  # the end\nc: 1\n"
    )


def test_an_item_without_a_name_is_known_by_its_key():
    text = (
        "a:\n# the card\n- key: gpu\n  operator: In\n  values: [x]\n"
        "# the zone\n- key: zone  # of data\n  operator: In\n  values: [a, b]\n"
    )
    assert patch(text, {"a": [{"key": "zone", "operator": "In", "values": ["a"]}]}) == (
        "a:\n# the zone\n- key: zone  # of data\n  operator: In\n  values: [a]\n"
    )


@pytest.mark.parametrize(
    ("new", "after"),
    [
        (["two"], "a:\n  # below one\n# of two\n- two\n# of three\n- three\n"),
        (["one"], "a:\n# of one\n- one\n  # below one\n# of three\n- three\n"),
        (
            ["new", "one", "two"],
            "a:\n- new\n# of one\n- one\n  # below one\n# of two\n- two\n# of three\n- three\n",
        ),
        (["two", "one"], "a:\n# of two\n- two\n# of one\n- one\n  # below one\n# of three\n- three\n"),
    ],
)
def test_comments_between_items_are_of_the_next_one_and_further_in_of_the_one_before(
    new: list[str], after: str
):
    text = "a:\n# of one\n- one\n  # below one\n# of two\n- two\n# of three\n- three\n"
    assert patch(text, {"a": [*new, "three"]}) == after


def test_a_last_line_without_a_break_moves_as_a_line():
    assert patch("a:\n- b: 1\n- c: 2", {"a": [{"c": 2}, {"d": 3}, {"e": 4}, {"b": 1}]}) == (
        "a:\n- c: 2\n- d: 3\n- e: 4\n- b: 1"
    )


@given(st.data(), st.booleans(), st.sampled_from([0, 2]), st.integers(1, 5))
def test_comments_of_items_that_stay_are_all_there_and_in_their_order(
    draw: st.DataObject, is_named: bool, indent: int, size: int
):
    key = "name" if is_named else "key"
    old = [{key: f"n{at}", "x": at, "z": [at]} for at in range(size)]
    comments: dict[str, list[str]] = {}
    lines = ["a:"]
    for each in old:
        name = str(each[key])
        parts = [draw.draw(st.sampled_from([(), (f"# {name} {at}",)])) for at in range(5)]
        comments[name] = [comment for part in parts for comment in part]
        above, behind, between, last, below = ("".join(part) for part in parts)
        written = [
            above,
            f"- {key}: {name}  {behind}",
            f"  {between}",
            f"  x: {each['x']}",
            f"  z: {each['z']}  {last}",
            f"  {below}",
        ]
        lines += [" " * indent + line.rstrip() for line in written if line.strip()]
        lines += [""] * draw.draw(st.integers(0, 1))
    text = "\n".join((*lines, "b: 1", ""))
    new: list[Any] = draw.draw(st.permutations(old))[draw.draw(st.integers(0, size - 1)) :]
    wanted = [comment for each in new for comment in comments[each[key]]]
    new = [{**each, "x": draw.draw(st.sampled_from([each["x"], 77, "t"]))} for each in new]
    for number in range(draw.draw(st.integers(0, 2))):
        new.insert(draw.draw(st.integers(0, len(new))), {key: f"new{number}"})
    patched = patch(text, {"a": new, "b": 1})
    found = re.findall("#.*", patched)
    assert [each for each in found if each in wanted] == wanted
    assert len(found) == len(set(found))


_KEYS = st.sampled_from(["a", "b", "name", "c.d/e", "yes", "1", "x y"])
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.text(max_size=12),
    st.sampled_from(["", "no", "1e3", "#x", "a: b", "- a", "{{ x }}", "a\nb\n", "é", "[", "nvidia.com/gpu"]),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda below: st.one_of(st.lists(below, max_size=4), st.dictionaries(_KEYS, below, max_size=4)),
    max_leaves=12,
)
_DOCUMENTS = st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=4)


@st.composite
def _changed(draw: st.DrawFn, value: Any) -> Any:
    """The same value with something else in a few places."""
    if draw(st.integers(0, 9)) == 0:
        return draw(_VALUES)
    if isinstance(value, dict):
        kept = {key: draw(_changed(each)) for key, each in value.items() if draw(st.integers(0, 5))}
        return {**kept, **draw(st.dictionaries(_KEYS, _VALUES, max_size=1))}
    if isinstance(value, list):
        return [draw(_changed(each)) for each in value if draw(st.integers(0, 5))] + draw(
            st.lists(_VALUES, max_size=1)
        )
    return value


@given(st.data(), _DOCUMENTS, st.sampled_from([None, False]), st.integers(2, 5))
def test_whatever_changes_the_data_is_what_was_asked_for(
    draw: st.DataObject, old: Any, flow: Any, indent: int
):
    text = yaml.safe_dump(old, sort_keys=False, default_flow_style=flow, indent=indent, allow_unicode=True)
    was = data(text)
    new = draw.draw(_changed(copy.deepcopy(was)))
    try:
        patched = patch(text, new)
    except NotPatchedError:
        return
    assert data(patched) == new
    assert patch(text, was) == text


@pytest.mark.parametrize("head", [">\n      a &&\n      b\n", "|\n      a &&\n\n        b\n"])
def test_a_text_of_lines_that_changes_stays_one(head: str):
    text = f"spec:\n    expression: {head}    name: main\n"
    new = {"spec": {"expression": data(text)["spec"]["expression"].replace("b", "c: #1"), "name": "main"}}
    assert patch(text, new) == text.replace("b\n", "c: #1\n").replace(">\n      a &&\n     ", "|\n      a &&")


def test_a_text_of_lines_without_a_break_at_its_end_stays_one():
    text = "spec:\n  values: |-\n    a: 1\n    b: 2\n  name: main\n"
    patched = patch(text, {"spec": {"values": "a: 1\n\nb: 3", "name": "main"}})
    assert patched == "spec:\n  values: |-\n    a: 1\n\n    b: 3\n  name: main\n"


@pytest.mark.parametrize("value", ["a\n\n", " a\n", "a\n\n\nb\n\n", "a \x07\n", "a\n::error::b\n"])
def test_a_text_that_lines_would_not_say_gets_quotes(value: str):
    text = "spec:\n  expression: |\n    a\n    b\n  name: main\n"
    patched = patch(text, {"spec": {"expression": value, "name": "main"}})
    assert data(patched)["spec"]["expression"] == value
    assert "|" not in patched
