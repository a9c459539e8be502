from __future__ import annotations

import ast
import inspect
import os
from typing import Any, Required, Unpack, get_args, get_origin, get_type_hints

import pulumi
import pytest

import dra_infra as dra
from tests.contract.component_arguments import MODULE, rendered
from tests.contract.component_reference import COMPONENTS

OF_PULUMI = {"Output": pulumi.Output, "T": pulumi.output.T}
"""Names in the text that `pulumi.Input` has for a type."""


def types_in_signature(component: type) -> dict[str, Any]:
    """Return the type of each argument of a constructor, those of `**arguments: Unpack[...]` among them."""
    types: dict[str, Any] = {}
    for name, type_ in get_type_hints(component.__init__, localns=OF_PULUMI).items():
        if get_origin(type_) is Unpack:
            types |= get_type_hints(*get_args(type_), localns=OF_PULUMI)
        else:
            types[name] = type_
    return {name: type_ for name, type_ in types.items() if name not in ("name", "return")}


def required_in_signature(component: type) -> set[str]:
    parameters = list(inspect.signature(component).parameters.values())
    return {each.name for each in parameters if each.default is each.empty} - {"name"}


def docstrings() -> dict[str, dict[str, str]]:
    """Return the texts below the keys of each class of the module."""
    texts: dict[str, dict[str, str]] = {}
    for node in ast.parse(MODULE.read_text()).body:
        if isinstance(node, ast.ClassDef):
            texts[node.name] = {
                key.target.id: text.value.value
                for key, text in zip(node.body, node.body[1:], strict=False)
                if isinstance(key, ast.AnnAssign)
                and isinstance(key.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
                and isinstance(text.value.value, str)
            }
    return texts


def test_the_module_has_what_signatures_and_docstrings_have():
    now = rendered()
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        MODULE.write_text(now)
    assert MODULE.read_text() == now, "run `make golden`, and read what it wrote"


@pytest.mark.parametrize("name", COMPONENTS)
def test_the_keys_are_the_arguments_with_their_types(name: str):
    arguments = getattr(dra, f"{name}Args")
    assert get_type_hints(arguments) == types_in_signature(getattr(dra, name))


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_key_is_required_when_the_argument_has_no_default(name: str):
    arguments = getattr(dra, f"{name}Args")
    assert arguments.__required_keys__ == required_in_signature(getattr(dra, name))
    written = get_type_hints(arguments, include_extras=True)
    assert {key for key, type_ in written.items() if get_origin(type_) is Required} == (
        arguments.__required_keys__
    )


def test_some_argument_is_required():
    assert dra.DeviceTaintArgs.__required_keys__ == {"key"}


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_key_has_a_docstring(name: str):
    arguments = getattr(dra, f"{name}Args")
    texts = docstrings()[arguments.__name__]
    assert set(texts) == set(arguments.__annotations__)
    assert [key for key, text in texts.items() if not text.endswith(".")] == []


def test_every_component_has_its_arguments_and_nothing_else_has():
    assert [name for name in dra.__all__ if name.endswith("Args")] == [f"{name}Args" for name in COMPONENTS]
