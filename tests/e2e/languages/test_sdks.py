"""The platform of `test_yaml.py` in TypeScript and Go, with SDKs that are generated from our schema: the same objects, URNs and state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.languages import automation
from tests.e2e.languages.conftest import Json
from tests.e2e.languages.test_yaml import platform, urns
from tests.support.lab import Lab
from tools import sdk_programs

pytestmark = pytest.mark.e2e


def test_objects_urns_and_state_are_those_of_the_same_program_in_python_byte_for_byte(
    lab: Lab, package: Path, made: Callable[[], Json]
) -> None:
    _, in_python = platform(lab)
    lab.write(in_python)
    lab.stack.up().check()
    objects, names = json.dumps(made(), sort_keys=True), urns(lab)
    lab.stack.destroy().check()

    for runtime, command in (("nodejs", sdk_programs.in_typescript()), ("go", sdk_programs.in_go())):
        automation.write_project(lab, runtime, package)
        arguments = ("platform", lab.namespace) if runtime == "nodejs" else (lab.namespace,)
        up = automation.run(lab, command, "up", *arguments)
        assert up.returncode == 0, up.stdout
        assert json.dumps(made(), sort_keys=True) == objects
        assert urns(lab) == names
        # Back in Python there is nothing to do.
        lab.write(in_python)
        lab.stack.preview("--expect-no-changes").check()
        lab.stack.destroy().check()
