from __future__ import annotations

import json

from tools.kubernetes_provider.schema import read_schema
from tools.kubernetes_provider.sdk_schema import KINDS

SCHEMA = json.loads(read_schema("4.34.2"))


def test_programs_in_yaml_have_the_kinds_with_the_types_of_the_sdk():
    assert set(SCHEMA["resources"]) == {f"kubernetes:{kind}" for kind in KINDS}
    assert SCHEMA["types"]["kubernetes:core/v1:PodResourceClaim"]["properties"][
        "resourceClaimTemplateName"
    ] == {"type": "string"}


def test_a_program_need_not_write_what_the_type_says():
    inputs = SCHEMA["resources"]["kubernetes:core/v1:Pod"]["inputProperties"]

    assert (inputs["apiVersion"]["const"], inputs["kind"]["const"]) == ("v1", "Pod")


def test_a_port_is_a_number_or_a_name():
    port = SCHEMA["types"]["kubernetes:core/v1:HTTPGetAction"]["properties"]["port"]

    assert port == {"oneOf": [{"type": "integer"}, {"type": "string"}]}


def test_every_type_that_is_named_is_there():
    named = {
        text.removeprefix("#/types/") for text in json.dumps(SCHEMA).split('"') if text.startswith("#/types/")
    }

    assert named <= set(SCHEMA["types"])
