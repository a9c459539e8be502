"""The engine's events, one JSON object per line, reduced to what a reader needs of them.

Programs, providers and policy packs decide what stands in them, so any field may be missing, of another type, endless
or hostile: texts are masked, freed of terminal codes and cut, and there is a most of everything. (Events:
sdk/go/common/apitype/events.go of pulumi/pulumi.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.kubernetes.api import CLUSTER_SCOPED, ObjectRef, mapping, name_kind
from dra_infra.program.stack_settings import UNDECRYPTABLE
from dra_infra.program_objects import AUTONAMED, EngineMessage, EngineResource, Level, PolicyFinding

Hide = Callable[[str], str]
"""Takes the secrets of the environment out of a text."""

MAX_RESOURCES: Final = 100_000
MAX_PATHS: Final = 50
MAX_MESSAGES: Final = 200
MAX_POLICIES: Final = 1_000
MAX_TEXT: Final = 2_000
MAX_NAME: Final = 300

_SEARCHED: Final = 2**16
"""Characters of a text that are searched for secrets."""

_LONGEST_SECRET: Final = 2**14
"""Longer than a private key; so much is dropped of a text that was cut before it was searched."""

_TERMINAL: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f]"
)
_NOISE: Final = re.compile(
    r"^(__\w+|status|metadata\.(creationTimestamp|generation|managedFields|resourceVersion|selfLink|uid)"
    r"|metadata\.annotations\[\"pulumi\.com/autonamed\"\])(?=$|[.\[])"
)
"""Paths that the provider or the server sets, which nobody decided."""


_DRY_RUN_NOISE: Final = re.compile(r"^Retry #\d+; ")
"""The provider says so of every dry run that fails, before the error itself."""

_SAID_ANYWAY: Final = frozenset({"preview failed", "update failed", "resource registration failed"})
"""The engine's last words after any failure."""


