"""Markers: texts in the place of values that are secret or not known yet, which no file can spell."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
import yaml

from dra_infra.documents.yaml import read_manifests, write_manifest
from dra_infra.kubernetes.api import (
    UNKNOWN,
    Placeholder,
    as_placeholder,
    convert,
    decode,
    holds_placeholder,
    is_placeholder,
    plain_text,
)
from dra_infra.markers import CHANGED_SECRET, SECRET, Secret, as_shown, find_markers, holds_secret

MARKERS = [UNKNOWN, SECRET, CHANGED_SECRET, Secret("postgres://[secret]@db/x")]


@pytest.mark.parametrize("marker", MARKERS)
def test_a_marker_equals_no_ordinary_text(marker: Placeholder):
    text = plain_text(marker)
    assert type(text) is str
    assert [marker == text, text == marker, marker in {text: 1}] == [False] * 3
    assert [marker in (text, "a"), text in {marker, "a"}] == [False] * 2
    assert [marker != text, text != marker] == [True] * 2
    assert marker == type(marker)(text)
    assert hash(marker) == hash(type(marker)(text))


def test_markers_of_one_text_and_two_kinds_are_not_equal():
    assert Secret("a") != Placeholder("a")


@pytest.mark.parametrize("marker", MARKERS)
def test_copies_of_a_marker_are_markers(marker: Placeholder):
    copies = [
        copy.copy(marker),
        copy.deepcopy({"a": [marker]})["a"][0],
        pickle.loads(pickle.dumps(marker)),  # noqa: S301  (our own bytes)
        str(marker),
        type(marker)(marker),
    ]
    assert [(each, type(each)) for each in copies] == [(marker, type(marker))] * len(copies)


@pytest.mark.parametrize("marker", MARKERS)
def test_a_file_that_shows_a_marker_holds_an_ordinary_text(marker: Placeholder):
    shown = {"kind": "A", "a": marker}
    read = [json.loads(json.dumps(shown)), *read_manifests(write_manifest(as_shown(shown)))]
    assert not any(map(holds_placeholder, read))
    assert read == [{"kind": "A", "a": plain_text(marker)}] * 2


@pytest.mark.parametrize("marker", MARKERS)
def test_yaml_of_an_object_with_a_marker_is_refused(marker: Placeholder):
    for manifest in ({"kind": "A", "a": [{"b": marker}]}, {"kind": "A", marker: 1}):
        with pytest.raises(yaml.representer.RepresenterError):
            write_manifest(manifest)


def test_markers_are_found_in_lists_mappings_and_keys():
    value = {"a": ["[secret]", SECRET], "b": {UNKNOWN: 1}, "c": "[unknown]"}
    assert [*find_markers(value)] == [(("a", 1), SECRET), (("b", UNKNOWN), UNKNOWN)]
    assert (holds_placeholder(value), holds_placeholder(value["c"])) == (True, False)
    assert (holds_placeholder(value["b"]), holds_secret(value["b"])) == (
        True,
        False,
    )


def test_what_is_made_of_a_marker_is_one_where_the_code_says_so():
    assert is_placeholder(as_placeholder(SECRET, f"{SECRET}-x"))
    assert not is_placeholder(as_placeholder("[secret]", "[secret]-x"))


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@pytest.mark.parametrize("marker", [*MARKERS, Secret("é[secret]")])
def test_decoding_and_conversion_keep_markers(marker: Placeholder, version: str):
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": marker, "labels": {"a": marker, "b": "[secret]"}},
        "spec": {"devices": {"requests": [{"name": marker, "exactly": {"deviceClassName": marker}}]}},
    }
    record = decode(convert(claim, version)).record
    for manifest in (record.to_manifest(), convert(convert(claim, version), "v1")):
        metadata = manifest["metadata"]
        (request,) = manifest["spec"]["devices"]["requests"]
        found = [metadata["name"], *metadata["labels"].values(), request["name"]]
        assert [*found, request["exactly"]["deviceClassName"]] == [marker, marker, "[secret]", marker, marker]


def test_what_is_no_text_is_refused_as_before():
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": 7}}
    assert [path for path, _ in decode(claim).type_errors] == ["metadata.name"]
