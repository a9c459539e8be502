"""The allocator of one scheduling attempt: what each node would give the claims of a pod.

Each claim gets a status of results, configuration and node selector. Source: the end of Allocate, and
createNodeSelector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial

from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.nodes import Node
from dra_infra.kubernetes.api.resource_claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from dra_infra.kubernetes.api.resource_slice import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourceSlice,
)
from dra_infra.kubernetes.scheduler.allocator.counters import (
    CounterAvailability,
    CounterUse,
    GroupBaseline,
    GroupUse,
)
from dra_infra.kubernetes.scheduler.allocator.identity import (
    Allocated,
    AllocationError,
    Cannot,
    Failed,
    Outcome,
    abort,
)
from dra_infra.kubernetes.scheduler.allocator.matching import Matching, Reach
from dra_infra.kubernetes.scheduler.allocator.pools import Pool, describe_counts, gather_pools
from dra_infra.kubernetes.scheduler.allocator.pruning import LOOKS_IN_TIME, PrunedSearch, SearchLength
from dra_infra.kubernetes.scheduler.allocator.refusals import Refusal, Tracer
from dra_infra.kubernetes.scheduler.allocator.requests import (
    RequestKey,
    Wanted,
    check_features,
    describe_request,
    request_leaves,
)
from dra_infra.kubernetes.scheduler.allocator.search import Attempt, Look, Search
from dra_infra.kubernetes.scheduler.allocator.selection import DeviceKinds, Evaluator, KindEvaluator
from dra_infra.kubernetes.scheduler.allocator.slices import SliceIndex
from dra_infra.kubernetes.scheduler.allocator.state import AllocatedState, Picked, Usage
from dra_infra.kubernetes.scheduler.allocator.taking import Taking
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant, choose_variant

SHARE = "share"
"""In place of the random id of a share."""

# What is put together here is known to be right; making a record from another one checks nothing again.
_ALLOCATION = AllocationResult()
_DEVICES = DeviceAllocationResult()
_RESULT = DeviceRequestAllocationResult()


def assemble(
    number: int,
    claim: ResourceClaim,
    picked: Sequence[Picked],
    wanted: Mapping[RequestKey, Wanted],
    node: Node,
    variant: Variant,
) -> AllocationResult:
    """`status.allocation` of one claim.

    Raises:
        AllocationError: For slices with a node selector of several terms, which the API server refuses.
    """
    chosen = [
        wanted[RequestKey(number, position, wanted[RequestKey(number, position)].selected)]
        for position in range(len(claim.spec.devices.requests or ()))
    ]
    devices = _DEVICES.changed(
        {
            "results": [_result(each, variant) for each in picked],
            "config": _configure(claim, chosen, variant) or None,
        }
    )
    return _ALLOCATION.changed(
        {"devices": devices, "node_selector": _select_nodes(claim, picked, node, variant)}
    )


def _result(picked: Picked, variant: Variant) -> DeviceRequestAllocationResult:
    wanted, published = picked.wanted, picked.published
    device = published.device
    features = variant.features
    tells_tolerations = variant.number >= 36 or (variant.number == 35 and variant.channel != "stable")
    tells_skips = variant.number >= 37 and variant.channel == "experimental"
    return _RESULT.changed(
        {
            "request": wanted.full_name,
            "driver": published.id.driver,
            "pool": published.id.pool,
            "device": published.id.device,
            "admin_access": True if wanted.admin else None,
            "tolerations": wanted.leaf.tolerations if tells_tolerations else None,
            "binding_conditions": device.binding_conditions if features.binding_conditions else None,
            "binding_failure_conditions": device.binding_failure_conditions
            if features.binding_conditions
            else None,
            "share_id": SHARE if picked.is_share else None,
            "consumed_capacity": {name: amount.canonical_text for name, amount in picked.consumed.items()}
            or None,
            "skip_node_operations": published.slice.spec.skip_node_operations if tells_skips else None,
        }
    )


def _join_outcomes(complete: Outcome, incomplete: Outcome, unsettled: Pool) -> Outcome:
    """Return the outcome that an attempt has whether a pool is complete or not; one that is not decided if it differs."""
    outcomes = (complete, incomplete)
    if complete == incomplete:
        return complete
    if all(isinstance(each, Cannot) or (isinstance(each, Failed) and each.on_node) for each in outcomes):
        return complete
    ends = any(isinstance(each, Failed) and not each.on_node for each in outcomes)
    text = f"resource pool {unsettled.id}: {describe_counts(unsettled.counts)}"
    return Failed(text, on_node=not ends, decided=False, code="slice-counts-differ")


def _configure(
    claim: ResourceClaim, chosen: Sequence[Wanted], variant: Variant
) -> list[DeviceAllocationConfiguration]:
    configs = [*_class_configs(chosen), *_claim_configs(claim, chosen, variant)]
    if variant.number < 37:
        return configs
    # From 1.37 on a list of all requests is written as none.
    return [
        config.changed({"requests": None})
        if config.requests and all(_is_named(each, config.requests) for each in chosen)
        else config
        for config in configs
    ]


def _class_configs(chosen: Sequence[Wanted]) -> Iterator[DeviceAllocationConfiguration]:
    by_class: dict[str, list[Wanted]] = {}
    for each in chosen:
        by_class.setdefault(each.device_class.metadata.name or "", []).append(each)
    for members in by_class.values():
        for config in members[0].device_class.spec.config or ():
            requests = [each.full_name for each in members]
            yield DeviceAllocationConfiguration(source="FromClass", requests=requests, opaque=config.opaque)


def _claim_configs(
    claim: ResourceClaim, chosen: Sequence[Wanted], variant: Variant
) -> Iterator[DeviceAllocationConfiguration]:
    for config in claim.spec.devices.config or ():
        entry = DeviceAllocationConfiguration(
            source="FromClaim", requests=config.requests, opaque=config.opaque
        )
        if not config.requests:
            yield entry
            continue
        times = sum(_is_named(each, config.requests) for each in chosen)
        yield from [entry] * (times if variant.has(Quirk.CONFIG_FOR_EACH) else min(times, 1))


def _is_named(wanted: Wanted, requests: Sequence[str]) -> bool:
    return (wanted.parent or wanted.name) in requests or wanted.full_name in requests


def _select_nodes(
    claim: ResourceClaim, picked: Sequence[Picked], node: Node, variant: Variant
) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in picked:
        place = (
            each.published.device
            if each.published.slice.spec.per_device_node_selection
            else each.published.slice.spec
        )
        binds = variant.is_extended and bool(each.published.device.binds_to_node)
        if place.node_name is not None or binds:
            return _select_node(node.name)
        terms = (place.node_selector.node_selector_terms or ()) if place.node_selector is not None else ()
        if len(terms) > 1:
            raise abort(
                f"create NodeSelector for claim {claim.metadata.name}: unsupported ResourceSlice.NodeSelector with "
                f"{len(terms)} terms"
            )
        for term in terms:
            _merge(term.match_fields or (), fields)
            _merge(term.match_expressions or (), expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=fields or None, match_expressions=expressions or None)
    return NodeSelector(node_selector_terms=[term])


@lru_cache(maxsize=8192)
def _select_node(name: str) -> NodeSelector:
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=[name])
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])


def _merge(requirements: Sequence[NodeSelectorRequirement], into: list[NodeSelectorRequirement]) -> None:
    for requirement in requirements:
        if not any(
            known.key == requirement.key
            and known.operator == requirement.operator
            and set(known.values or ()) == set(requirement.values or ())
            for known in into
        ):
            into.append(requirement)


def _never() -> bool:
    return False


class Allocator:
    """Allocates as the scheduler of one release does.

    Args:
        release: The minor and its gates, or the variant that they choose.
        slices: All slices of the cluster, or what another allocator of the minor read of them. Where pools are not sorted (1.34, 1.35, and without most gates), the order
            of the slices stands for what is random upstream: the answer is one that the scheduler may give.
        classes: All device classes.
        state: What is allocated already.
        evaluator: What evaluates expressions; the default evaluates each once per kind of device.
        prune: Whether to leave out what provably leads nowhere; the answers are the same, for an impossible request much sooner.
    """

    def __init__(
        self,
        release: Release | Variant,
        slices: Sequence[ResourceSlice] | SliceIndex,
        classes: Iterable[DeviceClass],
        state: AllocatedState | None = None,
        *,
        evaluator: Evaluator | None = None,
        prune: bool = True,
    ) -> None:
        self.variant = choose_variant(release) if isinstance(release, Release) else release
        self.index = (
            slices.under(self.variant) if isinstance(slices, SliceIndex) else SliceIndex(slices, self.variant)
        )
        self.classes: Mapping[str, DeviceClass] = {each.metadata.name or "": each for each in classes}
        self.state = AllocatedState() if state is None else state
        self.kinds = DeviceKinds(self.variant)
        """Devices that are alike to an expression, for the default evaluator."""
        self.evaluator: Evaluator = (
            KindEvaluator(self.variant, kinds=self.kinds) if evaluator is None else evaluator
        )
        self._prune = prune
        self._reach = Reach(self.evaluator, self.variant)
        self._pools: dict[Node, tuple[Pool, ...]] = {}
        self._availability = CounterAvailability(self.state, self.variant)
        self._baseline = GroupBaseline(self.state)

    def with_state(self, state: AllocatedState) -> Allocator:
        """The same cluster with other devices in use; slices are not read again."""
        other = copy(self)
        other.state = state
        other._availability = CounterAvailability(state, self.variant)  # noqa: SLF001
        other._baseline = GroupBaseline(state)  # noqa: SLF001
        return other

    def with_classes(self, classes: Iterable[DeviceClass]) -> Allocator:
        """The same cluster with other classes; slices are not read again."""
        other = copy(self)
        other.classes = {each.metadata.name or "": each for each in classes}
        # What a request can have is known by the name of its class.
        other._reach = Reach(self.evaluator, self.variant)  # noqa: SLF001
        return other

    def with_class(self, changed: DeviceClass) -> Allocator:
        """The same cluster with one class changed, or added."""
        return self.with_classes({**self.classes, changed.metadata.name or "": changed}.values())

    def with_slices(self, slices: Sequence[ResourceSlice]) -> Allocator:
        """The same cluster with other slices."""
        return Allocator(self.variant, slices, self.classes.values(), self.state, evaluator=self.evaluator)

    def pools(self, node: Node) -> tuple[Pool, ...]:
        """The pools of a node, in the order in which they are tried; gathered once for all states."""
        pools = self._pools.get(node)
        if pools is None:
            pools = self._pools[node] = gather_pools(self.index, node, self.variant)
        return pools

    def read_request(self, claim: ResourceClaim, request: DeviceRequest) -> tuple[Wanted, ...]:
        """Return what a request of a claim asks for, one entry for each of its alternatives.

        Raises:
            AllocationError: For a request that the allocator refuses before it looks at devices.
        """
        check_features(claim, request, self.variant)
        return tuple(
            describe_request(claim, request, leaf, self.classes, self.variant)
            for leaf in request_leaves(request)
        )

    def find_parse_error(self, node: Node) -> str:
        """Return the error on a slice, of whichever driver, that ends every attempt on a node; empty for none."""
        return self.index.find_parse_error(node)

    def allocate(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        *,
        declared: frozenset[str] = frozenset(),
        is_cancelled: Callable[[], bool] = _never,
    ) -> Outcome:
        """Allocates devices of a node for the claims of one pod.

        Args:
            node: The node.
            claims: Those of the pod that are not allocated yet, in the order of the pod, with the server's defaults.
            declared: `status.declaredFeatures` of the node.
            is_cancelled: Asked at each step of the search, which can take for ever; true ends it with an error.
        """
        if claims and (error := self.find_parse_error(node)):
            return Failed(error)
        attempt = self._attempt(node, claims, declared, is_cancelled)
        outcome = self._search(attempt)
        for pool in attempt.pools:
            if pool.counts:
                # If the answer is the same whether these pools are complete or not, it does not matter which number is read.
                again = self._attempt(node, claims, declared, is_cancelled)
                incomplete = replace(again, pools=[each.as_incomplete for each in attempt.pools])
                return _join_outcomes(outcome, self._search(incomplete), pool)
        return outcome

    def _search(self, attempt: Attempt) -> Outcome:
        """Search with the pools of an attempt."""
        claims, node = attempt.claims, attempt.node
        search = PrunedSearch(attempt, self._availability) if self._prune else Search(attempt)
        try:
            if search.run():
                return Allocated(
                    tuple(
                        assemble(
                            number, claim, attempt.taking.picked[number], search.wanted, node, self.variant
                        )
                        for number, claim in enumerate(claims)
                    ),
                    leaves_out=isinstance(search, PrunedSearch) and search.leaves_out,
                )
        except AllocationError as error:
            return error.failed
        if self.variant.number >= 35 and any(pool.invalid for pool in attempt.pools):
            return Failed("invalid resource pools were encountered", on_node=True)
        return Cannot()

    def answers_in_time(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        *,
        declared: frozenset[str] = frozenset(),
        is_cancelled: Callable[[], bool] = _never,
    ) -> bool:
        """Checks that the scheduler surely comes to its answer on a node before it gives up; takes the arguments of `allocate`.

        False also where `is_cancelled` ends the count of its search.
        """
        search = SearchLength(self._attempt(node, claims, declared, is_cancelled), self._availability)
        try:
            search.run()
        except AllocationError:
            return False
        return search.looks <= LOOKS_IN_TIME

    def look(self, node: Node, *, declared: frozenset[str] = frozenset()) -> Look:
        """Look at devices of a node one by one, for a caller that asks why they are refused.

        Args:
            node: The node.
            declared: `status.declaredFeatures` of the node.
        """
        refusals: list[Refusal] = []
        attempt = self._attempt(node, (), declared, _never, refusals.append)
        return Look(attempt, partial(self._taking, declared, refusals.append), refusals)

    def _attempt(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        declared: frozenset[str],
        is_cancelled: Callable[[], bool],
        tracer: Tracer | None = None,
    ) -> Attempt:
        return Attempt(
            claims=claims,
            pools=self.pools(node),
            classes=self.classes,
            taking=self._taking(declared, tracer),
            matching=Matching(self.evaluator, node, self.variant, tracer),
            variant=self.variant,
            index=self.index,
            state=self.state,
            reach=self._reach,
            node=node,
            declared=declared,
            is_cancelled=is_cancelled,
            tracer=tracer,
        )

    def _taking(self, declared: frozenset[str], tracer: Tracer | None) -> Taking:
        return Taking(
            Usage(self.state, self.variant),
            CounterUse(self._availability, self.variant),
            GroupUse(self._baseline),
            self.index,
            declared,
            self.variant,
            tracer,
        )
