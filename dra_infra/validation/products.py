"""Product names in selectors: a misspelt one is valid CEL that matches no device, ever."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping

from dra_infra.catalog import product_names
from dra_infra.errors import Problem

# As people and this package write it: the attribute, a test, and one text. Anything else is not judged.
_PRODUCT = r'device\.attributes\[["\']gpu\.nvidia\.com["\']\]\.productName'
_TEST = re.compile(
    rf'{_PRODUCT}(?:\.(?P<method>contains|startsWith|endsWith)\(|\s*(?P<method2>==)\s*)(?P<text>"(?:[^"\\]|\\.)*")'
)
_MATCHES: Mapping[str, Callable[[str, str], bool]] = {
    "contains": lambda name, text: text in name,
    "startsWith": lambda name, text: name.startswith(text),
    "endsWith": lambda name, text: name.endswith(text),
    "==": lambda name, text: name == text,
}


def check_products(expression: str, *, path: str) -> Iterator[Problem]:
    """Warn where *expression* asks for a product name that no GPU known here has."""
    if "productName" not in expression:
        return
    for found in _TEST.finditer(expression):
        method = found["method"] or found["method2"]
        text = _read(found["text"])
        if text is None or any(_MATCHES[method](name, text) for name in product_names()):
            continue
        near = _nearest(text)
        yield Problem(
            path=path,
            code="product-not-known",
            message=f"no GPU product known here has a name that {_SAID[method]} {text!r}",
            hint=f"did you mean {near!r}?" if near else "products are named as nvidia-smi prints them",
            severity="warning",
        )


_SAID = {"contains": "contains", "startsWith": "starts with", "endsWith": "ends with", "==": "is"}


def _read(literal: str) -> str | None:
    """The text of a CEL literal whose escapes are those of JSON; None for any other."""
    try:
        text = json.loads(literal)
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def _nearest(text: str) -> str | None:
    names = product_names()
    words = sorted({word for name in names for word in re.split(r"[ -]", name) if len(word) > 1} - {"NVIDIA"})
    by_letters = {_alike(each): each for each in [*names, *words]}
    near = difflib.get_close_matches(_alike(text), sorted(by_letters), n=1)
    return by_letters[near[0]] if near else None


def _alike(text: str) -> str:
    """Letters that are taken for digits, and case, make no difference."""
    return text.lower().replace("o", "0").replace("i", "1").replace("l", "1")
