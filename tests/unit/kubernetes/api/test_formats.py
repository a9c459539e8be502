from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api import names as formats


@given(st.text(alphabet="abZ019-._/é", max_size=70))
def test_texts_are_told_exactly_for_names_that_are_refused(text: str):
    assert (not formats.dns_label(text)) == names.is_dns_label(text)
    assert (not formats.dns_subdomain(text)) == names.is_dns_subdomain(text)


@pytest.mark.parametrize(
    ("found", "starts"),
    [
        (formats.dns_label("a.b"), ["must not contain dots"]),
        (formats.dns_label("a" * 64), ["must be no more than 63 characters"]),
        (formats.dns_subdomain("a" * 254, "bytes"), ["must be no more than 253 bytes"]),
        (formats.dns_subdomain_caseless("Example.COM"), []),
        (formats.label_key("a/b/c"), ["a valid label key must consist of"]),
        (formats.label_key("/b"), ["prefix part must be non-empty"]),
        (formats.label_key("a/"), ["name part must be non-empty", "name part must consist of"]),
        (
            formats.label_key("é" * 32),
            ["name part must be no more than 63 bytes", "name part must consist of"],
        ),
        (formats.label_value("a" * 64), ["must be no more than 63 bytes"]),
        (formats.label_value(""), []),
        (formats.c_identifier("9a"), ["a valid C identifier must start"]),
        (formats.c_identifier("a\n"), ["a valid C identifier must start"]),
    ],
)
def test_each_thing_that_is_wrong_is_told(found: tuple[str, ...], starts: list[str]):
    assert len(found) == len(starts)
    assert all(text.startswith(start) for text, start in zip(found, starts, strict=True))
