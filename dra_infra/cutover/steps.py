"""The steps of each phase and of the way back: what to do, with the commands that do it.

Plugin and driver are kept apart by one label, `nvidia.com/dra-kubelet-plugin`: the driver runs where it is `true`, the plugin where it is
not. Under the GPU Operator `nvidia.com/gpu.deploy.device-plugin=false` keeps the plugin off a node. Pods go first and the driver
last, for the driver has to take back what it prepared.

A drain leaves the pods of DaemonSets, and deleted ones come back to a cordoned node at once. Their controller makes none on a node with a
taint that they do not tolerate (NodeShouldRunDaemonPod in pkg/controller/daemon/daemon_controller.go). Nor do plugin and driver
tolerate it, so what is to come does so when the taint goes: it is there until what was to go has gone.

Names come from a cluster or a pull request, and commands are copied into shells: each name is quoted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from dra_infra.advice.objects import reference_to
from dra_infra.cutover.estate import DELETED, Unit
from dra_infra.cutover.sides import AWAY, LABEL, MOVED, OPERATOR, Sides
from dra_infra.kubernetes.api import ObjectRef, WorkloadKinds, group_of, mapping, mappings, value_at
from dra_infra.output.wording import join_words
from dra_infra.review.comparison import ROLLING_KINDS
from dra_infra.review.dangers.workloads import CHANGED_PODS
from dra_infra.review.rollout import EXCHANGED_KINDS, Outlook, foresee_rollout

_LABELS: Final = ("spec", "template", "metadata", "labels")
_STRATEGY: Final = ("spec", "updateStrategy", "type")
_FILE: Final = "FILE"
"""Stands for a file that the reader makes."""

_AS_IT_WAS: Final = "as it was (--write keeps files with .orig behind their names)"

Daemons = Mapping[ObjectRef, str]
"""DaemonSets with devices, each with the label selector of its pods."""

Bare = Mapping[ObjectRef, bool]
"""Pods that no controller makes anew, and whether they are among the manifests."""


class Step(NamedTuple):
    """One thing to do.

    Args:
        what: In words.
        commands: Commands that do it; empty where tools and files of the reader's own do.
    """

    what: str
    commands: tuple[str, ...] = ()


class Move(NamedTuple):
    """The way of a workload from one side to the other.

    Args:
        ref: Its name; behind a made-up one (generateName) stands a `*`.
        says: What becomes of its pods, as the rest of a sentence.
        others: Objects that come with it.
        first: Commands before it is applied.
        then: Commands behind that, by which its pods become new ones.
        file: The file that has it; empty where none does.
        beside: Other workloads in that file, which move at another time or in another way.
    """

    ref: ObjectRef
    says: str
    others: Sequence[ObjectRef] = ()
    first: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    file: str = ""
    beside: Sequence[ObjectRef] = ()

    def apply(self, *, is_back: bool) -> str:
        """Return the command that applies it, as migrated or as it was, which `--write` keeps."""
        verb = "create" if self.ref.name.endswith("*") else "apply"
        file = f"{self.file}{'.orig' if is_back else ''}" if self.file and not self.beside else _FILE
        return shlex.join(["kubectl", verb, "-f", file])


def how_it_moves(unit: Unit, kinds: WorkloadKinds, outlook: Outlook | None = None) -> Move:
    """Returns the way in which pods of a workload become new ones, by what its kind does; *outlook* of a rollout that was played through."""
    ref = unit.ref
    manifest = unit.after[-1]
    kind = kinds.find(unit.after[-1])
    others = [each for each in map(reference_to, unit.after) if each != ref]
    name = f"{manifest.get('kind')}.{group_of(manifest)}".lower()
    name = name if name.count(".") > 1 else name.partition(".")[0]
    is_named = value_at(manifest, "metadata", "name")
    says = (kind.on_change or kind.keeps_pods if kind else "") or CHANGED_PODS
    labels = ",".join(f"{key}={each}" for key, each in mapping(value_at(manifest, *_LABELS)).items())
    first, then, promote = list[str](), list[str](), list[str]()
    # With the upgradeStrategy Recreate the pods of a RayCluster are deleted by its controller.
    if kind is not None and kind.anew and value_at(manifest, "spec", "upgradeStrategy", "type") != "Recreate":
        because = "its pods cannot change" if says == CHANGED_PODS else f"an update {says}"
        says = f"is deleted and created anew, for {because}"
        first = ["delete", name, ref.name, "--ignore-not-found"] if is_named else ["get", name]
    elif ref.kind in ROLLING_KINDS or outlook:
        says = (outlook or foresee_rollout(manifest, None, each=None, room=None, fleet="")).message
        then = [] if ref.kind in EXCHANGED_KINDS else ["rollout", "status", f"{name}/{ref.name}"]
    if ref.kind == "Rollout" and outlook:
        then = ["argo", "rollouts", "status", ref.name]
        if _waits(mapping(value_at(manifest, "spec", "strategy"))):
            says += "; it waits at a step until it is promoted"
            promote = ["argo", "rollouts", "promote", ref.name, "--full"]
    if ref.kind in DELETED or value_at(manifest, *_STRATEGY) == "OnDelete":
        says = f"{says}: these are deleted"
        then = ["delete", "pods", "-l", labels] if labels else []
    if ref.kind == "CronJob":
        says += "; Jobs of before whose pods are drained ask the plugin again: delete those that wait"
    if not unit.makes_pods:
        says = "gives claims to the pods that are made of it from then on"
    elif unit.before is None:
        says = "starts, for it asks by claims and had no nodes before"
    before, *behind = (
        (shlex.join(["kubectl", *each, *_where(ref)]),) if each else () for each in (first, promote, then)
    )
    shown = ref if is_named else replace(ref, name=f"{ref.name}*")
    return Move(shown, says, others, before, sum(behind, ()), unit.file, unit.beside)


def _waits(strategy: Mapping[str, Any]) -> bool:
    """True for a strategy of Argo's Rollouts that goes on when somebody says so."""
    pauses = [each["pause"] for each in mappings(value_at(strategy, "canary", "steps")) if "pause" in each]
    is_manual = value_at(strategy, "blueGreen", "autoPromotionEnabled") is False
    return is_manual or any(not mapping(each).get("duration") for each in pauses)


