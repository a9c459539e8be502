#!/usr/bin/env bash
# Prints the commit that a pull request is compared with, and fetches it where a shallow clone lacks it.
#   DRA_INFRA_PATH          folder that is reviewed
#   DRA_INFRA_BASE          revision that the user names; else what the CI says:
#   DRA_INFRA_MERGE_COMMIT  when this is checked out, its first parent: the target branch as it is merged with
#   DRA_INFRA_EVENT_BASE    else this
#   DRA_INFRA_FETCH_TOKEN   for a fetch from a private repository without credentials in its configuration
set -euo pipefail

export GIT_TERMINAL_PROMPT=0
# In a container the checkout belongs to another user, which git refuses otherwise.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'

refuse() {
  echo "✗ base: $1 [base-not-found]" >&2
  echo "  hint: $2" >&2
  exit 2
}

path=${DRA_INFRA_PATH:-.}
[[ ! -f $path ]] || path=$(dirname -- "$path")
cd -- "$path" 2>/dev/null || refuse "'$path' is not a folder" "write the folder that is reviewed, from the root of the repository"

commit_of() {
  git rev-parse --verify --quiet "$1^{commit}"
}

# What comes after the first empty line is the message, and may hold a line that begins with "parent". It is read to its
# end, for a pipe that is left early fails.
parents() {
  git cat-file commit HEAD | sed -n '/^$/,$d; s/^parent //p'
}

git rev-parse --git-dir >/dev/null 2>&1 || refuse "${DRA_INFRA_PATH:-.} is not in a git repository" \
  "check the repository out before this step"

base=${DRA_INFRA_BASE:-}
if [[ -z $base && -n ${DRA_INFRA_MERGE_COMMIT:-} && $(commit_of HEAD) == "$DRA_INFRA_MERGE_COMMIT" ]]; then
  if [[ $(parents | wc -l) -eq 2 ]]; then
    base=$(parents | head -n 1)
  fi
fi
base=${base:-${DRA_INFRA_EVENT_BASE:-}}
[[ -n $base ]] || refuse "there is nothing to compare with" "run on pull requests, or name a base such as origin/main"
[[ $base =~ ^[A-Za-z0-9_][A-Za-z0-9_./@^~+-]*$ ]] || refuse "'$base' is no revision" "write a branch, a tag or a commit"
[[ ! $base =~ ^0+$ ]] || refuse "the branch is new, so there is nothing to compare with" "name a base such as origin/main"

if ! commit_of "$base"; then
  depth=()
  # A fetch with a depth would make a full clone shallow. An empty list is an error in the bash of macOS.
  [[ $(git rev-parse --is-shallow-repository) == false ]] || depth=(--depth=1)
  get() { git fetch --quiet --no-tags --no-recurse-submodules ${depth[@]+"${depth[@]}"} origin "${base#origin/}" >&2; }
  if ! get 2>/dev/null; then
    if [[ -n ${DRA_INFRA_FETCH_TOKEN:-} ]]; then
      # By the environment: arguments of a process can be read by every other one.
      export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_1=http.extraheader
      GIT_CONFIG_VALUE_1="Authorization: Basic $(printf 'x-access-token:%s' "$DRA_INFRA_FETCH_TOKEN" | base64 | tr -d '\n')"
      export GIT_CONFIG_VALUE_1
      get 2>/dev/null || fetched=no
    else
      fetched=no
    fi
  fi
  [[ ${fetched:-yes} == yes ]] || refuse "'$base' is not in this clone, and cannot be fetched" \
    "name a branch or a whole commit, or clone with fetch-depth: 0 (GIT_DEPTH: 0 on GitLab)"
  commit_of FETCH_HEAD
fi
