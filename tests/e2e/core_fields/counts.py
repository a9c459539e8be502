"""The section of docs/parity.md about fields of Kubernetes' own kinds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from tests.support.parity.differential import RESULTS
from tests.support.parity.report import CORE_SECTION

_HEADING = """\
## Fields of Kubernetes' own kinds

Random objects of every kind that the API servers themselves have, all versions and gates on: right ones, and ones with a field that is
misspelt or of another type. Each was sent with `dryRun=All` and `fieldValidation=Strict`, and given to
`dra_infra.kubernetes.apiserver.core_fields`. Both must agree on whether it can be decoded, and what is reported here as missing or as no
word of its field must be refused there. Objects of the most used kinds with an item of each list once more are sent as a server-side apply,
which must refuse those that are reported here, and no other.

| Minor | Kinds | Objects | Refused by decoding | Different |
| --- | --- | --- | --- | --- |"""


def keep(minor: str, kinds: int, asked: int, refused: int, different: int) -> None:
    """Keep the counts of one minor, and write the section from those of all."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    counts = {"minor": minor, "kinds": kinds, "asked": asked, "refused": refused, "different": different}
    (RESULTS / f"core-fields-{minor}.json").write_text(json.dumps(counts))
    (RESULTS / CORE_SECTION).write_text(section(RESULTS.glob("core-fields-*.json")))


def section(results: Iterable[Path]) -> str:
    """Return the section from the files of the last runs."""
    rows = []
    for path in sorted(results):
        counts = json.loads(path.read_text())
        numbers = " | ".join(f"{counts[name]:,}" for name in ("kinds", "asked", "refused", "different"))
        rows.append(f"| {counts['minor']} | {numbers} |")
    return "\n".join((_HEADING, *rows))
