"""Inputs of a release: completed, joined with files, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.kubernetes_provider.helm_values import ASSET_SIGNATURE, ValuesFileError, join, merge
from tools.kubernetes_provider.release_inputs import complete, find_release_changes
from tools.kubernetes_provider.values import SIGNATURE_KEY, UNKNOWN, Secret, has_unknown, reveal

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
documents = st.dictionaries(
    st.text("abc", max_size=2),
    st.recursive(
        # An empty mapping says nothing, to the engine as to Helm.
        scalars,
        lambda inner: st.dictionaries(st.text("abc", max_size=2), inner, min_size=1, max_size=3),
    ),
    max_size=4,
)


def asset(text: str) -> dict[str, Any]:
    return {SIGNATURE_KEY: ASSET_SIGNATURE, "hash": "", "text": text}


def completed(inputs: dict[str, Any]) -> dict[str, Any]:
    return complete(inputs, name="made-up", namespace="default", version="", keyring="keys")


def paths(old: dict[str, Any], state: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    return {
        change.path: (change.effect.value, change.replaces)
        for change in find_release_changes(old, state, new)
    }


@given(documents, documents)
def test_merging_takes_the_upper_value_wherever_it_has_one(
    base: dict[str, Any], over: dict[str, Any]
) -> None:
    merged = merge(base, over)

    assert merged.keys() == base.keys() | over.keys()
    for name, value in merged.items():
        if name not in over:
            assert value == base[name]
        elif not isinstance(over[name], dict) or not isinstance(base.get(name), dict):
            assert value == over[name]
        else:
            assert value == merge(base[name], over[name])


def test_files_are_joined_in_order_and_values_come_last() -> None:
    files = [asset("a: 1\nb: {c: 1, d: 1}"), asset("b: {c: 2}")]

    assert join({"valueYamlFiles": files, "values": {"b": {"d": None}}}) == {"a": 1, "b": {"c": 2, "d": None}}


def test_files_are_read_from_the_folder_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "values.yaml").write_text("a: 1")
    monkeypatch.chdir(tmp_path)

    assert join({"valueYamlFiles": [{SIGNATURE_KEY: ASSET_SIGNATURE, "path": "values.yaml"}]}) == {"a": 1}


@pytest.mark.parametrize(
    ("file", "said"),
    [
        pytest.param("a: 1", "is not a file", id="string"),
        pytest.param(asset("- hush"), "text: not a mapping", id="list"),
        pytest.param(asset("{hush"), "text: not YAML", id="no YAML"),
        pytest.param(
            {SIGNATURE_KEY: ASSET_SIGNATURE, "path": "absent.yaml"}, "file absent.yaml: No such", id="absent"
        ),
        pytest.param(
            {SIGNATURE_KEY: ASSET_SIGNATURE, "uri": "https://host.invalid/a"}, "by address", id="address"
        ),
    ],
)
def test_a_file_that_holds_no_values_is_named_and_not_quoted(file: Any, said: str) -> None:
    with pytest.raises(ValuesFileError) as error:
        join({"valueYamlFiles": [file]})

    assert said in str(error.value)
    assert "hush" not in str(error.value)


def test_what_is_secret_among_the_values_stays_so_and_nothing_else() -> None:
    joined = join({"valueYamlFiles": [asset("a: 1")], "values": {"b": {"c": Secret("hush"), "d": 1}}})

    assert joined == {"a": 1, "b": {"c": Secret("hush"), "d": 1}}


def test_all_values_are_secret_with_a_secret_file() -> None:
    joined = join({"valueYamlFiles": Secret([asset("a: 1")]), "values": {"b": 1}})

    assert joined == Secret({"a": 1, "b": 1})


def test_values_that_are_not_known_yet_stay_unknown() -> None:
    assert join({"values": UNKNOWN}) is UNKNOWN
    assert join({"valueYamlFiles": [UNKNOWN], "values": {"a": 1}}) is UNKNOWN
    assert join({"values": {"a": UNKNOWN}}) == {"a": UNKNOWN}


def test_defaults_are_those_of_the_vendor() -> None:
    assert completed(
        {"chart": "c", "compat": "true", "atomic": False, "values": {}, "resourceNames": {}}
    ) == {
        "name": "made-up",
        "namespace": "default",
        "timeout": 300,
        "chart": "c",
    }
    assert "timeout" not in completed({"chart": "c", "skipAwait": True})
    assert completed({"chart": "c", "timeout": 5})["timeout"] == 5
    assert completed({"chart": "c", "verify": True})["keyring"] == "keys"


def test_an_input_without_effect_is_kept_and_missed_as_the_vendor_does() -> None:
    before = completed({"chart": "c", "allowNullValues": True})
    after = completed({"chart": "c"})

    assert before["allowNullValues"] is True
    assert "allowNullValues" not in completed({"chart": "c", "allowNullValues": False})
    assert list(paths(before, before, after)) == ["allowNullValues"]


def test_a_password_is_secret_whether_or_not_the_program_says_so() -> None:
    options = {"repo": "https://host.invalid", "username": "me", "password": "hush"}

    found = completed({"chart": "c", "repositoryOpts": options})["repositoryOpts"]

    assert found == {**options, "password": Secret("hush")}


@given(documents)
def test_the_same_inputs_are_no_change(values: dict[str, Any]) -> None:
    inputs = completed({"chart": "c", "values": values})

    assert paths(inputs, {**inputs, "status": {}, "resourceNames": {}}, inputs) == {}


@given(documents, documents)
def test_other_values_are_a_change_and_never_another_release(
    one: dict[str, Any], two: dict[str, Any]
) -> None:
    old, new = completed({"chart": "c", "values": one}), completed({"chart": "c", "values": two})

    changes = paths(old, old, new)

    assert bool(changes) == (typed(one) != typed(two))
    assert not [path for path, (_, replaces) in changes.items() if replaces]


def typed(values: Any) -> Any:
    """Return *values* so that true and 1 differ."""
    if isinstance(values, dict):
        return {name: typed(value) for name, value in values.items()}
    return [type(values).__name__, values]


def test_name_and_namespace_make_another_release() -> None:
    old = completed({"chart": "c", "name": "a", "namespace": "x"})

    assert paths(old, old, {**old, "name": "b"}) == {"name": ("update", True)}
    assert paths(old, old, {**old, "namespace": UNKNOWN}) == {"namespace": ("update", True)}


def test_what_somebody_else_changed_is_changed_back_and_what_they_added_is_left() -> None:
    inputs = completed({"chart": "c", "values": {"color": "red"}})
    state = {**inputs, "values": {"color": "black", "more": 1}}

    assert paths(inputs, state, inputs) == {"values.color": ("update", False)}


def test_what_the_program_takes_away_goes() -> None:
    old = completed({"chart": "c", "values": {"a": {"b": 1, "c": 2}}})

    assert paths(old, old, completed({"chart": "c", "values": {"a": {"b": 1}}})) == {
        "values.a.c": ("delete", False)
    }
    assert paths(old, old, completed({"chart": "c"})) == {"values": ("delete", False)}


def test_an_unknown_or_secret_value_is_compared_as_what_it_is() -> None:
    old = completed({"chart": "c", "values": {"a": Secret(1)}})

    assert paths(old, old, completed({"chart": "c", "values": {"a": 1}})) == {}
    assert paths(old, old, completed({"chart": "c", "values": {"a": UNKNOWN}})) == {
        "values.a": ("update", False)
    }
    assert has_unknown(completed({"chart": "c", "values": {"a": UNKNOWN}}))
    assert reveal(old["values"]) == {"a": 1}
