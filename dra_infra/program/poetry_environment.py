"""Where Poetry keeps the virtual environment of a project, read from its files and variables: Poetry is not run.

`poetry env info --path`, which Pulumi runs, prints the answer of `EnvManager.get` (poetry/utils/env/env_manager.py, read at
2.5.1). Who wrote the pull request may have written these files: they are read with a bound on their size.
"""

from __future__ import annotations

import base64
import glob
import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dra_infra.kubernetes.api import mapping
from dra_infra.program.project_files import MAX_FILE_BYTES, invalid

_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_APPLICATION: Final = "pypoetry"
_LONGEST: Final = 4096
"""Characters of a path that the system takes."""


def find_poetry_environment(folder: Path, variables: Mapping[str, str]) -> Path | None:
    """Return the folder of the environment, which may be missing; None where Poetry has none and would make none.

    Poetry takes the version of the `python` on PATH where nobody ran `poetry env use`. Here it is the version that runs
    dra-infra, because no other can be used.

    Args:
        folder: Folder of the program, where Pulumi runs Poetry.
        variables: Environment variables. Without any, only files of the project are read.

    Raises:
        ProgramError: With code `invalid-project`, for a file that is not TOML.
    """
    # Poetry sees the folder that its process runs in, without links.
    start = Path(os.path.realpath(folder))
    top = next((each for each in (start, *start.parents) if _exists(each / "pyproject.toml")), None)
    if top is None:
        return None
    settings = _Settings(top, variables)
    in_project = settings.is_set("virtualenvs.in-project")
    own = top / ".venv"
    base = _base_name(top)
    if base is None:
        return None
    environments = settings.folder_of_environments(start)
    activated = mapping(_read(environments / "envs.toml").get(base)) if environments else {}
    active = variables.get("VIRTUAL_ENV", variables.get("CONDA_PREFIX"))
    if active and variables.get("CONDA_DEFAULT_ENV") != "base" and not activated:
        return start / active
    if in_project is not False and own.is_dir():
        return own
    if settings.is_set("virtualenvs.create") is False:
        return None
    if environments is None:
        return None if in_project is False else own
    environment = environments / f"{base}-py{str(activated.get('minor', _VERSION)).strip()}"
    if activated or _exists(environment):
        return environment
    # One for another Python is of no use, but its name helps to say what is wrong.
    others = sorted(glob.glob(f"{glob.escape(base)}-py*", root_dir=environments))  # noqa: PTH207  (it raises nothing)
    if others:
        return environments / others[0]
    return own if in_project else environment


def _exists(path: Path) -> bool:
    # Path.exists raises for a name that is too long.
    return os.path.exists(path)  # noqa: PTH110


def _base_name(top: Path) -> str | None:
    """Return the name of the project's environments without the version of Python, as `generate_env_name` makes it.

    None for a project that Poetry refuses, because it is a package without a name.
    """
    content = _read(top / "pyproject.toml")
    poetry = mapping(mapping(content.get("tool")).get("poetry"))
    name = mapping(content.get("project")).get("name") or poetry.get("name")
    if name is None and poetry.get("package-mode") is not False:
        return None
    canonical = re.sub(r"[-_.]+", "-", str(name or "non-package-mode")).lower()
    sanitized = re.sub(r'[ $`!*@"\\\r\n\t]', "_", canonical)[:42]
    digest = hashlib.sha256(os.fsencode(os.path.normcase(top))).digest()
    return f"{sanitized}-{base64.urlsafe_b64encode(digest).decode()[:8]}"


class _Settings:
    """Settings of Poetry: variables come before `poetry.toml` of the project, and that before `config.toml` of the user."""

    def __init__(self, top: Path, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._files = [_read(top / "poetry.toml")]
        if folder := _user_folder(variables, "config"):
            self._files.append(_read(folder / "config.toml"))

    def is_set(self, key: str) -> bool | None:
        """Return the value of a setting that is true or false; None where it is neither."""
        value = self._variables.get(_variable(key))
        if value is not None:
            return value.lower() in ("true", "1")
        written = self._of_files(key)
        return written if isinstance(written, bool) else None

    def folder_of_environments(self, start: Path) -> Path | None:
        """Return the folder of the environments of all projects; None where neither variables nor files name one."""
        cache = self._text("cache-dir")
        if cache is None and (folder := _user_folder(self._variables, "cache")):
            cache = str(folder)
        path = self._text("virtualenvs.path")
        if path is None:
            if cache is None:
                return None
            path = "{cache-dir}/virtualenvs"
        resolved = path.replace("{cache-dir}", cache or "")
        return start / os.path.expanduser(resolved)  # noqa: PTH111  (Path raises for an unknown user)

    def _text(self, key: str) -> str | None:
        value = self._variables.get(_variable(key), self._of_files(key))
        is_path = isinstance(value, str) and len(value) <= _LONGEST and "\0" not in value
        return str(value) if is_path else None

    def _of_files(self, key: str) -> Any:
        for content in self._files:
            value: Any = content
            for part in key.split("."):
                value = mapping(value).get(part)
            if value is not None:
                return value
        return None


def _variable(key: str) -> str:
    return f"POETRY_{re.sub('[.-]', '_', key).upper()}"


def _user_folder(variables: Mapping[str, str], kind: str) -> Path | None:
    """Return the folder of Poetry's settings (`config`) or of its cache (`cache`), as the library `platformdirs` gives it."""
    if kind == "config" and (named := variables.get("POETRY_CONFIG_DIR")):
        return Path(named)
    if sys.platform == "win32":
        above = variables.get("APPDATA" if kind == "config" else "LOCALAPPDATA")
        folder = Path(above, _APPLICATION) if above else None
        return folder / "Cache" if folder and kind == "cache" else folder
    named = variables.get(f"XDG_{kind.upper()}_HOME", "")
    if Path(named).is_absolute():
        return Path(named, _APPLICATION)
    if not variables:
        return None
    home = variables.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  (Path raises where there is none)
    mac = {"config": "Library/Application Support", "cache": "Library/Caches"}
    return Path(home, mac[kind] if sys.platform == "darwin" else f".{kind}", _APPLICATION)


def _read(file: Path) -> dict[str, Any]:
    """Return the content of a TOML file; an empty mapping where there is no such file."""
    try:
        if not file.is_file():
            return {}
        if file.stat().st_size > MAX_FILE_BYTES:
            raise invalid(file, f"is larger than {MAX_FILE_BYTES} bytes", "")
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        # The text of the error may hold a part of the file, which a link can lead to.
        raise invalid(file, "is not TOML that can be read", "`poetry check` names the line") from error
