#!/usr/bin/env bash
# Installs what a program imports besides dra-infra: `requirements.sh VENV FILE`; nothing where FILE is empty.
# Whoever wrote the file says what runs: packages run code when they are installed, and each time Python starts.
set -euo pipefail

venv=$1
file=$2

if [[ -n $file ]]; then
  file=$(cd -- "$(dirname -- "$file")" && pwd -P)/$(basename -- "$file")
  cd "$venv"
  for name in ${!PYTHON@}; do unset "$name"; done
  "$venv/bin/uv" pip install --quiet --compile-bytecode --python "$venv/bin/python" -r "$file"
fi