def prepare(
    common: Sequence[ObjectRef], sides: Sides, daemons: Daemons, stubborn: Daemons, bare: Bare
) -> tuple[Step, ...]:
    """Returns the steps before any node moves; nodes that have the driver keep it, and those with the plugin beside it lose it.

    *stubborn* are DaemonSets whose pods tolerate the taint of nodes that change sides.
    """
    objects = (f"apply as migrated: {join_words(common, most=12)}",) if common else ()
    on_driver, on_both = sides.on_driver, sides.on_both
    keep_off, delete, let_in = _without_daemons(on_both, daemons, stubborn)
    empty = "empty the nodes that have both, for the driver leaves them"
    selector = f'the nodeSelector {LABEL}: "true"'
    driver = (
        f"install the DRA driver with its classes, and {selector} for its kubelet plugin: no node has that label yet, so it "
        "runs nowhere (dra.DraDriver has plugin_node_selector)"
    )
    if on_driver or on_both:
        driver = f"give the kubelet plugin of the DRA driver {selector}, by which it stays on nodes with the label alone"
    if sides.has_domains:
        driver += (
            "; the driver for ComputeDomains stays on all nodes as it is, so that for GPUs is a release of its own, with a "
            "nameOverride and resources.computeDomains.enabled: false"
        )
    return (
        Step("Kubernetes serves resource.k8s.io/v1, and nothing is broken", ("dra-infra doctor",)),
        *([Step("label the nodes that have the driver alone", (_label(on_driver),))] if on_driver else []),
        *keep_off,
        *([_empty(empty, on_both, bare)] if on_both else []),
        *delete,
        Step(
            f"keep the plugin off nodes with the label {LABEL}=true: a required node affinity of its DaemonSet, NotIn; the "
            f"GPU Operator needs none, for it reads {OPERATOR}"
        ),
        Step(driver, tuple(map(_slices_of, on_both))),
        *let_in,
        *([_give_back("give nodes back once their slices are gone", on_both)] if on_both else []),
        *_again({**dict.fromkeys(stubborn, True), **bare}),
        *map(Step, objects),
    )


