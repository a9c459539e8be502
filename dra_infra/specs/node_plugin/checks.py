"""Checks of the arguments of the node plugin, one by one, and of its image.

What runs as root on every node should be an image that somebody looked at, and stay that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import names
from dra_infra.output.wording import nearest
from dra_infra.release import VERSION
from dra_infra.specs.arguments import (
    PLAIN_HINT,
    check_annotations,
    check_labels,
    check_namespace,
    is_list,
    is_output,
    is_text,
    shorten,
    unknown_argument,
    wrong_plain_type,
    wrong_type,
)
from dra_infra.specs.config_matching import check_json
from dra_infra.specs.node_plugin.daemon_set import PREFIX
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.platform.namespaces import check_pod_security

_NO_REGISTRY: Final = "localhost/"

IMAGE: Final = f"{_NO_REGISTRY}dra-infra-plugin:{VERSION}"
"""The name that `make image` gives. No registry has it: nobody else's image can take its place on a node without it."""

_PINNED: Final = re.compile(r"[^@\s]+@(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})")
"""Digests as the image specification has them (opencontainers/image-spec, descriptor.md)."""

_HINT: Final = (
    'write image="registry.example.com/dra-infra-plugin@sha256:..." with the digest that `make image` prints'
)


def check_image(name: str, value: object) -> Iterator[Problem]:
    """Checks the image: `wrong-type`, `unsupported-value`, and the warning `image-not-pinned`."""
    if is_output(value):
        return
    if not isinstance(value, str) or not value or not is_text(value):
        yield wrong_type(name, value, "a text that is not empty")
    elif "@" in value and not _PINNED.fullmatch(value):
        message = f"{shorten(value)} has no whole digest behind its @"
        yield Problem(path=name, code="unsupported-value", message=message, hint=_HINT)
    elif "@" not in value and not value.startswith(_NO_REGISTRY):
        yield Problem(
            path=name,
            code="image-not-pinned",
            message=f"{shorten(value)} is whatever its registry has under that tag when a node pulls it, and runs there as root",
            hint=_HINT,
            severity="warning",
        )


LEVELS: Final = ("error", "warning", "info", "debug")

BY_ARGUMENT: Final[Mapping[str, str]] = {
    "back_end": "back_end",
    "fleet": "fleet",
    "driver": "driver",
    "kubelet_root": "kubelet_root",
    "cdi_folder": "cdi_folder",
    "log_level": "log_level",
    "metrics_address": "metrics_port",
    "health_address": "health_port",
    "driver_root_on_host": "nvidia_driver_root",
}
"""Settings of the plugin that an argument writes, and which."""

OTHERS: Final = ("log_format", "metadata_files", "mig_delay", "sim_commands", "toolkit")
"""Settings that `settings=` takes."""

_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH: Final = re.compile(r"(/[A-Za-z0-9._-]+)+/?|/")
_LARGEST_PORT: Final = 65535


