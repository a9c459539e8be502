"""The generated module of TypedDicts with the arguments of components: each key has its type and docstring.

Signatures and docstrings of the components are the source. `component_reference.py` reads them, for the guide as well.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import subprocess
import sys
import textwrap
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

import dra_infra as dra
from dra_infra.components import arguments
from tests.contract.component_reference import COMPONENTS, annotations_of, arguments_of

ROOT: Final = Path(__file__).parents[2]
MODULE: Final = ROOT / "dra_infra" / "components" / "public_arguments.py"

_NOT_A_KEY: Final = "name"
"""The argument that is passed by position."""

_WIDTH: Final = 106
"""Of the lines of a docstring, below a class."""

_OF_PULUMI: Final = "from pulumi.output import Output, T  # noqa: F401  (`Input` refers to them in a text, for `get_type_hints`)"

# Without `from __future__ import annotations`: `__required_keys__` would miss each `Required` in a text.
_HEAD: Final = '''"""The arguments of each component as a TypedDict, for wrappers with `**arguments: Unpack[GpuClaimTemplateArgs]`.

`make golden` writes this module from the signatures and docstrings of the components. Do not edit it by hand.
"""

'''


def rendered() -> str:
    """Return the text of the module, as signatures and docstrings have it now."""
    imports = {"from typing import Required, TypedDict", _OF_PULUMI}
    for name in COMPONENTS:
        for annotation in _keys_of(name).values():
            imports |= _imports_for(annotation, getattr(dra, name).__init__.__module__)
    classes = [_class_of(name) for name in COMPONENTS]
    return _formatted("\n".join([_HEAD, *imports, *classes]))


def _keys_of(name: str) -> dict[str, str]:
    return {key: source for key, source in annotations_of(name).items() if key != _NOT_A_KEY}


def _class_of(name: str) -> str:
    keys = _keys_of(name)
    lines = [
        f"class {name}Args(TypedDict, total=False):",
        f'    """Arguments of `{name}`, without its name."""\n',
    ]
    for argument in arguments_of(name):
        if argument.name in keys:
            source = keys[argument.name]
            type_ = source if argument.default else f"Required[{source}]"
            lines += [f"    {argument.name}: {type_}", _docstring(argument.meaning)]
    return "\n".join(lines)


def _docstring(meaning: str) -> str:
    lines = textwrap.wrap(f'"""{meaning}"""', _WIDTH, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(lines), "    ")


def _imports_for(annotation: str, module: str) -> set[str]:
    """Return the imports that an annotation needs, which stands in *module* or in that of the common arguments."""
    known = {**_imports_of(arguments.__name__), **_imports_of(module)}
    names = {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}
    unknown = {name for name in names if name not in known and not hasattr(builtins, name)}
    assert not unknown, (
        f"{module} has to begin with `from __future__ import annotations`, or import {unknown}"
    )
    return {known[name] for name in names if name in known}


@cache
def _imports_of(module: str) -> dict[str, str]:
    """Return the import of each name that can be used in *module*: from where it is defined, as mypy requires."""
    imports = {name: f"from {module} import {name}" for name in vars(import_module(module))}
    for node in ast.walk(ast.parse(inspect.getsource(import_module(module)))):
        if isinstance(node, ast.ImportFrom):
            imports |= {each.name: f"from {node.module} import {each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            imports |= {each.name: f"import {each.name}" for each in node.names}
    return imports


def _formatted(source: str) -> str:
    """Return *source* with its imports sorted, and formatted as all of our modules are."""
    for command in (["check", "--quiet", "--select", "I", "--fix"], ["format"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--stdin-filename", str(MODULE), "-"],
            cwd=ROOT,
            input=source,
            capture_output=True,
            text=True,
            check=True,
        )
        source = done.stdout
    return source
