"""What a user reads when a program fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.language_host.runner import describe_failure


def test_a_failure_shows_the_frames_of_the_program_and_of_its_causes(tmp_path: Path) -> None:
    program = tmp_path / "__main__.py"
    program.write_text(
        "def inner():\n    int('x')\n\n"
        "def outer():\n    try:\n        inner()\n"
        "    except ValueError as error:\n        raise RuntimeError('outer') from error\n"
    )
    scope: dict[str, object] = {}
    exec(compile(program.read_text(), str(program), "exec"), scope)  # noqa: S102 - the program is above.
    outer = scope["outer"]
    assert callable(outer)

    with pytest.raises(RuntimeError) as caught:
        outer()
    text = describe_failure(caught.value, tmp_path)

    frames = [line.split(", in ")[1] for line in text.splitlines() if ", in " in line]
    assert frames == ["outer", "inner", "outer"]
    assert text.endswith("RuntimeError: outer")
    assert "pytest" not in text.replace(str(tmp_path), "")
