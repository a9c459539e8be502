"""The values of a release: files and literal values joined as Helm joins them, secrets and unknowns kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from tools.kubernetes_provider.values import (
    SIGNATURE_KEY,
    UNKNOWN,
    Object,
    Secret,
    Value,
    has_secret,
    has_unknown,
    mark_secrets,
    reveal,
)

ASSET_SIGNATURE: Final = "c44067f5952c0a294b673a41bacd8c17"
"""Marks a file on the wire. Source: `sdk/go/common/resource/sig` of pulumi/pulumi."""


class ValuesFileError(Exception):
    """A values file cannot be read, or holds no values."""


def merge(base: Value, over: Value) -> Value:
    """Return *base* with *over* on top, mapping by mapping; a null stays: it takes a default of the chart away."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    return {**base, **{name: merge(base.get(name), value) for name, value in over.items()}}


def join(inputs: Object) -> Value:
    """Return the values of a release: `valueYamlFiles` in their order, then `values`.

    What is secret in `values` stays so, path by path; of a secret file nobody can tell which value was meant, so
    then all are.

    Raises:
        ValuesFileError: A file cannot be read or is no mapping.
    """
    files, literal = inputs.get("valueYamlFiles"), inputs.get("values")
    own = reveal(literal) or {}
    if has_unknown(files) or own is UNKNOWN:
        return UNKNOWN
    joined: Value = {}
    for asset in reveal(files) or []:
        joined = merge(joined, _read(asset))
    joined = merge(joined, own)
    if has_secret(files):
        return Secret(joined)
    return mark_secrets({"values": joined}, {"values": literal})["values"]


def _read(asset: Any) -> dict[str, Any]:
    if not isinstance(asset, dict) or asset.get(SIGNATURE_KEY) != ASSET_SIGNATURE:
        raise ValuesFileError("is not a file: pass pulumi.FileAsset or pulumi.StringAsset")
    path = asset.get("path")
    if not path and "text" not in asset:
        raise ValuesFileError("files by address are not part of the stand-in provider")
    name = f"file {path}" if path else "text"
    try:
        # Paths are those of the program, in whose folder the engine starts providers.
        found = yaml.safe_load(Path(path).read_text() if path else asset["text"])
    except OSError as error:
        raise ValuesFileError(f"{name}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        # The parser's own message quotes the text, which may be secret.
        raise ValuesFileError(f"{name}: not YAML") from error
    if not isinstance(found or {}, dict):
        raise ValuesFileError(f"{name}: not a mapping")
    return found or {}
