"""What sigs.k8s.io/yaml v1.6.0 makes of plain scalars; the answers were taken from it."""

from __future__ import annotations

import pytest

from dra_infra.documents.yaml import read_manifests
from dra_infra.documents.yaml_events import NotJsonError, number_as_sent, resolve_plain
from dra_infra.errors import ProblemsError

KUBECTL = [
    ("y", True),
    ("N", False),
    ("Yes", True),
    ("off", False),
    ("tRue", "tRue"),
    ("~", None),
    ("", None),
    ("Null", None),
    ("=", "="),
    ("08", 8),
    ("0777", 511),
    ("0o17", 15),
    ("-0x1f", -31),
    ("+0x1F", 31),
    ("0b11", 3),
    ("1_000", 1000),
    ("0_7", 7),
    ("0x", "0x"),
    ("2.0", 2),
    ("1e3", 1000),
    ("1.", 1),
    ("+.5", 0.5),
    (".4_1", 0.41),
    (".4_1_", ".4_1_"),
    ("1_0.5", 10.5),
    ("1e-7", 1e-7),
    ("1e400", "1e400"),
    ("1:30", "1:30"),
    ("2020-01-01", "2020-01-01"),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709552000),
    ("0xFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFF"),
]


@pytest.mark.parametrize(("text", "value"), KUBECTL)
def test_a_plain_scalar_is_what_kubectl_sends(text, value):
    read = resolve_plain(text)
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.INF", "+.Inf", ".nan"])
def test_a_number_that_json_cannot_hold_is_refused(text):
    with pytest.raises(NotJsonError):
        resolve_plain(text)


@pytest.mark.parametrize(
    ("text", "key"),
    [("y", "true"), ("No", "false"), ("0x10", "16"), ("1.0", "1"), ("1.5", "1.5"), ("'y'", "y")],
)
def test_a_key_is_spelled_as_json_spells_it(text, key):
    assert read_manifests(f"{text}: a") == ({key: "a"},)


def test_null_is_no_key():
    with pytest.raises(ProblemsError) as caught:
        read_manifests("~: a")
    assert [problem.code for problem in caught.value.problems] == ["yaml-syntax"]


@pytest.mark.parametrize(
    ("text", "value"), [("!!str 5", "5"), ("! 5", "5"), ("'5'", "5"), ("!!int '5'", 5), ("!!float 5", 5)]
)
def test_a_tag_or_quotes_decide(text, value):
    assert read_manifests(f"a: {text}") == ({"a": value},)


def test_whole_floats_below_1e21_are_integers():
    assert repr(number_as_sent(1e20)) == "100000000000000000000"
    assert repr(number_as_sent(1e21)) == "1e+21"


def test_a_very_long_number_is_read_at_once():
    assert resolve_plain("9" * 1_000_000) == "9" * 1_000_000
