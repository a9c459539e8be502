"""Starts the server of `dra-infra mcp`, for which a library has to be installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from dra_infra.errors import ProgramError


def run() -> int:
    """Serve the current folder until standard input ends; return 0.

    Raises:
        ProgramError: `mcp-not-installed`.
    """
    if find_spec("mcp") is None:
        raise ProgramError.of(
            path="mcp",
            code="mcp-not-installed",
            message="the library of the Model Context Protocol is not installed",
            hint="pip install 'dra_infra-VERSION-py3-none-any.whl[mcp]'",
        )
    code: int = import_module("dra_infra.agent_tools.server").run()
    return code