def check_arguments(arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems of everything but the hardware.

    Codes: `unknown-argument`, `wrong-type`, `invalid-name`, `invalid-label`, `value-too-long`, `unsupported-value`,
    `namespace-refused`, `value-set-twice`, and the warning `image-not-pinned`.
    """
    for name, value in arguments.items():
        if name not in _CHECKS:
            yield unknown_argument(name, _CHECKS)
        elif value is not None:
            yield from _CHECKS[name](name, value)
    ports = [arguments.get("metrics_port"), arguments.get("health_port")]
    if ports[0] is not None and ports[0] == ports[1]:
        message = f"metrics and health are both served at {shorten(ports[0])}"
        hint = "give each a port of its own"
        yield Problem(path="health_port", code="value-set-twice", message=message, hint=hint)


def check_name(name: object, *, path: str) -> Iterator[Problem]:
    """The name of the objects, which is the value of a label too: `wrong-type`, `invalid-name`."""
    yield from check_object_name(name, path=path)
    if isinstance(name, str) and names.is_dns_subdomain(name) and len(name) > names.LABEL_LENGTH:
        message = f"{shorten(name)} has {len(name)} characters"
        hint = "pods carry it in a label: use at most 63"
        yield Problem(path=path, code="invalid-name", message=message, hint=hint)


def _by_others(_name: str, _value: object) -> Iterator[Problem]:
    """Checked where the hardware is chosen."""
    yield from ()


def _text(name: str, value: object) -> Iterator[Problem]:
    if not is_output(value) and not (isinstance(value, str) and value and is_text(value)):
        yield wrong_type(name, value, "a text that is not empty")


def _texts(name: str, value: object) -> Iterator[Problem]:
    if not is_list(value):
        yield wrong_plain_type(name, value, "a list of names")
        return
    names_given: Sequence[object] = value  # type: ignore[assignment]  # a list, as was just asked
    for index, each in enumerate(names_given):
        yield from _text(f"{name}[{index}]", each)


def _namespaces(name: str, value: object) -> Iterator[Problem]:
    if not is_list(value):
        yield wrong_plain_type(name, value, "a list of namespaces", 'write metrics_namespaces=["monitoring"]')
        return
    given: Sequence[object] = value  # type: ignore[assignment]  # a list, as was just asked
    for index, each in enumerate(given):
        for problem in check_namespace(each):
            yield replace(problem, path=f"{name}[{index}]")


def _flag(name: str, value: object) -> Iterator[Problem]:
    if not isinstance(value, bool):
        yield wrong_plain_type(name, value, "True or False")


def _port(name: str, value: object) -> Iterator[Problem]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield wrong_plain_type(name, value, "a port")
    elif not 0 < value <= _LARGEST_PORT:
        hint = f"write a number from 1 to {_LARGEST_PORT}"
        yield Problem(path=name, code="unsupported-value", message=f"{shorten(value)} is no port", hint=hint)


def _folder(name: str, value: object) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield wrong_type(name, value, "the path of a folder of the node", PLAIN_HINT)
    elif not _PATH.fullmatch(value) or ".." in PurePosixPath(value).parts:
        hint = "write it from / on, such as /var/lib/kubelet"
        yield Problem(
            path=name, code="unsupported-value", message=f"{shorten(value)} is no folder of a node", hint=hint
        )


def _level(name: str, value: object) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield wrong_type(name, value, "a level", PLAIN_HINT)
    elif value not in LEVELS:
        near = nearest(value.lower(), LEVELS)
        hint = f'did you mean "{near}"?' if near else f"levels are {', '.join(LEVELS)}"
        yield Problem(path=name, code="unsupported-value", message=f"{shorten(value)} is no level", hint=hint)


def _object_name(name: str, value: object) -> Iterator[Problem]:
    if is_output(value):
        yield wrong_type(name, value, "a string", PLAIN_HINT)
    else:
        yield from check_name(value, path=name)


def _labels(name: str, value: object) -> Iterator[Problem]:
    if is_output(value):
        yield wrong_type(name, value, "a mapping of strings", "its values may be Outputs, it may not")
    else:
        yield from (check_annotations if name == "annotations" else check_labels)(value, name)


def _namespace_labels(name: str, value: object) -> Iterator[Problem]:
    yield from _labels(name, value)
    yield from check_pod_security(name, value, why="they mount host paths")


def _tolerations(name: str, value: object) -> Iterator[Problem]:
    if not is_list(value) or not all(isinstance(each, Mapping) for each in value):  # type: ignore[attr-defined]
        hint = 'write tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]'
        yield wrong_type(name, value, "a list of tolerations", hint)
        return
    yield from check_json(name, value, "a value of a pod")
    given: Sequence[Mapping[str, object]] = value  # type: ignore[assignment]  # a list of mappings, as was just asked
    for index, each in enumerate(given):
        yield from _toleration(f"{name}[{index}]", each)


def _toleration(path: str, toleration: Mapping[str, object]) -> Iterator[Problem]:
    """Checks texts as the server does (`ValidateTolerations` in pkg/apis/core/validation): `invalid-label`, `unsupported-value`."""
    key, value = toleration.get("key"), toleration.get("value")
    hint = "write the key, value and effect of the taint as `kubectl describe node` shows them"
    if isinstance(key, str) and key and not names.is_label_key(key):
        message = f"{shorten(key)} cannot be the key of a taint"
        yield Problem(path=f"{path}.key", code="invalid-label", message=message, hint=hint)
    if isinstance(value, str) and not names.is_label_value(value):
        message = f"{shorten(value)} cannot be the value of a taint"
        yield Problem(path=f"{path}.value", code="invalid-label", message=message, hint=hint)
    for field, known in (("operator", _OPERATORS), ("effect", _EFFECTS)):
        word = toleration.get(field)
        if isinstance(word, str) and word and word not in known:
            message = f"{shorten(word)} is none of {', '.join(known)}"
            yield Problem(path=f"{path}.{field}", code="unsupported-value", message=message, hint=hint)


def _object_reference(name: str, value: object) -> Iterator[Problem]:
    yield from _text(name, value)
    if isinstance(value, str) and value and not names.is_dns_subdomain(value):
        message = f"{shorten(value)} cannot be the name of an object"
        hint = "use lower-case letters, digits, '-' and '.'"
        yield Problem(path=name, code="invalid-name", message=message, hint=hint)


def _resources(name: str, value: object) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield wrong_type(
            name, value, "a mapping, as in a container", 'write resources={"limits": {"memory": "256Mi"}}'
        )
    else:
        yield from check_json(name, value, "a value of a pod")


def _settings(name: str, value: object) -> Iterator[Problem]:
    hint = 'write settings={"mig_delay": "2s"}'
    yield from _mapping(name, value, _VARIABLE, "the name of a setting", hint)
    for key in value if isinstance(value, Mapping) else ():
        path = f"{name}[{key!r:.80}]"
        if not isinstance(key, str) or key in OTHERS or not _VARIABLE.fullmatch(key):
            continue
        if key in BY_ARGUMENT:
            message = f"{key} has an argument"
            hint = f"write {BY_ARGUMENT[key]}= and leave it out here"
            yield Problem(path=path, code="value-set-twice", message=message, hint=hint)
        else:
            near = nearest(key, [*OTHERS, *BY_ARGUMENT])
            hint = f"did you mean {near!r}?" if near else f"settings are {', '.join(OTHERS)}"
            message = f"{shorten(key)} is no setting of a plugin in a pod"
            yield Problem(path=path, code="unknown-argument", message=message, hint=hint)


def _variables(name: str, value: object) -> Iterator[Problem]:
    hint = 'write env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}'
    yield from _mapping(name, value, _VARIABLE, "the name of a variable", hint)
    for key in value if isinstance(value, Mapping) else ():
        if isinstance(key, str) and key.startswith(PREFIX):
            message = f"{shorten(key)} is a setting"
            hint = "write it as an argument, or in settings="
            yield Problem(path=f"{name}[{key!r:.80}]", code="value-set-twice", message=message, hint=hint)


def _mapping(name: str, value: object, pattern: re.Pattern[str], said: str, hint: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping):
        yield wrong_type(name, value, "a mapping of strings", hint)
        return
    for key, each in value.items():
        if not isinstance(key, str) or not pattern.fullmatch(key):
            yield wrong_type(name, key, said, hint)
        elif not is_output(each) and not (isinstance(each, str) and is_text(each)):
            yield wrong_type(f"{name}[{key!r:.80}]", each, "a string", hint)


_CHECKS: Final[Mapping[str, Callable[[str, Any], Iterator[Problem]]]] = {
    "back_end": _by_others,
    "fleet": _by_others,
    "driver": _by_others,
    "image": check_image,
    "image_pull_secrets": _texts,
    "object_name": _object_name,
    "namespace": lambda _name, value: check_namespace(value),
    "create_namespace": _flag,
    "namespace_labels": _namespace_labels,
    "labels": _labels,
    "annotations": _labels,
    "node_selector": _labels,
    "tolerations": _tolerations,
    "priority_class_name": _object_reference,
    "resources": _resources,
    "host_network": _flag,
    "log_level": _level,
    "metrics_port": _port,
    "health_port": _port,
    "metrics_namespaces": _namespaces,
    "kubelet_root": _folder,
    "cdi_folder": _folder,
    "nvidia_driver_root": _folder,
    "settings": _settings,
    "env": _variables,
    "classes": _flag,
    "binding_conditions": _flag,
    "openshift": _flag,
}
"""Every argument of `NodePlugin`, and its check."""
