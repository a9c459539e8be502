"""Objects that count or watch extended resources, and have to move together with the pods: quotas, limits, autoscalers, queues."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import Quantity, mapping, mappings, value_at
from dra_infra.kubernetes.apiserver import QuotaKey
from dra_infra.migration.device_plugin import RequestedDevices, is_device, read_resource, tell_other_form
from dra_infra.migration.mentions import RESOURCE_NAME
from dra_infra.migration.needs import Settings, is_share
from dra_infra.migration.outcomes import Migrated, Remark

_REQUESTS: Final = "requests."
_MIG_KEY: Final = "nvidia.com/mig-"
_WHOLE: Final = re.compile("[0-9]{1,12}", re.ASCII)


def migrate_account(
    manifest: Mapping[str, Any], settings: Settings, together: Limits | None = None
) -> Migrated | None:
    """Migrates a ResourceQuota and quotas of Kueue, and remarks on the others; None for an object that is none of them.

    Args:
        manifest: The object.
        settings: What is known of the cluster.
        together: What all ResourceQuotas of its namespace allow; None where nobody knows of others.
    """
    kind = str(manifest.get("kind") or "")
    if kind == "ResourceQuota":
        return _migrate_quota(manifest, settings, together or Limits({}, {}, []))
    if kind in ("ClusterQueue", "Cohort"):
        return _migrate_queue(manifest, settings)
    remarks = tuple(_FOUND[kind](manifest)) if kind in _FOUND else ()
    return Migrated(manifest=manifest, remarks=remarks) if remarks else None


class Limits(NamedTuple):
    """Sums up what the ResourceQuotas of a namespace allow together: each of them limits all of its objects.

    Args:
        amounts: The smallest of each key.
        sums: By key for a class, how many resources it counts claims for and what they have together; None where that is no number.
        unread: Keys of MIG devices of which it is not clear what they are.
    """

    amounts: dict[str, Any]
    sums: dict[str, tuple[int, Fraction | None]]
    unread: list[str]


def limits_together(objects: Iterable[Mapping[str, Any]], settings: Settings) -> list[Limits | None]:
    """By object, what the ResourceQuotas of its namespace allow together; None for all that is none of them.

    Quotas that are there twice, as in two overlays, are of two namespaces.
    """
    found: dict[tuple[str, int], Limits] = {}
    seen: Counter[tuple[str, str]] = Counter()
    by_object: list[Limits | None] = []
    for each in objects:
        namespace, name = (value_at(each, "metadata", step) for step in ("namespace", "name"))
        by_object.append(None)
        # Those that leave their namespace to whoever applies them may each have another.
        if each.get("kind") == "ResourceQuota" and namespace and not _has_scopes(each):
            seen[str(namespace), str(name)] += 1
            at = str(namespace), seen[str(namespace), str(name)]
            by_object[-1] = limits = found.setdefault(at, Limits({}, {}, []))
            for key, amount in mapping(value_at(each, "spec", "hard")).items():
                limits.amounts[key] = min(limits.amounts.get(key, amount), amount, key=_number)
    for amounts, sums, unread in found.values():
        for key, requested in _read_keys(amounts, settings).items():
            if isinstance(requested, str):
                unread.extend([key] if _MIG_KEY in key else [])
                continue
            number, total = sums.get(QuotaKey.of_class(requested.class_name), (0, Fraction()))
            more = _number(amounts[key])
            total = None if total is None or more < 0 else total + more
            sums[QuotaKey.of_class(requested.class_name)] = number + 1, total
    return by_object


def _read_keys(hard: Iterable[Any], settings: Settings) -> dict[str, RequestedDevices | str]:
    """Returns what the resources mean that keys of a quota count, or why nobody can say so."""
    return {
        key: read_resource(name, settings.plugin)
        for key in map(str, hard)
        if (name := key.removeprefix(_REQUESTS)) != key and is_device(name) and not is_share(name, settings)
    }


def _migrate_quota(manifest: Mapping[str, Any], settings: Settings, together: Limits) -> Migrated | None:
    hard = mapping(value_at(manifest, "spec", "hard"))
    is_scoped = _has_scopes(manifest)
    read = _read_keys(hard, settings)
    amounts: dict[str, dict[str, Any]] = {}
    for key, requested in read.items():
        if not isinstance(requested, str) and not is_scoped:
            amounts.setdefault(QuotaKey.of_class(requested.class_name), {})[key] = hard[key]
    own = (key for key, requested in read.items() if isinstance(requested, str) and _MIG_KEY in key)
    unread = next(chain(own, together.unread), "")
    mig_key = QuotaKey.of_class("mig.nvidia.com")
    sums = {
        key: None if unread and key == mig_key else _sum(each, together, key)
        for key, each in amounts.items()
        if key not in hard
    }
    remarks: list[Remark] = []
    for key, requested in read.items():
        if isinstance(requested, str):
            remarks += _not_read(key, requested, settings)
        elif is_scoped:
            message = f"{key} is in a quota with scopes, which count pods and match no claim"
            hint = "limit the claims of the namespace by a quota without scopes, or give such pods a namespace of their own"
            remarks.append(Remark(f"spec.hard[{key}]", "lost", "quota-with-scopes", message, hint))
        else:
            device_key = QuotaKey.of_class(requested.class_name)
            total = sums.get(device_key, "")
            is_alone = max(len(amounts[device_key]), together.sums.get(device_key, (0,))[0]) == 1
            if total is None and unread and device_key == mig_key:
                message = f"{device_key} counts claims for what {key} and {unread} count, and what the latter is, is not clear"
                hint = f"say it, or write {device_key} with the number of devices that claims may have"
                remarks.append(Remark(f"spec.hard[{key}]", "decide", "resource-not-clear", message, hint))
                continue
            remarks.append(_counted(key, requested, device_key, total, is_alone=is_alone))
            in_force = together.sums.get(device_key, (0, None))[1]
            held = together.amounts.get(device_key)
            if total and in_force is not None and held is not None and _number(held) < in_force:
                message = f"another quota of the namespace has {device_key}: {held} already, which is less and stays in force"
                hint = f"raise it to {in_force}, if it was written for that quota alone"
                remarks.append(Remark(f"spec.hard[{key}]", "decide", "quota-kept", message, hint))
    if not remarks:
        return None
    new = {key: total for key, total in sums.items() if total is not None}
    if not new:
        return Migrated(manifest=manifest, remarks=tuple(remarks))
    spec = {**mapping(manifest.get("spec")), "hard": {**hard, **new}}
    return Migrated(manifest={**manifest, "spec": spec}, remarks=tuple(remarks))


def _not_read(key: str, reason: str, settings: Settings) -> Iterator[Remark]:
    at = f"spec.hard[{key}]"
    resource = key.removeprefix(_REQUESTS)
    if form := tell_other_form(at, resource):
        yield form
    elif resource.startswith("nvidia.com/"):
        code = "plugin-not-known"
        hint = settings.say_plugin
        if settings.plugin is not None:
            code = "resource-not-clear"
            hint = "say it by --plugin-config FILE, or by --mig-profile PROFILE where its strategy is single"
        yield Remark(at, "decide", code, f"{resource}: {reason}", hint)


def _counted(key: str, requested: RequestedDevices, device_key: str, total: Any, *, is_alone: bool) -> Remark:
    """Says what counts claims beside a key of a quota.

    Args:
        key: The key that counts a resource.
        requested: What the resource means.
        device_key: The key that counts claims for such devices.
        total: What it has now; empty where the quota had it, None where the amounts cannot be added.
        is_alone: Whether no other key of the quota counts such devices.
    """
    at = f"spec.hard[{key}]"
    if total == "":
        return Remark(at, "kept", "quota-kept", f"{device_key} counts claims already")
    if total is None:
        counted = (
            f"{key} counts, and its amount is no number"
            if is_alone
            else f"{key} and others count, and their amounts have no sum"
        )
        message = f"{device_key} counts claims for what {counted}"
        hint = f"write {device_key} with the number of devices that claims may have"
        return Remark(at, "decide", "quantity-not-a-number", message, hint)
    if requested.profile:
        message = f"claims of {requested.class_name} are counted together, whatever their profile, up to {device_key}: {total}"
        hint = "have a DeviceClass for each profile, if each is to have its own quota"
        return Remark(at, "lost", "quota-of-profile", message, hint)
    of = "it limits" if is_alone else "this key and others limit"
    message = (
        f"{device_key}: {total} limits claims as {of} the resource; take {key} away once no pod asks for it"
    )
    return Remark(at, "changed", "quota-for-claims", message)


def _has_scopes(manifest: Mapping[str, Any]) -> bool:
    """True for a quota of some pods alone: a scope matches no claim (MatchesNoScopeFunc)."""
    spec = mapping(manifest.get("spec"))
    return bool(spec.get("scopes") or value_at(spec, "scopeSelector", "matchExpressions"))


def _sum(amounts: Mapping[Any, Any], together: Limits, key: str) -> Any:
    """The amounts and those beside them that a key counts, one alone as it is written; None where that is no whole number."""
    count, total = together.sums.get(key, (0, Fraction()))
    if max(count, len(amounts)) == 1:
        (amount,) = amounts.values()
        is_filled_in = isinstance(amount, str) and re.search(r"\$|\{\{", amount)
        return amount if is_filled_in or _number(amount) >= 0 else None
    # Its own come first.
    numbers = list(map(_number, amounts.values()))
    total = (
        None
        if total is None
        else total + sum(numbers) - sum(_number(together.amounts.get(each, 0)) for each in amounts)
    )
    return str(total) if total is not None and min(numbers) >= 0 and total.denominator == 1 else None


def _number(amount: Any) -> Fraction:
    """The number that an amount is; -1 where it is none."""
    try:
        return Quantity.parse(str(amount)).value
    except ValueError:
        return Fraction(-1)


def _limit_range(manifest: Mapping[str, Any]) -> Iterator[Remark]:
    for index, each in enumerate(mappings(value_at(manifest, "spec", "limits"))):
        for part in ("max", "min", "default", "defaultRequest"):
            for name in mapping(each.get(part)):
                if is_device(name):
                    message = f"{name}: a LimitRange says nothing of claims"
                    hint = "cap the count of claims by dra.GpuGuardrails, and their sum by a quota"
                    yield Remark(f"spec.limits[{index}].{part}[{name}]", "lost", "limit-range", message, hint)


def _autoscaler(manifest: Mapping[str, Any]) -> Iterator[Remark]:
    code = "metric-of-resource"
    hint = "scale by a metric of the devices, such as DCGM_FI_DEV_GPU_UTIL with KUBERNETES_ENABLE_DRA"
    for index, each in enumerate(mappings(value_at(manifest, "spec", "metrics"))):
        for kind in ("external", "object", "pods"):
            metric = mapping(value_at(each, kind, "metric"))
            selected = mapping(value_at(metric, "selector", "matchLabels")).values()
            names = map(RESOURCE_NAME.search, map(str, (metric.get("name"), *selected)))
            if found := next(filter(None, names), None):
                message = f"{found[0]}: a metric that counts the resource has nothing of pods with claims"
                yield Remark(f"spec.metrics[{index}].{kind}.metric", "decide", code, message, hint)
        for kind in ("resource", "containerResource"):
            name = value_at(each, kind, "name")
            if isinstance(name, str) and is_device(name):
                message = f"{name}: pods with claims have no usage of it"
                yield Remark(f"spec.metrics[{index}].{kind}.name", "decide", code, message, hint)


def _migrate_queue(manifest: Mapping[str, Any], settings: Settings) -> Migrated | None:
    spec = mapping(manifest.get("spec"))
    groups = spec.get("resourceGroups")
    remarks: list[Remark] = []
    made: list[Any] = []
    # A queue covers a name in one of its groups.
    taken = {name for group in mappings(groups) for name in _covered(group)}
    for index, group in enumerate(groups if isinstance(groups, list) else ()):
        made.append(_migrate_group(f"spec.resourceGroups[{index}]", group, settings, taken, remarks))
    if not remarks:
        return None
    if made == groups:
        return Migrated(manifest=manifest, remarks=tuple(remarks))
    return Migrated(manifest={**manifest, "spec": {**spec, "resourceGroups": made}}, remarks=tuple(remarks))


def _migrate_group(path: str, group: Any, settings: Settings, taken: set[str], remarks: list[Remark]) -> Any:
    """A group of resources with what counts claims behind what counts the resources of a plugin."""
    by_class: dict[str, list[str]] = {}
    covered = _covered(group)
    profiles: set[str] = set()
    is_unread = False
    for number, name in enumerate(covered):
        requested = (
            read_resource(name, settings.plugin) if is_device(name) and not is_share(name, settings) else ""
        )
        if not isinstance(requested, str):
            by_class.setdefault(requested.class_name, []).append(name)
            profiles |= {name} if requested.profile else set()
        elif requested:
            is_unread |= _MIG_KEY in name
            remarks.append(_not_counted(f"{path}.coveredResources[{number}]", f"{name}: {requested}"))
    for class_name, resources in by_class.items():
        key = QuotaKey.of_class(class_name)
        is_open = key in taken or (is_unread and bool(profiles.intersection(resources)))
        grown = None if is_open else _with_quota(group, resources, key)
        for name in resources:
            at = f"{path}.coveredResources[{covered.index(name)}]"
            if key in covered:
                remarks.append(Remark(at, "kept", "queue-for-claims", f"{key} counts claims already"))
            elif grown is None:
                elsewhere = f"{key} is in another group of the queue, which covers it once"
                unequal = f"{name} and {key} have no quota that follows from the other"
                remarks.append(_not_counted(at, elsewhere if key in taken else unequal))
            elif name in profiles:
                message = f"claims of {class_name} are counted together, whatever their profile: {key}"
                hint = "have a DeviceClass and a mapping of Kueue for each profile, if each is to have its own quota"
                remarks.append(Remark(at, "lost", "quota-of-profile", message, hint))
            else:
                message = (
                    f"{key} counts claims as {name} counts the resource, with a mapping of {class_name} in "
                    f"deviceClassMappings of Kueue's configuration; take {name} away once no pod asks for it"
                )
                remarks.append(Remark(at, "changed", "queue-for-claims", message))
        if grown is not None:
            taken.add(key)
            group = grown
    return group


def _covered(group: Any) -> list[str]:
    found = mapping(group).get("coveredResources")
    return [str(each) for each in found] if isinstance(found, list) else []


def _with_quota(group: Mapping[str, Any], resources: list[str], key: str) -> Mapping[str, Any] | None:
    """The group with a quota that each flavour has for these resources together; None where that is no number."""
    flavors: list[Any] = []
    for flavor in held if isinstance(held := group.get("flavors"), list) else ():
        found = [each for each in mappings(value_at(flavor, "resources")) if each.get("name") in resources]
        if len(found) != len(resources) or (len(found) > 1 and not all(map(_can_be_added, found))):
            return None
        total = _sum(dict(enumerate(each.get("nominalQuota") for each in found)), Limits({}, {}, []), "")
        if total is None:
            return None
        more = {**found[0], "name": key, "nominalQuota": total}
        flavors.append({**flavor, "resources": [*flavor["resources"], more]})
    covered = [*group["coveredResources"], key]
    return {**group, "coveredResources": covered, "flavors": flavors} if flavors else None


def _can_be_added(quota: Mapping[str, Any]) -> bool:
    return quota.keys() == {"name", "nominalQuota"} and bool(_WHOLE.fullmatch(str(quota["nominalQuota"])))


def _not_counted(at: str, reason: str) -> Remark:
    message = f"{reason}; Kueue counts claims by the names of its deviceClassMappings"
    hint = "give the queue a resource for the class, as dra.KueueQueue does, and its mapping to Kueue's configuration"
    return Remark(at, "decide", "queue-of-resource", message, hint)


_FOUND: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[Remark]]]] = {
    "LimitRange": _limit_range,
    "HorizontalPodAutoscaler": _autoscaler,
}
"""Functions that find the remarks on an object, by its kind."""
