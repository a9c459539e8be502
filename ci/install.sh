#!/usr/bin/env bash
# Makes a virtual environment with this copy of dra-infra in it: `install.sh FOLDER`.
# What it needs is pinned by hash in requirements/; nothing of this copy is built or run for it.
#   DRA_INFRA_PYTHON        such as 3.12; else the first of 3.11 to 3.14 on PATH
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$(mkdir -p -- "$1" && cd -- "$1" && pwd -P)
# The folder of a job may hold a pull request: a file of it called typing.py, or its settings for uv, are not for this.
cd "$source"
for name in ${!PYTHON@}; do unset "$name"; done

python=
for version in ${DRA_INFRA_PYTHON:-3.11 3.12 3.13 3.14}; do
  if command -v "python$version" >/dev/null; then
    python="python$version"
    break
  fi
done
if [[ -z $python ]] && command -v python3 >/dev/null; then
  wanted=${DRA_INFRA_PYTHON:-3.11}
  # An installed Python is often called python3 only.
  if python3 -I -c 'import sys
wanted = tuple(map(int, sys.argv[1].split(".")))
same = sys.version_info[: len(wanted)] == wanted
sys.exit(not (same or (sys.argv[2] == "" and sys.version_info >= wanted)))' "$wanted" "${DRA_INFRA_PYTHON:-}"; then
    python=python3
  fi
fi
if [[ -z $python ]]; then
  echo "✗ python-version: Python ${DRA_INFRA_PYTHON:-3.11 or newer} is not on PATH" >&2
  echo "  hint: install it in a step before, or name a version that is there" >&2
  exit 2
fi

"$python" -I -m venv --clear "$venv"
"$venv/bin/python" -I -m pip install --quiet --disable-pip-version-check --require-hashes -r "$source/requirements/bootstrap.txt"
"$venv/bin/uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" --require-hashes -r "$source/requirements/run.txt"
# The package alone, by a link: tests and tools of this copy stay out of the program's way.
packages=$("$venv/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
ln -sfn "$source/dra_infra" "$packages/dra_infra"
# It starts Python without what a checkout could add to it.
cp "$source/bin/dra-infra" "$venv/bin/dra-infra"
