"""Decisions of ValidatingAdmissionPolicies on requests, in the API server's words.

Upstream: validator.go, dispatcher.go and plugin.go in `k8s.io/apiserver/pkg/admission/plugin/policy/validating`,
CollectParams in `plugin/policy/generic/policy_dispatcher.go`, and `plugin/webhook/matchconditions/matcher.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.placeholders import holds_placeholder
from dra_infra.kubernetes.apiserver.policies.expressions import (
    ANY,
    BOOL,
    TEXT,
    TEXT_OR_NULL,
    Activation,
    Compiled,
    Err,
    OutOfBudgetError,
    PolicyScope,
    UndecidedError,
    Value,
    compile_policy_expression,
    partly_known,
    read_value,
    variable_type,
)
from dra_infra.kubernetes.apiserver.policies.matching import listed, match_resources, refuse_shapes
from dra_infra.kubernetes.apiserver.policies.requests import Request
from dra_infra.kubernetes.cel.environment import Environment

GROUP: Final = "admissionregistration.k8s.io"
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"

NO_PARAMS: Final = "are not in the input"
"""Ends the reason why params are not known."""

_BUDGET: Final = 10_000_000
"""RuntimeCELCostBudget in `k8s.io/apiserver/pkg/apis/cel/config.go`."""
_BUDGET_OF_CONDITIONS: Final = 2_500_000
_MAX_MESSAGE: Final = 5 * 1024

FindParams = Callable[[str, str, str, str], Mapping[str, Any] | None]
"""Looks for an object by apiVersion, kind, namespace and name."""


class Decision(NamedTuple):
    """The answer of one binding of a policy to a request; a request that it says nothing about passes.

    Args:
        policy: Name of the policy.
        binding: Name of the binding.
        action: `deny` refuses the request, `warn` is told to who asks; `undecided` is known to the server alone.
        message: The server's text, or why it is not known.
    """

    policy: str
    binding: str
    action: Literal["deny", "warn", "undecided"]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Validation:
    expression: Compiled
    message: str
    spoken: Compiled | None


class Policy:
    """A policy as one server compiles it.

    Attributes:
        name: Its name.
        refusals: (path, text) of what the server does not take; there is no such policy then.
    """

    def __init__(self, manifest: Mapping[str, Any], release: Release) -> None:
        self.name = str(mapping(manifest.get("metadata")).get("name") or "")
        self._spec = mapping(manifest.get("spec"))
        self._minor = release.number
        self.refusals: list[tuple[str, str]] = []
        self._scope = PolicyScope(has_params=bool(self._spec.get("paramKind")))
        self._reads_volumes = "olume" in str(self._spec)
        self._variables = self._read_variables()
        self._conditions = [
            self._compile(each, f"matchConditions[{index}]", "expression", BOOL)
            for index, each in enumerate(mappings(self._spec.get("matchConditions")))
        ]
        self._validations = [
            self._read_validation(each, f"validations[{index}]")
            for index, each in enumerate(mappings(self._spec.get("validations")))
        ]
        self._annotations = [
            self._compile(each, f"auditAnnotations[{index}]", "valueExpression", TEXT_OR_NULL)
            for index, each in enumerate(mappings(self._spec.get("auditAnnotations")))
        ]
        self.refusals += refuse_shapes(self._spec)
        if not mappings(mapping(self._spec.get("matchConstraints")).get("resourceRules")):
            self.refusals.append(("spec.matchConstraints.resourceRules", "Required value"))
        if not self._validations and not self._annotations:
            self.refusals.append(("spec.validations", "Required value"))

    def _read_variables(self) -> dict[str, Compiled]:
        found: dict[str, Compiled] = {}
        for index, each in enumerate(mappings(self._spec.get("variables"))):
            name = str(each.get("name") or "")
            found[name] = self._compile(each, f"variables[{index}]", "expression", ANY)
            kind = variable_type(found[name].kind)
            self._scope = self._scope._replace(variables=(*self._scope.variables, (name, kind)))
        return found

    def _read_validation(self, written: Mapping[str, Any], path: str) -> _Validation:
        has_message = bool(written.get("messageExpression"))
        return _Validation(
            expression=self._compile(written, path, "expression", BOOL),
            message=str(written.get("message") or ""),
            spoken=self._compile(written, path, "messageExpression", TEXT) if has_message else None,
        )

    def _compile(self, written: Mapping[str, Any], path: str, key: str, returns: tuple[str, ...]) -> Compiled:
        text = str(written.get(key) or "")
        where = f"spec.{path}.{key}"
        if not text.strip():
            self.refusals.append((where, "Required value"))
        scope = self._scope._replace(has_authorizer=key != "messageExpression")
        new, stored = (
            compile_policy_expression(
                text, Environment(minor=self._minor, stored=stored, policy=scope), returns
            )
            for stored in (False, True)
        )
        if text.strip() and new.refusal:
            self.refusals.append((where, new.refusal))
        return stored

    @property
    def fails(self) -> bool:
        """True where an expression that cannot be evaluated refuses the request."""
        return self._spec.get("failurePolicy") != "Ignore"

    def decide(
        self, binding: Mapping[str, Any], request: Request, find_params: FindParams
    ) -> Iterator[Decision]:
        """Returns the answer of one of its bindings to a request, in the server's order."""
        name = str(mapping(binding.get("metadata")).get("name") or "")
        bound = mapping(binding.get("spec"))
        actions = listed(bound.get("validationActions"))
        acts = "Deny" in actions or "Warn" in actions
        if not (acts or self._annotations or self._scope.has_params):
            # Audit alone refuses nothing by itself.
            return
        try:
            version = match_resources(mapping(self._spec.get("matchConstraints")), request)
            if version is None:
                return
            if match_resources(mapping(bound.get("matchResources")), request) is None:
                return
            params = {"params": self._params(bound, request, find_params)} if self._scope.has_params else {}
            found = self._judge(request, version, params)
        except UndecidedError as error:
            yield Decision(self.name, name, "undecided", str(error))
            return
        for kind, message in found:
            if kind == "undecided annotation" or (kind == "undecided" and acts):
                yield Decision(self.name, name, "undecided", message)
            elif kind == "annotation" or "Deny" in actions:
                told = (
                    f"ValidatingAdmissionPolicy '{self.name}' with binding '{name}' denied request: {message}"
                )
                yield Decision(self.name, name, "deny", told)
            elif "Warn" in actions:
                told = f"Validation failed for ValidatingAdmissionPolicy '{self.name}' with binding '{name}': {message}"
                yield Decision(self.name, name, "warn", told)

    def _judge(self, request: Request, version: str, params: Mapping[str, Value]) -> list[tuple[str, str]]:
        """What `_validate` finds. The server may add a volume to a pod, so that both answers have to be the same.

        Raises:
            UndecidedError: When they are not.
        """

        def judged(*, has_token: bool) -> list[tuple[str, str]]:
            values = request.variables(version, has_token=has_token)
            conditions = request.variables(version, conditions=True, has_token=has_token)
            return list(self._validate({**values, **params}, {**conditions, **params}))

        found = judged(has_token=False)
        if self._reads_volumes and request.may_get_token and judged(has_token=True) != found:
            raise UndecidedError("whether the server adds a volume to the pod is not known here")
        return found

    def _params(self, bound: Mapping[str, Any], request: Request, find_params: FindParams) -> Value:
        kind = mapping(self._spec.get("paramKind"))
        reference = mapping(bound.get("paramRef"))
        if not reference:
            return None
        name = reference.get("name")
        if not name:
            raise UndecidedError("which params a selector finds in the cluster is not known here")
        version, kind_name = str(kind.get("apiVersion")), str(kind.get("kind"))
        namespace = str(reference.get("namespace") or request.namespace or "")
        for place in (namespace, ""):
            found = find_params(version, kind_name, place, str(name))
            if found is not None and not holds_placeholder(found):
                return _as_written(found, "params")
        raise UndecidedError(f"the params {kind_name} {name} {NO_PARAMS}")

    def _validate(
        self, values: Mapping[str, Value], conditions: Mapping[str, Value]
    ) -> Iterator[tuple[str, str]]:
        """(`validation`, `annotation`, `undecided` or `undecided annotation`, text) of what does not hold."""
        activation = Activation(values, self._variables, _BUDGET)
        try:
            if not self._is_met(conditions):
                return
            results = [_evaluated(activation, each.expression) for each in self._validations]
        except (OutOfBudgetError, _FailedError) as error:
            if self.fails:
                yield "validation", str(error)
            return
        spoken = self._speak(values, activation.budget)
        for validation, result, message in zip(self._validations, results, spoken, strict=True):
            if isinstance(result, UndecidedError):
                yield "undecided", str(result)
            elif type(result) is Err or isinstance(message, OutOfBudgetError):
                failure = result.text if type(result) is Err else f"failed messageExpression: {message}"
                if self.fails:
                    yield "validation", failure
            elif result is not True:
                if isinstance(message, UndecidedError):
                    told = f"the request is refused, with a message that is not known here: {message}"
                    yield "undecided", told
                else:
                    yield "validation", _message(validation, message)
        yield from self._annotate(values)

    def _speak(self, values: Mapping[str, Value], budget: int) -> list[Value]:
        """The messages of all validations, which the server evaluates whether they hold or not; or the errors."""
        activation = Activation(values, self._variables, budget)
        try:
            return [each.spoken and _evaluated(activation, each.spoken) for each in self._validations]
        except OutOfBudgetError as error:
            return [error] * len(self._validations)

    def _annotate(self, values: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
        activation = Activation(values, self._variables, _BUDGET)
        for each in self._annotations:
            result = _evaluated(activation, each)
            if isinstance(result, UndecidedError):
                yield "undecided annotation", f"an audit annotation: {result}"
            elif type(result) is Err and self.fails:
                yield "annotation", result.text

    def _is_met(self, values: Mapping[str, Value]) -> bool:
        activation = Activation(values, self._variables, _BUDGET_OF_CONDITIONS)
        failures: list[str] = []
        undecided: UndecidedError | None = None
        for condition in self._conditions:
            try:
                result = _evaluated(activation, condition)
            except OutOfBudgetError as error:
                raise _FailedError(str(error)) from error
            if result is False:
                return False
            if isinstance(result, UndecidedError):
                undecided = undecided or result
            elif type(result) is Err and result.text not in failures:
                failures.append(result.text)
        if undecided is not None:
            raise undecided
        if failures:
            raise _FailedError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
        return True


class _FailedError(Exception):
    """A condition cannot be evaluated."""


def _evaluated(activation: Activation, compiled: Compiled) -> Value | UndecidedError:
    try:
        return activation.evaluate(compiled)
    except UndecidedError as error:
        return error


def _message(validation: _Validation, spoken: Value) -> str:
    message = spoken.strip() if type(spoken) is str else ""
    if len(message.encode()) > _MAX_MESSAGE or "\n" in message:
        message = ""
    return message or validation.message.strip() or f"failed expression: {validation.expression.text.strip()}"


def _as_written(data: Any, told: str) -> Value:
    """An object of which only what is written is known; the data of a ConfigMap is whole."""
    if isinstance(data, Mapping):
        if told == "params.data":
            return read_value(data)
        known = {str(key): _as_written(value, f"{told}.{key}") for key, value in data.items()}
        return partly_known(known, lambda key: f"{told}.{key} is not written, and the server may complete it")
    if isinstance(data, list):
        return [_as_written(item, told) for item in data]
    return read_value(data)
