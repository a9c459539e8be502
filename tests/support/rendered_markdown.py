"""A page as GitHub renders it from Markdown, and what forges look for in its text afterwards."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

import cmarkgfm
from cmarkgfm.cmark import Options

_OPTIONS: Final = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES | Options.CMARK_OPT_GITHUB_PRE_LANG


class Page(HTMLParser):
    """A rendered page.

    Args:
        html: The page.

    Attributes:
        tags: Names of its tags in order, with `/` before those that end an element.
        text: Its text outside of code, where forges look for references.
        code: Its text in code.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = self.code = ""
        self._codes = 0
        self.feed(html)
        self.close()

    @property
    def elements(self) -> set[str]:
        """Names of the elements."""
        return {each.removeprefix("/") for each in self.tags}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)
        self._codes += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")
        self._codes -= tag == "code"

    def handle_data(self, data: str) -> None:
        if self._codes:
            self.code += data
        else:
            self.text += data


def rendered(markup: str) -> Page:
    """Render Markdown with GitHub's parser, cmark-gfm: tables, strikethrough, task lists, footnotes, HTML, links from bare addresses."""
    return Page(cmarkgfm.github_flavored_markdown_to_html(markup, options=_OPTIONS))


REFERENCES: Final = re.compile(
    r"""
      @[\w.-] | \#0*[1-9] | [!&$]\d | [~%][\w"'] | ://\S | \bwww\.\w | \bGH-\d | (?<![\w:]):[a-z+_-][\w+-]*: | \[\[ | \{[+-]
    | (?<![\w-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b | \[[a-z_]+:\d | [\w.-]>
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""What forges make links of in the text of a finished page, with what links do elsewhere: mention, close, call."""
