"""Hold what we say of an expression against the program around Kubernetes' own CEL package, and count."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.cel import Environment, check_derived, check_expression
from dra_infra.kubernetes.cel.check import Checked
from dra_infra.kubernetes.cel.environment import NEWEST
from tests.support.parity.differential import RESULTS
from tests.support.parity.judge import Judge
from tests.support.parity.report import CEL_SECTION

MINORS: Final = range(34, NEWEST + 1)
EQUAL, WORDING, UNDECIDED, WRONG = "equal", "wording", "undecided", "wrong"

_DIFFERENCES = Path(__file__).with_name("cel_differences.toml")
_ERROR = re.compile(r"ERROR: <input>:(-?\d+:-?\d+: .*)")
_COMPILE: Final = "compilation failed: "


@dataclass(frozen=True, kw_only=True)
class Wording:
    """A difference of wording that is known and explained.

    Args:
        reason: Why the words differ, for `docs/parity.md`.
        server: Pattern of what only the server says: line, column and message of each error.
        ours: Pattern of what only we say.
        follows: Whether it may only stand beside an error that both name alike.
    """

    reason: str
    server: re.Pattern[str]
    ours: re.Pattern[str]
    follows: bool = False


@cache
def wordings() -> tuple[Wording, ...]:
    """The known differences, in the order in which they are tried."""
    entries = tomllib.loads(_DIFFERENCES.read_text())["difference"]
    return tuple(
        Wording(
            reason=entry["reason"],
            server=re.compile(entry["server"], re.DOTALL),
            ours=re.compile(entry["ours"], re.DOTALL),
            follows=entry.get("follows", False),
        )
        for entry in entries
    )


def environments(minor: int) -> tuple[Environment, ...]:
    """Every environment of a release: new and stored, each gate on and off."""
    return tuple(
        Environment(minor, stored, list_attributes, consumable_capacity)
        for stored, list_attributes, consumable_capacity in itertools.product((False, True), repeat=3)
        if minor > 35 or list_attributes
    )


class Judges:
    """The programs of all minors, each started when it is first asked."""

    def __init__(self, binaries: Callable[[str], Path]) -> None:
        self._binaries = binaries
        self._started: dict[int, Judge] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def ask(
        self,
        expression: str,
        environment: Environment,
        *,
        derived: bool = False,
        devices: Sequence[Any] = (),
    ) -> Any:
        """What Kubernetes answers; tools/judges-1.37/README.md describes the lines."""
        gates = {
            "DRAConsumableCapacity": environment.consumable_capacity,
            "DRAListTypeAttributes": environment.list_attributes,
        }
        if environment.minor not in self._started:
            name = "cel-judge" if environment.minor == NEWEST else f"cel-judge-1.{environment.minor}"
            self._started[environment.minor] = self._stack.enter_context(Judge(self._binaries(name)))
        return self._started[environment.minor].ask(
            {
                "expression": expression,
                "new": not environment.stored,
                "disabled": [gate for gate, is_on in gates.items() if not is_on],
                "derived": derived,
                "devices": list(devices),
            }
        )


@dataclass
class Tally:
    """What a comparison counted.

    Args:
        minor: The release.
        counts: Number of comparisons by outcome, of those accepted and refused by the server, and of equal texts.
        reasons: How often each known difference of wording was met.
        wrong: What is wrong, in words.
    """

    minor: int
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, expression: str, environment: Environment, answer: Any, checked: Checked) -> None:
        """Count one comparison."""
        outcome, words = compare(answer, checked, environment)
        self.counts[outcome] += 1
        self.counts["refused" if "refused" in answer else "accepted"] += 1
        if outcome == WORDING:
            self.reasons[words] += 1
        elif outcome == WRONG:
            self.wrong.append(f"{expression!r} in {environment}\n{words}")

    @property
    def total(self) -> int:
        """Number of comparisons."""
        return self.counts["refused"] + self.counts["accepted"]

    def write(self, name: str) -> None:
        """Keep the counts for docs/parity.md."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        content = {"minor": self.minor, "counts": self.counts, "reasons": self.reasons}
        # In one step: other workers read it for their sections.
        draft = RESULTS / f"cel-{name}-1.{self.minor}.draft"
        draft.write_text(json.dumps(content, indent=2, sort_keys=True))
        draft.replace(draft.with_suffix(".json"))
        _write_section()


def run(
    judges: Judges, cases: Iterable[tuple[str, Environment]], *, minor: int, derived: bool = False
) -> Tally:
    """Compare every case."""
    tally = Tally(minor)
    check = check_derived if derived else check_expression
    for expression, environment in cases:
        answer = judges.ask(expression, environment, derived=derived)
        tally.add(expression, environment, answer, check(expression, environment=environment))
    return tally


