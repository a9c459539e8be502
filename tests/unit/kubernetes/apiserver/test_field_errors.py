from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import go_json
from dra_infra.kubernetes.api.go_text import quoted
from dra_infra.kubernetes.apiserver.field_errors import (
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (required("request.name", "p"), "Required value"),
        (required("request.name", "p", "say why"), "Required value: say why"),
        (invalid("request.name", "p", "A b", "no"), 'Invalid value: "A b": no'),
        (invalid("request.name", "p", -3, "no"), "Invalid value: -3: no"),
        (invalid("request.name", "p", None, "no"), "Invalid value: null: no"),
        (
            invalid("request.name", "p", {"Name": "x", "To": None}, "no"),
            'Invalid value: {"Name":"x","To":null}: no',
        ),
        (forbidden("cel.cost", "p", "too complex"), "Forbidden: too complex"),
        (too_long("cel.length", "p", 10240), "Too long: may not be more than 10240 bytes"),
        (too_many("claim.requests-size", "p", 33, 32), "Too many: 33: must have at most 32 items"),
        (duplicate("request.duplicate", "p", "gpu"), 'Duplicate value: "gpu"'),
        (
            not_supported("toleration.effect", "p", "No", ["A", "B"]),
            'Unsupported value: "No": supported values: "A", "B"',
        ),
    ],
)
def test_a_message_is_that_of_a_cause(error, message: str):
    assert error.message == message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gpu", '"gpu"'),
        ('a"b\\c', r'"a\"b\\c"'),
        ("tab\tline\nbell\a", r'"tab\tline\nbell\a"'),
        ("nul\0del\x7f", r'"nul\x00del\x7f"'),
        ("é日本", '"é日本"'),
        ("wide\u00a0space\u2028", r'"wide\u00a0space\u2028"'),
        ("\U000e0001", r'"\U000e0001"'),
    ],
)
def test_texts_are_quoted_as_go_quotes_them(text: str, shown: str):
    assert quoted(text) == shown


def test_json_is_safe_inside_html_as_in_go():
    assert go_json({"a": "<b> & \u2028\b"}) == r'{"a":"\u003cb\u003e \u0026 \u2028\b"}'
