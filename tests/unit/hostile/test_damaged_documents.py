"""Thousands of damaged documents through everything that reads what others wrote: each has an answer, soon."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import time
import traceback
from pathlib import Path
from typing import Final

import pytest

from dra_infra.errors import ProblemsError
from tests.support import draws
from tests.unit.hostile.documents import make_document
from tests.unit.hostile.targets import TARGETS

IS_SOAK: Final = bool(os.environ.get("DRA_INFRA_SOAK"))
PARTS: Final = 1 if IS_SOAK else 5
"""A soak is one run, so that what leaks adds up; else the parts are divided among workers."""

COUNT: Final = 100_000 if IS_SOAK else 5_000

SLOWEST: Final = 5.0
"""Seconds of processor time for one document."""

GROWTH: Final = 48
"""MiB by which the last third may make the process grow: caches are filled by then."""

SEED: Final = draws.SEED or 7
FROZEN: Final = sorted(Path(__file__).with_name("frozen").glob("*/*"))


def use(target: str, data: bytes, folder: Path) -> None:
    printed = io.StringIO()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        contextlib.suppress(ProblemsError),
    ):
        TARGETS[target](data, folder)


def resident() -> int:
    """MiB of memory that this process has now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


@pytest.mark.draws
@pytest.mark.parametrize("part", range(PARTS))
def test_every_damaged_document_has_an_answer(part: int, tmp_path: Path, record_property):
    size = COUNT // PARTS
    crashes: dict[str, str] = {}
    slowest = (0.0, 0)
    memory = []
    for number in range(part * size, (part + 1) * size):
        document = make_document(SEED, number)
        began = time.process_time()
        try:
            use(document.target, document.data, tmp_path)
        except Exception:  # noqa: BLE001  (any of them is what is looked for)
            told = traceback.format_exc(limit=-4)
            crashes.setdefault(told, f"make_document({SEED}, {number}) for {document.target}")
        slowest = max(slowest, (time.process_time() - began, number))
        if (number + 1 - part * size) % (size // 3) == 0:
            memory.append(resident())
    record_property("seed", SEED)
    assert not crashes, "\n\n".join(f"{where}\n{told}" for told, where in crashes.items())
    assert slowest[0] < SLOWEST, f"make_document({SEED}, {slowest[1]}) takes {slowest[0]:.1f} s"
    assert memory[2] - memory[1] < GROWTH, f"the process grows by thirds: {memory} MiB"


@pytest.mark.parametrize("file", FROZEN, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_what_once_ended_in_a_traceback_has_an_answer(file: Path, tmp_path: Path):
    use(file.parent.name, file.read_bytes(), tmp_path)


def test_a_run_is_repeated_by_its_seed():
    assert [make_document(3, number) for number in range(50)] == [
        make_document(3, number) for number in range(50)
    ]


def test_every_target_gets_documents():
    assert {make_document(3, number).target for number in range(100)} == set(TARGETS)
