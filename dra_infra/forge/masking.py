"""Secrets of this process are taken out of everything that is posted or printed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from dra_infra.planning.wording import show_hidden

MASKED: Final = "***"

_SECRET_NAME: Final = re.compile(
    r"(?i)(token|password|passwd|passphrase|secret|credential|private_?key|api_?key|access_?key)"
)

_SHORTEST: Final = 8
"""Shorter values (`true`, a version) are in every text; taking them out would say what they are."""

_QUOTED: Final = 300
"""Most characters of a foreign text that are shown."""


class Mask:
    """Takes the token, and what the environment holds under a name that says so, out of texts.

    They are found as they are, and as addresses, JSON and HTTP's basic authentication write them.
    """

    def __init__(self, token: str = "", environment: Mapping[str, str] | None = None) -> None:
        values = [token] if token else []
        for name, value in (environment or {}).items():
            if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST:
                values += [value, *(line for line in value.splitlines() if len(line.strip()) >= _SHORTEST)]
        forms = {form for value in values for form in _forms(value.strip())}
        # The longest first, or a part of a secret would be taken out and the rest stay.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def hide(self, text: str) -> str:
        """*text* without secrets."""
        return self._pattern.sub(MASKED, text) if self._pattern else text

    def quote(self, text: str) -> str:
        """A foreign text in one short line that steers no terminal and holds no secret."""
        # Masked before it is cut: half a secret at the end would not be found any more.
        line = " ".join(self.hide(text).split())
        return show_hidden(line if len(line) <= _QUOTED else f"{line[:_QUOTED]}…")


def _forms(value: str) -> Iterable[str]:
    yield value
    yield quote(value, safe="")
    yield json.dumps(value)[1:-1]
    if len(value) >= _SHORTEST:
        yield base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")
