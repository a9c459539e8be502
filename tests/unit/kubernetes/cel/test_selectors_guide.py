from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).parents[4] / "docs" / "selectors.md"


def test_the_examples_in_the_table_of_the_guide_run():
    import dra_infra as dra

    examples = re.findall(r"\| `(dra\.[^`]+)` \|", GUIDE.read_text())
    assert len(examples) == 7
    for example in examples:
        assert eval(example, {"dra": dra}).problems() == ()  # noqa: S307
