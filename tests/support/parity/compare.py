"""Hold our verdict against the server's answer: every difference with its place."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dra_infra.kubernetes.api import Release, convert
from dra_infra.kubernetes.apiserver import FieldError, Verdict, judge
from dra_infra.kubernetes.apiserver.field_errors import ErrorKind
from dra_infra.kubernetes.apiserver.metadata import GENERATED_SUFFIX
from dra_infra.kubernetes.cel import check_derived, check_expression
from dra_infra.target import ClusterTarget
from tests.support.parity.cases import NO_ANSWER, Answer, Case, Object, Recorded
from tests.support.parity.gate_sets import gates_of
from tests.support.parity.kinds.pods import WORKLOADS

FAILED = "failed"
ACCEPTED, BAD_REQUEST, INVALID = "accepted", "bad-request", "invalid"
STRICT, WARN = "Strict", "Warn"
HUB = "resource.k8s.io/v1"

_CREATED_CODE, _FORBIDDEN_CODE, _INVALID_CODE = 201, 403, 422
_STATUS = {
    NO_ANSWER: FAILED,
    200: ACCEPTED,
    _CREATED_CODE: ACCEPTED,
    400: BAD_REQUEST,
    _INVALID_CODE: INVALID,
}
_ADMISSION = re.compile(
    r"is forbidden: (node .* not found for device|node .* does not support|device .* does not map to any nodes)"
)
"""What the admission of 1.37 says of valid slices that count against nodes: those have to exist (nodedeclaredfeatures)."""
_UNKNOWN = re.compile(r'unknown field "((?:[^"\\]|\\.)*)"')
_STEM = 58
_WARNINGS = 3000
"""Bytes of field names from which on the 4 KiB for all warnings of an answer may not be enough."""
_SERVER_SET = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Metadata that the server writes; a name counts only where the object came with one."""
_ACCEPTED_DETAILS = Path(__file__).with_name("accepted_details.toml")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that both sides say differently.

    Args:
        what: `crash`, `status`, `bad-request`, `unknown-fields`, `warnings`, `errors`, `detail` or `stored`.
        field_validation: How the server was asked.
        server: What the server says.
        ours: What we say.
    """

    what: str
    field_validation: str
    server: str
    ours: str


@dataclass(frozen=True, kw_only=True)
class AcceptedDetail:
    """A difference of wording that is known and explained.

    Args:
        reason: Why the words differ, for `docs/parity.md`.
        server: Pattern of the server's message.
        ours: Pattern of our message.
    """

    reason: str
    server: re.Pattern[str]
    ours: re.Pattern[str]

    def covers(self, server: str, ours: str) -> bool:
        """Whether this explains the two messages."""
        return bool(self.server.search(server) and self.ours.search(ours))


@cache
def accepted_details() -> tuple[AcceptedDetail, ...]:
    """What `accepted_details.toml` lists."""
    with _ACCEPTED_DETAILS.open("rb") as file:
        entries = tomllib.load(file).get("detail", [])
    return tuple(
        AcceptedDetail(
            reason=entry["reason"],
            server=re.compile(entry["server"], re.DOTALL),
            ours=re.compile(entry["ours"], re.DOTALL),
        )
        for entry in entries
    )


@cache
def release_of(minor: str, gate_set: str) -> Release:
    """Our side of a server with these gates."""
    [release] = ClusterTarget(kubernetes=minor, gates=gates_of(minor, gate_set)).releases
    return release


def verdict_of(case: Case, release: Release, field_validation: str) -> Verdict:
    """Our answer to *case*."""
    return judge(
        case.object,
        release,
        strict=field_validation == STRICT,
        old=case.old,
        namespace_labels=case.namespace_labels,
    )


def judged(recorded: Recorded) -> Iterator[tuple[Verdict | None, list[Difference]]]:
    """Our verdicts on a case, strictly and not, and how they differ from the server's answers; no verdict: we crashed."""
    release = release_of(recorded.minor, recorded.gates)
    verdict: Verdict | None = None
    for mode, answer in ((STRICT, recorded.strict), (WARN, recorded.warn)):
        try:
            # Without unknown fields there is one verdict: `strict` is about them alone.
            if verdict is None or verdict.unknown_fields:
                verdict = verdict_of(recorded.case, release, mode)
        except Exception as error:  # noqa: BLE001 - whatever we raise is a finding about its case.
            told = f"{type(error).__name__}: {error}"
            yield None, [Difference(what="crash", field_validation=mode, server=str(answer.code), ours=told)]
        else:
            yield verdict, list(compare(recorded.case, answer, verdict, mode))


