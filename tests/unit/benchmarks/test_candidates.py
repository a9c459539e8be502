from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks import alternatives
from benchmarks.__main__ import table
from benchmarks.measure import Candidate, Figure, measure
from benchmarks.questions import PROGRAMS, pod_with_a_claim
from tools.errors import ToolError


def figure(name: str, seconds: float) -> Figure:
    return Figure(
        name=name,
        seconds=seconds,
        lowest=seconds,
        highest=seconds,
        memory_mib=10,
        goal=None,
        memory_goal=None,
    )


@functools.cache
def specs_written_by(program: str, kind: str) -> list[object]:
    run = subprocess.run(
        [sys.executable, str(PROGRAMS / program), "9", kind], capture_output=True, text=True, check=True
    )
    documents = list(yaml.safe_load_all(run.stdout))
    templates = [each for each in documents if each["kind"] == "ResourceClaimTemplate"]
    return sorted((each["spec"] for each in templates), key=repr_of_numbers)


def repr_of_numbers(spec: dict) -> str:
    # The mocks hand every number over as a float.
    return repr(sorted(str(value) for value in flatten(spec)))


def flatten(value: object) -> list[object]:
    if isinstance(value, dict):
        return [each for item in value.values() for each in flatten(item)]
    if isinstance(value, list):
        return [each for item in value for each in flatten(item)]
    return [float(value) if isinstance(value, int) else value]


@pytest.mark.parametrize("kind", ["selectors", "counts"])
@pytest.mark.parametrize("alternative", ["sdk_alone.py", "typed_pulumi.py"])
def test_candidates_write_the_same_specs(alternative: str, kind: str) -> None:
    assert specs_written_by(alternative, kind) == specs_written_by("ours.py", kind)


def test_candidates_run_in_turns_after_a_warm_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append = "import sys; open(sys.argv[1], 'a').write(sys.argv[2])"
    candidates = [
        Candidate(name=name, command=[sys.executable, "-c", append, str(log), name]) for name in "AB"
    ]
    figures = measure(candidates, runs=2)
    assert log.read_text() == "ABABAB"
    assert [each.name for each in figures] == ["A", "B"]


def test_a_candidate_that_fails_is_named_with_its_output() -> None:
    broken = Candidate(name="broken", command=[sys.executable, "-c", "raise SystemExit('no such class')"])
    with pytest.raises(RuntimeError, match=r"broken: exit 1\nno such class"):
        measure([broken], runs=1)


def test_memory_is_that_of_the_run_and_not_of_the_largest_before_it() -> None:
    large = Candidate(name="large", command=[sys.executable, "-c", "b'x' * (200 * 2**20)"])
    small = Candidate(name="small", command=[sys.executable, "-c", ""])
    figures = {each.name: each for each in measure([large, small], runs=1)}
    assert figures["large"].memory_mib > 200 > 100 > figures["small"].memory_mib


def test_memory_is_that_of_the_run_and_not_of_the_process_that_measures() -> None:
    # Held while it measures: every page is written, so all of it counts as this process's.
    held = bytearray(b"x") * (200 * 2**20)
    (small,) = measure([Candidate(name="small", command=[sys.executable, "-c", ""])], runs=1)
    assert small.memory_mib < 100
    assert len(held) == 200 * 2**20


def test_a_candidate_that_cannot_be_started_is_named() -> None:
    with pytest.raises(RuntimeError, match="absent: cannot be started: No such file or directory"):
        measure([Candidate(name="absent", command=["no-such-command-here"])], runs=1)


def test_a_candidate_ended_by_a_signal_is_named() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(RuntimeError, match="killed: exit -9"):
        measure([Candidate(name="killed", command=[sys.executable, "-c", program])], runs=1)


def test_candidates_run_in_their_folder(tmp_path: Path) -> None:
    program = "import os; raise SystemExit(os.getcwd())"
    candidate = Candidate(name="one", command=[sys.executable, "-c", program], folder=tmp_path)
    with pytest.raises(RuntimeError, match=str(tmp_path)):
        measure([candidate], runs=1)


def test_candidates_do_not_inherit_that_python_ignores_broken_pipes() -> None:
    with pytest.raises(RuntimeError, match="one: exit -13"):
        measure([Candidate(name="one", command=["sh", "-c", "kill -PIPE $$"])], runs=1)


def test_candidates_keep_compiled_modules_whatever_the_caller_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PYTHONDONTWRITEBYTECODE", "1")
    program = "import sys; raise SystemExit(bool(sys.dont_write_bytecode))"
    (found,) = measure([Candidate(name="one", command=[sys.executable, "-c", program])], runs=1)
    assert found.name == "one"


def test_ratios_are_to_the_first_row() -> None:
    rows = table([figure("ours", 2.0), figure("other", 3.0)])
    assert rows[-1].startswith("| other | 3.00 | 3.00 to 3.00 | 1.50 |")


def test_a_checker_that_finds_something_has_not_failed() -> None:
    command = [sys.executable, "-c", "raise SystemExit(1)"]
    (found,) = measure([Candidate(name="checker", command=command, exits=(1,))], runs=1)
    assert found.name == "checker"


def test_a_program_may_tell_its_own_seconds() -> None:
    command = [sys.executable, "-c", "print('read 3 files'); print(1234.5)"]
    (found,) = measure([Candidate(name="one", command=command, own_clock=True)], runs=1)
    assert found.seconds == 1234.5


def test_a_candidate_that_takes_minutes_runs_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = [sys.executable, "-c", f"open({str(log)!r}, 'a').write('x')"]
    measure([Candidate(name="slow", command=program, once=True)], runs=3)
    assert log.read_text() == "x"


def test_question_that_needs_a_node_says_what_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternatives, "_reasons", [])
    monkeypatch.setattr("tools.build.binary", not_built)
    candidates = pod_with_a_claim()
    assert candidates == []
    assert "kubelet: not built (python -m tools.build --only kubelet)" in alternatives.left_out()
    assert table(measure(candidates, runs=1)) == ["Not measured here: see what was left out."]


def test_question_that_needs_a_node_says_that_it_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternatives, "_reasons", [])
    monkeypatch.setattr("tools.build.binary", Path)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert pod_with_a_claim() == []
    assert alternatives.left_out() == ("pods on a real node: only root may start one",)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert [each.goal for each in pod_with_a_claim()] == [0.15]


def not_built(name: str) -> Path:
    raise ToolError(f"{name} is not built")


def test_the_manifests_to_migrate_are_ten_thousand_and_one_in_ten_asks_for_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(PROGRAMS / "migration.py"), str(tmp_path)], check=True)
    texts = [file.read_text() for file in tmp_path.iterdir()]
    documents = [each for text in texts for each in text.split("---\n")]
    assert len(documents) == 10_000
    assert sum("nvidia.com/" in str(yaml.safe_load(each)) for each in documents[:100]) == 90
