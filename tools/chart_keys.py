"""Write down which values a chart knows: ``python -m tools.chart_keys VALUES.yaml --chart NAME --version V``.

What comes out are facts alone, for ``dra_infra/catalog/data/chart_values``: the path of each key and the type of its
default, sorted. Defaults and comments stay behind. `map` is a mapping in which any key is allowed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

_FREE: Final = frozenset(
    {
        "affinity",
        "annotations",
        "labels",
        "nodeSelector",
        "podAnnotations",
        "podSecurityContext",
        "scopeSelector",
        "securityContext",
        "startupProbe",
        "strategy",
        "updateStrategy",
    }
)
"""Mappings that a chart hands to Kubernetes as they are, so that its API decides what is in them."""

_AMOUNTS: Final = frozenset({"limits", "requests", "claims"})
"""What the `resources` of a container hold; a mapping of that name with other keys is the chart's own."""


def key_types(
    values: Mapping[str, Any], *, free: Collection[str] = (), above: str = ""
) -> Iterator[tuple[str, str]]:
    """Path and type of every key of *values*: string, bool, int, number, list, map, or any where the default is null.

    Args:
        values: What a values file holds.
        free: Paths of mappings in which any key is allowed, beside those that are known to be so.
        above: Path of *values*.
    """
    for key, value in values.items():
        path = f"{above}.{key}" if above else str(key)
        if not isinstance(value, Mapping):
            yield path, _type(value)
        elif not value or path in free or _is_free(str(key), value):
            yield path, "map"
        else:
            yield from key_types(value, free=free, above=path)


def _is_free(key: str, value: Mapping[str, Any]) -> bool:
    return key in _FREE or (key == "resources" and set(value) <= _AMOUNTS)


def _type(value: object) -> str:
    match value:
        case None:
            return "any"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "list"
    raise ValueError(f"a default of type {type(value).__name__} is none of JSON's")


def render(values: Mapping[str, Any], *, chart: str, version: str, free: Collection[str] = ()) -> str:
    """The file as it is committed."""
    types = sorted(key_types(values, free=free))
    lines = [
        "# Written by `python -m tools.chart_keys`. Paths of values and the types of their defaults;",
        "# `map` is a mapping in which any key is allowed.",
        f"chart: {chart}",
        f'version: "{version}"',
        "keys:",
        *(f"  {path}: {type_}" for path, type_ in types),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Read one values file and print what the chart knows."""
    parser = argparse.ArgumentParser(prog="python -m tools.chart_keys", description=__doc__)
    parser.add_argument("values", type=Path, help="values.yaml of the chart")
    parser.add_argument("--chart", required=True, help="name of the chart")
    parser.add_argument("--version", required=True, help="version of the chart, without a v")
    parser.add_argument(
        "--free", action="append", default=[], metavar="PATH", help="mapping with any key, such as a subchart"
    )
    options = parser.parse_args(arguments)
    values = yaml.safe_load(options.values.read_text(encoding="utf-8"))
    if not isinstance(values, Mapping):
        print(f"{options.values}: not a mapping of values", file=sys.stderr)
        return 1
    sys.stdout.write(render(values, chart=options.chart, version=options.version, free=options.free))
    return 0


if __name__ == "__main__":
    sys.exit(main())
