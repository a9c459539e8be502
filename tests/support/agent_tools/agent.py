"""An agent that calls `dra-infra mcp`, by the client of the protocol's own library."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import CallToolResult, Tool

COMMAND = Path(sys.executable).parent / "dra-infra"


class Agent:
    """A client that is connected to a server; its loop runs in a thread."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self._client = client
        self._portal = portal

    def tools(self) -> Mapping[str, Tool]:
        """Return the tools by name."""
        return {each.name: each for each in self._portal.call(self._client.list_tools).tools}

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        """Call a tool. The library holds the answer against the schema of the tool."""
        return self._portal.call(self._client.call_tool, name, arguments)

    def call_at_once(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[CallToolResult]:
        """Call several tools before the first of them has answered."""
        return self._portal.call(self._gather, calls)

    async def _gather(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[CallToolResult]:
        answers: dict[int, CallToolResult] = {}

        async def call(number: int) -> None:
            name, arguments = calls[number]
            answers[number] = await self._client.call_tool(name, dict(arguments))

        async with anyio.create_task_group() as group:
            for number in range(len(calls)):
                group.start_soon(call, number)
        return [answers[number] for number in range(len(calls))]


@contextmanager
def connected_agent(folder: Path, log: Path, variables: Mapping[str, str] | None = None) -> Iterator[Agent]:
    """Start a server in a folder, and yield an agent that is connected to it.

    Args:
        folder: The folder.
        log: The file that gets the server's standard error.
        variables: Further variables of its environment.
    """
    parameters = StdioServerParameters(
        command=str(COMMAND), args=["mcp"], cwd=folder, env=dict(variables or {})
    )
    with (
        log.open("w") as errors,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(parameters, errlog=errors))) as client,
    ):
        yield Agent(client, portal)


def codes_of(result: CallToolResult) -> list[str]:
    """Return the codes of the errors that an answer has."""
    return [each["code"] for each in result.structured_content["problems"] if each["severity"] == "error"]
