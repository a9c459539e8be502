"""The pages of docs/errors, what the wheel has of them for `dra-infra explain CODE`, and the list in docs/errors.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.codes import CODES
from tests.support.pages.documents import ROOT

FOLDER: Final = ROOT / "docs" / "errors"
INDEX: Final = ROOT / "docs" / "errors.md"
SHIPPED: Final = ROOT / "dra_infra" / "codes.md"

_MARK: Final = "<!-- codes -->\n"
_SECTION: Final = re.compile(r"^## `([a-z0-9-]+)`\n", re.MULTILINE)
_LINK: Final = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


@dataclass(frozen=True, kw_only=True)
class Page:
    """The problems of one area: a title, and a text for each code."""

    area: str
    title: str
    sections: tuple[tuple[str, str], ...]


def pages() -> list[Page]:
    """All pages, in the order of their files."""
    return [_read(path) for path in sorted(FOLDER.glob("*.md"))]


def area_of(code: str) -> str:
    """The page that has a code."""
    return next(page.area for page in pages() if code in dict(page.sections))


def index() -> str:
    """docs/errors.md as it is to be: what is written by hand, and every code with its meaning."""
    lines = [INDEX.read_text().partition(_MARK)[0] + _MARK.rstrip("\n")]
    for page in pages():
        lines += ["", f"## {page.title}", ""]
        lines += [
            f"- [`{code}`](errors/{page.area}.md#{code}): {CODES.get(code, '')}" for code, _ in page.sections
        ]
    return "\n".join(lines) + "\n"


def shipped() -> str:
    """The data of `dra-infra explain`: the sections, with links as plain words."""
    parts = ["The sections of docs/errors, for `dra-infra explain CODE`; `make golden` writes this file.\n"]
    for page in pages():
        parts.append(f"# {page.area}\n")
        parts += [f"## `{code}`\n\n{_LINK.sub(_plain, text)}\n" for code, text in page.sections]
    return "\n".join(parts)


def _read(path: Path) -> Page:
    head, *parts = _SECTION.split(path.read_text())
    sections = zip(parts[::2], map(str.strip, parts[1::2]), strict=True)
    return Page(area=path.stem, title=head.partition("\n")[0].removeprefix("# "), sections=tuple(sections))


def _plain(link: re.Match[str]) -> str:
    words, target = link[1], link[2]
    # A code says all that is needed to ask for it.
    if target.startswith("https:") or words.startswith("`"):
        return words if words.startswith("`") else f"{words} ({target})"
    place = target.removeprefix("../") if target.startswith("../") else f"errors/{target}"
    return f"{words} (docs/{place.partition('#')[0]})"