def compare(case: Case, answer: Answer, verdict: Verdict, field_validation: str) -> Iterator[Difference]:
    """Every difference between one answer and one verdict."""
    answer = decided(answer, verdict)
    if answer.code == NO_ANSWER and any(error.kind == ErrorKind.INTERNAL for error in verdict.errors):
        return
    status = _STATUS.get(answer.code, f"{answer.code} {answer.reason}")
    if status != verdict.status:
        yield Difference(
            what="status",
            field_validation=field_validation,
            server=f"{status}: {answer.message}",
            ours=f"{verdict.status}: {[(each.path, each.message) for each in verdict.errors]} {verdict.type_errors}"
            f" {verdict.unknown_fields}",
        )
        return
    found = {
        ACCEPTED: lambda: _compare_stored(case, answer, verdict),
        BAD_REQUEST: lambda: _compare_bad_request(answer, verdict),
        INVALID: lambda: _compare_errors(case, answer, verdict),
    }[status]()
    if field_validation == WARN and status != BAD_REQUEST:
        found = (*found, *_compare_warnings(answer, verdict))
    for what, server, ours in found:
        yield Difference(what=what, field_validation=field_validation, server=server, ours=ours)


def decided(answer: Answer, verdict: Verdict) -> Answer:
    """The answer without what we say we do not know: errors of expressions that the engine cannot decide."""
    if answer.code == _FORBIDDEN_CODE and _ADMISSION.search(answer.message):
        # Asked after validation, and about the nodes of a cluster, which we do not know.
        return dataclasses.replace(answer, code=_CREATED_CODE)
    if verdict.record is None or answer.code != _INVALID_CODE:
        return answer
    undecided = set(_find_undecided(verdict.record.to_manifest(), ""))
    if not undecided:
        return answer
    causes = tuple(cause for cause in answer.causes if cause.get("field") not in undecided)
    return dataclasses.replace(answer, causes=causes, code=answer.code if causes else _CREATED_CODE)


