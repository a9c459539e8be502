from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import names


@given(st.text(alphabet="abZ019-._/é", max_size=70))
def test_texts_are_told_exactly_for_names_that_are_refused(text: str):
    assert (not names.dns_label(text)) == names.is_dns_label(text)
    assert (not names.dns_subdomain(text)) == names.is_dns_subdomain(text)


@pytest.mark.parametrize(
    ("found", "starts"),
    [
        (names.dns_label("a.b"), ["must not contain dots"]),
        (names.dns_label("a" * 64), ["must be no more than 63 characters"]),
        (names.dns_subdomain("a" * 254, "bytes"), ["must be no more than 253 bytes"]),
        (names.dns_subdomain_caseless("Example.COM"), []),
        (names.label_key("a/b/c"), ["a valid label key must consist of"]),
        (names.label_key("/b"), ["prefix part must be non-empty"]),
        (names.label_key("a/"), ["name part must be non-empty", "name part must consist of"]),
        (
            names.label_key("é" * 32),
            ["name part must be no more than 63 bytes", "name part must consist of"],
        ),
        (names.label_value("a" * 64), ["must be no more than 63 bytes"]),
        (names.label_value(""), []),
        (names.c_identifier("9a"), ["a valid C identifier must start"]),
        (names.c_identifier("a\n"), ["a valid C identifier must start"]),
    ],
)
def test_each_thing_that_is_wrong_is_told(found: tuple[str, ...], starts: list[str]):
    assert len(found) == len(starts)
    assert all(text.startswith(start) for text, start in zip(found, starts, strict=True))
