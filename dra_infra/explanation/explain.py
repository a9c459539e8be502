"""Explains a question as a whole: runtime errors of selectors, proofs that nothing fits, and the rest.

For an error that ends the scheduler's attempt it finds the selector that has no value, and the device. Proofs that
nothing fits hold whatever is in use: by counting, or by a search that came to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Final

from dra_infra.explanation.decisive_bugs import find_decisive_bugs
from dra_infra.explanation.device_checks import PASSED, DeviceChecks, Stage, list_selectors
from dra_infra.explanation.edit_requests import other_classes
from dra_infra.explanation.edits import Ladder
from dra_infra.explanation.further_causes import FurtherCauses
from dra_infra.explanation.node_kinds import NodeKind, sort_nodes
from dra_infra.explanation.node_reasons import explain_node, find_shortages
from dra_infra.explanation.question import Holder, Leaf, Question, read_requests
from dra_infra.explanation.records import (
    AttemptError,
    Explanation,
    FitVerdict,
    Refusal,
    RequestTree,
    Suggestion,
)
from dra_infra.explanation.suggesting import Budget, LateError, Placed, Suggesting, place_pods, try_nodes
from dra_infra.explanation.survey import Survey
from dra_infra.kubernetes.api import AllocationResult, Node
from dra_infra.kubernetes.scheduler.allocator import (
    Allocated,
    AllocatedState,
    AllocationError,
    Allocator,
    Failed,
    Outcome,
    Quirk,
    Trouble,
)


def find_error(question: Question, placed: Placed) -> AttemptError:
    """The error of *placed*, with claim, selector and device where it is about one."""
    text = placed.failed.text if placed.failed is not None else ""
    node = next(each for each in question.nodes if each.name == placed.node)
    checks = DeviceChecks(question.cluster, node, question.declared_by(node))
    for entries in read_requests(question.cluster, question.asked, question.names):
        for leaf in entries:
            for pool, published in checks.devices:
                result = next(
                    (each for each in checks.failures(leaf, pool, published) if each.stage is Stage.SELECTOR),
                    PASSED,
                )
                if result.is_error and result.detail in text:
                    selector = list_selectors(leaf.wanted)[result.rank]
                    verdict = checks.evaluate(selector.expression, published)
                    is_of_device = isinstance(verdict, Trouble) and verdict.compiles
                    return AttemptError(
                        text=text,
                        claim=leaf.claim_name,
                        where=selector.where(leaf.wanted),
                        expression=selector.expression,
                        device=str(published.id) if is_of_device else "",
                    )
    return AttemptError(text=text)


_TRIED: Final = (
    "every combination of devices was tried, also as if none were in use, and none serves all requests"
)


def find_proof(
    question: Question,
    requests: Sequence[tuple[Leaf, ...]],
    trees: Sequence[RequestTree],
    nodes: Sequence[Node],
    budget: Budget,
) -> str:
    """Why no node could serve the claims even with all devices free; empty where one could, or that is not known.

    Raises:
        LateError: When the time is over.
    """
    free = question.with_cluster(question.cluster.with_state(AllocatedState()))
    hardest: tuple[int, str] | None = None
    for node in nodes:
        checks = DeviceChecks(free.cluster, node, question.declared_by(node))
        found = find_shortages(free.cluster, checks, free.asked, requests, question.names)
        if not found:
            outcome, ended = budget.attempt(free, node)
            if not ended or isinstance(outcome, Allocated):
                return ""
            hardest = 0, _TRIED
            continue
        # Of a node the worst, of nodes the best.
        worst = min(found, key=lambda each: each.best - each.wanted)
        lack = worst.best - worst.wanted
        if hardest is None or lack > hardest[0]:
            verb = "is" if worst.wanted == 1 else "are"
            where = f"on the best node, {node.name}, " if len(question.nodes) > 1 else ""
            hardest = lack, f"{worst.asked} {verb} asked for; {where}{worst.there}"
    if hardest is None:
        return ""
    return _none_passes(trees) or hardest[1]


def _none_passes(trees: Sequence[RequestTree]) -> str:
    """The first test of a selector that no device is left behind, of a request without alternatives."""
    for tree in trees:
        for before, step in zip((None, *tree.steps), tree.steps, strict=False):
            left = tree.candidates if before is None else before.left
            if step.rule in ("class", "request") and left and step.left == 0 and "/" not in tree.request:
                return f"no device that can be had passes {step.where} of {tree.claim}: {step.text}"
    return ""


_TOO_LATE: Final = "{} has the devices, and the scheduler has to try so many others before them that it may give up: it stops after 10 s"
_LATE: Final = "the time was over before {}; give more with --timeout"


def explain(
    question: Question,
    *,
    is_late: Callable[[], bool] = lambda: False,
    is_deep: bool = False,
    refusal: Callable[[Question], str] = lambda _: "",
) -> Explanation:
    """Why the pods of a question fit or not, with the smallest edits that fit.

    Args:
        question: The question.
        is_late: Whether the time is over; what is known by then is the answer.
        is_deep: Whether pairs of edits are tried too.
        refusal: What quotas say where the pods and claims are those of a question; empty where they let them be made.
    """
    return _Explainer(question, Budget(is_late), refusal).run(is_deep=is_deep)


class _Explainer:
    def __init__(self, question: Question, budget: Budget, refusal: Callable[[Question], str]) -> None:
        self._asked = question
        self._question = question
        self._budget = budget
        self._refusal = refusal
        self._unknown: list[str] = []
        self._kinds: list[NodeKind] = []

    def run(self, *, is_deep: bool) -> Explanation:
        question = self._asked
        base = Explanation(
            verdict="does-not-fit",
            kubernetes=f"1.{question.cluster.variant.number}",
            nodes=len(question.nodes),
            pods=question.pods,
            refusals=_refusals(question),
        )
        try:
            read_requests(question.cluster, question.asked, question.names)
        except AllocationError as error:
            return self._refused(base, error.failed, is_deep=is_deep)
        first, number = self._place()
        if first.failed is not None:
            base = replace(base, error=find_error(question, first))
        elif number == question.pods and first.fits:
            where = next(each for each in question.nodes if each.name == first.node)
            return replace(
                base,
                verdict="fits",
                placed=number,
                node=first.node,
                devices=_devices(first.results),
                quirks=self._bugs_behind_fit(question, where),
                unknown=tuple(dict.fromkeys(self._unknown)),
            )
        # What is left for the first pod that does not fit.
        requests = read_requests(self._question.cluster, self._question.asked, question.names)
        # Those that were placed before have changed what is in use.
        kinds = sort_nodes(self._question) if number else self._kinds
        survey = Survey(self._question, requests, kinds)
        further = FurtherCauses(self._question, requests)
        near = survey.nearest()
        is_known = first.failed is not None or (first.is_known and not first.late)
        verdict: FitVerdict = "does-not-fit" if is_known else "not-decided"
        base = replace(
            base,
            verdict=verdict,
            placed=number,
            requests=survey.trees(further),
            node=near[0] if near and not (base.error or first.late or first.doubt) else "",
            outranked=_find_outranked(self._question, survey.holders()),
        )
        if base.node:
            node = next(each for each in question.nodes if each.name == near[0])
            base = replace(base, nearest=self._nearest(node), quirks=self._quirks(self._question, node))
            base = replace(base, proof=self._proof(requests, base.requests))
        if any(tree.most < (tree.count or 1) for tree in base.requests):
            base = replace(base, beyond=further.find_beyond())
        suggestions = self._suggest(requests, survey, question.pods - number, is_deep=is_deep)
        return replace(base, suggestions=suggestions, unknown=tuple(dict.fromkeys(self._unknown)))

    def _place(self) -> tuple[Placed, int]:
        """Place the first pod, and count how many fit; the question is then that of the next pod."""
        first = Placed()
        try:
            self._kinds = sort_nodes(self._asked)
            first = try_nodes(self._asked, self._budget, [kind.first for kind in self._kinds])
            if first.doubt:
                self._unknown.append(first.doubt)
            elif not first.is_known:
                self._unknown.append(
                    "a search for devices was stopped: whether it would end well is not known"
                )
            if first.late and not first.fits:
                self._unknown.append(_TOO_LATE.format(first.late))
            if not first.fits:
                return first, 0
            number, self._question = place_pods(self._asked, self._budget)
        except LateError:
            self._unknown.append(_LATE.format("all nodes were tried"))
            return replace(first, is_known=False), 0
        return first, number

    def _refused(self, base: Explanation, failed: Failed, *, is_deep: bool) -> Explanation:
        """A claim that the allocator refuses before it looks at any device."""
        suggestions: tuple[Suggestion, ...] = ()
        if "could not retrieve device class" in failed.text:
            trying = Suggesting(self._asked, self._asked.eligible, self._budget, refusal=self._refusal)
            suggestions = trying.try_ladders(self._classes(), is_deep=is_deep)
            base = self._judge_rest(base)
        return replace(base, error=AttemptError(text=failed.text), suggestions=suggestions)

    def _judge_rest(self, base: Explanation) -> Explanation:
        """Explains what keeps the pods waiting whichever devices the missing classes would take."""
        question = self._asked.with_stand_ins()
        try:
            requests = read_requests(question.cluster, question.asked, question.names)
        except AllocationError:
            return base
        further = FurtherCauses(question, requests)
        trees = Survey(question, requests, sort_nodes(question)).trees(further)
        # What is too little of every device is too little of some; but of all devices, some may be enough.
        has_all = any(leaf.is_all for entries in requests for leaf in entries)
        beyond = ("" if has_all else further.find_beyond(), self._refusal(question))
        return replace(base, requests=trees, beyond="; ".join(filter(None, beyond)))

    def _classes(self) -> Iterator[Ladder]:
        for number, claim in enumerate(self._asked.asked):
            for at, request in enumerate(claim.spec.devices.requests or ()):
                for sub, leaf in enumerate(request.first_available or [request.exactly]):
                    if leaf is not None and leaf.device_class_name not in self._asked.cluster.classes:
                        yield from other_classes(self._asked, number, at, sub, cost=5.0)

    def _nearest(self, node: Node) -> str:
        question = self._question
        found = explain_node(
            question.cluster, node, question.asked, names=question.names, declared=question.declared_by(node)
        )
        return found.here or found.text.format(best=found.best)

    def _bugs_behind_fit(self, question: Question, node: Node) -> tuple[str, ...]:
        """Return the bugs without which a node would not take a pod; none if another node would take it without bugs."""
        bugs = self._quirks(question, node)
        others = (kind.first for kind in self._kinds if kind.first.name != node.name)
        return bugs if bugs and not any(self._fits_without_bugs(question, other) for other in others) else ()

    def _fits_without_bugs(self, question: Question, node: Node) -> bool:
        try:
            outcome, _ = self._budget.attempt(self._without(question, question.cluster.variant.quirks), node)
        except LateError:
            return False
        return isinstance(outcome, Allocated)

    def _quirks(self, question: Question, node: Node) -> tuple[str, ...]:
        """Return the bugs of the minor without which a node would answer otherwise: each one alone, or a few together."""
        has = question.cluster.variant.quirks
        try:
            answer, ended = self._budget.attempt(question, node)
            if not ended:
                return ()
            return find_decisive_bugs(has, lambda bugs: self._differs(question, node, answer, bugs))
        except LateError:
            self._unknown.append(_LATE.format("bugs of the minor were looked for"))
            return ()

    def _differs(self, question: Question, node: Node, answer: Outcome, without: Set[Quirk]) -> bool:
        """Return True where a node answers otherwise without these bugs; of one that fits, where it would not.

        Raises:
            LateError: When the time is over.
        """
        outcome, ended = self._budget.attempt(self._without(question, without), node)
        if isinstance(answer, Allocated) and isinstance(outcome, Allocated):
            return False
        return ended and outcome != answer

    @staticmethod
    def _without(question: Question, bugs: Set[Quirk]) -> Question:
        """Return the question to an allocator without some bugs."""
        cluster = question.cluster
        variant = replace(cluster.variant, quirks=cluster.variant.quirks - bugs)
        other = Allocator(
            variant, cluster.index, cluster.classes.values(), cluster.state, evaluator=cluster.evaluator
        )
        return question.with_cluster(other)

    def _proof(self, requests: Sequence[tuple[Leaf, ...]], trees: Sequence[RequestTree]) -> str:
        try:
            return find_proof(
                self._question, requests, trees, [kind.first for kind in self._kinds], self._budget
            )
        except LateError:
            return ""

    def _suggest(
        self, requests: Sequence[tuple[Leaf, ...]], survey: Survey, missing: int, *, is_deep: bool
    ) -> tuple[Suggestion, ...]:
        kinds = [kind.first for kind in self._kinds]
        trying = Suggesting(self._asked, kinds, self._budget, missing, self._refusal)
        leaves = [leaf for entries in requests for leaf in entries]
        found = trying.run(leaves, survey, is_deep=is_deep)
        if trying.unfinished:
            self._unknown.append(_LATE.format("all edits were tried"))
        return found


def _refusals(question: Question) -> tuple[Refusal, ...]:
    texts = [
        (str(reason), node.name) for node in question.nodes for reason in question.refusals.get(node.name, ())
    ]
    counts = Counter(text for text, _ in texts)
    first = dict(reversed(texts))
    return tuple(
        Refusal(text=text, nodes=number, example=first[text]) for text, number in counts.most_common()
    )


def _find_outranked(question: Question, holders: Sequence[Holder]) -> tuple[str, ...]:
    """Return the holders of lower priority: the pod waits for them, because no scheduler preempts a pod for devices."""
    asked = question.priority
    return tuple(
        f"{each} of priority {each.priority}"
        for each in holders
        if asked is not None and each.priority is not None and each.priority < asked
    )


def _devices(results: Sequence[AllocationResult]) -> tuple[str, ...]:
    return tuple(
        f"{each.driver}/{each.pool}/{each.device}"
        for result in results
        for each in result.devices.results or ()
    )
