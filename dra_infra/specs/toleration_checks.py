"""Whether a toleration of device taints is one that the API server takes (validateDeviceToleration of resource/v1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_infra.errors import Problem
from dra_infra.specs.arguments import shorten, wrong_type
from dra_infra.specs.requests import Toleration
from dra_infra.specs.shared_arguments import is_label_key, is_label_value

_OPERATORS: Final = ("Exists", "Equal")
_EFFECTS: Final = ("NoSchedule", "NoExecute")
_LARGEST: Final = 2**63 - 1
"""A time in seconds is an int64."""


def check_toleration(toleration: Toleration) -> list[Problem]:
    """What is wrong with *toleration*: `wrong-type`, `unsupported-value`, `invalid-label`, `invalid-toleration`."""
    wrong = list(_check_types(toleration))
    return wrong or [*_check_formats(toleration), *_check_together(toleration)]


def _check_types(toleration: Toleration) -> Iterator[Problem]:
    key: object = toleration.key
    value: object = toleration.value
    if not isinstance(key, str):
        yield wrong_type("key", key, "a string", 'write key="gpu.nvidia.com/xid"')
    if not isinstance(value, str):
        yield wrong_type("value", value, "a string")
    effect: object = toleration.effect
    yield from _check_choice("operator", toleration.operator, _OPERATORS)
    if effect is not None:
        yield from _check_choice("effect", effect, _EFFECTS)
    seconds: object = toleration.seconds
    if seconds is not None and not _is_time(seconds):
        yield wrong_type("seconds", seconds, "a number of seconds")


def _is_time(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _check_choice(path: str, value: object, choices: tuple[str, ...]) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield wrong_type(path, value, "a string", f'write {path}="{choices[0]}"')
    elif value not in choices:
        message = f"{shorten(value)} is none of {', '.join(choices)}"
        yield Problem(
            path=path, code="unsupported-value", message=message, hint=f'write {path}="{choices[0]}"'
        )


def _check_formats(toleration: Toleration) -> Iterator[Problem]:
    if toleration.key and not is_label_key(toleration.key):
        yield Problem(
            path="key",
            code="invalid-label",
            message=f"{shorten(toleration.key)} cannot be the key of a taint",
            hint='keys are like those of labels: key="gpu.nvidia.com/xid"',
        )
    if toleration.operator == "Equal" and not is_label_value(toleration.value):
        yield Problem(
            path="value",
            code="invalid-label",
            message=f"{shorten(toleration.value)} cannot be the value of a taint",
            hint="use at most 63 letters, digits, '-', '_' and '.'",
        )


def _check_together(toleration: Toleration) -> Iterator[Problem]:
    if toleration.operator == "Exists" and toleration.value:
        yield Problem(
            path="value",
            code="invalid-toleration",
            message=f'{toleration.value!r:.80} is compared with nothing, for operator="Exists" takes any value',
            hint='leave value out, or write operator="Equal"',
        )
    if toleration.operator == "Equal" and not toleration.key:
        yield Problem(
            path="key",
            code="invalid-toleration",
            message='operator="Equal" needs the key of a taint',
            hint='write key="gpu.nvidia.com/xid"',
        )
    if toleration.seconds is not None and toleration.effect != "NoExecute":
        yield Problem(
            path="seconds",
            code="invalid-toleration",
            message="only taints that end pods are tolerated for a time",
            hint='write effect="NoExecute", or leave seconds out',
        )
