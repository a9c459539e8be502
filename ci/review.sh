#!/usr/bin/env bash
# Runs a review and writes its reports: `review.sh VENV REPORTS`. Ends with the exit code of `dra-infra review`.
#   DRA_INFRA_PATH, DRA_INFRA_BASE, DRA_INFRA_FLEET, DRA_INFRA_SNAPSHOT, DRA_INFRA_STACK, DRA_INFRA_FAIL_ON
#   DRA_INFRA_HEAD         file that `dra-infra compile` left; the folder of this process is a checkout of the base then
#   DRA_INFRA_HEAD_COMMIT  commit that it has to be of
#   DRA_INFRA_ENGINE       true joins the preview of the engine
#   DRA_INFRA_ARGUMENTS    more arguments, one in each line
set -uo pipefail

venv=$1
reports=$2
mkdir -p "$reports"
rm -f "$reports"/review.{md,html,log}

# A review needs no token, and a program that it runs must find none: variables whose names say that they hold a secret go, and
# those by which a step speaks to later ones. Only the engine needs the stack's own.
if [[ ${DRA_INFRA_ENGINE:-false} != true ]]; then
  # Capital or not, in a way that the bash of macOS knows too.
  shopt -s nocasematch
  while IFS= read -r name; do
    case $name in
      *TOKEN* | *PASSWORD* | *PASSWD* | *PASSPHRASE* | *SECRET* | *CREDENTIAL* | *API_KEY* | *APIKEY* | *ACCESS_KEY* | *PRIVATE_KEY*) unset "$name" ;;
    esac
  done < <(compgen -e)
  shopt -u nocasematch
fi
unset GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN CI_JOB_TOKEN DRA_INFRA_FETCH_TOKEN
unset ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL
unset GITHUB_ENV GITHUB_PATH GITHUB_OUTPUT GITHUB_STATE GITHUB_STEP_SUMMARY

arguments=("--base=$DRA_INFRA_BASE" "--output=$reports/review.md" "--output=$reports/review.html")
if [[ -n ${DRA_INFRA_HEAD:-} ]]; then
  if [[ ! -f $DRA_INFRA_HEAD || -L $DRA_INFRA_HEAD ]]; then
    # A link would be another file than what that job left. The report says that there is no review.
    echo "the job that compiles left no file" >&2
    DRA_INFRA_HEAD=$reports/no-head.json
    rm -f "$DRA_INFRA_HEAD"
  fi
  arguments+=("--head=$DRA_INFRA_HEAD")
  [[ -z ${DRA_INFRA_HEAD_COMMIT:-} ]] || arguments+=("--head-commit=$DRA_INFRA_HEAD_COMMIT")
fi
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
