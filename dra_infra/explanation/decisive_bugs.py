"""Bugs of a minor's allocator without which a node would answer otherwise."""

from __future__ import annotations

from collections.abc import Callable, Set

from dra_infra.kubernetes.scheduler.allocator import Quirk


def find_decisive_bugs(known: Set[Quirk], differs: Callable[[Set[Quirk]], bool]) -> tuple[str, ...]:
    """Return the bugs that decide an answer, in words: each one that does alone, or else a few together as one text.

    Args:
        known: The bugs of the minor.
        differs: Tells whether the answer is another one without some of the bugs.
    """
    if not known or not differs(known):
        return ()
    decisive = [quirk for quirk in Quirk if quirk in known and differs({quirk})]
    if decisive:
        return tuple(quirk.value for quirk in decisive)
    # Where each hides the other, all of a smallest set have to go: take back what does not matter.
    together = set(known)
    for quirk in Quirk:
        if quirk in together and differs(together - {quirk}):
            together.remove(quirk)
    return (" and ".join(quirk.value for quirk in Quirk if quirk in together),)
