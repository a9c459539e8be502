"""The lines and the exit codes of `dra-infra drain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from dra_infra.cli import drain as command
from dra_infra.cli.app import app
from dra_infra.cluster.draining import Part, Preview
from dra_infra.kubernetes.api import Release
from dra_infra.kubernetes.scheduler import Eviction


def a_pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ml", "uid": name}}


def a_preview(*evictions: Eviction) -> Preview:
    part = Part(driver="gpu.nvidia.com", pool="n1", device="gpu-0")
    release = Release(minor="1.37", gates=frozenset(), patch="1.37.1")
    return Preview(
        target="n1/gpu-0", parts=(part,), evictions=evictions, version="v1", counts={}, release=release
    )


def an_eviction(name: str, **more: Any) -> Eviction:
    return Eviction(pod=a_pod(name), claim=f"{name}-gpu", devices=("n1/gpu-0",), **more)


def test_every_pod_has_a_line_and_every_trap_a_warning():
    preview = a_preview(an_eviction("a", seconds=30, comes_back=True), an_eviction("b", stays=True))
    assert list(command.describe(preview)) == [
        "n1/gpu-0 of gpu.nvidia.com: 1 device",
        "1 pod would be evicted in 1 namespace:",
        "  ml/a by claim a-gpu from n1/gpu-0, after 30 s that it tolerates",
        "! ml/a may be placed there again and evicted again: its claim tolerates the taint for the scheduler",
        (
            "! ml/b by claim b-gpu from n1/gpu-0 stays, for it has the device by an extended resource: "
            "kubectl delete pod -n ml b"
        ),
    ]


def test_long_lists_are_cut():
    lines = list(command.describe(a_preview(*(an_eviction(f"p{number:03}") for number in range(60)))))
    assert lines[-1] == "  and 10 more"


class Steps:
    """A drain whose controller counts as it is told."""

    def __init__(self, preview: Preview, *, counts: int, left: tuple[str, ...] = ()) -> None:
        self.preview = preview
        self.counts = counts
        self.left = left
        self.evicted = False
        self.staying: tuple[str, ...] = ()
        self.tell: Any = None

    def ask(self) -> Iterator[tuple[str, str, int]]:
        yield "rule", "1 pod would be evicted", self.counts

    def expected(self, name: str) -> int:
        return len(self.preview.pods)

    def evict(self) -> tuple[str, ...]:
        self.evicted = True
        return self.left


@pytest.mark.parametrize(
    ("counts", "left", "code", "told"),
    [(1, (), 0, ""), (2, (), 1, "drain-differs"), (1, ("ml/a",), 1, "drain-not-ended")],
)
def test_nothing_is_evicted_where_the_controller_counts_others(
    capsys: pytest.CaptureFixture[str], counts: int, left: tuple[str, ...], code: int, told: str
):
    steps = Steps(a_preview(an_eviction("a")), counts=counts, left=left)
    assert command._run(steps, as_json=False) == code  # type: ignore[arg-type]
    assert steps.evicted == (counts == 1)
    assert told in capsys.readouterr().err
    assert told in ("", "drain-differs", "drain-not-ended")


@pytest.mark.parametrize(
    ("evictions", "staying", "told"),
    [
        ([], (), "no pod is left to evict;"),
        ([], ("ml/b", "ml/c"), "no pod is left to evict, and 2 stay by an extended resource;"),
        ([an_eviction("a")], ("ml/b",), "1 pod was evicted, and 1 stays by an extended resource;"),
    ],
)
def test_what_keeps_its_devices_is_counted_in_the_end(
    capsys: pytest.CaptureFixture[str], evictions: list[Eviction], staying: tuple[str, ...], told: str
):
    steps = Steps(a_preview(*evictions), counts=len(evictions))
    steps.staying = staying
    assert command._run(steps, as_json=False) == 0  # type: ignore[arg-type]
    assert f"✓ drained: {told}" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--yes", "--undo", "--json"])
@pytest.mark.parametrize("target", ["", " "])
def test_an_empty_target_is_wrong_use(target: str, option: str):
    done = CliRunner().invoke(app, ["drain", target, option])
    assert done.exit_code == 2
    assert "Invalid value for TARGET: an empty text means no device" in done.output


@pytest.mark.parametrize("option", ["--yes", "--undo", "--json"])
@pytest.mark.parametrize("driver", ["", " "])
def test_an_empty_driver_is_wrong_use_and_not_all_of_them(driver: str, option: str):
    done = CliRunner().invoke(app, ["drain", "node-7", "--driver", driver, option])
    assert done.exit_code == 2
    assert "Invalid value for --driver: an empty text means no device" in done.output
