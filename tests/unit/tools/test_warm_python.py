"""A warm interpreter does for each script what `python` itself does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.processes import wait_for_end
from tools.warm_python import warm_python

SECONDS = 300.0
ROOT = Path(__file__).parents[3]
PATHS = {**os.environ, "PYTHONPATH": str(ROOT)}

TELL = """
import json, os, sys
print(json.dumps([sys.argv, os.getcwd(), dict(os.environ), __name__, sys.path[0], os.getpgid(0) != 0]))
print("error", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with warm_python(tmp_path_factory.mktemp("warm"), "decimal", "tools.warm_python") as command:
        yield command


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


def both(warm: Path, *arguments: str, **options: object) -> tuple[subprocess.CompletedProcess[str], ...]:
    """What `python` and the warm one do with *arguments*."""
    return tuple(
        subprocess.run(
            [command, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False, **options
        )
        for command in (sys.executable, warm)
    )


@pytest.mark.parametrize("flags", [["-u"], ["-u", "-P"]], ids=" ".join)
def test_arguments_folder_environment_and_streams_are_those_of_the_caller(warm, script, tmp_path, flags):
    environment = {"PATH": os.defpath, "ONLY": "this", "LC_ALL": "C.UTF-8"}
    cold, own = both(warm, *flags, str(script(TELL)), "-u", "a b", "", cwd=tmp_path, env=environment)
    told, expected = json.loads(own.stdout), json.loads(cold.stdout)
    # Left by the shell of the command; a path of modules is the interpreter's own where it takes none from the script.
    for each in (told, expected):
        for name in ("PWD", "OLDPWD", "SHLVL", "_"):
            each[2].pop(name, None)
        if "-P" in flags:
            each[4] = ""
    assert told == expected
    assert (own.stderr, own.returncode) == (cold.stderr, cold.returncode) == ("error\n", 0)


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "raise SystemExit(32)",
        "raise SystemExit('why')",
        "import os; os._exit(7)",
        "import os; os.kill(os.getpid(), 15)",
        "import threading; threading.Thread(target=print, args=('later',)).start()",
        "import atexit; atexit.register(print, 'at exit')",
    ],
)
def test_a_script_ends_as_under_python(warm, script, ending):
    cold, own = both(warm, "-u", str(script(ending)))
    assert (own.returncode, own.stdout, own.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_an_error_is_shown_with_the_line_of_the_script(warm, script):
    _, own = both(warm, "-u", str(script("1 / 0\n")))
    assert own.returncode == 1
    assert own.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert "script.py" in own.stderr


def test_what_one_script_changes_no_other_sees(warm, script):
    path = str(script("import decimal; print(getattr(decimal, 'left', None)); decimal.left = 1"))
    assert [both(warm, "-u", path)[1].stdout for _ in range(2)] == ["None\n", "None\n"]


def test_modules_are_loaded_before(warm, script):
    path = str(script("import sys; print('decimal' in sys.modules)"))
    assert [each.stdout for each in both(warm, "-u", path)] == ["False\n", "True\n"]


def test_code_runs_with_the_descriptors_that_its_caller_hands_on(warm):
    code = (
        "import os, sys\nwith os.fdopen(int(sys.argv[1]), 'w') as answer:\n"
        "    answer.write(f'{__name__} with {len(sys.argv)}')\nsys.exit(3)\n"
    )

    def run(command) -> tuple[str, int]:
        reader, writer = os.pipe()
        with os.fdopen(reader) as answer:
            arguments = [command, "-s", "-P", "-S", "-c", code, str(writer)]
            ended = subprocess.run(
                arguments,
                check=False,
                pass_fds=[writer],
                cwd=ROOT,
                env=PATHS,
                capture_output=True,
                timeout=SECONDS,
            )
            os.close(writer)
            assert ended.stderr == b""
            return answer.read(), ended.returncode

    assert run(warm) == run(sys.executable) == ("__main__ with 2", 3)


def test_random_numbers_differ(warm, script):
    path = str(script("import random; print(random.random())"))
    assert both(warm, "-u", path)[1].stdout != both(warm, "-u", path)[1].stdout


def test_a_program_may_have_a_module_named_as_this_repositorys(warm, script, tmp_path):
    (tmp_path / "tools.py").write_text("VALUE = 'its own'\n")
    path = str(script(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tools; print(tools.VALUE)"))
    assert [each.stdout for each in both(warm, "-u", "-P", path)] == ["its own\n", "its own\n"]


@pytest.mark.parametrize("arguments", [("-c", "print(1)"), ("-u", "-m", "this"), ("-V",)])
def test_anything_but_a_script_is_pythons_own(warm, arguments):
    cold, own = both(warm, *arguments)
    assert (own.returncode, own.stdout) == (cold.returncode, cold.stdout)


def test_it_works_without_the_server_too(tmp_path, script):
    with warm_python(tmp_path) as command:
        pass
    assert both(command, "-u", str(script("print('alone')")))[1].stdout == "alone\n"


def test_many_scripts_run_at_once(warm, script):
    path = str(script("import sys, time; time.sleep(0.2); print(sys.argv[1]); sys.exit(int(sys.argv[1]))"))
    running = [
        subprocess.Popen([warm, "-u", path, str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(16)
    ]
    ended = [(each.communicate(timeout=SECONDS)[0], each.returncode) for each in running]
    assert ended == [(f"{number}\n", number) for number in range(16)]


WAIT = """
import os, time
try:
    print(os.getpid(), flush=True)
    # Python sees a signal that comes right before a sleep only behind it.
    for _ in range(6000):
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def started(warm: Path, path: Path) -> tuple[subprocess.Popen[str], int]:
    running = subprocess.Popen([warm, "-u", str(path)], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    return running, int(running.stdout.readline())


def test_an_interrupt_reaches_the_script(warm, script):
    running, _ = started(warm, script(WAIT))
    running.send_signal(signal.SIGINT)
    assert running.communicate(timeout=SECONDS)[0] == "interrupted\n"
    assert running.returncode == 0


def test_a_script_that_a_signal_ends_is_told_so(warm, script):
    running, pid = started(warm, script(WAIT))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=SECONDS)
    assert running.returncode == -signal.SIGTERM
    assert wait_for_end(pid)


def test_a_script_ends_with_the_process_that_stands_for_it(warm, script):
    running, pid = started(warm, script(WAIT))
    running.kill()
    running.communicate(timeout=SECONDS)
    assert wait_for_end(pid)


def test_a_script_ends_with_the_process_that_started_it(warm, script):
    starter = f"import subprocess, time; subprocess.Popen([{str(warm)!r}, '-u', {str(script(WAIT))!r}]); time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate(timeout=SECONDS)
    assert wait_for_end(pid)


def test_a_script_that_outlives_the_server_still_takes_signals(tmp_path, script):
    with warm_python(tmp_path) as command:
        running, pid = started(command, script(WAIT))
    running.terminate()
    running.communicate(timeout=SECONDS)
    assert wait_for_end(pid)
