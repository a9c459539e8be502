"""What takes long, in one line of a terminal that goes away at the end; nothing where there is no terminal."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

_CLEAR = "\r\x1b[K"


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that replaces the line on standard error."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _text: None
        return

    def tell(text: str) -> None:
        sys.stderr.write(f"{_CLEAR}{text}...")
        sys.stderr.flush()

    try:
        yield tell
    finally:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
