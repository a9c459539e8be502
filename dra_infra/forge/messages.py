"""The posted message: the Markdown of a review with the hidden marker in its first line, and secrets masked.

Secrets are taken out of everything that is posted or printed: those of this process, and what looks like one.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from dra_infra.errors import ForgeError
from dra_infra.output.escaping import one_line
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secret_names import is_secret_name
from dra_infra.review.markdown_report import marker_of

MASKED: Final = "***"

_SHORTEST: Final = 8
"""Shorter values (`true`, a version) are in every text; taking them out would say what they are."""

_QUOTED: Final = 300
"""Most characters of a foreign text that are shown."""


class Mask:
    """Takes the token, and what the environment holds under a name that says so, out of texts.

    They are found as they are, and as addresses, JSON and HTTP's basic authentication write them. So is what is a secret
    by how it is written or by its form, whoever wrote it into what is posted.
    """

    def __init__(self, token: str = "", environment: Mapping[str, str] | None = None) -> None:
        values = [token] if token else []
        for name, value in (environment or {}).items():
            if is_secret_name(name) and len(value.strip()) >= _SHORTEST:
                values += [value, *(line for line in value.splitlines() if len(line.strip()) >= _SHORTEST)]
        forms = {form for value in values for form in _forms(value.strip())}
        # The longest first, or a part of a secret would be taken out and the rest stay.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._any = report_mask()

    def hide(self, text: str) -> str:
        """*text* without secrets."""
        return self._any.text(self._pattern.sub(MASKED, text) if self._pattern else text)

    def quote(self, text: str) -> str:
        """A foreign text in one short line that steers no terminal and holds no secret."""
        # Masked before it is cut: half a secret at the end would not be found any more.
        line = " ".join(self.hide(text).split())
        return one_line(line if len(line) <= _QUOTED else f"{line[:_QUOTED]}…")


def _forms(value: str) -> Iterable[str]:
    yield value
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    if len(value) >= _SHORTEST:
        yield base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")


LIMITS: Final = {"github": 65_536, "gitlab": 1_000_000}
"""Most characters of one comment: GitHub's answer 422 says the first, GitLab's application limits the second."""

_MARKER: Final = re.compile(re.escape(marker_of("\x00", "\x00")).replace("%00", r"([^\s/>]*)"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """Text of a comment; `marker` is its first line, by which a later run finds it."""

    marker: str
    body: str

    def marks(self, text: str) -> bool:
        """True where *text* is a comment of the same review. A quote of one, with `>` before it, is none."""
        return text.lstrip("\ufeff \t\r\n").startswith(self.marker)

    def same_as(self, text: str) -> bool:
        """True where *text* says the same; forges change ends of lines, and drop white space at the end."""
        return _plain(text) == _plain(self.body)


def read_message(file: Path, *, forge: str, mask: Mask) -> Message:
    """The Markdown of a review, without any secret of this process.

    Raises:
        ForgeError: With codes `file-unreadable`, `not-utf-8`, `comment-without-marker`, `comment-too-long`.
    """
    path = str(file)
    hint = "write it with `dra-infra review --output review.md`"
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ForgeError.of(path, "file-unreadable", f"cannot be read: {error.strerror}", hint) from None
    except UnicodeDecodeError as error:
        raise ForgeError.of(path, "not-utf-8", f"byte {error.start} is not UTF-8", hint) from None
    first, _, rest = text.lstrip().partition("\n")
    if not _MARKER.fullmatch(first.strip()):
        raise ForgeError.of(
            path,
            "comment-without-marker",
            "its first line is not the marker of a review, so a later run would not find the comment again",
            "post the file that `dra-infra review --output review.md` writes, unchanged",
        )
    # The marker stays as it is: a project may be called like a value of the environment.
    body = f"{first.strip()}\n{mask.hide(rest)}"
    limit = LIMITS[forge]
    if len(body) > limit:
        raise ForgeError.of(
            path,
            "comment-too-long",
            f"has {len(body):,} characters, and {'GitHub' if forge == 'github' else 'GitLab'} takes {limit:,}",
            "`dra-infra review --output review.md` cuts to that size: post its file, unchanged",
        )
    return Message(marker=first.strip(), body=body)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").strip()
