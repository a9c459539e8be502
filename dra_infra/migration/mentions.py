"""Resources of the plugin that stand where nothing else here reads them: in texts, settings and fields of other kinds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final

from dra_infra.migration.descriptions import describe_document, describe_text
from dra_infra.migration.device_plugin import (
    MIG_NAME,
    is_device,
    read_resource,
    tell_other_form,
)
from dra_infra.migration.outcomes import Remark
from dra_infra.migration.plugin_configs import holds_configs
from dra_infra.output.wording import count_of

_MOST_TOLD: Final = 20
"""Fields and texts of an object that are told one by one."""

RESOURCE_NAME: Final = re.compile(
    r"(?<!attributes\[[\"'])(?<!capacity\[[\"'])nvidia\\{0,2}[._]com(?:/|_|~1)(?:gpu|mig[-_]"
    + MIG_NAME.replace(r"\.", "[._]").replace("[.-]", "[._-]")
    + r")(?:[._]shared)?(?![\w./-])"
    + r"|alpha[._]kubernetes[._]io(?:/|_|~1)nvidia[-_]gpu(?![\w./-])"
)
"""Resources of the plugin in a text, as metrics and pointers of JSON patches spell them too; labels such as
nvidia.com/gpu.product are none."""
_DOMAIN: Final = re.compile(r"(?<=(?:attributes\[|..capacity\[)[\"'])nvidia\.com/[\w./-]+")
"""The name of a resource in CEL of DRA, as if devices had attributes under it."""

_PLUGIN_CONFIG: Final = re.compile(r"(?:\A|\.)sharing\.(?:timeSlicing|mps)\.resources\[[0-9]+\]\.name")
"""The path of a resource's name in a configuration of the plugin."""