def back_from_prepare(quotas: Sequence[ObjectRef], *, is_there: bool) -> tuple[Step, ...]:
    """Returns the steps back to a cluster that knows the plugin alone, but for nodes on which the driver was there before."""
    driver = "leave the driver and its nodeSelector: without it, it comes to nodes of the plugin"
    first = Step(driver if is_there else "uninstall the driver for GPUs, which runs nowhere")
    return (first, *([Step(f"apply quotas as they were: {join_words(quotas, most=12)}")] if quotas else []))


def move(
    nodes: Sequence[str], resources: Sequence[str], moving: Sequence[Move], daemons: Daemons, bare: Bare
) -> tuple[Step, ...]:
    """Returns the steps by which a group of nodes, or none, leaves the plugin, and workloads move."""
    if not nodes:
        return tuple(_apply(moving, "as migrated"))
    keep_off, delete, let_in = _without_daemons(nodes, daemons)
    return (
        _empty("cordon and drain the nodes; pods wait where others have no room for them", nodes, bare),
        *keep_off,
        Step("exchange the plugin for the driver", (_label(nodes),)),
        Step("wait until the plugin gives out nothing there", tuple(_wait(nodes, resources))),
        *delete,
        *let_in,
        Step("wait until the driver has its slices", (*map(_slices_of, nodes), "dra-infra doctor")),
        _give_back("give the nodes back", nodes),
        *_apply(moving, "as migrated"),
        *_again({ref: is_ours for ref, is_ours in bare.items() if ref not in {each.ref for each in moving}}),
    )


def back_from_move(
    nodes: Sequence[str],
    resources: Sequence[str],
    moving: Sequence[Move],
    daemons: Daemons,
    stubborn: Daemons,
    bare: Bare,
) -> tuple[Step, ...]:
    """Returns the steps by which nodes go back to the plugin, and workloads to what they were; *stubborn* is as of `prepare`."""
    if not nodes:
        return tuple(_apply(moving, _AS_IT_WAS))
    names = shlex.join(nodes)
    watched = (command for each in moving for command in each.then)
    keep_off, delete, let_in = _without_daemons(nodes, daemons, stubborn)
    first = [each for each in moving if each.ref not in stubborn]
    again = {ref: True for ref in stubborn if all(ref != each.ref for each in moving)}
    return (
        Step("cordon the nodes", (f"kubectl cordon {names}",)),
        *keep_off,
        *_apply(first, _AS_IT_WAS, is_watched=False),
        _empty("drain the nodes while the driver still runs there", nodes, bare),
        *delete,
        Step(
            "exchange the driver for the plugin, and wait until its slices are gone",
            (f"kubectl label node {names} {OPERATOR}- {LABEL}-", *map(_slices_of, nodes)),
        ),
        *let_in,
        *_apply([each for each in moving if each not in first], _AS_IT_WAS, is_watched=False),
        # No rollout comes to its end before that, where other nodes have no plugin.
        _give_back(f"give the nodes back once {join_words(resources)} is there again", nodes, *watched),
        *_again({**again, **bare}),
    )


def finish(quotas: Sequence[ObjectRef]) -> tuple[Step, ...]:
    """Returns the steps by which the plugin goes, and the keys that counted it."""
    uninstall = (
        "uninstall the plugin, or switch it off in the GPU Operator; it runs on no node with GPUs any more"
    )
    take = f"take the keys of the plugin's resources away from {join_words(quotas, most=12)}"
    return (
        Step(uninstall),
        *([Step(take)] if quotas else []),
        Step("nothing asks the plugin any more", ("dra-infra migrate PATH --check",)),
    )


def back_from_finish(quotas: Sequence[ObjectRef]) -> tuple[Step, ...]:
    """Returns the steps after which the plugin is there again, on no node yet."""
    steps = [Step("install the plugin again, kept off nodes with the label as before")]
    return (*steps, Step("apply quotas with both keys again")) if quotas else tuple(steps)


def _empty(what: str, nodes: Sequence[str], bare: Bare) -> Step:
    """Empties nodes: a drain stops at pods of no controller (unreplicatedFilter in kubectl/pkg/drain/filters.go), so they go first."""
    names = shlex.join(nodes)
    fields = ((ref, f"metadata.name={ref.name},spec.nodeName={node}") for ref in bare for node in nodes)
    deletes = (["kubectl", "delete", "pods", *_where(ref), "--field-selector", each] for ref, each in fields)
    first = "; pods that no controller makes anew are deleted before, for a drain stops at them"
    drain = f"kubectl drain {names} --ignore-daemonsets --delete-emptydir-data"
    return Step(
        f"{what}{first if bare else ''}", (f"kubectl cordon {names}", *map(shlex.join, deletes), drain)
    )


