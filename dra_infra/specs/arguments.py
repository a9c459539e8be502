"""Checks of the arguments that components share: types, counts, names, labels, driver and its gates.

Types and counts are checked whatever the arguments are for. Formats and limits are those of the API server
(`dra_infra.kubernetes`); what is said of them is in terms of arguments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.kubernetes.apiserver import MAX_ANNOTATIONS
from dra_infra.output.escaping import literal
from dra_infra.output.wording import nearest

PLAIN_HINT: Final = "this decides the structure: give a plain value, not a Pulumi Output"
"""What to do about a Pulumi Output where the value must be known while the program runs."""


def wrong_type(path: str, value: object, expected: str, hint: str = "") -> Problem:
    """*value* is not *expected*; code `wrong-type`."""
    shown = "a Pulumi Output" if is_output(value) else f"{shorten(value)} ({type(value).__name__})"
    return Problem(path=path, code="wrong-type", message=f"{shown} is not {expected}", hint=hint)


def wrong_plain_type(path: str, value: object, expected: str, hint: str = "") -> Problem:
    """Returns `wrong-type` for an argument whose value must be known while the program runs, as an Output's is not."""
    return wrong_type(path, value, expected, PLAIN_HINT if is_output(value) else hint)


def unknown_argument(name: object, known: Iterable[str]) -> Problem:
    """There is no argument of that name; code `unknown-argument`."""
    # A lone surrogate cannot be printed.
    shown = str(name)[:80].encode(errors="backslashreplace").decode()
    near = nearest(shown, known)
    hint = f"did you mean {near!r}?" if near else f"arguments are {', '.join(known)}"
    message = f"there is no argument {shown!r}"
    return Problem(path=shown, code="unknown-argument", message=message, hint=hint)


