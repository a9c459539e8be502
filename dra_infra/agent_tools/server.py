"""The server of `dra-infra mcp`: messages of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, TextIO, cast

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from dra_infra.agent_tools.calls import Answer, answer_call
from dra_infra.agent_tools.confined_command import RunningCommand
from dra_infra.agent_tools.tools import TOOLS, Tool
from dra_infra.cli.printing import problems_as_data, say
from dra_infra.errors import ProblemsError, ProgramError
from dra_infra.release import VERSION

LONGEST_MESSAGE: Final = 32 * 2**20
"""Bytes of one message. A longer one is skipped, and answered as one that cannot be read."""

_AT_ONCE: Final = max(2, min(8, os.cpu_count() or 1))
"""Commands that run at once; other calls wait."""

_WAITING: Final = 16
"""Calls that wait or run; more are refused."""

INSTRUCTIONS: Final = (
    "Checks Kubernetes Dynamic Resource Allocation (resource.k8s.io) manifests as the API server and the scheduler would. Call validate before "
    "you show or apply a ResourceClaim, ResourceClaimTemplate, DeviceClass or a pod that uses one; fix what it reports and call it again. Call "
    "simulate to learn whether the pods fit on hardware. Each problem has a path, a code, a message and a hint with what to write."
)


class BoundedLines:
    """The lines of a stream, as the library reads them; one that is too long becomes a line that is no message.

    Args:
        stream: Where messages come from.
        longest: Bytes that a line may have.
    """

    def __init__(self, stream: BinaryIO, longest: int = LONGEST_MESSAGE) -> None:
        self._stream = stream
        self._longest = longest

    def __aiter__(self) -> BoundedLines:
        return self

    async def __anext__(self) -> str:
        # Abandoned at the end of the server: a read of a pipe cannot be ended otherwise.
        line = await anyio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        if not line:
            raise StopAsyncIteration
        return line

    def _read(self) -> str:
        line = self._stream.readline(self._longest + 1)
        if len(line) <= self._longest:
            return line.decode("utf-8", "replace")
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(2**16)
        return "\n"


class AgentServer:
    """Answers the calls of one agent.

    Args:
        root: The folder whose files may be named.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._running = anyio.CapacityLimiter(_AT_ONCE)
        self._waiting = 0
        self.protocol: Server[Any] = Server(
            "dra-infra",
            version=VERSION,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe(each) for each in TOOLS.values()])

    async def _call(self, _context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = TOOLS.get(params.name)
        if tool is None:
            names = ", ".join(TOOLS)
            return _refused(
                path="name",
                code="unknown-argument",
                message="there is no such tool",
                hint=f"there are {names}",
            )
        if self._waiting >= _WAITING:
            message = f"{_WAITING} calls wait already"
            hint = "wait for answers before you call again"
            return _refused(path="call", code="call-too-large", message=message, hint=hint)
        self._waiting += 1
        try:
            return await self._answer(tool, params.arguments or {})
        finally:
            self._waiting -= 1

    async def _answer(self, tool: Tool, arguments: dict[str, Any]) -> types.CallToolResult:
        commands = _Commands()
        work = partial(_work, tool, arguments, self._root, commands)
        async with self._running, anyio.create_task_group() as group:
            group.start_soon(commands.end_when_cancelled)
            # A thread cannot be cancelled. It ends with its command, and removes the copy of the input.
            with anyio.CancelScope(shield=True):
                answer = await anyio.to_thread.run_sync(work)
            group.cancel_scope.cancel()
        return answer


class _Commands:
    """The commands of one call, which end when it is cancelled."""

    def __init__(self) -> None:
        self._commands: list[RunningCommand] = []
        self._is_over = False

    def add(self, command: RunningCommand) -> None:
        """Take a command that was started; it ends at once if the call is over."""
        self._commands.append(command)
        if self._is_over:
            command.kill()

    async def end_when_cancelled(self) -> None:
        """Wait for the end of the call, and end what still runs."""
        try:
            await anyio.sleep_forever()
        finally:
            self._is_over = True
            for command in self._commands:
                command.kill()


def _work(tool: Tool, arguments: dict[str, Any], root: Path, commands: _Commands) -> types.CallToolResult:
    try:
        return _report(answer_call(tool, arguments, root, commands.add))
    except ProblemsError as error:
        return _failed(problems_as_data(error.problems), "")


def _describe(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


def _report(answer: Answer) -> types.CallToolResult:
    result = answer.result
    if result.report is None:
        return _failed(result.problems, result.notes)
    texts = [json.dumps(result.report, ensure_ascii=False)]
    texts += [f"# {each.name}\n{each.content.decode('utf-8', 'replace')}" for each in answer.changed]
    # Where the copy of a changed file was written says nothing to the agent.
    notes = "\n".join(line for line in result.notes.splitlines() if not line.startswith("wrote "))
    if notes:
        texts.append(notes)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in texts],
        structured_content=result.report,
    )


def _refused(**problem: str) -> types.CallToolResult:
    return _failed(problems_as_data(ProgramError.of(**problem).problems), "")


def _failed(problems: Sequence[Any], notes: str) -> types.CallToolResult:
    """Return why there is no report: the problems as every report has them."""
    data = {"problems": list(problems)}
    texts = [json.dumps(data, ensure_ascii=False), *([notes] if notes else [])]
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=each) for each in texts],
        structured_content=data,
        is_error=True,
    )


async def serve(root: Path) -> int:
    """Answer an agent on standard input and output until it closes them, or a signal ends the server.

    Args:
        root: The folder whose files may be named.

    Returns:
        The signal; 0 where there was none.
    """
    server = AgentServer(root).protocol
    lines = BoundedLines(sys.stdin.buffer)
    ended_by = [0]
    # Nothing but messages may come on standard output, and what commands print there is made safe for terminals.
    with _take_standard_output() as output:
        await _exchange(server, lines, anyio.wrap_file(output), ended_by)
    return ended_by[0]


@contextmanager
def _take_standard_output() -> Iterator[TextIO]:
    """Yield the stream of messages. Meanwhile, what is printed goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n") as output:
        os.dup2(2, 1)
        try:
            yield output
        finally:
            os.dup2(output.fileno(), 1)


async def _exchange(
    server: Server[Any], lines: BoundedLines, output: anyio.AsyncFile[str], ended_by: list[int]
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_end_on_signal, group.cancel_scope, ended_by)
        async with stdio_server(stdin=cast("Any", lines), stdout=output) as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _end_on_signal(scope: anyio.CancelScope, ended_by: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for number in signals:
            ended_by[0] = number
            scope.cancel()


def run() -> int:
    """Serve the folder that the command was started in; return 0 at its end."""
    root = Path.cwd()
    say(f"answering an agent on standard input and output; it may name files of {root}")
    number = anyio.run(serve, root)
    if number:
        # A thread may still read standard input, and would be waited for.
        os._exit(128 + number)
    return 0
