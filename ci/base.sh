#!/usr/bin/env bash
# Prints the commit that a pull request is compared with, and fetches it where a shallow clone lacks it.
#   DRA_INFRA_PATH           folder that is reviewed; its repository is the one around the folder where this starts, or,
#                            where that is in none, the outermost around the folder that is reviewed
#   DRA_INFRA_BASE           revision that the user names; else what the CI says:
#   DRA_INFRA_MERGE_COMMIT   when this is checked out, its first parent: the target branch as it is merged with
#   DRA_INFRA_EVENT_BASE     else this
#   DRA_INFRA_FETCH_URL      where it is fetched from; else the repository of the job on GitHub or GitLab, by
#                            GITHUB_SERVER_URL and GITHUB_REPOSITORY or CI_PROJECT_URL, else the clone's origin
#   DRA_INFRA_FETCH_TOKEN    for a private repository; else CI_JOB_TOKEN where CI_PROJECT_URL is fetched from
#   DRA_INFRA_FETCH_TIMEOUT  seconds that a fetch may take; else 600
set -euo pipefail

refuse() {
  echo "✗ base: $1 [base-not-found]" >&2
  echo "  hint: $2" >&2
  exit 2
}

# Variables of git say what it reads, runs and trusts. An earlier step may have left some.
certificates=${GIT_SSL_CAINFO:-${CI_SERVER_TLS_CA_FILE:-}}
for name in ${!GIT_@} CDPATH; do unset "$name"; done
# An empty program to ask for passwords is none, not SSH_ASKPASS either.
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS='' GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1 GIT_ALLOW_PROTOCOL='' LC_ALL=C
[[ -z $certificates ]] || export GIT_SSL_CAINFO=$certificates