def _again(bare: Bare) -> list[Step]:
    ours = [ref for ref, is_ours in bare.items() if is_ours]
    return [Step(f"apply again what the drain needed away: {join_words(ours, most=12)}")] if ours else []


def _give_back(what: str, nodes: Sequence[str], *then: str) -> Step:
    return Step(what, (f"kubectl uncordon {shlex.join(nodes)}", *then))


def _label(nodes: Sequence[str]) -> str:
    labels = " ".join(f"{key}={value}" for key, value in MOVED.items())
    return f"kubectl label node {shlex.join(nodes)} {labels} --overwrite"


def _without_daemons(
    nodes: Sequence[str], daemons: Daemons, stubborn: Daemons = MappingProxyType({})
) -> tuple[list[Step], list[Step], list[Step]]:
    """Steps that keep new pods of DaemonSets off, delete those that are there, and let them in again.

    A DaemonSet that is deleted leaves its pods, and has them again when it is applied (ClaimPods in pkg/controller/controller_ref_manager.go);
    a drain stops at pods that nobody has, so those of these nodes go first.
    """
    taint = f"kubectl taint node {shlex.join(nodes)} {AWAY.key}"
    others = {ref: labels for ref, labels in daemons.items() if ref not in stubborn}
    what = "keep new pods of DaemonSets off, which a cordon does not"
    keep_off = [Step(what, (f"{taint}:{AWAY.effect} --overwrite",))]
    if stubborn:
        deletes = (["delete", ref.kind.lower(), ref.name, *_where(ref)] for ref in stubborn)
        orphan = (shlex.join(["kubectl", *each, "--cascade=orphan"]) for each in deletes)
        what = (
            "keep as it is, and delete without its pods, for pods that tolerate the taint come back at once"
        )
        keep_off += [Step(f"{what}: {join_words(stubborn, most=12)}", (*orphan, *_deletes(nodes, stubborn)))]
    what = f"delete pods that a drain leaves: {join_words(others, most=12)}"
    delete = [Step(what, tuple(_deletes(nodes, others)))] if others else []
    let_in = [Step("let pods of DaemonSets in again", (f"{taint}-",))]
    return (keep_off, delete, let_in) if daemons else ([], [], [])


def _deletes(nodes: Sequence[str], daemons: Daemons) -> Iterator[str]:
    for ref, labels in daemons.items():
        for node in nodes:
            of_node = ["-l", labels, "--field-selector", f"spec.nodeName={node}"]
            yield shlex.join(["kubectl", "delete", "pods", *_where(ref), *of_node])


def _slices_of(node: str) -> str:
    return shlex.join(["kubectl", "get", "resourceslices", "--field-selector", f"spec.nodeName={node}"])


def _wait(nodes: Sequence[str], resources: Sequence[str]) -> Iterator[str]:
    for resource in resources:
        field = resource.replace(".", r"\.")
        targets = shlex.join(f"node/{each}" for each in nodes)
        gone = shlex.quote(f"jsonpath={{.status.allocatable.{field}}}=0")
        yield f"kubectl wait --for={gone} {targets} --timeout=10m"


def _apply(moving: Sequence[Move], how: str, *, is_watched: bool = True) -> Iterator[Step]:
    for each in moving:
        behind = (
            f", behind {join_words(each.others, most=12)}" if each.others and how == "as migrated" else ""
        )
        what = f"apply {each.ref} {how}{behind}{', once it is deleted' if each.first else ''}"
        if each.ref.name.endswith("*"):
            what = f"delete what was made of {each.ref}, and make it by kubectl create {how}{behind}: its name is made up each time"
        if each.beside:
            rest = join_words(each.beside, most=12)
            what += f"; write it and what comes with it from {each.file} into a FILE of its own, for that has {rest} too"
        command = each.apply(is_back=how != "as migrated")
        yield Step(what, (*each.first, command, *(each.then if is_watched else ())))


def _where(ref: ObjectRef) -> list[str]:
    return ["-n", ref.namespace] if ref.namespace else []
