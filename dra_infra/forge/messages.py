"""What is posted: the Markdown of a review with the hidden marker in its first line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.errors import ForgeError, Problem
from dra_infra.forge.masking import Mask
from dra_infra.planning.markdown_report import marker_of

LIMITS: Final = {"github": 65_536, "gitlab": 1_000_000}
"""Most characters of one comment: GitHub's answer 422 says the first, GitLab's application limits the second."""

_MARKER: Final = re.compile(re.escape(marker_of("\x00", "\x00")).replace("%00", r"([^\s/>]*)"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """Text of a comment; `marker` is its first line, by which a later run finds it."""

    marker: str
    body: str

    def marks(self, text: str) -> bool:
        """Whether *text* is a comment of the same review. A quote of one, with `>` before it, is none."""
        return text.lstrip("\ufeff \t\r\n").startswith(self.marker)

    def same_as(self, text: str) -> bool:
        """Whether *text* says the same; forges change ends of lines, and drop white space at the end."""
        return _plain(text) == _plain(self.body)


def read_message(file: Path, *, forge: str, mask: Mask) -> Message:
    """The Markdown of a review, without any secret of this process.

    Raises:
        ForgeError: With codes `file-unreadable`, `not-utf-8`, `comment-without-marker`, `comment-too-long`.
    """
    path = str(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise _error(
            path,
            "file-unreadable",
            f"cannot be read: {error.strerror}",
            "write it with `dra-infra review --markdown`",
        ) from None
    except UnicodeDecodeError as error:
        raise _error(
            path,
            "not-utf-8",
            f"byte {error.start} is not UTF-8",
            "write it with `dra-infra review --markdown`",
        ) from None
    first, _, rest = text.lstrip().partition("\n")
    if not _MARKER.fullmatch(first.strip()):
        raise _error(
            path,
            "comment-without-marker",
            "its first line is not the marker of a review, so a later run would not find the comment again",
            "post the file that `dra-infra review --markdown FILE` writes, unchanged",
        )
    # The marker stays as it is: a project may be called like a value of the environment.
    body = f"{first.strip()}\n{mask.hide(rest)}"
    limit = LIMITS[forge]
    if len(body) > limit:
        raise _error(
            path,
            "comment-too-long",
            f"has {len(body):,} characters, and {'GitHub' if forge == 'github' else 'GitLab'} takes {limit:,}",
            "`dra-infra review --markdown` cuts to that size: post its file, unchanged",
        )
    return Message(marker=first.strip(), body=body)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff").strip()


def _error(path: str, code: str, message: str, hint: str) -> ForgeError:
    return ForgeError([Problem(path=path, code=code, message=message, hint=hint)])
