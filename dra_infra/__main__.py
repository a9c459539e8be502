"""Runs the command `dra-infra` as `python -m dra_infra`, for where its script is not on PATH."""

from __future__ import annotations

from dra_infra.cli.process import main

if __name__ == "__main__":
    main()
