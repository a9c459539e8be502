"""`python -m benchmarks`: answer the questions and print Markdown tables."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
from collections.abc import Sequence

from benchmarks.alternatives import left_out
from benchmarks.measure import Figure, measure
from benchmarks.questions import QUESTIONS


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", choices=sorted(QUESTIONS), action="append", help="one question; may be repeated"
    )
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each candidate (default 5)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    answers = {
        name: measure(candidates(), runs=options.runs)
        for name, candidates in QUESTIONS.items()
        if not options.only or name in options.only
    }
    if options.json:
        print(
            json.dumps(
                {name: [dataclasses.asdict(each) for each in found] for name, found in answers.items()}
            )
        )
        return
    load = os.getloadavg()[0]
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f} at the end, "
        f"median of {options.runs} runs in turns"
    )
    for reason in left_out():
        print(f"Left out: {reason}")
    for name, figures in answers.items():
        print(f"\n### {QUESTIONS[name].__doc__}\n")
        print("\n".join(table(figures)))


def table(figures: Sequence[Figure]) -> list[str]:
    """The figures as a Markdown table; ratios are to the first row."""
    if not figures:
        return ["Not measured here: see what was left out."]
    first = figures[0].seconds
    lines = [
        "| | median s | lowest to highest | ratio | goal s | MiB of the largest process | goal MiB |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each.name} | {_seconds(each.seconds)} | {_seconds(each.lowest)} to {_seconds(each.highest)} | {each.seconds / first:.2f} "
        f"| {_goal(each.goal)} | {each.memory_mib:.0f} | {_goal(each.memory_goal)} |"
        for each in figures
    ]
    return lines


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"


def _goal(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


if __name__ == "__main__":
    main()
