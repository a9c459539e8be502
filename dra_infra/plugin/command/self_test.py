"""`dra-infra-plugin --check`: tries what the plugin needs of machine and cluster, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from dra_infra.cluster.kubeconfig import find_account
from dra_infra.errors import PluginError, Problem, ProblemsError
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.back_end import BackEnd, Inventory
from dra_infra.plugin.command import instances
from dra_infra.plugin.command.check_addresses import check_addresses
from dra_infra.plugin.command.check_folders import check_folders
from dra_infra.plugin.command.check_kubelet import ask_kubelet
from dra_infra.plugin.command.check_server import check_server
from dra_infra.plugin.command.choosing import make_back_end, name_of_driver
from dra_infra.plugin.command.findings import Finding, attempt
from dra_infra.plugin.command.places import Places
from dra_infra.plugin.command.settings import Settings
from dra_infra.plugin.disk import explained
from dra_infra.plugin.unexpected import expected

_Kind = TypeVar("_Kind")
_NOTHING: Final = Inventory(devices=())


def check(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Everything, as it is tried."""
    inventory = _NOTHING
    driver, problems = _made("driver", lambda: name_of_driver(settings))
    yield from problems
    if driver:
        places = Places.of(settings, driver)
        inventory = yield from _check_devices(settings, places)
        yield from _check_machine(places)
        yield from check_addresses(settings, places.state / instances.FILE)
    api, problems = _made(
        "API server",
        lambda: Api(find_account(settings.kubeconfig, None, environment, can_choose=False), environment),
    )
    yield from problems
    if api:
        yield from check_server(
            api, driver=driver or "gpu.example.com", node=settings.node_name, inventory=inventory
        )


def _check_devices(settings: Settings, places: Places) -> Generator[Finding, None, Inventory]:
    """Whether the back end works; what it has, or nothing where it does not."""
    warnings: list[Problem] = []
    inventories: list[Inventory] = []
    with ExitStack() as closing:
        back_end, problems = _made("devices", lambda: _opened(settings, places, closing, warnings.extend))
        yield from problems
        if back_end:
            yield from attempt("devices", lambda: _count(back_end, inventories.append))
            # Else it would say the same.
            if inventories:
                yield from _check_edits(settings, back_end)
    for each in warnings:
        yield Finding(what="devices", problem=each)
    return inventories[0] if inventories else _NOTHING


def _opened(
    settings: Settings, places: Places, closing: ExitStack, noticed: Callable[[Sequence[Problem]], None]
) -> BackEnd:
    # Simulated hardware may be at work where the plugin keeps it; a container has no other folder to write to. That
    # the plugin's own cannot be written to is found with the folders.
    aside = places.state if os.access(places.state, os.W_OK) else None
    with explained("no temporary folder can be made", places.state):
        folder = closing.enter_context(TemporaryDirectory(dir=aside))
    back_end = make_back_end(settings, replace(places, state=Path(folder)), noticed)
    closing.callback(_close, back_end)
    return back_end


def _close(back_end: BackEnd) -> None:
    with expected("the back end"):
        back_end.close()


def _check_edits(settings: Settings, back_end: BackEnd) -> Iterator[Finding]:
    if settings.back_end != "nvml":
        return
    from dra_infra.plugin.back_ends.nvml import NvmlBackEnd

    if isinstance(back_end, NvmlBackEnd):
        yield from attempt("what containers get", back_end.try_edits)


def _check_machine(places: Places) -> Iterator[Finding]:
    findings = list(check_folders(sockets=places.sockets, state=places.state, cdi=places.cdi))
    yield from findings
    if all(each.holds for each in findings):
        yield from attempt("kubelet", lambda: ask_kubelet(places.sockets))


def _count(back_end: BackEnd, keep: Callable[[Inventory], None]) -> str:
    with expected("the back end"):
        found: object = back_end.inventory()
    # Back ends of others are not held to types.
    if not isinstance(found, Inventory):
        message = f"its inventory() gives {type(found).__name__}, and no Inventory"
        hint = "see dra_infra.plugin.back_end.Inventory"
        problem = Problem(path=back_end.driver, code="back-end-not-loaded", message=message, hint=hint)
        raise PluginError([problem])
    keep(found)
    return f"{len(found.devices)} of {back_end.driver}"


def _made(what: str, make: Callable[[], _Kind]) -> tuple[_Kind | None, list[Finding]]:
    made: list[_Kind] = []

    def work() -> str:
        made.append(make())
        return ""

    findings = list(_tried(what, work))
    return (made[0], []) if made else (None, findings)


def _tried(what: str, work: Callable[[], str]) -> Iterator[Finding]:
    """As `attempt`, also of what raises errors of fleets and clusters."""

    def of_plugin() -> str:
        try:
            return work()
        except ProblemsError as error:
            raise PluginError(error.problems) from error

    return attempt(what, of_plugin)
