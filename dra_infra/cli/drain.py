"""`dra-infra drain`: whose pods go, the rules that make them go, and the way back."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from dra_infra.answers.draining import (
    Drained,
    RuleCount,
    Undone,
    count_evictions,
    evict,
    plan_drain,
    undo_drain,
)
from dra_infra.cli.printing import print_problems, progress, write_json, write_lines
from dra_infra.client.objects import full_name, name_of, namespace_of
from dra_infra.cluster.draining import EMPTY, Drain, Preview
from dra_infra.kubernetes.scheduler import Eviction
from dra_infra.output.report_data import make_report, to_data
from dra_infra.output.wording import count_of, join_words

_MOST: Final = 50
"""Pods that are listed; the others are counted."""


def drain(
    kubeconfig: Path | None,
    *,
    context: str | None,
    request_timeout: float,
    target: str,
    driver: str | None,
    yes: bool,
    undo: bool,
    reason: str,
    timeout: float,
    form: str,
) -> int:
    """Show whose pods a drain evicts; with *yes* evict them, with *undo* delete the rules.

    Raises:
        ClusterError: `subject-not-known`, `kind-not-served`, `drain-name-taken`, `drain-not-answered`, `drain-refused`, and the
            codes of `Session`.
        click.BadParameter: When the target or the driver is empty.
    """
    as_json = form == "json"
    for name, given in (("TARGET", target), ("--driver", driver)):
        # An empty driver is no other word for all of them, which would drain more than was meant.
        if given is not None and not given.strip():
            raise click.BadParameter(EMPTY, param_hint=name)
    if undo:
        with progress() as tell:
            undone = undo_drain(
                target, kubeconfig=kubeconfig, context=context, request_timeout=request_timeout, tell=tell
            )
        _print_undone(undone, as_json=as_json)
        return undone.exit_code
    with progress() as tell:
        planned = plan_drain(
            target,
            driver=driver,
            kubeconfig=kubeconfig,
            context=context,
            request_timeout=request_timeout,
            tell=tell,
        )
    if not as_json:
        write_lines(describe(planned.preview))
    if not yes:
        again = shlex.join(["dra-infra", "drain", target, *(["--driver", driver] if driver else []), "--yes"])
        if as_json:
            write_json(to_json(planned.preview))
        else:
            write_lines([f"nothing was written; evict them: {again}"])
        return planned.exit_code
    return _run(planned.start(reason=reason, timeout=timeout), as_json=as_json)


def _run(steps: Drain, *, as_json: bool) -> int:
    def show(count: RuleCount) -> None:
        if not as_json:
            write_lines([f"the cluster says of {count.rule}: {count.message}"])

    done = count_evictions(steps, show=show)
    if done.has_other_count:
        print_problems(done.problems)
        if as_json:
            write_json(_drained_to_json(done))
        return done.exit_code
    if not as_json:
        write_lines([f"evicting {count_of(len(steps.preview.pods), 'pod')}"])
    with progress() as tell:
        done = evict(steps, done, tell=tell)
    if as_json:
        ends = {"left": list(done.left), "staying": list(done.staying)}
        write_json({**_drained_to_json(done), **ends})
    elif not done.left:
        back = shlex.join(["dra-infra", "drain", done.preview.target, "--undo"])
        write_lines([f"✓ drained: {_gone(done)}; give it back: {back}"])
    if done.problems:
        print_problems(done.problems)
    return done.exit_code


def _drained_to_json(done: Drained) -> dict[str, Any]:
    rules = [{"rule": each.rule, "message": each.message, "pods": each.pods} for each in done.counts]
    ends = {"rules": rules, "drained": not done.problems, "problems": to_data(done.problems)}
    return {**to_json(done.preview), **ends}


def _gone(done: Drained) -> str:
    count, staying = len(done.preview.pods), len(done.staying)
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
    data = {
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
    return make_report("drain", data)


def _print_undone(undone: Undone, *, as_json: bool) -> None:
    target = undone.target
    names = list(undone.deleted)
    if as_json:
        write_json(make_report("drain-undo", {"target": target, "deleted": names}))
    elif names:
        write_lines([f"✓ {target} is given back: deleted DeviceTaintRule {join_words(names, most=50)}"])
    else:
        write_lines([f"no drain of {target} has a rule here"])
