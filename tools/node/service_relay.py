"""The one cluster service that pods on a real node can reach: the API server, at the address of ``kubernetes``.

No kube-proxy runs. This passes connections to the service's address on to the API server's on loopback, so that clients
in pods find it as they do in any cluster. Run as a program of its own; it imports only the standard library.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

_CHUNK = 65536


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
    target.close()


async def _serve(address: str, port: int, server_port: int) -> None:
    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", server_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    server = await asyncio.start_server(relay, address, port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
