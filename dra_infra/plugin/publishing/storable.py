"""What the API server would keep of slices: asked by a dry run, before anything is written.

Thus a slice that is refused never leaves half a pool behind, fields that a server drops because a gate is off are noticed
before a scheduler sees what is left, and what is compared with the server's slices later is in the server's own spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.cluster.kinds import SLICES
from dra_infra.cluster.objects import mapping, mappings, text
from dra_infra.errors import Problem
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.publishing.pools import Spec

_LAST: Final = re.compile(r"\.(\w+)(\[\d+\])?$")
_NAMED: Final = 3
"""Devices that a message names."""


class Storable:
    """Asks one server, and remembers what it said until it is told to forget."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, tuple[Spec, tuple[str, ...]]] = {}

    def forget(self) -> None:
        """The server may be another release, or have other gates, since it was away."""
        self._known = {}

    def ask(self, specs: Sequence[Spec]) -> list[tuple[Spec, tuple[str, ...]]]:
        """What would be kept of each spec, and the paths in it of what would be lost.

        Raises:
            ApiError: A slice is refused, or the server is away.
        """
        known = {}
        for spec in specs:
            key = json.dumps(spec, sort_keys=True)
            known[key] = self._known.get(key) or self._ask(spec, len(specs))
        # Of layouts that are past nothing is kept.
        self._known = known
        return [known[json.dumps(spec, sort_keys=True)] for spec in specs]

    def _ask(self, spec: Spec, count: int) -> tuple[Spec, tuple[str, ...]]:
        whole = {**spec, "pool": {**spec["pool"], "generation": 1, "resourceSliceCount": count}}
        metadata = {"generateName": f"{spec['driver']}-"[:50]}
        answer = self._api.create(SLICES, {"metadata": metadata, "spec": whole}, dry_run=True)
        kept = dict(mapping(answer.get("spec")))
        lost = tuple(_lost(whole, kept, "spec"))
        return {**kept, "pool": spec["pool"]}, lost


def _lost(sent: object, kept: object, path: str) -> Iterator[str]:
    """Paths of what is not there any more; another spelling of an amount is no loss."""
    if sent in ("", [], {}, None):
        return
    if isinstance(sent, Mapping) and isinstance(kept, Mapping):
        for key, value in sent.items():
            yield from _lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for index, value in enumerate(sent):
            yield from _lost(value, kept[index], f"{path}[{index}]")
    elif kept is None or isinstance(sent, (Mapping, list)):
        yield path


def unsafe_devices(spec: Spec, kept: Spec) -> Iterator[str]:
    """Devices that would be given out wrongly without what was lost: parts of one GPU twice, and those that are to be kept away."""
    for device, stored in zip(mappings(spec.get("devices")), mappings(kept.get("devices")), strict=False):
        taints = mappings(device.get("taints"))
        keeps_away = any(each.get("effect") in ("NoSchedule", "NoExecute") for each in taints)
        if (device.get("consumesCounters") and not stored.get("consumesCounters")) or (
            keeps_away and not stored.get("taints")
        ):
            yield text(device.get("name"))


def dropped(driver: str, paths: Iterable[str], held_back: Sequence[str]) -> Problem:
    """The server drops fields of slices: `slice-fields-dropped`.

    Args:
        driver: Whose slices.
        paths: What was lost.
        held_back: Devices that are not published for it.
    """
    # Not at the top: it is a rare case.
    from dra_infra.model.dropping_slices import gates_of_fields

    fields = sorted({found[1] for each in paths if (found := _LAST.search(each))})
    gates = sorted({gate for name, gate in gates_of_fields().items() if name in fields})
    message = f"the API server drops {', '.join(fields)}"
    if held_back:
        names = ", ".join(held_back[:_NAMED]) + (" ..." if len(held_back) > _NAMED else "")
        message += (
            f"; {len(held_back)} devices are not published, for they would be given out wrongly: {names}"
        )
    hint = (
        f"turn on {', '.join(gates)} for the API server and the scheduler"
        if gates
        else "the server is too old for it"
    )
    return Problem(
        path=f"slices of {driver}",
        code="slice-fields-dropped",
        message=message,
        hint=hint,
        severity="error" if held_back else "warning",
    )


def without(devices: Iterable[Any], names: Iterable[str]) -> tuple[Any, ...]:
    """*devices* but those of these names."""
    left_out = frozenset(names)
    return tuple(each for each in devices if each.name not in left_out)