# The repository of a folder: what a pull request brings below it is none of ours. Only a `.git` makes one, for no
# commit can hold that, while a folder of a commit can look like a bare repository.
around() {
  local each=$1 top=
  while :; do
    if [[ -e $each/.git || -L $each/.git ]]; then
      top=$each
      [[ $start/ != "${each%/}"/* ]] || break
    fi
    [[ $each != / ]] || break
    each=$(dirname -- "$each")
  done
  [[ -z $top ]] || (cd -P -- "$top" && pwd -P)
}

path=${DRA_INFRA_PATH:-.}
[[ ! -f $path ]] || path=$(dirname -- "$path")
cd -P .
start=$PWD
written=$(cd -L -- "$path" 2>/dev/null && pwd -L) && folder=$(cd -P -- "$path" 2>/dev/null && pwd -P) ||
  refuse "'$path' is not a folder" "write the folder that is reviewed, from the root of the repository"
top=$(around "$folder")
named=$(around "$written")
[[ -z $named || $named == "$top" ]] || refuse "'$path' leads out of the repository" "name the folder that it leads to"
[[ -n $top ]] || refuse "${DRA_INFRA_PATH:-.} is not in a git repository" "check the repository out before this step"

# Where it lies. In a container the checkout belongs to another user, which git refuses otherwise.
place() {
  GIT_CEILING_DIRECTORIES=$(dirname -- "$top") git -C "$top" -c safe.directory='*' -c safe.bareRepository=explicit \
    rev-parse "$@" 2>/dev/null
}
private=$(place --absolute-git-dir) && shared=$(cd -- "$top" && cd -P -- "$(place --git-common-dir)" && pwd -P) ||
  refuse "$top holds a .git that is no repository" "check the repository out before this step"
[[ ! -d $top/.git || $top/.git -ef $private ]] ||
  refuse "$top holds a .git that is no repository" "check the repository out before this step"
# The HEAD of such a worktree would be read from where that of the main one is.
[[ $private -ef $shared || ! -e $shared/reftable ]] ||
  refuse "$top is a linked worktree whose refs are in a reftable" "check the repository out without a worktree"
origin=$(git config --file "$shared/config" --no-includes remote.origin.url || true)

# From here on git sees a folder of ours with refs and objects of that repository, but none of its settings: these can
# name programs that git runs, and servers that it asks.
view=$(mktemp -d)
trap 'rm -rf -- "$view"' EXIT
mkdir "$view/logs"
cp -- "$private/HEAD" "$view/HEAD"
for each in refs packed-refs reftable shallow; do
  [[ ! -e $shared/$each ]] || ln -s "$shared/$each" "$view/$each"
done
{
  printf '[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n\thooksPath = /dev/null\n'
  # A fetch must neither tidy up, for it does not see all that is referred to, nor write more than what is asked for.
  printf '[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[fetch]\n\twriteCommitGraph = false\n'
  # A server may not send us on to another one, nor be given up by a connection that stands still.
  printf '[http]\n\tfollowRedirects = false\n\tlowSpeedLimit = 1\n\tlowSpeedTime = 60\n[transfer]\n\tbundleURI = false\n'
  for each in objectFormat refStorage; do
    value=$(git config --file "$shared/config" --no-includes "extensions.$each" || true)
    [[ ! $value =~ ^[a-z0-9]+$ ]] || printf '[extensions]\n\t%s = %s\n' "$each" "$value"
  done
} > "$view/config"
export GIT_DIR=$view GIT_OBJECT_DIRECTORY=$shared/objects

commit_of() {
  local found
  found=$(git rev-parse --verify --quiet --end-of-options "$1^{commit}") && [[ $found =~ ^[0-9a-f]{40,64}$ ]] && echo "$found"
}

# What comes after the first empty line is the message, and may hold a line that begins with "parent". It is read to its
# end, for a pipe that is left early fails.
parents() {
  git cat-file commit HEAD | sed -n '/^$/,$d; s/^parent //p'
}

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
  token=${DRA_INFRA_FETCH_TOKEN:-}
  user=x-access-token
  if [[ -n ${DRA_INFRA_FETCH_URL:-} ]]; then
    url=$DRA_INFRA_FETCH_URL
  elif [[ -n ${GITHUB_SERVER_URL:-} && -n ${GITHUB_REPOSITORY:-} ]]; then
    url=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY
  elif [[ -n ${CI_PROJECT_URL:-} ]]; then
    # GitLab sends who leaves ".git" out on to the address with it.
    url=$CI_PROJECT_URL.git user=gitlab-ci-token token=${token:-${CI_JOB_TOKEN:-}}
  else
    url=$origin
    # The clone says where that is, so it goes nowhere in the clear.
    [[ $url != http://* ]] || url=
  fi
  case $url in
    https://*) GIT_ALLOW_PROTOCOL=https ;;
    http://*) GIT_ALLOW_PROTOCOL=http ;;
    ssh://* | [!/:-]*@*:*) GIT_ALLOW_PROTOCOL=ssh ;;
    file:///* | /*) GIT_ALLOW_PROTOCOL=file ;;
    *) refuse "'$base' is not in this clone, which has no origin to fetch it from" "name an https address in DRA_INFRA_FETCH_URL" ;;
  esac
  if [[ -n $token && $url == http* ]]; then
    # By the environment: arguments of a process can be read by every other one. For this address alone: another one
    # that is asked, because of a setting that rewrites addresses, does not get it.
    export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0="http.$url.extraheader" GIT_CONFIG_KEY_1=credential.helper GIT_CONFIG_VALUE_1=
    GIT_CONFIG_VALUE_0="Authorization: Basic $(printf '%s:%s' "$user" "$token" | base64 | tr -d '\n')"
    export GIT_CONFIG_VALUE_0
  fi
  bound=()
  [[ -z $(command -v timeout) ]] || bound=(timeout --kill-after=10 "${DRA_INFRA_FETCH_TIMEOUT:-600}")
  depth=()
  # A fetch with a depth would make a full clone shallow. An empty list is an error in the bash of macOS.
  [[ $(git rev-parse --is-shallow-repository) == false ]] || depth=(--depth=1)
  ${bound[@]+"${bound[@]}"} git fetch --quiet --no-tags --no-recurse-submodules ${depth[@]+"${depth[@]}"} \
    -- "$url" "${base#origin/}" >/dev/null 2>&1 < /dev/null ||
    refuse "'$base' is not in this clone, and cannot be fetched" \
      "name a branch or a whole commit, or clone with fetch-depth: 0 (GIT_DEPTH: 0 on GitLab)"
  commit_of FETCH_HEAD
fi
