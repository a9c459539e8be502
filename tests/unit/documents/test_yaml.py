from __future__ import annotations

import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.documents import yaml
from dra_infra.documents.yaml import MAX_BYTES, read_manifests, write_manifest, write_manifests
from dra_infra.errors import ProblemsError

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(-(2.0**53), 2.0**53, allow_nan=False)
    | texts,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(texts, below, max_size=4),
    max_leaves=15,
)
objects = st.dictionaries(texts, values, min_size=1, max_size=5).filter(
    lambda item: item.get("kind") != "List" and "<<" not in str(item)
)


def codes(text):
    with pytest.raises(ProblemsError) as caught:
        read_manifests(text, file="objects.yaml")
    return [problem.code for problem in caught.value.problems]


def test_keys_are_written_in_the_order_people_read():
    manifest = {
        "status": {},
        "spec": {"z": 1, "a": [{"image": "x", "name": "main"}]},
        "metadata": {"labels": {"b": "1", "a": "2"}, "namespace": "ml", "name": "train"},
        "kind": "Job",
        "apiVersion": "batch/v1",
    }
    assert write_manifest(manifest) == (
        "apiVersion: batch/v1\n"
        "kind: Job\n"
        "metadata:\n"
        "  name: train\n"
        "  namespace: ml\n"
        "  labels:\n"
        "    a: '2'\n"
        "    b: '1'\n"
        "spec:\n"
        "  a:\n"
        "  - name: main\n"
        "    image: x\n"
        "  z: 1\n"
        "status: {}\n"
    )


@pytest.mark.parametrize(
    "text",
    ["1", "1e3", "1.", ".5", "0x1f", "0o17", "017", "1_000", "12:30", "true", "yes", "off", "y", "N", "null", "~", "", "2020-01-01", "=", "<<"],
)  # fmt: skip
def test_a_string_that_some_parser_reads_as_another_type_is_quoted(text):
    assert write_manifest({"a": text}) == f"a: '{text}'\n"


@pytest.mark.parametrize("text", ["1e3x", "127.0.0.1", "5Gi", "80GB", "v1", "yesterday", "a-b", "+"])
def test_a_string_that_is_only_like_another_type_is_left_plain(text):
    assert write_manifest({"a": text}) == f"a: {text}\n"


def test_a_string_of_several_lines_is_a_block():
    assert write_manifest({"script": "set -e\nrun\n"}) == "script: |\n  set -e\n  run\n"


def test_a_long_line_is_never_folded():
    assert write_manifest({"a": "x y " * 200 + "z"}).count("\n") == 1


def test_the_same_list_twice_is_written_twice():
    shared = ["a"]
    assert write_manifest({"a": shared, "b": shared}) == "a:\n- a\nb:\n- a\n"


def test_documents_are_divided_and_read_back_in_order():
    manifests = ({"kind": "A"}, {"kind": "B"})
    assert write_manifests(manifests) == "kind: A\n---\nkind: B\n"
    assert read_manifests(write_manifests(manifests)) == manifests


@given(objects)
def test_what_is_written_is_read_back(manifest):
    assert read_manifests(write_manifest(manifest)) == (manifest,)


@given(objects)
def test_the_order_of_keys_in_memory_does_not_show(manifest):
    assert write_manifest(dict(reversed(manifest.items()))) == write_manifest(manifest)


@given(st.text(alphabet="0123456789abcdefxoXO+-._:eEyYnNtTZ~=<", max_size=8))
def test_a_plain_string_stays_a_string_for_a_reader_of_yaml_1_1(text):
    assert pyyaml.safe_load(write_manifest({"a": text})) == {"a": text}


def test_lists_are_opened_and_empty_documents_passed_over():
    text = "---\n---\nkind: List\nitems:\n- kind: A\n- kind: B\n"
    assert [item["kind"] for item in read_manifests(text)] == ["A", "B"]


@pytest.mark.parametrize(
    "text",
    ["kind: List\nitems:\n", "kind: List\n", "kind: PodList\nitems: null\n", "kind: List\nitems: [null]\n"],
)
def test_a_list_of_nothing_has_no_objects(text: str):
    assert read_manifests(text) == ()


@pytest.mark.parametrize(
    "text", ["kind: AllowList\nspec: {}\n", "kind: PodList\nitems: {}\n", "kind: List\nitems: 3\n"]
)
def test_what_has_no_items_like_a_list_is_an_object(text: str):
    assert read_manifests(text) == (pyyaml.safe_load(text),)


def test_dates_and_keys_stay_strings():
    assert read_manifests("a: 2020-01-01\n1: x\ntrue: z\n") == ({"a": "2020-01-01", "1": "x", "true": "z"},)


def test_aliases_are_written_out():
    assert read_manifests("a: &x {b: 1}\nc: *x\n") == ({"a": {"b": 1}, "c": {"b": 1}},)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: [", "yaml-syntax"),
        ("a: *missing", "yaml-syntax"),
        ("a: !!python/object:os.system x", "yaml-syntax"),
        ("a: !!binary aGk=", "yaml-syntax"),
        ("a: .inf", "yaml-syntax"),
        ("? [1]\n: 2", "yaml-syntax"),
        ("\x00", "yaml-syntax"),
        ("a: 1\na: 2", "yaml-duplicate-key"),
        ("a: {b: 1, b: 1}", "yaml-duplicate-key"),
        ("- 1", "yaml-not-an-object"),
        ("words", "yaml-not-an-object"),
        ("[" * 100_000, "yaml-too-large"),
        ("a: &a [*a]", "yaml-syntax"),
        ("a" * (MAX_BYTES + 1), "yaml-too-large"),
    ],
)
def test_what_is_no_manifest_is_refused(text, code):
    assert codes(text) == [code]


def test_a_small_text_that_unfolds_into_a_large_one_is_refused():
    lines = ["l0: &l0 [a]", *(f"l{i}: &l{i} [{','.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12))]
    assert codes("\n".join(lines)) == ["yaml-too-large"]


def test_a_refusal_names_file_and_line():
    with pytest.raises(ProblemsError) as caught:
        read_manifests("a: 1\nb: 2\na: 3\n", file="objects.yaml")
    assert str(caught.value.problems[0].place) == "objects.yaml:3"


signs = st.text(alphabet="ab1Ny-?:,[]{}#&*!|>'\"%@`./~=<+_0eE \\\té\u2028", max_size=6)
close_to_signs = st.recursive(
    st.none() | st.booleans() | st.integers() | signs,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(signs, below, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(signs | texts, close_to_signs | values, max_size=4))
@settings(max_examples=300)
def test_every_byte_is_what_pyyaml_writes(manifest):
    assert write_manifest(manifest) == yaml._dump(yaml.order_keys(manifest))


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7F), max_size=12))
@settings(max_examples=300)
def test_a_text_looks_as_pyyaml_writes_it(text):
    assert write_manifest({"a": text}) == yaml._dump({"a": text})