def compare(answer: Any, checked: Checked, environment: Environment) -> tuple[str, str]:
    """The outcome, and the reason or what is wrong."""
    if checked.undecided:
        return UNDECIDED, checked.undecided
    if answer.get("panicked"):
        # The API server answers with an internal error of its own.
        right = checked.errors and (checked.kind, checked.detail) == ("InternalError", "")
        return (EQUAL, "") if right else (WRONG, f"server fails: {answer['refused']}\nours: {checked}")
    if "refused" in answer:
        return _compare_refusal(answer, checked)
    # The scheduler, which compiles stored expressions, does not look at the estimate.
    is_costly = answer["cost"] > MAX_COST and not environment.stored
    theirs = ("FieldValueForbidden" if is_costly else "", answer["type"], answer["cost"])
    ours = (checked.kind, checked.return_type, checked.cost)
    if theirs != ours:
        return WRONG, f"server: {theirs}\nours: {ours} {checked.detail}"
    return EQUAL, ""


def _compare_refusal(answer: Any, checked: Checked) -> tuple[str, str]:
    kind = "InternalError" if answer.get("internal") else "FieldValueInvalid"
    theirs = answer["refused"]
    ours = checked.detail
    if checked.kind != kind or not checked.errors:
        return WRONG, f"server: {kind} {theirs}\nours: {checked.kind} {ours}"
    if theirs == ours:
        return EQUAL, ""
    said, told = _errors(theirs), _errors(ours)
    shared = said & told
    only_theirs, only_ours = _lines(said - shared), _lines(told - shared)
    for wording in wordings():
        covers = wording.server.fullmatch(only_theirs) and wording.ours.fullmatch(only_ours)
        if covers and (shared or not wording.follows):
            return WORDING, wording.reason
    return WRONG, f"server: {theirs}\nours: {ours}"


def _errors(text: str) -> Counter[str]:
    if not text.startswith(_COMPILE):
        return Counter([text])
    return Counter(match[1] for match in map(_ERROR.search, text.split("\n")) if match)


def _lines(errors: Counter[str]) -> str:
    return "\n".join(sorted(errors.elements()))


def keep_evaluations(name: str, minor: int, counts: Counter[str]) -> None:
    """Keep for docs/parity.md how many evaluations on devices were compared, differ, and are not decided."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    draft = RESULTS / f"evaluations-{name}-1.{minor}.draft"
    draft.write_text(json.dumps({"minor": minor, "name": name, "counts": counts}, indent=2, sort_keys=True))
    draft.replace(draft.with_suffix(".json"))
    _write_section()


def _write_section() -> None:
    text = section(RESULTS.glob("cel-*.json"))
    (RESULTS / CEL_SECTION).write_text(text + evaluations(RESULTS.glob("evaluations-*.json")))


def evaluations(results: Iterable[Path]) -> str:
    """The part of docs/parity.md about evaluations on devices."""
    rows = []
    for path in sorted(results):
        result = json.loads(path.read_text())
        counts = Counter(result["counts"])
        numbers = (counts["pairs"], counts["pairs"] - counts["undecided"] - counts["wrong"])
        cells = " | ".join(f"{number:,}" for number in (*numbers, counts["undecided"], counts["wrong"]))
        rows.append(f"| 1.{result['minor']} | {result['name']} | {cells} |")
    return "\n".join(
        [
            "",
            "Evaluations on devices of random expressions of all libraries: the verdict or error, the value of derived attributes,",
            "and what the evaluation costs. What is not decided has a reason of [those listed](selectors.md#writing-cel).",
            "",
            "| Minor | What | Compared | Equal | Not decided here | Different |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def section(results: Iterable[Path]) -> str:
    """The part of docs/parity.md about expressions."""
    found = [(path.stem, json.loads(path.read_text())) for path in sorted(results)]
    reasons: Counter[str] = Counter()
    for _, result in found:
        reasons.update(result["reasons"])
    return "\n".join(
        [
            "## Expressions",
            "",
            "What a program around Kubernetes' own CEL package of each minor answers, beside what `dra_infra.kubernetes.cel` says: verdict,",
            "kind of refusal, result type, cost and text, for new and stored expressions and all gates.",
            "",
            "| Minor | Expressions | Compared | Accepted | Refused | Equal in everything | Other words | Not decided here | Wrong |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_row(name, result) for name, result in found),
            "",
            "| Why the words differ | How often |",
            "| --- | --- |",
            *(f"| {wording.reason} | {reasons[wording.reason]:,} |" for wording in wordings()),
            "",
        ]
    )


def _row(name: str, result: Any) -> str:
    counts = Counter(result["counts"])
    numbers = (
        counts["accepted"] + counts["refused"],
        *(counts[key] for key in ("accepted", "refused", EQUAL, WORDING, UNDECIDED, WRONG)),
    )
    cells = " | ".join(f"{number:,}" for number in numbers)
    return f"| 1.{result['minor']} | {name.removeprefix('cel-').rpartition('-')[0]} | {cells} |"


def cycled(expressions: Iterable[str], minor: int) -> Iterator[tuple[str, Environment]]:
    """Each expression as a new one with all gates on, and in one environment after the other."""
    others = itertools.cycle(environments(minor))
    for expression in expressions:
        yield expression, Environment(minor, stored=False)
        yield expression, next(others)
