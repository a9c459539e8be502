#!/usr/bin/env bash
# Makes a checkout of what a pull request is compared with, and prints its commit: `trusted.sh FOLDER`.
# Nothing of the pull request is in it. The folder is made here, so that git finds no repository and no configuration but ours.
#   DRA_INFRA_FETCH_URL     https address of the repository
#   DRA_INFRA_FETCH_TOKEN   for a private one; sent to that address alone   DRA_INFRA_FETCH_USER   its user, else x-access-token
#   DRA_INFRA_BASE          branch, tag or commit that the user names; else
#   DRA_INFRA_MERGE         commit that merges the pull request for a test: its first parent
#   DRA_INFRA_EVENT_BASE    where it merges nothing, or is not given: this commit
#   DRA_INFRA_FETCH_TIMEOUT seconds that a fetch may take; else 600
set -euo pipefail

folder=$1

refuse() {
  echo "✗ base: $1 [base-not-found]" >&2
  echo "  hint: $2" >&2
  exit 2
}

url=${DRA_INFRA_FETCH_URL:-}
[[ $url =~ ^(https?|file)://[^[:space:]]+$ ]] || refuse "there is no address to fetch from" \
  "set DRA_INFRA_FETCH_URL to the https address of the repository"
scheme=${url%%:*}
[[ $scheme != http || $url =~ ^http://(127\.0\.0\.1|localhost)[:/] ]] || refuse "'$url' is not https" "write https://"

# What the caller's environment says of git is not for this repository.
certificates=${GIT_SSL_CAINFO:-${CI_SERVER_TLS_CA_FILE:-}}
for name in ${!GIT_@} CDPATH; do unset "$name"; done
[[ -z $certificates ]] || export GIT_SSL_CAINFO=$certificates
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 GIT_ASKPASS='' GIT_NO_LAZY_FETCH=1 LC_ALL=C
count=0
setting() {
  export "GIT_CONFIG_KEY_$count=$1" "GIT_CONFIG_VALUE_$count=$2"
  count=$((count + 1))
  export GIT_CONFIG_COUNT=$count
}
setting protocol.allow never
setting "protocol.$scheme.allow" always
setting core.hooksPath /dev/null
setting core.fsmonitor false
setting submodule.recurse false
setting credential.helper ""
# A redirect could lead to another server, and the header with it.
setting http.followRedirects false
# Nor does a connection that stands still hold the job.
setting http.lowSpeedLimit 1
setting http.lowSpeedTime 60
if [[ -n ${DRA_INFRA_FETCH_TOKEN:-} && $scheme != file ]]; then
  # By the environment: arguments of a process can be read by every other one.
  setting "http.$url.extraheader" "Authorization: Basic $(
    printf '%s:%s' "${DRA_INFRA_FETCH_USER:-x-access-token}" "$DRA_INFRA_FETCH_TOKEN" | base64 | tr -d '\n'
  )"
fi

git init --quiet --template= "$folder"
cd "$folder"

bound=()
[[ -z $(command -v timeout) ]] || bound=(timeout --kill-after=10 "${DRA_INFRA_FETCH_TIMEOUT:-600}")
# An empty list is an error in the bash of macOS.
get() {
  ${bound[@]+"${bound[@]}"} git fetch --quiet --no-tags --no-recurse-submodules "--depth=$1" -- "$url" "$2" 2>/dev/null < /dev/null
}

# What comes after the first empty line is the message, and may hold a line that begins with "parent".
parents() { git cat-file commit FETCH_HEAD | sed -n '/^$/,$d; s/^parent //p'; }

base=${DRA_INFRA_BASE:-}
base=${base#origin/}
if [[ -z $base && -n ${DRA_INFRA_MERGE:-} ]]; then
  [[ $DRA_INFRA_MERGE =~ ^[0-9a-f]{40}([0-9a-f]{24})?$ ]] || refuse "'$DRA_INFRA_MERGE' is no commit" "give its full hash"
  get 2 "$DRA_INFRA_MERGE" || refuse "${DRA_INFRA_MERGE:0:12} cannot be fetched" \
    "the pull request was pushed to since: the run of its newest commit tells"
  if [[ $(parents | wc -l) -eq 2 ]]; then
    base=$(parents | head -n 1)
  fi
fi
base=${base:-${DRA_INFRA_EVENT_BASE:-}}
[[ -n $base ]] || refuse "there is nothing to compare with" "run on pull requests, or name a base such as main"
[[ $base =~ ^[A-Za-z0-9_][A-Za-z0-9_./@+-]*$ && $base != *..* ]] || refuse "'$base' is no branch, tag or commit" \
  "write one of them; a revision that is counted, such as main~3, needs the history, which is not fetched here"
[[ ! $base =~ ^0+$ ]] || refuse "the branch is new, so there is nothing to compare with" "name a base such as main"

get 1 "$base" || refuse "'$base' cannot be fetched" "name a branch, a tag or a whole commit of the repository"
git checkout --quiet --detach FETCH_HEAD
git rev-parse --verify HEAD
