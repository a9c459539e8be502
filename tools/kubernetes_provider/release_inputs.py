"""The inputs of a release: what `Check` makes of them, and which of their changes `Diff` sees."""

from __future__ import annotations

from typing import Any, Final

from tools.kubernetes_provider import helm_values
from tools.kubernetes_provider.changes import Change, find_changes
from tools.kubernetes_provider.helm_release import DEFAULT_SECONDS
from tools.kubernetes_provider.values import UNKNOWN, Object, Secret, Value, mark_secrets, reveal

INPUTS: Final = """
    allowNullValues atomic chart cleanupOnFail createNamespace dependencyUpdate description devel disableCRDHooks
    disableOpenapiValidation disableWebhooks forceUpdate keyring maxHistory name namespace postrender recreatePods
    renderSubchartNotes replace repositoryOpts resetValues reuseValues skipAwait skipCrds takeOwnership timeout
    verify version waitForJobs
"""
"""Inputs that are kept as they are; `values` and `valueYamlFiles` become one, all others are forgotten."""

REFUSED: Final = {"lint": "linting charts is not part of the stand-in provider"}

DEPRECATED: Final = {
    "allowNullValues": "`allowNullValues` is deprecated and has no effect; null values in Helm chart values are preserved by default."
}
"""Inputs that a program is warned of in every command, in the vendor's words."""

REPLACING: Final = (("name",), ("namespace",))
KEYRING: Final = "$HOME/.gnupg/pubring.gpg"

NULL: Final = object()
"""A null among the values, where it means something: to `find_changes`, None is nothing at all."""


def complete(inputs: Object, *, name: str, namespace: str, version: str, keyring: str) -> Object:
    """Return the inputs with defaults, values joined, without what says nothing.

    Args:
        inputs: As the program gives them.
        name: Where the program gives none.
        namespace: Likewise.
        version: Of the chart that was found; empty when nobody looked.
        keyring: For charts that are to be verified, where the program gives none.

    Raises:
        ValuesFileError: A values file cannot be used.
    """
    names = INPUTS.split()
    kept = {field: value for field, value in inputs.items() if field in names and _says_something(value)}
    defaults: Object = {"name": name, "namespace": namespace}
    if reveal(inputs.get("skipAwait")) is not True:
        defaults["timeout"] = DEFAULT_SECONDS
    if reveal(inputs.get("verify")) is True:
        defaults["keyring"] = keyring
    completed = {field: value for field, value in defaults.items() if value} | kept
    values = helm_values.join(inputs)
    if _says_something(reveal(values)):
        completed["values"] = values
    if "repositoryOpts" in completed:
        completed["repositoryOpts"] = _hide_password(completed["repositoryOpts"])
    return completed | ({"version": version} if version else {})


def _says_something(value: Value) -> bool:
    # What Go's `omitempty` leaves out; a secret or unknown one may say anything.
    return isinstance(value, Secret) or value is UNKNOWN or bool(value)


def _hide_password(options: Value) -> Value:
    """Return the options of a repository with a secret password, whether or not the program says that it is one."""
    if not isinstance(options, dict) or not options.get("password"):
        return options
    return mark_secrets(options, {"password": Secret(options["password"])})


def find_release_changes(old_inputs: Object, state: Object, new_inputs: Object) -> tuple[Change, ...]:
    """Return what differs, in the order of the paths.

    As the vendor's provider does: what goes is compared with the old inputs, all else with the state. So a release
    that somebody else upgraded is set right after a refresh.

    Args:
        old_inputs: Of the last deployment.
        state: The release after it, or as the last refresh found it.
        new_inputs: Of this one; values may be unknown.
    """
    old, now, new = reveal(old_inputs), reveal(state), reveal(new_inputs)
    before = {field: _before(old.get(field), now.get(field), new.get(field)) for field in {*old, *new}}
    marked = [
        {**each, "values": _mark_nulls(each.get("values"))} if each.get("values") else each
        for each in (before, new)
    ]
    return find_changes(marked[0], marked[1], REPLACING)


def _before(old: Any, now: Any, new: Any) -> Any:
    """Return what a new value is compared with."""
    if isinstance(old, dict | None) and isinstance(now, dict) and isinstance(new, dict):
        known = old or {}
        return {
            name: _before(known.get(name), now.get(name), new[name]) if name in new else known[name]
            for name in {*known, *new}
            if name in known or name in now
        }
    return old if new is None else now


def _mark_nulls(values: Value) -> Value:
    if isinstance(values, dict):
        return {name: NULL if value is None else _mark_nulls(value) for name, value in values.items()}
    return values