@dataclass(kw_only=True)
class Events:
    """Reads the events of one preview, line by line.

    Args:
        hide: For every text before it is kept.
        text: What was printed beside events, the last lines.
        result: `succeeded`, `failed`, or empty when the engine did not get to its summary.
        summary: How many resources each step happens to.
    """

    hide: Hide
    text: list[str] = field(default_factory=list)
    result: str = ""
    summary: dict[str, int] = field(default_factory=dict)
    _resources: dict[str, EngineResource] = field(default_factory=dict)
    _messages: dict[EngineMessage, None] = field(default_factory=dict)
    _policies: dict[PolicyFinding, None] = field(default_factory=dict)
    _left_out: dict[str, int] = field(default_factory=dict)

    def read(self, line: bytes) -> None:
        """Take in one line."""
        if not line.strip():
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            self.text = [*self.text, self.clean(line.decode(errors="replace"))][-20:]
            return
        for name, take in (
            ("resourcePreEvent", self._step),
            ("resOutputsEvent", self._outputs),
            ("resOpFailedEvent", self._failed),
            ("diagnosticEvent", self._diagnostic),
            ("policyEvent", self._policy),
            ("policyRemediationEvent", self._remediation),
            ("summaryEvent", self._summary),
        ):
            if isinstance(event.get(name), dict):
                take(event[name])

    def skip(self) -> None:
        """Count a line that was too long to be read."""
        self._leave_out("events of the engine")

    @property
    def resources(self) -> tuple[EngineResource, ...]:
        """The steps of each resource."""
        return tuple(self._resources.values())

    @property
    def messages(self) -> tuple[EngineMessage, ...]:
        """Errors and warnings, each once."""
        return tuple(self._messages)

    @property
    def policies(self) -> tuple[PolicyFinding, ...]:
        """Findings of policies, with the objects that they are about; sorted."""
        refs = {urn: each.ref for urn, each in self._resources.items()}
        return tuple(sorted(replace(each, ref=refs.get(each.urn)) for each in self._policies))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the parts that were too much to keep."""
        return tuple(f"{number:,} more {what}" for what, number in sorted(self._left_out.items()))

    def clean(self, text: object, most: int = MAX_TEXT) -> str:
        """*text* to be shown: without secrets, terminal codes and length; empty when it is none."""
        if not isinstance(text, str):
            return ""
        # Masked first: half a secret at a cut would not be found any more. What ends a text too long to be searched goes.
        shown = self.hide(text) if len(text) <= _SEARCHED else self.hide(text[:_SEARCHED])[:-_LONGEST_SECRET]
        shown = _TERMINAL.sub("", shown).strip()
        return shown if len(shown) <= most else f"{shown[:most]}…"

    def _step(self, event: Mapping[str, Any]) -> None:
        metadata = mapping(event.get("metadata"))
        urn, step = self.clean(metadata.get("urn"), 10 * MAX_NAME), self.clean(metadata.get("op"), 40)
        if not urn or not step:
            return
        if urn not in self._resources and len(self._resources) >= MAX_RESOURCES:
            self._leave_out("resources")
            return
        former = self._resources.get(urn) or EngineResource(urn=urn)
        old = mapping(metadata.get("old"))
        state = mapping(metadata.get("new")) or old
        self._resources[urn] = replace(
            former,
            steps=(*former.steps, step)[:20],
            custom=state.get("custom") is True,
            ref=former.ref or self._ref(former, mapping(state.get("inputs")), mapping(old.get("inputs"))),
            replacing=former.replacing or self._replacing(metadata),
            paths=former.paths or self._paths(metadata),
        )

    def _outputs(self, event: Mapping[str, Any]) -> None:
        metadata = mapping(event.get("metadata"))
        former = self._resources.get(self.clean(metadata.get("urn"), 10 * MAX_NAME))
        if former is None:
            return
        if metadata.get("op") == "refresh":
            self._resources[former.urn] = replace(former, paths=former.paths or self._paths(metadata))
            return
        if metadata.get("op") not in {"create", "update", "create-replacement"} or former.ref is None:
            return
        new = mapping(metadata.get("new"))
        if _holds_unknown(new.get("inputs")):
            return
        outputs = mapping(new.get("outputs"))
        # Only a server gives an object its uid; without one the provider gives back what it was given.
        answered = isinstance(mapping(outputs.get("metadata")).get("uid"), str)
        self._resources[former.urn] = replace(former, answered=answered or former.answered is True)

    def _failed(self, event: Mapping[str, Any]) -> None:
        urn = self.clean(mapping(event.get("metadata")).get("urn"), 10 * MAX_NAME)
        if urn in self._resources:
            self._resources[urn] = replace(self._resources[urn], failed=True)

    def _ref(
        self, resource: EngineResource, inputs: Mapping[str, Any], old: Mapping[str, Any]
    ) -> ObjectRef | None:
        if not resource.type.startswith("kubernetes:"):
            return None
        metadata = mapping(inputs.get("metadata"))
        kind, name = self.clean(inputs.get("kind"), MAX_NAME), self.clean(metadata.get("name"), MAX_NAME)
        if not kind or not name:
            return None
        if AUTONAMED in mapping(metadata.get("annotations")) and name != resource.name:
            # Each preview makes up another name for what is to be created; only the deployed one is told.
            deployed = self.clean(mapping(old.get("metadata")).get("name"), MAX_NAME)
            name = deployed or f"{self.clean(resource.name, MAX_NAME)}-*"
        # Where a server does not answer, the provider takes classes for objects of the context's namespace.
        namespace = "" if kind in CLUSTER_SCOPED else self.clean(metadata.get("namespace"), MAX_NAME)
        group, slash, _ = self.clean(inputs.get("apiVersion"), MAX_NAME).rpartition("/")
        return ObjectRef(kind=name_kind(kind, group if slash else ""), name=name, namespace=namespace)

    def _replacing(self, metadata: Mapping[str, Any]) -> tuple[str, ...]:
        keys = metadata.get("keys")
        found = [self.clean(key, MAX_NAME) for key in keys] if isinstance(keys, list) else []
        return tuple(sorted({key for key in found if key}))[:MAX_PATHS]

    def _paths(self, metadata: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        def found() -> Iterator[tuple[str, str]]:
            for path, change in mapping(metadata.get("detailedDiff")).items():
                shown = self.clean(path, MAX_NAME)
                if shown and not _NOISE.match(shown):
                    yield shown, self.clean(mapping(change).get("diffKind"), 40)

        return tuple(sorted(set(found())))[:MAX_PATHS]

    def _diagnostic(self, event: Mapping[str, Any]) -> None:
        severity = event.get("severity")
        if severity not in {"error", "warning"}:
            return
        text = self.clean(event.get("message"))
        if not text or text in _SAID_ANYWAY or _DRY_RUN_NOISE.match(text):
            return
        found = EngineMessage(
            severity="error" if severity == "error" else "warning",
            urn=self.clean(event.get("urn"), 10 * MAX_NAME),
            text=text,
        )
        if found not in self._messages and len(self._messages) >= MAX_MESSAGES:
            self._leave_out(f"{severity}s of the engine")
            return
        self._messages[found] = None

    def _policy(self, event: Mapping[str, Any]) -> None:
        # A policy that remediates is mandatory where it could not: only then it reports a violation.
        level: Level = "advisory" if event.get("enforcementLevel") == "advisory" else "mandatory"
        self._find(event, level, event.get("message"))

    def _remediation(self, event: Mapping[str, Any]) -> None:
        self._find(event, "remediate", "changes what the program asks for")

    def _find(self, event: Mapping[str, Any], level: Level, message: object) -> None:
        pack = self.clean(event.get("policyPackName"), MAX_NAME)
        version = self.clean(event.get("policyPackVersion"), MAX_NAME)
        found = PolicyFinding(
            pack=f"{pack}@v{version}" if version else pack,
            policy=self.clean(event.get("policyName"), MAX_NAME),
            level=level,
            urn=self.clean(event.get("resourceUrn"), 10 * MAX_NAME),
            message=self.clean(message),
        )
        if found not in self._policies and len(self._policies) >= MAX_POLICIES:
            self._leave_out("findings of policies")
            return
        self._policies[found] = None

    def _summary(self, event: Mapping[str, Any]) -> None:
        self.result = self.clean(event.get("result"), 40) or "succeeded"
        counts = mapping(event.get("resourceChanges"))
        self.summary = {
            self.clean(step, 40): number
            for step, number in sorted(counts.items())[:50]
            if isinstance(number, int) and not isinstance(number, bool)
        }

    def _leave_out(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1


def _holds_unknown(value: object) -> bool:
    left = [value]
    while left:
        item = left.pop()
        if item == UNDECRYPTABLE:
            return True
        if isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
    return False
