"""The process that the engine starts for the package: `python -m dra_infra.provider ADDRESS`."""

from __future__ import annotations

import sys

from pulumi.provider import main

from dra_infra.provider.construction import ComponentPackage

if __name__ == "__main__":
    main(ComponentPackage(), sys.argv[1:])
