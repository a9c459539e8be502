#!/usr/bin/env bash
# Runs a review and writes its reports: `review.sh VENV REPORTS`. Ends with the exit code of `dra-infra review`.
#   DRA_INFRA_PATH, DRA_INFRA_BASE, DRA_INFRA_FLEET, DRA_INFRA_SNAPSHOT, DRA_INFRA_STACK, DRA_INFRA_FAIL_ON
#   DRA_INFRA_ENGINE     true joins the preview of the engine
#   DRA_INFRA_ARGUMENTS  more arguments, one in each line
set -uo pipefail

venv=$1
reports=$2
mkdir -p "$reports"
rm -f "$reports"/review.{md,html,log}

# The program that is reviewed is the author's. It needs neither our token, nor the files by which a step speaks to later ones.
unset GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN CI_JOB_TOKEN DRA_INFRA_FETCH_TOKEN
unset ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL
unset GITHUB_ENV GITHUB_PATH GITHUB_OUTPUT GITHUB_STATE GITHUB_STEP_SUMMARY
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

arguments=("--base=$DRA_INFRA_BASE" "--markdown=$reports/review.md" "--html=$reports/review.html")
[[ -z ${DRA_INFRA_FLEET:-} ]] || arguments+=("--fleet=$DRA_INFRA_FLEET")
[[ -z ${DRA_INFRA_SNAPSHOT:-} ]] || arguments+=("--snapshot=$DRA_INFRA_SNAPSHOT")
[[ -z ${DRA_INFRA_STACK:-} ]] || arguments+=("--stack=$DRA_INFRA_STACK")
[[ ${DRA_INFRA_ENGINE:-false} != true ]] || arguments+=(--engine)
[[ -z ${DRA_INFRA_FAIL_ON:-} ]] || arguments+=("--fail-on=$DRA_INFRA_FAIL_ON")
while IFS= read -r argument; do
  [[ -z $argument ]] || arguments+=("$argument")
done <<< "${DRA_INFRA_ARGUMENTS:-}"

code=0
"$venv/bin/dra-infra" review "${arguments[@]}" -- "${DRA_INFRA_PATH:-.}" 2> "$reports/review.log" || code=$?
cat "$reports/review.log" >&2
# An answer is 0 or 1 with a report; anything else, a crash of ours too, is none. A report may then say that there is none.
if [[ $code -gt 1 || ! -s $reports/review.md ]]; then
  exit 2
fi
exit "$code"
