"""DeviceTaintRules: a taint for devices that an administrator selects, whoever published them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import DeviceTaint as Taint
from dra_infra.kubernetes.api import DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector, Release, names
from dra_infra.specs.arguments import check_driver_name, shorten, wrong_plain_type
from dra_infra.specs.component_plans import ComponentPlan, PlannedObject, metadata_of
from dra_infra.specs.object_names import check_metadata, check_object_name
from dra_infra.target import ClusterTarget


def plan_device_taint(name: str, arguments: Mapping[str, Any], target: ClusterTarget) -> ComponentPlan:
    """Turn the arguments of `DeviceTaint` into its object.

    Raises:
        InvalidSpecError: With the problems of `check_taint_rule`, and those of names and labels.
    """
    problems = check_metadata(arguments)
    if arguments["object_name"] is None:
        problems += check_object_name(name, path="name")
    problems += check_taint_rule(arguments, target)
    if problems:
        raise InvalidSpecError(problems)
    manifest = compile_taint_rule(
        {key: arguments[key] for key in ("key", "value", "effect")},
        {key: arguments[key] for key in ("driver", "pool", "device")},
        metadata_of(name, arguments),
        release=target.releases[0],
    )
    return ComponentPlan(objects=(PlannedObject(key="DeviceTaintRule", name=name, manifest=manifest),))


def compile_taint_rule(
    taint: Mapping[str, Any], selector: Mapping[str, Any], metadata: Mapping[str, Any], *, release: Release
) -> dict[str, Any]:
    """The manifest of a rule, in the newest version that *release* has.

    Args:
        taint: `key`, `value` and `effect`.
        selector: `driver`, `pool` and `device`, those that are given.
        metadata: Its name, labels and annotations.
        release: The API server that it is for.
    """
    given = {key: value for key, value in selector.items() if value is not None}
    spec = DeviceTaintRuleSpec(
        device_selector=DeviceTaintSelector(**given),
        taint=Taint(**{key: value for key, value in taint.items() if value}),
    )
    manifest = DeviceTaintRule(spec=spec).to_manifest()
    return {
        **manifest,
        "apiVersion": f"resource.k8s.io/{release.newest_version(manifest['kind'])}",
        "metadata": metadata,
    }


def check_taint_rule(arguments: Mapping[str, object], target: ClusterTarget) -> Iterator[Problem]:
    """Problems of the arguments that the server does not see, or lets pass.

    Codes `wrong-type`, `missing-argument`, `invalid-label`, `invalid-name`, `unsupported-value`. A rule whose selector has no
    criterion would taint every device.
    """
    for name in ("key", "value", "effect", "driver", "pool", "device"):
        value = arguments[name]
        is_left_out = value is None and name not in ("key", "effect")
        if not is_left_out and not isinstance(value, str):
            yield wrong_plain_type(name, value, "a text", f'write {name}="..."')
        elif isinstance(value, str):
            yield from _check_text(name, value, target)
    if all(arguments[name] is None for name in ("driver", "pool", "device")):
        yield Problem(
            path="pool",
            code="missing-argument",
            message="a rule without driver, pool and device taints every device of the cluster",
            hint='write pool="NODE", and device="NAME" for one of its devices',
        )
    if target.kubernetes is None:
        yield Problem(
            path="target",
            code="missing-argument",
            message="each minor of Kubernetes has another version of DeviceTaintRule, and the target names none",
            hint='pulumi config set dra-infra:kubernetes 1.37, or target=dra.ClusterTarget(kubernetes="1.37")',
        )


def _check_text(name: str, value: str, target: ClusterTarget) -> Iterator[Problem]:
    if name == "driver":
        yield from check_driver_name(value)
    elif name == "effect" and value not in _EFFECTS:
        hint = 'write effect="NoExecute" to evict pods, or "NoSchedule" to keep others away'
        yield Problem(
            path=name,
            code="unsupported-value",
            message=f"{shorten(value)} is no effect of a taint",
            hint=hint,
        )
    elif name == "effect" and value == "None" and target.minor == "1.34":
        message = "Kubernetes 1.34 has no effect None"
        yield Problem(path=name, code="unsupported-value", message=message, hint="it is there since 1.35")
    elif name in _HOLDS and not _HOLDS[name][0](value):
        _, code, what, hint = _HOLDS[name]
        yield Problem(path=name, code=code, message=f"{shorten(value)} is not {what}", hint=hint)


def _is_pool_name(text: str) -> bool:
    return len(text) <= names.SUBDOMAIN_LENGTH and all(map(names.is_dns_subdomain, text.split("/")))


_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
_HOLDS: Final[Mapping[str, tuple[Callable[[str], bool], str, str, str]]] = {
    "key": (names.is_label_key, "invalid-label", "the key of a taint", 'write key="example.com/service"'),
    "value": (names.is_label_value, "invalid-label", "the value of a taint", 'write value="INC-1234"'),
    "pool": (_is_pool_name, "invalid-name", "the name of a pool", 'write pool="NODE", as its slices have it'),
    "device": (names.is_dns_label, "invalid-name", "the name of a device", 'write device="gpu-3"'),
}
"""For each text, what it has to be, and what is told where it is not (validateDeviceTaint and validateDeviceTaintSelector)."""
