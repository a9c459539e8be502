"""Objects as lines: YAML in which every document is JSON on one line, so that large files are read fast.

Any YAML reader takes such a file; ours reads a line at a time with the JSON reader, 40 times as fast as YAML.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dra_infra.model.json_texts import read_json
from dra_infra.model.yaml_events import RefusedYamlError

MAX_BYTES: Final = 512 * 1024 * 1024
"""Longest text of lines that is read: 40,000 GPUs take a tenth of it."""

_SEPARATOR: Final = "---"
_NOT_PRINTED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What YAML takes for the end of a line, or refuses where it is not escaped."""


def write_lines(manifests: Iterable[Mapping[str, Any]], *, header: str = "") -> str:
    """Objects as such a text, keys in order.

    Args:
        manifests: The objects.
        header: Lines of comments in front, each with its end.
    """
    return header + "".join(f"{_SEPARATOR}\n{_line(each)}\n" for each in manifests)


def _line(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _NOT_PRINTED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def are_lines(text: str) -> bool:
    """Whether a text is written so: nothing but comments, separators and lines that begin with a brace."""
    start = text.find("{")
    head = text[: max(start, 0)]
    if start < 0 or not all(_is_between(line) for line in head.splitlines()):
        return False
    # The rest is looked at line by line when it is read.
    end = text.find("\n", start)
    following = text[end + 1 : end + 5] if end >= 0 else ""
    return text[start:end].rstrip().endswith("}") and following in ("", f"{_SEPARATOR}\n")


def read_lines(text: str) -> Iterator[tuple[int, Any]]:
    """Number of the line, from 1, and value of every object.

    Raises:
        RefusedYamlError: `yaml-syntax`, `yaml-duplicate-key`, `yaml-too-large`, with the line.
    """
    if len(text) > MAX_BYTES:
        raise RefusedYamlError(
            "yaml-too-large", f"more than {MAX_BYTES >> 20} MiB of objects", "read fewer namespaces"
        )
    for number, line in enumerate(io.StringIO(text), 1):
        if _is_between(line):
            continue
        values = [value for _, _, value in read_json(line)]
        if len(values) != 1 or not line.startswith("{"):
            raise RefusedYamlError(
                "yaml-syntax", "the other documents are objects on one line, and this is not", line=number
            )
        if isinstance(values[0], RefusedYamlError):
            refused = values[0]
            hint = refused.hint or "where this is the last line, the file was cut: write it again"
            raise RefusedYamlError(refused.code, refused.message, hint, line=number)
        yield number, values[0]


def _is_between(line: str) -> bool:
    return not line or line.isspace() or line.startswith("#") or line.rstrip() == _SEPARATOR
