"""Whether the arguments of an installation are what they must be, before anything is made of them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_list, is_output, wrong_type
from dra_infra.specs.config_values import find_odd
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.platform.settings import PLAIN

_SHAPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "chart": ((str,), "a name, an address or a path"),
    "repository": ((str,), "an address"),
    "keep_crds": ((bool,), "True or False"),
    "values": ((Mapping,), "a mapping, as in a values file"),
    "timeout": ((int,), "a number of seconds"),
    "skip_await": ((bool,), "True or False"),
    "atomic": ((bool,), "True or False"),
    "kernel_driver": ((str,), 'a version, such as "580.95.05"'),
}


def check_shapes(
    arguments: Mapping[str, Any], known: Sequence[str]
) -> tuple[Mapping[str, Any], list[Problem]]:
    """The arguments that can be used, and problems `unknown-argument`, `wrong-type`, `invalid-name`."""
    problems: list[Problem] = []
    for name, value in arguments.items():
        if name not in known:
            near = difflib.get_close_matches(str(name)[:80], known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"arguments are {', '.join(known)}"
            message = f"there is no argument {str(name)[:80]!r}"
            problems.append(Problem(path=str(name), code="unknown-argument", message=message, hint=hint))
        elif value is not None and is_output(value):
            if name in PLAIN:
                hint = "it decides what is made or checked; values inside may be Outputs"
                problems.append(wrong_type(name, value, "a plain value", hint))
        elif value is not None:
            problems += _check_shape(name, value) or _check_plain(name, value)
    wrong = {problem.path.partition("[")[0] for problem in problems}
    return {name: value for name, value in arguments.items() if name not in wrong}, problems


def _check_plain(name: str, value: object) -> list[Problem]:
    """That helm can be told: values are JSON, with Outputs in them."""
    odd = find_odd(value)
    if odd is None:
        return []
    fields, found = odd
    return [wrong_type(name + "".join(f"[{key!r:.80}]" for key in fields), found, "a value of a chart")]


def _check_shape(name: str, value: object) -> list[Problem]:
    if name == "release_name":
        return check_object_name(value, path="release_name")
    if name == "crds":
        paths = value if is_list(value) else [value]
        right = all(isinstance(each, str) and each for each in paths)  # type: ignore[attr-defined]
        return [] if right else [wrong_type("crds", value, "a path, an address, or a list of them")]
    types, said = _SHAPES.get(name, ((object,), ""))
    fits = isinstance(value, types) and (bool in types or object in types or not isinstance(value, bool))
    return [] if fits else [wrong_type(name, value, said)]
