"""The children of components: Kubernetes objects with the exact type tokens of pulumi-kubernetes.

The vendor's typed classes cost about 5 ms each, most of it for aliases of API versions that a new object never had; a
plain custom resource with the same token costs 1.3 ms and has the same URN and the same state. The version that each
registration carries is that of the installed pulumi-kubernetes, so that one default provider serves all.

Some options of a component mean its objects. Pulumi hands `provider`, `protect`, `transforms`, `deleted_with` and
`retain_on_delete` on to children. Four others have no effect on a component, although whoever writes them on one of
ours can only mean the object behind it: `import_`, `ignore_changes`, `custom_timeouts`, and aliases that name a
Kubernetes type. They are taken off the component and put on its objects here, by a transformation, which the SDK
applies to children of every kind.

What is imported has fields that the server filled in and the program leaves out, and an owner. The update that
follows an import takes them over, which the provider only does with an annotation; it is there as long as `import_`
is.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import pulumi

from dra_infra.errors import Problem


@cache
def provider_version() -> str:
    """The version of pulumi-kubernetes that is installed, which its typed classes also send."""
    return metadata.version("pulumi-kubernetes")


class KubernetesObject(pulumi.CustomResource):
    """One object of the API server.

    Args:
        name: Name of the resource.
        manifest: The object, with apiVersion and kind.
        opts: Made for this object alone: the version is put into it.

    Attributes:
        metadata: The object's metadata as the provider returns it.
        spec: The object's spec as the provider returns it.
    """

    if TYPE_CHECKING:
        # The SDK compiles annotations that it finds on the class, for every object anew, and these say nothing to it.
        metadata: pulumi.Output[dict[str, Any]]
        spec: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions) -> None:
        opts.version = provider_version()
        version = str(manifest["apiVersion"])
        # Tokens name the core group, where an apiVersion has none.
        group = "" if "/" in version else "core/"
        super().__init__(f"kubernetes:{group}{version}:{manifest['kind']}", name, dict(manifest), opts)

    @property
    def returned_name(self) -> pulumi.Output[str]:
        """The object's name as the provider returns it: a run without one tells by it which object another one means."""
        return self.metadata.apply(lambda found: str((found or {}).get("name") or ""))


_KUBERNETES: Final = "kubernetes:"
_OWN_PACKAGE: Final = __name__.partition(".")[0] + "."
_BESIDE: Final = frozenset({"Namespace", "CustomResourceDefinition"})
"""Kinds that a component makes beside what it is about; an ID to import never means them."""
FORCE: Final = "pulumi.com/patchForce"


@dataclass(frozen=True, kw_only=True)
class ObjectOptions:
    """A component's resource options that are about its objects.

    Args:
        aliases: Earlier URNs of an object, or parts of one, whose type is one of Kubernetes.
        import_: ID of an object that is in the cluster and in no stack: `namespace/name`, or `name`.
        ignore_changes: Paths in the object.
        custom_timeouts: How long the provider waits.
    """

    aliases: tuple[str | pulumi.Alias, ...] = ()
    import_: str | None = None
    ignore_changes: tuple[str, ...] = ()
    custom_timeouts: pulumi.CustomTimeouts | None = None

    def check(self, kinds: Sequence[str], *, named_by_content: bool = False) -> list[Problem]:
        """Check the options for objects of *kinds*, whose name may be made of their content."""
        problems = [
            Problem(
                path="opts.aliases",
                code="alias-of-another-kind",
                message=f"{_type_of(alias)!r} is not what the component makes: {' and '.join(kinds)}",
                hint=f'write pulumi.Alias(name=..., type_="kubernetes:resource.k8s.io/v1:{kinds[0]}")',
            )
            for alias in self.aliases
            if _type_of(alias).rpartition(":")[2] not in kinds
        ]
        if named_by_content and (ignored := self._ignored_content()) is not None:
            message = f"{ignored!r} is what the object's name is made of, so a change would give old content a new name"
            hint = 'keep the name: object_name="..."; or ignore no more than labels and annotations'
            problems.append(
                Problem(path="opts.ignore_changes", code="ignored-content", message=message, hint=hint)
            )
        return problems

    def check_import(self, object_name: object, namespace: object = None) -> list[Problem]:
        """Check that the ID to import is that of the component's object, as far as its name and namespace are known."""
        if not isinstance(self.import_, str):
            return []
        holder, _, name = self.import_.rpartition("/")
        for argument, found, known in (("object_name", name, object_name), ("namespace", holder, namespace)):
            if isinstance(known, str) and found != known:
                message = (
                    f"{self.import_!r} is not the object of this component, whose {argument} is {known!r}"
                )
                return [
                    Problem(
                        path="opts.import_",
                        code="import-of-another-name",
                        message=message,
                        hint=f'write {argument}="{found}"' if found else 'write import_="namespace/name"',
                    )
                ]
        return []

    def _ignored_content(self) -> str | None:
        """The first path whose value, or a part of it, a name by content is made of, or is that name."""
        for path in self.ignore_changes:
            head = [part for part in re.split(r'[.\[\]"]+', path) if part]
            if head[:1] in (["spec"], ["*"]) or head[:2] in (
                ["metadata"],
                ["metadata", "*"],
                ["metadata", "name"],
            ):
                return path
        return None


