#!/usr/bin/env bash
# Compiles a pull request for a job that runs nothing of it: `compile.sh VENV FILE`. Ends with 0 when there is a file, which may
# say why there are no objects; else with 2.
#   DRA_INFRA_PATH, DRA_INFRA_STACK
#   DRA_INFRA_ARGUMENTS   more arguments for `dra-infra compile`, one in each line
set -uo pipefail

venv=$1
file=$2
rm -f "$file"

arguments=("--output=$file")
[[ -z ${DRA_INFRA_STACK:-} ]] || arguments+=("--stack=$DRA_INFRA_STACK")
while IFS= read -r argument; do
  [[ -z $argument ]] || arguments+=("$argument")
done <<< "${DRA_INFRA_ARGUMENTS:-}"

"$venv/bin/dra-infra" compile "${arguments[@]}" -- "${DRA_INFRA_PATH:-.}"
[[ -s $file ]] || exit 2
