"""Help of `dra-infra mcp`."""

from __future__ import annotations

from dra_infra.cli import options


@options.command("dra_infra.agent_tools.starting:run")
def mcp() -> None:
    """Answer a coding agent on standard input and output, with the Model Context Protocol (MCP).

    The tools validate, simulate, explain, review, migrate and catalog answer with the JSON of the command of that name. They read manifests that
    the agent sends, and files of the folder that the server is started in. No file is changed, no program is run and no cluster is asked.

    \b
    Examples:
      dra-infra mcp
      cd infra && dra-infra mcp

    Needs the extra `mcp` of the wheel: pip install "dra_infra-VERSION-py3-none-any.whl[mcp]". Exits with 0 when standard input ends.
    """  # noqa: D301  (click reads the character)
