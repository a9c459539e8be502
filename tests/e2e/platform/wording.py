"""Words that only the stand-in provider says; the vendor's own are others."""

from __future__ import annotations

from tests.support.lab import Lab


def check_words(lab: Lab, text: str, *words: str) -> None:
    """Check that *text* has all *words*, where the stand-in is what runs."""
    missing = [word for word in words if word not in text]
    assert lab.home.provider is None or not missing, f"{missing} not in {text}"
