"""Names that Pulumi makes up for objects without `metadata.name`: `train-1f2e3d4c` while a program runs, `train-*` in what it gave.

The provider draws `<resource name>-<8 hex digits>` anew in each preview, and marks the object with an annotation. Here the
digits follow from the URN, so that a run gives the same names each time, and references by name are found.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from google.protobuf import struct_pb2

from dra_infra.kubernetes.api import CLAIM_KINDS, as_placeholder, is_placeholder, mapping
from dra_infra.program.surroundings import SIGNATURE_KEY, UNKNOWN_VALUE
from dra_infra.program_objects import AUTONAMED, UNKNOWN_RESULT

SETTING: Final = "pulumi:autonaming"
_DIGITS: Final = 8
_DRAWN: Final = re.compile(rf"-([0-9a-f]{{{_DIGITS}}})(?![0-9A-Za-z])")


class MadeUpNames:
    """The names that a run made up.

    Args:
        config: Settings of the stack: with `pulumi:autonaming` in the mode `verbatim` the resource's name is the name.
    """

    def __init__(self, config: Mapping[str, str]) -> None:
        self._is_verbatim = _mode_of(config.get(SETTING, "")) == "verbatim"
        self._drawn: dict[str, tuple[str, str]] = {}
        self._twice: set[str] = set()
        self._marks: dict[tuple[str, str], str] = {}
        """Who has a name that stands for one that is not known, by kind and text."""

    def add_to(
        self,
        properties: struct_pb2.Struct,
        urn: str,
        name: str,
        kind: str,
        *,
        is_named_by_content: bool = False,
    ) -> None:
        """Give the object that the resource *name* registered a name, unless the program does.

        A claim or class whose name the program knows later gets one too, which stands for what is not known: pods and claims that
        take it from the resource name the object by it.

        Args:
            properties: The object, which gets the name.
            urn: Of the resource.
            name: Of the resource.
            kind: Of the object.
            is_named_by_content: Whether another spec makes another name. Then two specs have two names here too.
        """
        metadata = properties.fields["metadata"]
        if metadata.WhichOneof("kind") not in (None, "null_value", "struct_value"):
            return  # It is not known.
        fields = metadata.struct_value.fields
        if SIGNATURE_KEY in fields:
            return
        if _is_known_later(kind, fields.get("name", _NULL).string_value):
            digits = _digits_of(properties.fields["spec"]) if is_named_by_content else ""
            fields["name"].string_value = self._marked(kind, urn, f"{name} {digits}".strip())
        if fields.get("name", _NULL).WhichOneof("kind") != "null_value":
            return
        if fields.get("generateName", _NULL).WhichOneof("kind") != "null_value":
            # The API server draws it, so the program does not know it in a preview.
            fields["name"].string_value = UNKNOWN_VALUE
            return
        if not self._is_verbatim:
            digits = sha256(urn.encode()).hexdigest()[:_DIGITS]
            self._drawn[digits] = urn, name
            name = f"{name}-{digits}"
        fields["name"].string_value = name
        annotations = fields["annotations"]
        is_known = annotations.WhichOneof("kind") in (None, "null_value", "struct_value")
        if is_known and SIGNATURE_KEY not in annotations.struct_value.fields:
            annotations.struct_value.fields[AUTONAMED].string_value = "true"

    def _marked(self, kind: str, urn: str, name: str) -> str:
        text = f"{UNKNOWN_RESULT} ({name})"
        if self._marks.setdefault((kind, text), urn) != urn:
            text = f"{UNKNOWN_RESULT} ({name} {sha256(urn.encode()).hexdigest()[:_DIGITS]})"
        return text

    def shown_in(self, manifests: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Manifests by URN with `*` for what was drawn, wherever a name stands.

        Objects of one kind and namespace whose resources have one name, under different parents, are told apart by digits.
        """
        keys = {
            urn: (each.get("kind"), mapping(each.get("metadata")).get("namespace"), name)
            for urn, name in self._drawn.values()
            if (each := manifests.get(urn)) is not None
        }
        held = Counter(keys.values())
        self._twice = {
            digits for digits, (urn, _) in self._drawn.items() if urn in keys and held[keys[urn]] > 1
        }
        return {urn: _without_unknown_name(self.shown(each)) for urn, each in manifests.items()}

    def shown(self, value: Any) -> Any:
        """The same as `shown_in`, of any value of this run."""
        if not self._drawn:
            return value
        if isinstance(value, str):
            return as_placeholder(value, _DRAWN.sub(self._show, value))
        if isinstance(value, dict):
            return {self.shown(key): self.shown(item) for key, item in value.items()}
        return [self.shown(item) for item in value] if isinstance(value, list) else value

    def _show(self, found: re.Match[str]) -> str:
        _, name = self._drawn.get(found[1], ("", ""))
        if not name or not found.string[: found.start()].endswith(name):
            return found[0]
        return f"-*{found[0]}" if found[1] in self._twice else "-*"


def _without_unknown_name(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest without a name that the API server draws: it is called by its `generateName`, and written as the program has it."""
    metadata = mapping(manifest.get("metadata"))
    if not is_placeholder(metadata.get("name")) or not metadata.get("generateName"):
        return manifest
    return {**manifest, "metadata": {key: item for key, item in metadata.items() if key != "name"}}


def _digits_of(spec: struct_pb2.Value) -> str:
    return sha256(spec.SerializeToString(deterministic=True)).hexdigest()[:_DIGITS]


def _is_known_later(kind: str, name: str) -> bool:
    """True for the name of a claim or class that needs a text of its own to stand for it."""
    if name in (UNKNOWN_VALUE, UNKNOWN_RESULT):
        return kind == "DeviceClass" or kind in CLAIM_KINDS
    # Two classes may have different names that look alike here, such as `h100-` with results of two functions.
    return kind == "DeviceClass" and UNKNOWN_RESULT in name


_NULL: Final = struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)


def _mode_of(setting: str) -> str:
    """The mode that the stack sets for the Kubernetes provider, else for all of them."""
    try:
        settings = mapping(json.loads(setting or "{}"))
    except (ValueError, RecursionError):
        return ""
    own = mapping(mapping(settings.get("providers")).get("kubernetes"))
    return str(own.get("mode") or settings.get("mode") or "")