def take_object_options(
    component: pulumi.ComponentResource, opts: pulumi.ResourceOptions | None
) -> tuple[pulumi.ResourceOptions | None, ObjectOptions]:
    """The options of *component* without those that mean its objects, and those; the given ones are left as they are."""
    if not isinstance(opts, pulumi.ResourceOptions):
        return opts, ObjectOptions()
    aliases = tuple(alias for alias in _listed(opts.aliases) if _type_of(alias).startswith(_KUBERNETES))
    found = ObjectOptions(
        aliases=tuple(_beside(alias, opts.parent) for alias in aliases),
        import_=opts.import_,
        ignore_changes=tuple(opts.ignore_changes or ()),
        custom_timeouts=opts.custom_timeouts,
    )
    if found == ObjectOptions():
        return opts, found
    own = copy.copy(opts)
    own.import_ = own.ignore_changes = own.custom_timeouts = None
    own.aliases = [alias for alias in _listed(opts.aliases) if alias not in aliases]

    def hand_on(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.opts.parent is not component or not type(args.resource).__module__.startswith(_OWN_PACKAGE):
            return None
        opts = _with(args.opts, found, args.type_)
        return pulumi.ResourceTransformationResult(forced(args.props) if opts.import_ else args.props, opts)

    own.transformations = [*(own.transformations or ()), hand_on]
    return own, found


def _with(opts: pulumi.ResourceOptions, found: ObjectOptions, type_: str) -> pulumi.ResourceOptions:
    result = copy.copy(opts)
    kind = type_.rpartition(":")[2]
    aliases = [alias for alias in found.aliases if _is_same_kind(_type_of(alias), type_)]
    result.aliases = [*_listed(opts.aliases), *aliases]
    result.ignore_changes = [*(opts.ignore_changes or ()), *found.ignore_changes]
    result.custom_timeouts = opts.custom_timeouts or found.custom_timeouts
    result.import_ = found.import_ if kind not in _BESIDE else None
    return result


def forced(props: Any) -> Any:
    """An object with the annotation by which the provider takes its fields over from others, instead of failing."""
    metadata = props.get("metadata")
    if not isinstance(metadata, Mapping):
        return props
    given = metadata.get("annotations")
    if isinstance(given, pulumi.Output):
        annotations: Any = given.apply(lambda known: {FORCE: "true", **(known or {})})
    else:
        annotations = {FORCE: "true", **(given or {})}
    return {**props, "metadata": {**metadata, "annotations": annotations}}


def _listed(aliases: Iterable[Any] | None) -> list[Any]:
    return list(aliases or ())


def _type_of(alias: Any) -> str:
    """The type that an alias names; empty when it names none, or is a Pulumi Output."""
    if isinstance(alias, pulumi.Alias):
        return alias.type_ if isinstance(alias.type_, str) else ""
    parts = alias.split("::") if isinstance(alias, str) else []
    return parts[2].rpartition("$")[2] if len(parts) > 3 else ""


def _is_same_kind(one: str, other: str) -> bool:
    """Compare two types by kind and group, whatever the version."""
    return [one.partition("/")[0], one.rpartition(":")[2]] == [
        other.partition("/")[0],
        other.rpartition(":")[2],
    ]


def _beside(alias: Any, parent: pulumi.Resource | None) -> Any:
    """An alias as the object must have it: without a parent it means the component's, not the component."""
    if isinstance(alias, pulumi.Alias) and alias.parent is ...:  # type: ignore[comparison-overlap]  # the SDK's unset
        return pulumi.Alias(alias.name, alias.type_, parent, alias.stack, alias.project)
    return alias
