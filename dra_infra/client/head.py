"""A bound on the head of an HTTP answer: Python's own parser takes a hundred lines of 64 KiB each."""

from __future__ import annotations

import http.client
from typing import BinaryIO, Final

LARGEST_HEAD: Final = 64 * 1024
"""Bytes of the status line and all headers; those of API servers and proxies have a few hundred."""


class BoundedResponse(http.client.HTTPResponse):
    """An answer whose head is refused, as `http.client.LineTooLong`, where it has more bytes than `LARGEST_HEAD`."""

    def begin(self) -> None:
        """Read the head."""
        whole = self.fp
        self.fp = _Head(whole)  # type: ignore[assignment]
        try:
            super().begin()
        finally:
            if self.fp is not None:
                self.fp = whole


class _Head:
    """What `begin` uses of a connection's file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = LARGEST_HEAD

    def readline(self, limit: int = -1) -> bytes:
        line = self._file.readline(limit)
        self._left -= len(line)
        if self._left < 0:
            raise http.client.LineTooLong("head")
        return line

    def close(self) -> None:
        self._file.close()
