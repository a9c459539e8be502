"""What all attacks have in common: each tells what the attacker got, and passes when that is nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.conftest import ATTACKER_GOT


class Loot:
    """Collects what an attacker got hold of; a test that ends with any of it fails."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def add(self, what: str) -> None:
        """Note that the attacker got *what*, in words: "the fetch token", "a closed gate that says open"."""
        self.taken.append(what)

    def add_if(self, got: object, what: str) -> None:
        """Note *what* where *got* is true."""
        if got:
            self.add(what)

    def add_secrets(self, where: str, text: str, *secrets: str) -> None:
        """Note each of *secrets* that stands in *text*, which the attacker can read at *where*."""
        for secret in secrets:
            self.add_if(secret in text, f"{secret} in {where}")


@pytest.fixture
def loot() -> Loot:
    """What the attacker of this test got."""
    return Loot()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test whose attacker got something, and keep for the end of the run what it was."""
    yield
    loot = getattr(item, "funcargs", {}).get("loot")
    if isinstance(loot, Loot):
        item.user_properties.append((ATTACKER_GOT, ", ".join(loot.taken) or "nothing"))
        if loot.taken:
            pytest.fail(f"{ATTACKER_GOT}: {', '.join(loot.taken)}", pytrace=False)
