"""Cases without end, and each one again from its name: ``<strategy>/<seed>/<index>``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.support.parity.cases import ADMIN, MISLABELLED, PLAIN, RESOURCES, Case, Object
from tests.support.parity.faults import break_some, everything, is_of_claims
from tests.support.parity.kinds.claim import claim
from tests.support.parity.kinds.claim_template import claim_template
from tests.support.parity.kinds.device_class import device_class
from tests.support.parity.kinds.pods import pod
from tests.support.parity.kinds.resource_slice import resource_slice
from tests.support.parity.kinds.taint_rule import taint_rule

BUILDERS: Mapping[str, Callable[[Random], Object]] = {
    "claim": claim,
    "template": claim_template,
    "class": device_class,
    "pod": pod,
    "slice": resource_slice,
    "rule": taint_rule,
}
"""What builds valid objects, by the name of the strategy."""

_SHARES = {"claim": 30, "template": 12, "class": 14, "pod": 16, "slice": 22, "rule": 6}
_FAULTS = ((0, 1, 2, 3, 6), (20, 40, 20, 12, 8))


def case(name: str) -> Case:
    """The case of this name; the same on every machine."""
    strategy = name.partition("/")[0]
    return draw(Random(name), strategy, name)  # noqa: S311 - reproducible, not secret.


def cases(strategy: str) -> SearchStrategy[Case]:
    """The same cases for Hypothesis, which searches and shrinks over the choices made for them."""
    return st.randoms(use_true_random=False).map(lambda random: draw(random, strategy, f"{strategy} found"))


def draw(random: Random, strategy: str, name: str) -> Case:
    """A valid object of the strategy, broken in none to six places."""
    built = BUILDERS[strategy](random)
    faults = random.choices(*_FAULTS)[0]
    may_break = is_of_claims if strategy == "pod" else everything
    namespace = random.choices((PLAIN, ADMIN, MISLABELLED), (5, 4, 1))[0]
    broken = break_some(random, built, faults, may_break)
    return Case(id=name, object=broken, namespace=namespace if RESOURCES[broken["kind"]][1] else PLAIN)


def names(seed: int, count: int) -> Iterator[str]:
    """Names of *count* cases, the strategies in their shares and mixed."""
    total = sum(_SHARES.values())
    order = [strategy for strategy, share in _SHARES.items() for _ in range(share)]
    Random(seed).shuffle(order)  # noqa: S311 - as above.
    for index in range(count):
        yield f"{order[index % total]}/{seed}/{index}"
