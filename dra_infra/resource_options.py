"""Resource options, and which resource of the base a resource is by its aliases.

The rules are those of the engine: `pkg/resource/deploy/step_generator.go` (aliases, `getOldResource`) and
`inheritFromParent` in `source_eval.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

STACK_TYPE: Final = "pulumi:pulumi:Stack"
_VERSION: Final = re.compile(r"^(kubernetes:(?:[^:/]+/)?)[^:/]+(?=:[^:]+$)")
"""The API version in a type of pulumi-kubernetes, `v1` in `kubernetes:apps/v1:Deployment`."""

_DEEPEST: Final = 100
"""Parents above each other whose aliases are followed: who wrote the program wrote them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alias:
    """A former identity of a resource: a whole URN, or the parts that differ.

    Args:
        urn: Everything else is empty with it.
        name: Of the resource.
        type: Of the resource.
        parent: URN of the parent.
        is_without_parent: Whether it had none.
        project: Of the program.
        stack: Of the program.
    """

    urn: str = ""
    name: str = ""
    type: str = ""
    parent: str = ""
    is_without_parent: bool = False
    project: str = ""
    stack: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResourceOptions:
    """The options of one resource, with those that it inherits from its parent.

    Args:
        parent: URN of the parent, where the resource may have an alias by it.
        aliases: Former identities; those that follow from the parent's are not among them.
        protect: Whether the engine refuses to delete or replace it.
        retain_on_delete: Whether it stays in the cluster when the engine deletes it.
        ignore_changes: Paths of inputs that stay as they are.
        replace_on_changes: Paths of inputs whose change replaces it.
        delete_before_replace: Whether the old one goes first; None leaves it to the provider.
        depends_on: URNs of what is made before it and deleted after it, without what its inputs use.
        deleted_with: URN of the resource that takes it along when it is deleted.
        custom_timeouts: How long the engine waits: texts such as `30m`, by `create`, `update` and `delete`.
    """

    parent: str = ""
    aliases: tuple[Alias, ...] = ()
    protect: bool = False
    retain_on_delete: bool = False
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    delete_before_replace: bool | None = None
    depends_on: tuple[str, ...] = ()
    deleted_with: str = ""
    custom_timeouts: tuple[tuple[str, str], ...] = ()


NO_OPTIONS: Final = ResourceOptions()


def make_urn(stack: str, project: str, parent: str, type_: str, name: str) -> str:
    """Return the URN of a resource: the types of all parents but the stack's are joined by `$`."""
    parent_type = parent.split("::", 3)[2] if parent.count("::") > 2 else ""
    qualified = type_ if parent_type in ("", STACK_TYPE) else f"{parent_type}${type_}"
    return f"urn:pulumi:{stack}::{project}::{qualified}::{name}"


def without_version(type_: str) -> str:
    """Return a type, or a URN's types, without the API version: the provider gives each type an alias for the others."""
    above, dollar, last = type_.rpartition("$")
    plain = _VERSION.sub(r"\1", last)
    return f"{above}{dollar}{plain}"


def match_by_alias(
    base: Collection[str], head: Collection[str], options: Mapping[str, ResourceOptions]
) -> dict[str, str]:
    """Return the URN at the base of each resource of the head that has another one now.

    Args:
        base: URNs of all resources of the base.
        head: URNs of all resources of the head.
        options: Of the head's resources, by URN.
    """
    if not any(each.aliases or each.parent for each in options.values()):
        return {}
    former = {_without_version_of(urn): urn for urn in base}
    found: dict[str, str] = {}
    chain: list[str] = []

    def match(urn: str) -> str | None:
        """Return the former URN of a resource, after that of its parent, on which its aliases depend."""
        if urn in found or urn in chain or len(chain) > _DEEPEST:
            return found.get(urn)
        chain.append(urn)
        own = options.get(urn, NO_OPTIONS)
        if own.parent:
            match(own.parent)
        if _without_version_of(urn) not in former:
            candidates = (_without_version_of(alias) for alias in _aliases_of(urn, own, match))
            alias = next((former[each] for each in candidates if each in former), None)
            if alias is not None:
                found[urn] = alias
        chain.pop()
        return found.get(urn)

    for urn in head:
        match(urn)
    return found


def _aliases_of(urn: str, asked: ResourceOptions, match: Callable[[str], str | None]) -> Iterator[str]:
    """Yield the former URNs that a resource may have had, its own aliases first."""
    stack, project, types, name = _parts(urn)
    type_ = types.rpartition("$")[2]
    own = [_collapse(each, urn, asked.parent, match) for each in asked.aliases]
    yield from own
    former_parent = match(asked.parent) if asked.parent else None
    if former_parent is not None:
        for alias in ("", *own):
            parts = _parts(alias) if alias else ("", "", type_, name)
            child = _child_name(parts[3], asked.parent, former_parent)
            yield make_urn(stack, project, former_parent, parts[2].rpartition("$")[2], child)


def _collapse(alias: Alias, urn: str, parent: str, match: Callable[[str], str | None]) -> str:
    if alias.urn:
        return alias.urn
    stack, project, types, name = _parts(urn)
    above, _, type_ = types.rpartition("$")
    if alias.is_without_parent:
        holder = ""
    elif alias.parent:
        holder = match(alias.parent) or alias.parent
    else:
        # The parent as it is now: only its types are part of the URN.
        holder = parent or (f"urn:pulumi:{stack}::{project}::{above}::" if above else "")
    return make_urn(
        alias.stack or stack, alias.project or project, holder, alias.type or type_, alias.name or name
    )


def _child_name(name: str, parent: str, former_parent: str) -> str:
    """Return the name of a child under the former name of its parent, which it often begins with."""
    now = _parts(parent)[3]
    return _parts(former_parent)[3] + name.removeprefix(now) if name.startswith(now) else name


def _without_version_of(urn: str) -> str:
    stack, project, types, name = _parts(urn)
    return f"{stack}::{project}::{without_version(types)}::{name}"


def _parts(urn: str) -> tuple[str, str, str, str]:
    """Return stack, project, types and name of a URN."""
    stack, project, types, name = [*urn.split("::", 3), "", "", ""][:4]
    return stack.removeprefix("urn:pulumi:"), project, types, name
