"""The mask of everything that is reported: names, forms, and the tokens that a maintained detector knows.

The detector is `bc-detect-secrets`, the fork of Yelp's `detect-secrets` that Checkov maintains. It sees each word that
is long enough for a token, with the end of the line before it, for some of its plugins need a name beside the token. All
of its plugins that search for a pattern are used but these:

- addresses with a password and private keys: the plugins find a part of each, `secret_forms` all of it;
- IBM Cloud IAM: without its own check of the result, 44 characters under any name with `key` or `token`;
- public IP addresses, which are no secret.

Its plugins for keywords (`password = ...`) and for strings of high entropy are no patterns. `secret_shapes` reads values
below names to their end, also in lists of arguments and blocks of YAML, and lets `secretName` and `$(PASSWORD)` show.
Strings of high entropy are in objects digests, hashes, UIDs, certificates and names with a hash at their end.

Its patterns are not made for hostile texts, some take quadratic time. So each search has a bound of characters. Only
`analyze_string` is called: other functions ask the services over the network.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from dra_infra.output.secrets import SecretMask

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

    from dra_infra.output.secret_tokens import Span

_LEFT_OUT: Final = ("BasicAuthDetector", "IbmCloudIamDetector", "IPPublicDetector", "PrivateKeyDetector")

_WORD: Final = re.compile(r"[^\s\"'`<>,;(){}\x1f]{20,}")
_RUN: Final = re.compile(r"[\w+/=-]{16,}")
_NO_TOKEN: Final = re.compile(r"\D*|(?:[a-z]+-)*+[0-9a-f-]+")
_DIGEST: Final = re.compile(r"(?:sha|md)\d{1,3}[-:=]")
_LONGEST: Final = 2048
"""Characters that one search sees: no token is longer, but for a JWT, which is known by its beginning."""
_BEFORE: Final = 48
"""Characters in front of a word that a search sees with it."""


def report_mask(texts: Iterable[str] = ()) -> SecretMask:
    """The mask for what is reported; *texts* are secret wherever they stand."""
    return SecretMask(texts, detect=find_tokens)


def find_tokens(text: str) -> Iterator[Span]:
    """Find tokens in *text* that the detector knows, each to the end of its word."""
    for match in _WORD.finditer(text):
        word = match[0]
        if _may_hold_token(word) and not _DIGEST.match(word):
            for start in range(0, len(word), _LONGEST):
                before = "" if start else _line_before(text, match.start())
                if found := _first_token(before, word[start : start + _LONGEST + 128]):
                    # To the end of the word: a pattern may know only the beginning of a token.
                    yield match.start() + start + found[0], match.end()
                    break


def _may_hold_token(word: str) -> bool:
    """True for a word that is worth loading the detector, which takes a tenth of a second: digests and plain words are not."""
    return any(_NO_TOKEN.fullmatch(run) is None for run in _RUN.findall(word))


def _line_before(text: str, end: int) -> str:
    """The end of the line in front of *end*."""
    before = text[max(0, end - _BEFORE) : end]
    return before[before.rfind("\n") + 1 :]


@lru_cache(maxsize=2**14)
def _first_token(before: str, word: str) -> Span | None:
    """The first token in *word*, which has *before* in front of it on its line."""
    text = before + word
    spans = []
    for plugin in _plugins():
        for token in plugin.analyze_string(text):
            start = text.find(token, max(0, len(before) - len(token) + 1))
            if token and start >= 0:
                spans.append((max(0, start - len(before)), start - len(before) + len(token)))
    return min(spans, default=None)


@cache
def _plugins() -> tuple[RegexBasedDetector, ...]:
    from detect_secrets import plugins
    from detect_secrets.plugins.base import RegexBasedDetector

    modules = [
        importlib.import_module(f"{plugins.__name__}.{each.name}")
        for each in pkgutil.iter_modules(plugins.__path__)
    ]
    found = {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, RegexBasedDetector) and kind is not RegexBasedDetector
    }
    return tuple(found[name]() for name in sorted(found) if name not in _LEFT_OUT)
