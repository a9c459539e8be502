"""A page as forges render it from Markdown, and what they look for in its text afterwards."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

from markdown_it import MarkdownIt


class Page(HTMLParser):
    """The elements of a page, and its text outside of code, where forges look for references."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.text = self.code = ""
        self._codes = 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self._codes += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._codes -= tag == "code"

    def handle_data(self, data: str) -> None:
        if self._codes:
            self.code += data
        else:
            self.text += data


def rendered(markup: str) -> Page:
    """As GitHub renders: CommonMark with tables, strikethrough and links from bare addresses, and HTML."""
    made = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markup)
    return Page(made)


REFERENCES: Final = re.compile(
    r"""
      @[\w.-] | \#0*[1-9] | [!&$]\d | [~%][\w"'] | ://\S | \bwww\.\w | \bGH-\d | (?<![\w:]):[a-z+_-][\w+-]*: | \[\[ | \{[+-]
    | (?<![\w-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b | \[[a-z_]+:\d | [\w.-]>
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""What forges make links of in the text of a finished page, with what links do elsewhere: mention, close, call."""
