"""`dra-infra drain`: whose pods go, the rules that make them go, and the way back."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from dra_infra.cli.printing import print_problems, progress, write_json, write_lines
from dra_infra.client.kubeconfig import find_account
from dra_infra.client.objects import full_name, name_of, namespace_of
from dra_infra.client.session import Session
from dra_infra.client.taint_rules import TaintRules
from dra_infra.cluster.draining import EMPTY, Drain, Preview, find_ours, look
from dra_infra.cluster.reading import Reader
from dra_infra.errors import Problem
from dra_infra.kubernetes.scheduler.device_evictions import Eviction
from dra_infra.output.wording import count_of, join_words

_MOST: Final = 50
"""Pods that are listed; the others are counted."""


def drain(
    kubeconfig: Path | None,
    *,
    context: str | None,
    target: str,
    driver: str | None,
    yes: bool,
    undo: bool,
    reason: str,
    timeout: float,
    as_json: bool,
) -> int:
    """Show whose pods a drain evicts; with *yes* evict them, with *undo* delete the rules.

    Raises:
        ClusterError: `subject-not-known`, `kind-not-served`, `drain-name-taken`, `drain-not-answered`, `drain-refused`, and the
            codes of `Session`.
        click.BadParameter: When the target or the driver is empty.
    """
    for name, given in (("TARGET", target), ("--driver", driver)):
        # An empty driver is no other word for all of them, which would drain more than was meant.
        if given is not None and not given.strip():
            raise click.BadParameter(EMPTY, param_hint=name)
    account = find_account(kubeconfig, context, os.environ)
    session = Session(account)
    with progress() as tell:
        reader = Reader(session, tell=tell)
        if undo:
            version, rules = find_ours(reader, target)
            writer = TaintRules(account, version)
            for each in rules:
                writer.delete(each)
            names = [name_of(each) for each in rules]
        else:
            preview = look(reader, target, driver=driver or "")
    if undo:
        _print_undone(target, names, as_json=as_json)
        return 0
    if not as_json:
        write_lines(describe(preview))
    if not yes:
        again = shlex.join(["dra-infra", "drain", target, *(["--driver", driver] if driver else []), "--yes"])
        if as_json:
            write_json(to_json(preview))
        else:
            write_lines([f"nothing was written; evict them: {again}"])
        return 0
    steps = Drain(preview, TaintRules(account, preview.version), session, reason=reason, seconds=timeout)
    return _run(steps, as_json=as_json)


def _run(steps: Drain, *, as_json: bool) -> int:
    said: list[dict[str, Any]] = []
    for name, message, count in steps.ask():
        said.append({"rule": name, "message": message, "pods": count})
        if not as_json:
            write_lines([f"the cluster says of {name}: {message}"])
        if (ours := steps.expected(name)) != count:
            print_problems([_differs(name, ours, count)])
            if as_json:
                write_json({**to_json(steps.preview), "rules": said, "drained": False})
            return 1
    if not as_json:
        write_lines([f"evicting {count_of(len(steps.preview.pods), 'pod')}"])
    with progress() as tell:
        steps.tell = tell
        left = steps.evict()
    if as_json:
        ended = {"drained": not left, "left": list(left), "staying": list(steps.staying)}
        write_json({**to_json(steps.preview), "rules": said, **ended})
    elif not left:
        back = shlex.join(["dra-infra", "drain", steps.preview.target, "--undo"])
        write_lines([f"✓ drained: {_gone(steps)}; give it back: {back}"])
    if left:
        print_problems([_not_gone(steps.preview.target, left)])
    return 1 if left else 0


def _gone(steps: Drain) -> str:
    count, staying = len(steps.preview.pods), len(steps.staying)
    said = f"{count_of(count, 'pod')} {'was' if count == 1 else 'were'} evicted"
    stay = f", and {staying} {'stays' if staying == 1 else 'stay'} by an extended resource" if staying else ""
    return (said if count else "no pod is left to evict") + stay


def describe(preview: Preview) -> Iterator[str]:
    """Lines of what would be evicted, and what would not."""
    for driver in dict.fromkeys(each.driver for each in preview.parts):
        parts = [each for each in preview.parts if each.driver == driver]
        count = sum(each.count for each in parts)
        yield f"{join_words(parts)} of {driver}: {count_of(count, 'device')}"
    evicted = preview.evicted
    spaces = {namespace_of(each.pod) for each in evicted}
    if evicted:
        yield f"{count_of(len(preview.pods), 'pod')} would be evicted in {count_of(len(spaces), 'namespace')}:"
    else:
        yield "no pod would be evicted"
    for each in evicted[:_MOST]:
        after = f", after {each.seconds} s that it tolerates" if each.seconds else ""
        yield f"  {_name(each)}{after}"
    if len(evicted) > _MOST:
        yield f"  and {len(evicted) - _MOST} more"
    for each in evicted:
        if each.comes_back:
            yield f"! {full_name(each.pod)} may be placed there again and evicted again: its claim tolerates the taint for the scheduler"
    for each in preview.evictions:
        if each.stays:
            pod = shlex.join(["kubectl", "delete", "pod", "-n", namespace_of(each.pod), name_of(each.pod)])
            yield f"! {_name(each)} stays, for it has the device by an extended resource: {pod}"


def _name(eviction: Eviction) -> str:
    return f"{full_name(eviction.pod)} by claim {eviction.claim} from {join_words(eviction.devices)}"


def to_json(preview: Preview) -> dict[str, Any]:
    """The preview as data, with fixed names."""
    return {
        "target": preview.target,
        "devices": [
            {"driver": each.driver, "pool": each.pool, "device": each.device or None, "count": each.count}
            for each in preview.parts
        ],
        "evictions": [
            {
                "namespace": namespace_of(each.pod),
                "pod": name_of(each.pod),
                "claim": each.claim,
                "devices": list(each.devices),
                "afterSeconds": each.seconds,
                "stays": each.stays,
                "comesBack": each.comes_back,
            }
            for each in preview.evictions
        ],
    }


def _print_undone(target: str, names: list[str], *, as_json: bool) -> None:
    if as_json:
        write_json({"target": target, "deleted": names})
    elif names:
        write_lines([f"✓ {target} is given back: deleted DeviceTaintRule {join_words(names, most=50)}"])
    else:
        write_lines([f"no drain of {target} has a rule here"])


def _differs(name: str, ours: int, theirs: int) -> Problem:
    return Problem(
        path=f"DeviceTaintRule {name}",
        code="drain-differs",
        message=f"the eviction controller would evict {count_of(theirs, 'pod')}, and {ours} were found here: nothing is evicted",
        hint="pods came or went meanwhile, or you may not list all of them; look again, and run the command again",
    )


def _not_gone(target: str, left: tuple[str, ...]) -> Problem:
    return Problem(
        path=target,
        code="drain-not-ended",
        message=f"{count_of(len(left), 'pod')} still there: {join_words(left)}",
        hint="the rules stay and evict them; run the command again to wait, or give it more time with --timeout",
    )
