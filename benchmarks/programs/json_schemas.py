"""Check the objects of a YAML FILE with the JSON schemas of kubernetes-validate, as its own command does."""

from __future__ import annotations

import sys
from pathlib import Path

import kubernetes_validate  # type: ignore[import-not-found]  # in an environment of its own
import yaml


def main() -> None:
    """Check all of them; how many are refused is printed."""
    refused = 0
    with Path(sys.argv[1]).open(encoding="utf-8") as file:
        for manifest in yaml.load_all(file, Loader=yaml.CSafeLoader):
            try:
                kubernetes_validate.validate(manifest, "1.37", strict=True)
            except kubernetes_validate.ValidationError:
                refused += 1
    print(refused)


if __name__ == "__main__":
    main()
