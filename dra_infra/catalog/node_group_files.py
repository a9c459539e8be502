"""A fleet as a YAML file of groups of nodes, `nodeGroups:` with one entry per group."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dra_infra.catalog.group_settings import KEYS, read_group
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.errors import FleetError, Problem
from dra_infra.model.fleet import NodeTaint
from dra_infra.model.names import is_dns_subdomain
from dra_infra.model.quantity import Quantity

TOP_KEY: Final = "nodeGroups"
_OWN_KEYS: Final = ("name", "labels", "taints", "allocatable")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)


def read_node_groups(document: Mapping[str, Any], file: str) -> list[NodeGroup]:
    """Read the groups of a file.

    Args:
        document: The YAML document, which has `nodeGroups`.
        file: Path of the file, for problems.

    Raises:
        FleetError: `fleet-object` for what is malformed, and the codes of `read_group`; all at once.
    """
    problems = [_unknown_key(key, (TOP_KEY,), f"{file}.{key}") for key in document if key != TOP_KEY]
    entries = document[TOP_KEY]
    if not isinstance(entries, list) or not entries:
        problems.append(
            _malformed(f"{file}.{TOP_KEY}", "there is no list of groups", "write - kind: hgx-h100")
        )
        entries = []
    groups = []
    for index, entry in enumerate(entries):
        path = f"{file}.{TOP_KEY}[{index}]"
        group, found = _read_entry(entry, path)
        problems.extend(found)
        if group is not None:
            groups.append(group)
    if problems:
        raise FleetError(problems)
    return groups


def _read_entry(entry: Any, path: str) -> tuple[NodeGroup | None, list[Problem]]:
    if not isinstance(entry, Mapping) or "kind" not in entry:
        return None, [_malformed(path, "a group has no kind", "write kind: hgx-h100")]
    known = (*KEYS, *_OWN_KEYS)
    problems = [_unknown_key(key, known, f"{path}.{key}") for key in entry if key not in known]
    group, found = read_group(entry, lambda key: f"{path}.{key}")
    problems.extend(found)
    labels = _texts(entry, "labels", path, problems)
    allocatable = _texts(entry, "allocatable", path, problems)
    problems.extend(_check_labels(labels, f"{path}.labels"))
    problems.extend(malformed_amounts(allocatable, f"{path}.allocatable"))
    taints = tuple(_read_taints(entry.get("taints", []), f"{path}.taints", problems))
    name = entry.get("name", group.kind_name if group else "")
    # Node names become label values, and a number is put behind.
    if "name" in entry and not (isinstance(name, str) and is_dns_subdomain(name) and len(name) <= 50):
        problems.append(
            _malformed(
                f"{path}.name",
                f"{str(name)[:60]!r} is no beginning of a node's name",
                "write at most 50 lower-case letters, digits, - and ., such as training",
            )
        )
    if problems or group is None:
        return None, problems
    labelled = replace(group, name=str(name), labels=tuple(labels.items()), taints=taints)
    return replace(labelled, allocatable=tuple(allocatable.items())), []


def malformed_amounts(amounts: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Which of a node's resources are no quantities."""
    for name, value in amounts.items():
        try:
            Quantity.parse(value)
        except ValueError as error:
            yield _malformed(
                f"{path}.{name}",
                f"{value[:80]!r} is not a quantity: {error}",
                "write an amount such as 64, 500m or 512Gi",
            )


def _texts(entry: Mapping[str, Any], key: str, path: str, problems: list[Problem]) -> dict[str, str]:
    written = entry.get(key, {})
    if isinstance(written, Mapping) and not any(
        isinstance(value, (Mapping, list)) for value in written.values()
    ):
        return {
            str(name): value if isinstance(value, str) else _text(value) for name, value in written.items()
        }
    problems.append(
        _malformed(f"{path}.{key}", f"{key} is no mapping of texts", f"write {key}: {{name: value}}")
    )
    return {}


def _text(value: Any) -> str:
    """A number as its text; what YAML takes for true is `true`, as it is in JSON."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _check_labels(labels: Mapping[str, str], path: str) -> Iterator[Problem]:
    for name, value in labels.items():
        if not _is_label_key(name) or _LABEL_VALUE.fullmatch(value) is None:
            yield _malformed(
                f"{path}.{name[:80]}",
                f"{name[:80]}={value[:80]} is no label",
                "write letters, digits, -, _ and ., such as pool: training",
            )


def _is_label_key(text: str) -> bool:
    domain, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(domain):
        return False
    return bool(name) and _LABEL_VALUE.fullmatch(name) is not None


def _read_taints(written: Any, path: str, problems: list[Problem]) -> Iterator[NodeTaint]:
    for index, taint in enumerate(written if isinstance(written, list) else [None]):
        known = ("key", "value", "effect")
        if (
            not isinstance(taint, Mapping)
            or not set(taint) <= set(known)
            or not _is_label_key(str(taint.get("key", "")))
            or taint.get("effect", "NoSchedule") not in _EFFECTS
            or _LABEL_VALUE.fullmatch(str(taint.get("value", ""))) is None
        ):
            problems.append(
                _malformed(
                    f"{path}[{index}]",
                    f"{str(taint)[:80]} is no taint",
                    "write {key: nvidia.com/gpu, value: present, effect: NoSchedule}",
                )
            )
            continue
        yield NodeTaint(
            key=str(taint["key"]),
            value=str(taint.get("value", "")),
            effect=str(taint.get("effect", "NoSchedule")),
        )


def _unknown_key(key: Any, known: tuple[str, ...], path: str) -> Problem:
    near = difflib.get_close_matches(str(key)[:60], known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"keys are {', '.join(known)}"
    return _malformed(path, f"there is no {str(key)[:60]}", hint)


def _malformed(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="fleet-object", message=message, hint=hint)
