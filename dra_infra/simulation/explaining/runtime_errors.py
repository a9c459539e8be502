"""Which selector has no value on which device, for an error that ends the scheduler's attempt."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.device_class import DeviceSelector
from dra_infra.simulation.allocation.identity import Published
from dra_infra.simulation.allocation.selection import Trouble
from dra_infra.simulation.explaining.leaves import Leaf, read_requests
from dra_infra.simulation.explaining.question import Question
from dra_infra.simulation.explaining.records import RuntimeTrouble
from dra_infra.simulation.explaining.sieve import Sieve, selector_lists
from dra_infra.simulation.explaining.trials import Placed


def find_error(question: Question, placed: Placed) -> RuntimeTrouble:
    """The error of *placed*, with claim, selector and device where it is about one."""
    text = placed.failed.text if placed.failed is not None else ""
    node = next(each for each in question.nodes if each.name == placed.nodes[0])
    sieve = Sieve(question.cluster, node, question.declared_by(node))
    for entries in read_requests(question.cluster, question.asked, question.names):
        for leaf in entries:
            for _, published in sieve.devices:
                for where, selector, trouble in _troubles(sieve, leaf, published):
                    if trouble.text in text:
                        return RuntimeTrouble(
                            text=text,
                            claim=leaf.claim_name,
                            where=where,
                            expression=selector.cel.expression if selector.cel is not None else "",
                            device=str(published.id) if trouble.compiles else "",
                        )
    return RuntimeTrouble(text=text)


def _troubles(
    sieve: Sieve, leaf: Leaf, published: Published
) -> Iterator[tuple[str, DeviceSelector, Trouble]]:
    """The selector at which a device stops, when that has no value there."""
    for owner, selectors in selector_lists(leaf.wanted):
        for number, selector in enumerate(selectors):
            verdict = sieve.test(selector, published)
            if isinstance(verdict, Trouble):
                whose = f"request {leaf.wanted.full_name}" if owner == "request" else owner
                yield f"{whose}, selector #{number}", selector, verdict
            if verdict is not True:
                return
