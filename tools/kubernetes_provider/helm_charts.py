"""Where the chart of a release is: a folder, an archive, a repository or an OCI registry."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from tools.kubernetes_provider.helm_command import HelmError, HelmHome
from tools.kubernetes_provider.values import Object, reveal

OCI: Final = "oci://"
REPOSITORY: Final = "repository"
"""Name of the repository of a chart that needs credentials, in homes that know no other one."""

TLS_OPTIONS: Final = {"caFile": "--ca-file", "certFile": "--cert-file", "keyFile": "--key-file"}
LOOK_SECONDS: Final = 120.0
"""For what only reads a chart."""


@dataclass(frozen=True, kw_only=True)
class ChartSource:
    """A chart as helm is told about it.

    Args:
        chart: A path, an address, or a name in a repository.
        options: What helm must know to get it.
        login: The command that lets helm in, empty for none; it reads the password from its standard input.
    """

    chart: str
    options: tuple[str, ...]
    login: tuple[str, ...] = ()
    password: str = field(default="", repr=False)

    def enter(self, home: HelmHome) -> None:
        """Log in, where that is needed; the password is no argument, for other users see those.

        Raises:
            HelmError: It was refused.
        """
        if self.login:
            home.run(*self.login, text=self.password, seconds=LOOK_SECONDS)


def locate(inputs: Object) -> ChartSource:
    """Return where the chart of a release is, by the vendor's rules: what lies in the program's folder comes first.

    Raises:
        HelmError: No chart is named.
    """
    given: dict[str, Any] = reveal(inputs)
    chart = str(given.get("chart") or "").strip()
    if not chart:
        raise HelmError("no chart is named")
    of_repository = given.get("repositoryOpts") or {}
    options = _version_options(given) + tuple(
        word
        for name, option in TLS_OPTIONS.items()
        if of_repository.get(name)
        for word in (option, str(Path(of_repository[name]).absolute()))
    )
    repository = str(of_repository.get("repo") or "")
    user, password = str(of_repository.get("username") or ""), str(of_repository.get("password") or "")
    as_user = ("--username", user, "--password-stdin")
    tls = options[len(_version_options(given)) :]
    if chart.startswith(OCI):
        login = ("registry", "login", urlsplit(chart).netloc, *as_user, *tls) if user and password else ()
        return ChartSource(chart=chart, options=options, login=login, password=password)
    if urlsplit(repository).scheme:
        if user and password:
            login = ("repo", "add", REPOSITORY, repository, *as_user, *tls)
            return ChartSource(chart=f"{REPOSITORY}/{chart}", options=options, login=login, password=password)
        return ChartSource(chart=chart, options=("--repo", repository, *options))
    if repository and "/" not in chart:
        chart = f"{repository}/{chart}"
    path = Path(chart)
    if path.is_file() or Path(path, "Chart.yaml").is_file():
        chart = str(path.absolute())
    return ChartSource(chart=chart, options=options)


def _version_options(given: dict[str, Any]) -> tuple[str, ...]:
    version = ("--version", str(given["version"])) if given.get("version") else ()
    verify = ("--verify", "--keyring", str(given.get("keyring") or "")) if given.get("verify") else ()
    return (*version, *(("--devel",) if given.get("devel") else ()), *verify)


def read_metadata(home: HelmHome, source: ChartSource) -> dict[str, Any]:
    """Return the `Chart.yaml` of a chart: `name`, `version`...

    Raises:
        HelmError: There is no such chart, or helm cannot read it.
    """
    source.enter(home)
    found = yaml.safe_load(home.run("show", "chart", source.chart, *source.options, seconds=LOOK_SECONDS))
    if not isinstance(found, dict) or "version" not in found:
        raise HelmError(f"{source.chart}: Chart.yaml has no version")
    return found
