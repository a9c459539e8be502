"""What the stand-in sends has the bytes that a client in Go would send."""

from __future__ import annotations

import pytest

from tools.kubernetes_provider.api_server import encode


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            {"sharing": {"timeSlicing": 1, "strategy": "x"}, "kind": "k"},
            '{"kind":"k","sharing":{"strategy":"x","timeSlicing":1}}',
        ),
        ({"b": [{"z": None, "a": True}], "ä": "Zürich"}, '{"b":[{"a":true,"z":null}],"ä":"Zürich"}'),
        ({"text": "a<b>&\u2028\u2029"}, '{"text":"a\\u003cb\\u003e\\u0026\\u2028\\u2029"}'),
    ],
    ids=["keys are sorted", "other scripts stay", "safe inside HTML"],
)
def test_a_body_is_written_as_go_writes_it(body: object, text: str):
    assert encode(body) == text
