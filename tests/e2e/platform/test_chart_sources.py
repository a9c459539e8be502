"""Where charts come from, what is said when they are not there, and projects without a cluster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.platform.chart_server import ChartServer, serve
from tests.e2e.platform.wording import check_words
from tests.support.charts import write_chart
from tests.support.lab import Lab
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

PASSWORD = "hush-hush"


@pytest.fixture
def archive(tmp_path: Path, binaries: Callable[[str], Path]) -> Path:
    """A packed chart."""
    chart = write_chart(tmp_path / "paint", version="1.2.3")
    subprocess.run(
        [str(binaries("helm")), "package", str(chart), "--destination", str(tmp_path)],
        env={"HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        timeout=60,
    )
    return tmp_path / "paint-1.2.3.tgz"


@pytest.fixture
def server(archive: Path, tmp_path: Path) -> Iterator[ChartServer]:
    """A repository and a registry that have it."""
    with serve(tmp_path, archive, user="reader", password=PASSWORD) as running:
        yield running


def program(chart: str, *, version: str = "", options: str = "None") -> str:
    """Return a program that installs a chart."""
    return (
        f'k8s.helm.v3.Release("paint", chart={chart!r}, name="paint", namespace="studio", create_namespace=True,\n'
        f"    version={version or None!r}, repository_opts={options})\n"
    )


def account(server: ChartServer, *, repo: str = "", password: str = PASSWORD) -> str:
    """Return the options of a repository."""
    trust = f"username='reader', password={password!r}, ca_file={str(server.certificate)!r}"
    return f"k8s.helm.v3.RepositoryOptsArgs(repo={repo or None!r}, {trust})"


def test_an_archive_is_installed(platform_lab: Lab, archive: Path) -> None:
    platform_lab.up(program(str(archive)))

    assert platform_lab.resource("paint")["outputs"]["status"]["version"] == "1.2.3"


def test_a_repository_with_a_password_finds_the_newest_version_in_a_range(
    platform_lab: Lab, server: ChartServer
) -> None:
    options = account(server, repo=server.repository)
    platform_lab.write(program("paint", version=">=1.0.0", options=options))

    platform_lab.stack.preview("--diff").check()
    up = platform_lab.stack.up("--diff").check()

    assert platform_lab.resource("paint")["outputs"]["version"] == "1.2.3"
    assert PASSWORD not in up.text
    assert PASSWORD not in json.dumps(platform_lab.stack.export())
    platform_lab.stack.preview("--expect-no-changes").check()


def test_a_registry_with_a_password_has_charts_too(platform_lab: Lab, server: ChartServer) -> None:
    platform_lab.up(program(server.chart, version="1.2.3", options=account(server)))

    assert platform_lab.resource("paint")["outputs"]["status"]["version"] == "1.2.3"


def test_a_wrong_password_is_refused_and_not_shown(platform_lab: Lab, server: ChartServer) -> None:
    options = account(server, repo=server.repository, password="wrong-word")
    platform_lab.write(program("paint", options=options))

    preview = platform_lab.stack.preview()

    assert preview.exit_code == 1
    assert "401" in preview.text
    assert "check the chart name and repository configuration" in preview.text
    assert "wrong-word" not in preview.text


@pytest.mark.parametrize("chart", ["./absent", "absent", "oci://127.0.0.1:1/charts/absent"])
def test_a_chart_that_is_not_there_fails_the_preview_by_its_name(platform_lab: Lab, chart: str) -> None:
    platform_lab.write(program(chart))

    preview = platform_lab.stack.preview()

    assert preview.exit_code == 1
    check_words(platform_lab, preview.text, f"chart {chart}: ")
    assert "check the chart name and repository configuration" in preview.text


def test_without_a_cluster_a_preview_looks_at_the_chart_and_an_update_fails(
    home: PulumiHome, tmp_path: Path, archive: Path
) -> None:
    environment = {"KUBECONFIG": str(tmp_path / "absent")}
    lab = Lab.create(tmp_path / "lab", home=home, namespace="offline", environment=environment)
    lab.write(program(str(archive)))

    preview = lab.stack.preview().check()
    up = lab.stack.up()

    assert preview.step("paint", "create").inputs["version"] == "1.2.3"
    assert up.exit_code == 1
    assert "cluster is unreachable" in "".join(up.errors)
    assert lab.names() == []
