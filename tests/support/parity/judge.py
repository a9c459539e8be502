"""A judge: a program around Kubernetes' own packages, asked line by line."""

from __future__ import annotations

import json
import resource
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

_MEMORY: Final = 8 << 30
"""Bytes of address space: an expression that makes a huge list ends the program and not the machine."""


class Judge:
    """Keeps one process for many questions."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [self._binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        resource.prlimit(self._process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=300)

    def ask(self, question: Any) -> Any:
        """The answer to one question, as JSON data."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(question)}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"{self._binary.name} ended with {self._process.wait()}"
        return json.loads(line)
