"""`dra-infra-plugin --check`: tries what the plugin needs of machine and cluster, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from dra_infra.cluster.kubeconfig import find_account
from dra_infra.errors import PluginError, Problem, ProblemsError
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.back_end import BackEnd
from dra_infra.plugin.command.check_folders import check_folders
from dra_infra.plugin.command.check_kubelet import ask_kubelet
from dra_infra.plugin.command.check_server import check_server
from dra_infra.plugin.command.choosing import make_back_end, name_of_driver
from dra_infra.plugin.command.findings import Finding, attempt
from dra_infra.plugin.command.places import Places
from dra_infra.plugin.command.settings import Settings

_Kind = TypeVar("_Kind")


def check(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Everything, as it is tried."""
    driver, problems = _made("driver", lambda: name_of_driver(settings))
    yield from problems
    if driver:
        places = Places.of(settings, driver)
        yield from _check_devices(settings, places)
        yield from _check_machine(places)
    api, problems = _made(
        "API server", lambda: Api(find_account(settings.kubeconfig, None, environment), environment)
    )
    yield from problems
    if api:
        yield from check_server(api, driver=driver or "gpu.example.com", node=settings.node_name)


def _check_devices(settings: Settings, places: Places) -> Iterator[Finding]:
    warnings: list[Problem] = []
    # Simulated hardware may be at work where the plugin keeps it; a container has no other folder to write to.
    with TemporaryDirectory(dir=places.state if places.state.is_dir() else None) as folder:
        elsewhere = replace(places, state=Path(folder))
        back_end, problems = _made("devices", lambda: make_back_end(settings, elsewhere, warnings.extend))
        yield from problems
        if back_end:
            found = list(attempt("devices", lambda: _count(back_end)))
            yield from found
            # Else it would say the same.
            if all(each.holds for each in found):
                yield from _check_edits(settings, back_end)
            back_end.close()
    for each in warnings:
        yield Finding(what="devices", problem=each)


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


def _count(back_end: BackEnd) -> str:
    devices = back_end.inventory().devices
    return f"{len(devices)} of {back_end.driver}"


def _made(what: str, make: Callable[[], _Kind]) -> tuple[_Kind | None, list[Finding]]:
    try:
        return make(), []
    except ProblemsError as error:
        return None, list(attempt(what, _raising(PluginError(error.problems))))


def _raising(error: PluginError) -> Callable[[], str]:
    def work() -> str:
        raise error

    return work