def _find_undecided(value: Any, path: str) -> Iterator[str]:
    """Paths of the expressions below *value* about which nothing can be said here."""
    if isinstance(value, dict):
        for key, item in value.items():
            below = f"{path}.{key}".lstrip(".")
            if key == "expression" and isinstance(item, str):
                check = check_derived if "derivedAttributes" in path else check_expression
                yield from [below] if check(item).undecided else ()
            else:
                yield from _find_undecided(item, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_undecided(item, f"{path}[{index}]")


_Found = Iterator[tuple[str, str, str]]


def _compare_bad_request(answer: Answer, verdict: Verdict) -> _Found:
    if "strict decoding error" in answer.message:
        server = set(_unescaped(_UNKNOWN.findall(answer.message)))
        ours = set() if verdict.type_errors else set(verdict.unknown_fields)
        if server != ours:
            yield "unknown-fields", str(sorted(server)), f"{sorted(ours)} {verdict.type_errors}"
        return
    # The server stops at the first one, we name all.
    if not any(answer.message.endswith(text) for _, text in verdict.type_errors):
        yield "bad-request", answer.message, str(verdict.type_errors)


def _compare_warnings(answer: Answer, verdict: Verdict) -> _Found:
    server = {field for text in answer.warnings for field in _unescaped(_UNKNOWN.findall(text))}
    ours = set(verdict.unknown_fields)
    told = {text for text in answer.warnings if text.startswith("spec.driver: ")}
    warned = {f"{path}: {text}" for path, text in verdict.warnings}
    if told != warned:
        yield "warnings", str(sorted(told)), str(sorted(warned))
    # The server cuts its warnings when they are too many together.
    is_cut = server < ours and sum(map(len, ours)) > _WARNINGS
    if server != ours and not is_cut:
        yield "unknown-fields", str(sorted(server)), str(sorted(ours))


def _compare_errors(case: Case, answer: Answer, verdict: Verdict) -> _Found:
    # Sets: on updates older minors look at some fields twice, and say so twice.
    server = {
        (cause.get("field", ""), cause["reason"], _without_generated(case, cause["message"]))
        for cause in answer.causes
    }
    ours = {(error.path, str(error.kind), error.message) for error in verdict.errors}
    missing = server - ours
    extra = ours - server
    if not missing and not extra:
        return
    # Wordings may differ where place, kind and value are the same.
    left = sorted(extra)
    heads = {(error.path, str(error.kind), error.message): _head(error) for error in verdict.errors}
    for path, kind, message in sorted(missing):
        same = [
            each
            for each in left
            if each[:2] == (path, kind) and f"{message}: ".startswith(f"{heads[each]}: ")
        ]
        if not same:
            yield "errors", f"{path} {kind} {message}", ""
            continue
        left.remove(same[0])
        if not any(each.covers(message, same[0][2]) for each in accepted_details()):
            yield "detail", f"{path} {kind} {message}", same[0][2]
    for path, kind, message in left:
        yield "errors", "", f"{path} {kind} {message}"


def _head(error: FieldError) -> str:
    """The message without its detail: kind and bad value."""
    return error.message.removesuffix(f": {error.detail}") if error.detail else error.message


def _without_generated(case: Case, message: str) -> str:
    """Replace what the server adds to generateName by chance."""
    metadata = case.object.get("metadata")
    stem = metadata.get("generateName") if isinstance(metadata, dict) else None
    if not stem or not isinstance(stem, str) or metadata.get("name"):
        return message
    pattern = re.escape(f'"{stem[:_STEM]}') + '[a-z0-9]{5}"'
    return re.sub(pattern, lambda _: f'"{stem[:_STEM]}{GENERATED_SUFFIX}"', message)


def _compare_stored(case: Case, answer: Answer, verdict: Verdict) -> _Found:
    # Servers change nothing about the claims of pods; fields that they drop there are told as warnings.
    if answer.stored is None or case.kind in WORKLOADS:
        return
    server, ours = comparable(case, answer.stored), comparable(case, stored(case, verdict))
    _forget_clock(server, ours)
    unequal = sorted(_unequal(server, ours))[:5]
    if unequal:
        yield "stored", *("; ".join(f"{each[0]}={each[side]}" for each in unequal) for side in (1, 2))


def stored(case: Case, verdict: Verdict) -> Object:
    """The object that we say is stored, in the version that was sent."""
    if verdict.record is None:
        raise TypeError(f"{case.id}: accepted, and nothing is stored")
    header = {"apiVersion": HUB, "kind": case.kind}
    hub = {**json.loads(verdict.record.to_go_json()), **header}
    version = case.object["apiVersion"].rpartition("/")[2]
    # Alphas are arranged as v1 is, and nothing else is converted to them.
    return {**hub, "apiVersion": case.object["apiVersion"]} if "alpha" in version else convert(hub, version)


def comparable(case: Case, manifest: Mapping[str, Any]) -> Object:
    """The part of a stored object that both sides know: all but what the server writes itself."""
    given = case.object.get("metadata")
    named = given if isinstance(given, dict) else {}
    metadata = {
        key: value
        for key, value in (manifest.get("metadata") or {}).items()
        if key not in _SERVER_SET or (key == "name" and named.get("name"))
    }
    rest = {key: value for key, value in manifest.items() if key != "status"}
    kept: Object = pruned({**rest, "metadata": metadata})
    return kept


def pruned(value: Any) -> Any:
    """Without what says nothing: Go writes absent texts and lists in some places as "" and null, and in others not."""
    if isinstance(value, list):
        return [pruned(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: item if key in ("parameters", "data") else pruned(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item not in (None, "", [], {}) or key == "parameters"}


def _forget_clock(server: Any, ours: Any) -> None:
    """Leave out of *server* the times of taints that it filled in from its clock; both are walked side by side."""
    if isinstance(server, dict) and isinstance(ours, dict):
        if "key" in server and "effect" in server and "timeAdded" not in ours:
            server.pop("timeAdded", None)
        for key in server.keys() & ours.keys():
            _forget_clock(server[key], ours[key])
    elif isinstance(server, list) and isinstance(ours, list):
        for one, other in zip(server, ours, strict=False):
            _forget_clock(one, other)


def _unescaped(texts: list[str]) -> Iterator[str]:
    return (re.sub(r"\\(.)", r"\1", text) for text in texts)


_ABSENT = object()


def _unequal(server: Any, ours: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    if isinstance(server, dict) and isinstance(ours, dict):
        for key in {*server, *ours}:
            yield from _unequal(server.get(key, _ABSENT), ours.get(key, _ABSENT), f"{path}.{key}")
    elif isinstance(server, list) and isinstance(ours, list) and len(server) == len(ours):
        for index, pair in enumerate(zip(server, ours, strict=True)):
            yield from _unequal(*pair, f"{path}[{index}]")
    elif server != ours or type(server) is not type(ours):
        yield path, *("absent" if side is _ABSENT else repr(side)[:300] for side in (server, ours))
