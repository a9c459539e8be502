"""The mask of everything that is reported: names, shapes, and the tokens that a maintained detector knows.

The detector is `bc-detect-secrets`, the fork of Yelp's `detect-secrets` that Checkov maintains. Of its plugins those
count that know a token by its own form. Left out are, each with its reason:

- keywords (`password = ...`), and those that need a name beside the token: `secret_shapes` reads values to their end,
  also in lists of arguments and blocks of YAML, and lets `secretName` and `$(PASSWORD)` show;
- strings of high entropy: in objects these are digests, hashes, UIDs, certificates and names with a hash at their
  end;
- private keys: the plugin finds the first line of one, `secret_shapes` all of it;
- Artifactory: any word of some length that begins with `APA` to `APF` would be one of its passwords.

Its patterns are not made for hostile texts, some take quadratic time. So it sees words, each once, that are long
enough for a token and no longer than one. Only `analyze_string` is called: other functions ask the services over the
network.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from dra_infra.output.secret_shapes import Span
from dra_infra.output.secrets import SecretMask

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

_LEFT_OUT: Final = (
    *("ArtifactoryDetector", "BasicAuthDetector", "CloudantDetector", "IbmCloudIamDetector"),
    *("IbmCosHmacDetector", "IPPublicDetector", "PrivateKeyDetector", "SoftlayerDetector"),
)

_WORD: Final = re.compile(r"[^\s\"'`<>,;(){}\x1f]{20,}")
_RUN: Final = re.compile(r"[\w+/=-]{16,}")
_NO_TOKEN: Final = re.compile(r"\D*|(?:[a-z]+-)*+[0-9a-f-]+")
_LONGEST: Final = 2048
"""Characters that one search sees: no token is longer, but for a JWT, which is known by its beginning."""


def report_mask(texts: Iterable[str] = ()) -> SecretMask:
    """The mask for what is reported; *texts* are secret wherever they stand."""
    return SecretMask(texts, detect=find_tokens)


def find_tokens(text: str) -> Iterator[Span]:
    """Find tokens in *text* that the detector knows, each to the end of its word."""
    for match in _WORD.finditer(text):
        word = match[0]
        if _may_hold_token(word):
            for start in range(0, len(word), _LONGEST):
                if found := _first_token(word[start : start + _LONGEST + 128]):
                    # To the end of the word: a pattern may know only the beginning of a token.
                    yield match.start() + start + found[0], match.end()
                    break


def _may_hold_token(word: str) -> bool:
    """True for a word that is worth loading the detector, which takes a tenth of a second: digests and plain words are not."""
    return any(_NO_TOKEN.fullmatch(run) is None for run in _RUN.findall(word))


@lru_cache(maxsize=2**14)
def _first_token(word: str) -> Span | None:
    spans = []
    for plugin in _plugins():
        for token in plugin.analyze_string(word):
            start = word.find(token)
            if token and start >= 0:
                spans.append((start, start + len(token)))
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