_ELSEWHERE: Final = frozenset(
    {
        "tolerations",
        "taints",
        "nodeSelector",
        "labels",
        "matchLabels",
        "matchExpressions",
        "managedFields",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
"""Fields with the keys of taints and labels, for the taint of nodes with GPUs is called nvidia.com/gpu, too, and copies of the object."""

_OF_NODES: Final = re.compile("(?i)(?:tolerations|taints|node_?selector|node_?affinity[a-z_]*)$")
"""The same in values of charts, such as extra_tolerations of KubeSpawner."""

_OF_AMOUNTS: Final = ("limits", "requests", "resources", "guarantees")
"""Ends of fields with amounts of resources; KubeSpawner has extra_resource_limits and extra_resource_guarantees."""

_DESCRIPTION: Final = "in "
"""Begins where a resource stands that is in a text for people or tools that ask for nothing."""

_Name = tuple[str, str, str]
"""The path of a resource, its name, and where it stands: in a field, a text, a selector, a configuration or a description."""


def find_mentions(manifest: Mapping[str, Any], read: Collection[str] = ()) -> Iterator[Remark]:
    """Resources of the plugin that stand where nothing here reads them: in texts, settings and fields of other kinds.

    Args:
        manifest: The object, whose status asks for nothing.
        read: Paths of fields that were read, with all below them.
    """
    names = list(_find_names(manifest, read))
    described = describe_document(manifest)
    if names and all(map(_chooses, names)) and all(map(_chooses, _find_names(manifest, ()))):
        return
    hint = "change it by hand, if it asks for devices or counts them"
    for path, found, where in names[:_MOST_TOLD]:
        message = f"{found} stands in a {where} that is not read"
        if described or where.startswith(_DESCRIPTION):
            what = described or where.removeprefix(_DESCRIPTION)
            message = f"{found} stands in {what}, which asks for nothing"
            yield Remark(path, "kept", "resource-in-text", message, "count claims too, if it counts pods")
        elif form := tell_other_form(path, found):
            yield form
        elif where == "selector":
            message = f"no driver publishes anything under {found}"
            yield Remark(path, "decide", "attribute-wrong-domain", message, "write gpu.nvidia.com instead")
        elif where == "configuration":
            message = f"{found} stands in a configuration of the plugin, which asks for nothing"
            yield Remark(path, "kept", "resource-in-text", message, "give it as --plugin-config if it counts")
        else:
            yield Remark(path, "decide", "resource-in-text", message, hint)
    if (left := len(names) - _MOST_TOLD) > 0:
        message = f"{count_of(left, 'more place')} with resources of the plugin, in fields and texts that are not read"
        yield Remark("", "decide", "resource-in-text", message, hint)


def refuse_schedulers(manifest: Mapping[str, Any], pods: Mapping[str, bool]) -> dict[str, Remark]:
    """Says of pods that ask for devices that a scheduler of HAMi, KAI or Run:ai gives them GPUs in its own way, by their path.

    Args:
        manifest: The object.
        pods: By the path of each pod spec whether it asks; empty where nobody knows where they are, which the path "" stands for.
    """
    if pods and not any(pods.values()):
        return {}
    names = list(_find_names(manifest, ()))
    asking = [path for path, asks in pods.items() if asks]
    if not pods and not all(map(_chooses, names)):
        asking = [""]
    refused: dict[str, Remark] = {}
    above = {each.removesuffix(".spec"): each for each in pods}
    for path, name, _ in names:
        if remark := _tell_scheduler(path, name):
            # What stands in none of the pods is for all of them.
            own = {at for each in accumulate(path.split("."), "{}.{}".format) if (at := above.get(each))}
            refused |= {
                each: remark for each in own or asking if pods.get(each, True) and each not in refused
            }
    return refused


def _tell_scheduler(path: str, name: str) -> Remark | None:
    return tell_other_form(path, name) if path.endswith(("chedulerName", f"nnotations[{name}]")) else None


def _chooses(found: _Name) -> bool:
    """True for a scheduler or an annotation that says which devices pods get, and asks for none; KAI's ask for a share."""
    path, name, _ = found
    return _tell_scheduler(path, name) is not None and not name.startswith("gpu-")


def _find_names(manifest: Mapping[str, Any], read: Collection[str]) -> Iterator[_Name]:
    stack: list[tuple[str, Any, bool]] = [("", {**manifest, "status": None}, False)]
    while stack:
        path, value, is_named = stack.pop()
        if path in read:
            continue
        if is_named:
            yield path, path.rpartition("[")[2].rstrip("]"), "field"
        elif isinstance(value, str):
            # KubeVirt names devices of machines in whole, whatever they are.
            is_named = path.endswith(".deviceName") and is_device(value)
            is_named |= path.endswith("chedulerName") and tell_other_form(path, value) is not None
            if found := RESOURCE_NAME.search(value) or (is_named and re.match(r"[\w./-]+", value)):
                is_config = _PLUGIN_CONFIG.search(path) or holds_configs(value)
                what = describe_text(path, value)
                where = f"{_DESCRIPTION}{what}" if what else "text"
                yield path, found[0], "configuration" if is_config else where
            elif found := _DOMAIN.search(value):
                yield path, found[0], "selector"
        else:
            stack += reversed(list(_fields(path, value)))


def _fields(path: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Each field or item with its path, and whether its name is that of a resource."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            if _asks(path, str(key)) or RESOURCE_NAME.fullmatch(str(key).removeprefix("requests.")):
                if str(below) != "0":
                    yield f"{path}[{key}]", below, True
            elif key not in _ELSEWHERE and not _OF_NODES.search(str(key)):
                yield f"{path}.{key}" if path else str(key), below, False
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield f"{path}[{number}]", below, False


def _asks(path: str, name: str) -> bool:
    """True for a field that gets devices: Dynamo and vLLM leave the domain out, HAMi, KAI and Run:ai have annotations."""
    if path.endswith(("annotations", "Annotations")):
        return tell_other_form(path, name) is not None
    if not path.lower().endswith(_OF_AMOUNTS):
        return False
    return bool(
        name == "gpu" or tell_other_form(path, name) or not isinstance(read_resource(name, None), str)
    )