def is_list(value: object) -> bool:
    """True for a sequence that is no text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def too_many(path: str, count: int, most: int, hint: str) -> Problem:
    """A list is longer than the API server takes; code `too-many-items`."""
    message = f"{count} items, the API server takes at most {most}"
    return Problem(path=path, code="too-many-items", message=message, hint=hint)


def is_output(value: object) -> bool:
    """True for a Pulumi Output."""
    if value is None or isinstance(value, (str, int)):
        return False
    # By name: specs know no Pulumi, and still must tell people what they passed.
    return any(
        base.__module__.startswith("pulumi") and base.__name__ == "Output" for base in type(value).__mro__
    )


def known_text(value: object) -> Any:
    """The text of an Output that knows it while the program runs, as names of components do; else *value*."""
    return vars(value).get("known_text", value) if is_output(value) else value


def is_one_of(value: object, known: Collection[str]) -> bool:
    """Return True for a text that is in *known*; other values are not compared, because a selector refuses to be."""
    return isinstance(value, str) and value in known


_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+\b")


def shorten(value: object) -> str:
    """Return the literal of *value* in bounded length, without addresses, which are others in each run."""
    return "a Pulumi Output" if is_output(value) else _ADDRESS.sub("", literal(value))


def check_resource_name(name: object) -> list[Problem]:
    """The name of a component, as far as the engine asks something of it: `wrong-type`, `invalid-name`."""
    if not isinstance(name, str):
        return [wrong_type("name", name, "a string", 'write a name such as "trainer"')]
    if name and is_text(name):
        return []
    message = f"{name!r:.80} cannot name a resource"
    hint = 'write a text that is not empty, such as "trainer"'
    return [Problem(path="name", code="invalid-name", message=message, hint=hint)]


def check_driver(release: object, gates: object) -> Iterator[Problem]:
    """The types of `driver_release` and `driver_gates`: `wrong-type`."""
    if release is not None and not isinstance(release, str):
        yield wrong_type("driver_release", release, "a release", 'write driver_release="25.8"')
    hint = 'write driver_gates={"DynamicMIG": True}'
    if gates is not None and not isinstance(gates, Mapping):
        yield wrong_type("driver_gates", gates, "a mapping of gates to True or False", hint)
    elif gates is not None:
        for name, on in gates.items():
            if not isinstance(name, str):
                yield wrong_type("driver_gates", name, "the name of a gate", hint)
            elif not isinstance(on, bool):
                yield wrong_type(f"driver_gates[{name!r}]", on, "True or False", hint)


def check_driver_name(driver: object) -> Iterator[Problem]:
    """The name of a DRA driver, at `driver`: `wrong-type`, `invalid-name`."""
    if not isinstance(driver, str):
        yield wrong_type("driver", driver, "a string", 'write driver="gpu.nvidia.com"')
    elif not names.is_driver_name(driver):
        message = f"{shorten(driver)} is not the name of a DRA driver"
        hint = 'driver names are DNS subdomains of at most 63 bytes, such as "gpu.nvidia.com"'
        yield Problem(path="driver", code="invalid-name", message=message, hint=hint)


def check_positive(
    path: str, value: object, expected: str, *, hint: str, hint_below: str
) -> Iterator[Problem]:
    """A number from 1 on: `wrong-type`, for which *hint* is, and `count-below-one`."""
    # bool is an int in Python, and True devices are never meant.
    if not isinstance(value, int) or isinstance(value, bool):
        yield wrong_plain_type(path, value, expected, hint)
    elif value < 1:
        yield Problem(path=path, code="count-below-one", message=f"{value} is below 1", hint=hint_below)


def check_total(path: str, devices: int) -> Iterator[Problem]:
    """The devices of one claim are not more than the scheduler allocates: `too-many-devices`."""
    if devices > MAX_RESULTS:
        message = f"{devices} devices are asked for, a claim holds at most {MAX_RESULTS}"
        hint = "the scheduler refuses such a claim (AllocationResultsMaxSize): use several claims or pods"
        yield Problem(path=path, code="too-many-devices", message=message, hint=hint)


def check_namespace(namespace: object) -> Iterator[Problem]:
    """The name of a namespace, a DNS label: `wrong-type`, `invalid-name`."""
    if namespace is None or is_output(namespace):
        return
    if not isinstance(namespace, str):
        yield wrong_type("namespace", namespace, "a string")
    elif not names.is_dns_label(namespace):
        message = f"{shorten(namespace)} is not the name of a namespace"
        hint = "use at most 63 lower-case letters, digits and '-'"
        yield Problem(path="namespace", code="invalid-name", message=message, hint=hint)


def check_labels(labels: object, path: str = "labels") -> Iterator[Problem]:
    """Labels of an object: `wrong-type`, `invalid-label`. Outputs are not known, and not judged."""
    for key, value in _entries(labels):
        yield from _check_key(key, path, key)
        if isinstance(value, str) and names.label_value(value):
            message = f"{shorten(value)} cannot be the value of a label"
            hint = "use at most 63 letters, digits, '-', '_' and '.', or an annotation"
            yield Problem(path=f"{path}[{key!r:.80}]", code="invalid-label", message=message, hint=hint)
    yield from _check_strings(labels, path)


def check_merged(path: str, labels: object) -> Iterator[Problem]:
    """Problems `wrong-type` of labels that are merged with others, which an Output of all of them cannot be."""
    if is_output(labels):
        yield wrong_plain_type(path, labels, "a mapping")


def check_annotations(annotations: object, path: str = "annotations") -> Iterator[Problem]:
    """Annotations of an object, in whose keys case does not count: `wrong-type`, `invalid-label`, `value-too-long`."""
    total = 0
    for key, value in _entries(annotations):
        yield from _check_key(key.lower(), path, key)
        for each in (key, value):
            total += len(each.encode(errors="replace")) if isinstance(each, str) else 0
    if total > MAX_ANNOTATIONS:
        message = f"{total} bytes, the API server takes at most {MAX_ANNOTATIONS}"
        hint = "keep long texts in a ConfigMap"
        yield Problem(path=path, code="value-too-long", message=message, hint=hint)
    yield from _check_strings(annotations, path)


def is_text(text: str) -> bool:
    """True for text that UTF-8 can encode: Python has lone surrogates, UTF-8 has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _entries(mapping: object) -> list[tuple[str, Any]]:
    if not isinstance(mapping, Mapping):
        return []
    return [(key, value) for key, value in mapping.items() if isinstance(key, str)]


def _check_strings(mapping: object, path: str) -> Iterator[Problem]:
    if mapping is None or is_output(mapping):
        return
    hint = f'write {path}={{"team": "ml"}}'
    if not isinstance(mapping, Mapping):
        yield wrong_type(path, mapping, "a mapping of strings", hint)
        return
    for key, value in mapping.items():
        if not isinstance(key, str):
            yield wrong_type(path, key, "a string", hint)
        elif not is_output(value) and not (isinstance(value, str) and is_text(value)):
            yield wrong_type(f"{path}[{key!r:.80}]", value, "a string", hint)


def _check_key(key: str, path: str, written: str) -> Iterator[Problem]:
    if not names.label_key(key):
        return
    yield Problem(
        path=path,
        code="invalid-label",
        message=f"{shorten(written)} cannot be a key",
        hint="write a name of at most 63 letters, digits, '-', '_' and '.', behind a domain or not: \"acme.example/team\"",
    )
