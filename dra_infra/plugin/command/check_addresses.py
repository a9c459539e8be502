"""Whether metrics and health can be served where the settings say, tried by listening there and answering nobody."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from dra_infra.errors import PluginError
from dra_infra.plugin.command.findings import Finding, attempt
from dra_infra.plugin.command.listeners import find_listeners, has_open
from dra_infra.plugin.command.metrics_server import held, not_usable
from dra_infra.plugin.command.setting_values import Address
from dra_infra.plugin.command.settings import Settings


def check_addresses(settings: Settings, instances: Path) -> Iterator[Finding]:
    """Whether each that is given is free, or has been taken by an instance of this very plugin.

    Args:
        settings: Of the plugin.
        instances: The file that its instances have open for as long as they live.
    """
    with ExitStack() as kept:
        # Kept until all were tried: two of them may be the same.
        taken: dict[int, str] = {}
        for what, key, address in (
            ("metrics address", "metricsAddress", settings.metrics_address),
            ("health address", "healthAddress", settings.health_address),
        ):
            if address is None:
                continue
            yield from attempt(what, partial(_try, key, address, instances, taken, kept))
            taken[address.port] = key


def _try(key: str, address: Address, instances: Path, taken: dict[int, str], kept: ExitStack) -> str:
    try:
        kept.enter_context(held(address))
    except OSError as error:
        refused = not_usable(key, address, error)
        if error.errno != errno.EADDRINUSE:
            raise refused from error
        if address.port in taken:
            raise _because(refused, f"{taken[address.port]} has the same port") from error
        listeners = find_listeners(address.port)
        ours = [each for each in listeners.processes if has_open(each, instances)]
        if ours and not listeners.hidden and len(ours) == len(listeners.processes):
            return f"{address}, where the plugin that runs listens: {listeners}"
        raise (_because(refused, f"{listeners} listens there") if str(listeners) else refused) from error
    return str(address)


def _because(refused: PluginError, reason: str) -> PluginError:
    return PluginError(replace(each, message=f"{each.message}; {reason}") for each in refused.problems)
