"""The answer of `dra-infra drain`: whose pods go, whether the cluster counts the same pods, and who is still there in the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dra_infra.client.kubeconfig import REQUEST_TIMEOUT, Account, find_account
from dra_infra.client.objects import name_of
from dra_infra.client.session import Session
from dra_infra.client.taint_rules import TaintRules
from dra_infra.cluster.draining import Drain, Preview, find_ours, look
from dra_infra.cluster.reading import Reader
from dra_infra.errors import Problem
from dra_infra.output.wording import count_of, join_words


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedDrain:
    """A drain that has written nothing yet.

    Args:
        preview: Whose pods it evicts.
        account: The account that writes the rules.
        session: Reads the cluster again.
    """

    preview: Preview
    account: Account = field(repr=False)
    session: Session = field(repr=False)

    @property
    def exit_code(self) -> int:
        """Always 0: what would be evicted is known."""
        return 0

    def start(self, *, reason: str = "", timeout: float = 600.0) -> Drain:
        """Return the steps of the drain; each writes to the cluster when it is taken.

        Args:
            reason: The text in the rules, for people who find them in the cluster.
            timeout: Seconds in which the pods have to be gone.
        """
        rules = TaintRules(self.account, self.preview.version)
        return Drain(self.preview, rules, self.session, reason=reason, seconds=timeout)


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleCount:
    """The answer of the eviction controller about one rule.

    Args:
        rule: Name of the rule.
        message: The words of the controller.
        pods: Pods that it would evict.
        expected: Pods that were found here.
    """

    rule: str
    message: str
    pods: int
    expected: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Drained:
    """A drain that was begun.

    Args:
        preview: Whose pods it evicts.
        counts: What the controller says of each rule, up to the first that differs.
        left: Pods that are still there when the time is over.
        staying: Pods that keep their devices, which they have by an extended resource.
    """

    preview: Preview
    counts: tuple[RuleCount, ...] = ()
    left: tuple[str, ...] = ()
    staying: tuple[str, ...] = ()

    @property
    def has_other_count(self) -> bool:
        """True when the controller counts different pods from those found here. Nothing is evicted then."""
        return any(each.pods != each.expected for each in self.counts)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """`drain-differs` or `drain-not-ended`."""
        differs = [_differs(each) for each in self.counts if each.pods != each.expected]
        return (*differs, *([_not_gone(self.preview.target, self.left)] if self.left else ()))

    @property
    def exit_code(self) -> int:
        """0 when all pods are gone, 1 when some are left or the controller counts others."""
        return 1 if self.problems else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Undone:
    """A drain whose rules were deleted.

    Args:
        target: As the user wrote it.
        deleted: Names of the rules.
    """

    target: str
    deleted: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """Always 0: no rule of the drain is left."""
        return 0


def plan_drain(
    target: str,
    *,
    driver: str | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    tell: Callable[[str], None] = lambda _: None,
) -> PlannedDrain:
    """Find whose pods a drain would evict, and write nothing.

    Args:
        target: A node, a pool, `POOL/DEVICE` or the UUID of a device.
        driver: The only DRA driver whose devices are drained; None for all.
        kubeconfig: The kubeconfig; None takes the one that kubectl would take.
        context: Its context; None takes the current one.
        request_timeout: Seconds of silence after which a request is given up.
        tell: Called with what is being read, for a progress line.

    Raises:
        ClusterError: `subject-not-known`, `kind-not-served`, `cluster-forbidden`, and the codes of `Session`.
    """
    account = replace(find_account(kubeconfig, context, os.environ), request_timeout=request_timeout)
    session = Session(account)
    preview = look(Reader(session, tell=tell), target, driver=driver or "")
    return PlannedDrain(preview=preview, account=account, session=session)


def undo_drain(
    target: str,
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    tell: Callable[[str], None] = lambda _: None,
) -> Undone:
    """Delete the rules that a drain wrote, so that the scheduler allocates the devices of its target again.

    Args:
        target: The target of the drain, as it was written then.
        kubeconfig: As for `plan_drain`.
        context: As for `plan_drain`.
        request_timeout: As for `plan_drain`.
        tell: As for `plan_drain`.

    Raises:
        ClusterError: `subject-not-known`, `kind-not-served`, `drain-refused`, and the codes of `Session`.
    """
    account = replace(find_account(kubeconfig, context, os.environ), request_timeout=request_timeout)
    version, rules = find_ours(Reader(Session(account), tell=tell), target)
    writer = TaintRules(account, version)
    for each in rules:
        writer.delete(each)
    return Undone(target=target, deleted=tuple(name_of(each) for each in rules))


def count_evictions(steps: Drain, *, show: Callable[[RuleCount], None] = lambda _: None) -> Drained:
    """Write the rules without an effect, and compare what the controller counts with the preview. Stop at the first difference.

    Args:
        steps: The drain.
        show: Called with what the controller says of each rule.

    Raises:
        ClusterError: `drain-name-taken`, `drain-not-answered`, and the codes of `TaintRules`.
    """
    counts: list[RuleCount] = []
    for name, message, pods in steps.ask():
        count = RuleCount(rule=name, message=message, pods=pods, expected=steps.expected(name))
        counts.append(count)
        show(count)
        if count.pods != count.expected:
            break
    return Drained(preview=steps.preview, counts=tuple(counts))


def evict(steps: Drain, counted: Drained, *, tell: Callable[[str], None] = lambda _: None) -> Drained:
    """Evict the pods of a drain, and wait until they are gone.

    Args:
        steps: The drain.
        counted: The answer of `count_evictions`. Where the controller counts others, nothing is evicted.
        tell: Called with what is waited for, for a progress line.

    Raises:
        ClusterError: The codes of `TaintRules`, and those of `plan_drain`.
    """
    if counted.has_other_count:
        return counted
    steps.tell = tell
    remaining = steps.evict()
    return replace(counted, left=tuple(remaining), staying=tuple(steps.staying))


def _differs(count: RuleCount) -> Problem:
    return Problem(
        path=f"DeviceTaintRule {count.rule}",
        code="drain-differs",
        message=f"the eviction controller would evict {count_of(count.pods, 'pod')}, and {count.expected} were found here: nothing is evicted",
        hint="pods came or went meanwhile, or you may not list all of them; look again, and run the command again",
    )


def _not_gone(target: str, left: tuple[str, ...]) -> Problem:
    return Problem(
        path=target,
        code="drain-not-ended",
        message=f"{count_of(len(left), 'pod')} still there: {join_words(left)}",
        hint="the rules stay and evict them; run the command again to wait, or give it more time with --timeout",
    )
