# Every target says what it does: `make` lists them. Hooks and CI call the same targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(name) 2>/dev/null)) python3.11)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Images of containers like to set it, and each of the thousands of processes that tests start would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
IMAGE ?=
PROVIDER ?= stand-in
HOST ?= stand-in
# One more than cores: a test on real parts waits for a third of its time, and some of the fast ones for a pause or an end.
E2E_WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
TEST_WORKERS ?= $(E2E_WORKERS)

.PHONY: help venv demo test explore check format lint typecheck layers house workflows advisories release-check docs-version golden golden-costs core-schemas upstream tools cluster image image-cli e2e e2e-node e2e-gpu soak parity parity-mutants docs bench compat mcp-evaluation protos clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

$(STAMP): requirements/dev.txt requirements/bootstrap.txt pyproject.toml
	@echo "making the virtual environment in $(VENV) (once; pinned by hash)"
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not on PATH: install Python 3.11 or newer, or run make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

venv: $(STAMP) ## Make the virtual environment in .venv, and nothing else (needs Python only)

demo: $(STAMP) ## Run the quickstart: objects, placement, and a review of a change (needs Python only)
	@$(BIN)/python examples/demo.py

test: $(STAMP) ## Run all fast tests, about 10 minutes on two cores (needs Python only); random tests draw the same cases each time
	@failed=0; PYTHONHASHSEED=0 $(BIN)/pytest -q -n $(TEST_WORKERS) --dist worksteal -m "not e2e" || failed=$$?; \
	echo "make test: $$((SECONDS / 60)) min $$((SECONDS % 60)) s"; exit $$failed

# A round ends with what fails in it, and the next one begins all the same.
explore: $(STAMP) ## Run the random tests on cases drawn anew (N=10: in ten rounds; SEED=123: on those of that seed; TESTS=tests/unit/placement: those alone)
	@failed=0; first=$(or $(SEED),$$(( RANDOM * 32768 + RANDOM + 1 ))); \
	for seed in $$(seq $$first $$(( first + $(or $(N),1) - 1 ))); do \
	  echo "make explore: seed $$seed"; \
	  DRA_INFRA_EXPLORE=$$seed $(BIN)/pytest -q -n $(TEST_WORKERS) --dist worksteal -m "not e2e and (hypothesis or draws)" \
	    --hypothesis-seed=$$seed $(TESTS) || failed=$$?; \
	done; exit $$failed

check: format lint workflows typecheck layers house test ## Everything a commit must pass

format: $(STAMP) ## Check the formatting (fix it with: ruff format)
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }

lint: $(STAMP) ## Lint
	@$(BIN)/ruff check --quiet .

typecheck: $(STAMP) ## Check types for the oldest and the newest Python, and those of programs as users write them
	@$(BIN)/mypy --python-version 3.11 & oldest=$$!; newest=0; \
	$(BIN)/mypy --python-version 3.14 || newest=$$?; \
	wait $$oldest || newest=$$?; \
	$(BIN)/python -m tools.program_types || newest=$$?; \
	exit $$newest

layers: $(STAMP) ## Check that imports point only downwards
	@$(BIN)/lint-imports --no-cache

house: $(STAMP) ## Print the figures of the package's structure, and fail where imports go in a circle
	@$(BIN)/python -m tools.house

workflows: $(STAMP) ## Lint the workflows of GitHub, ours and those in documents (actionlint too where Go is)
	@$(BIN)/python -m tools.workflows

golden: $(STAMP) ## Rewrite golden files and what the docs take from the code (TESTS=tests/contract: those alone); read the diff
	@DRA_INFRA_UPDATE_GOLDEN=1 $(BIN)/pytest -q -m "not e2e" $(TESTS) || true
	@git status --short -- '*golden*' '*expected.yaml' 'examples/*/review.md' docs dra_infra/codes.md dra_infra/__init__.py dra_infra/components/public_arguments.py dra_infra/provider '*component_names.txt' '*urns.txt'

core-schemas: $(STAMP) ## Rewrite what is kept of the fields of Kubernetes' own kinds from the API servers of all minors (needs: make tools)
	@$(BIN)/python -m tools.core_schemas
	@git status --short -- dra_infra/kubernetes/apiserver/data

golden-costs: $(STAMP) ## Rewrite the recorded CEL costs from what Kubernetes' packages say (needs: make tools)
	@DRA_INFRA_UPDATE_GOLDEN=1 $(BIN)/pytest -q -n0 -m e2e tests/e2e/judges/test_cost_table.py
	@git status --short -- tests/unit/kubernetes/cel/golden

upstream: $(STAMP) ## Print what changed in the upstream sources of ported modules: FROM=v1.36.4 TO=v1.37.1 (needs Go; builds nothing)
	@$(BIN)/python -m tools.upstream "$(FROM)" "$(TO)" $(if $(MODULE),--module "$(MODULE)") $(if $(NAMES),--names)

tools: $(STAMP) ## Build the pinned real binaries into the per-user cache, once (needs Go, and Node.js with npm; about 28 minutes)
	@$(BIN)/python -m tools.build
	@$(BIN)/python -m tools.sdk_programs

cluster: $(STAMP) ## Run a control plane on loopback until Ctrl-C (needs: make tools); NODE=1 with a real node (root), FLEET=hgx-h100 with its devices
	@$(BIN)/python -m tools.cluster $(if $(NODE)$(FLEET),--node) $(if $(FLEET),--fleet "$(FLEET)")

image: $(STAMP) ## Build the image of the node plugin, without a registry (needs apt); IMAGE=file copies the archive there
	@$(BIN)/python -m tools.image $(if $(IMAGE),--output $(IMAGE))

image-cli: $(STAMP) ## Build the image of the command for jobs of a CI, as `make image` does (needs apt); IMAGE=file copies the archive there
	@$(BIN)/python -m tools.image --cli $(if $(IMAGE),--output $(IMAGE))

e2e: $(STAMP) ## Real engine, API server and scheduler (needs: make tools); PROVIDER=vendor and HOST=vendor use an installed provider and Python host
	@DRA_INFRA_PROVIDER=$(PROVIDER) DRA_INFRA_HOST=$(HOST) $(BIN)/pytest -n $(E2E_WORKERS) --dist worksteal -m e2e tests/e2e --ignore tests/e2e/node
	@$(MAKE) --no-print-directory e2e-node

# What nodes leave on the machine can be seen only while there is no other one. Else each module has a node of its own.
e2e-node: $(STAMP) ## The part of e2e with a real node: kubelet, containerd and runc (needs: make tools, root)
	@$(BIN)/pytest -n0 -m e2e tests/e2e/node/test_machine.py
	@$(BIN)/pytest -n $(E2E_WORKERS) --dist loadfile -m e2e tests/e2e/node --ignore tests/e2e/node/test_machine.py

soak: export DRA_INFRA_EXPLORE := $(or $(DRA_INFRA_EXPLORE),$(shell echo $$(( RANDOM * 32768 + RANDOM + 1 ))))
soak: $(STAMP) ## The same for longer: 100,000 damaged documents, more pods that come and go, outages of half a minute, 50,000 scenes (about 30 minutes, and 25 for the scenes on two cores)
	@echo "make soak: DRA_INFRA_EXPLORE=$(DRA_INFRA_EXPLORE)"
	@DRA_INFRA_SOAK=1 $(BIN)/pytest -q -n0 tests/unit/hostile
	@DRA_INFRA_SOAK=1 $(BIN)/pytest -q -n0 tests/unit/output/test_secrets.py
	@DRA_INFRA_SOAK=1 $(BIN)/pytest -q -n0 tests/unit/plugin/test_crashes.py
	@DRA_INFRA_SOAK=1 $(BIN)/pytest -q -n $(TEST_WORKERS) --dist worksteal tests/contract/test_scenes.py
	@DRA_INFRA_SOAK=1 $(BIN)/pytest -n0 -m e2e tests/e2e/attacks/test_hostile_input.py
	@DRA_INFRA_SOAK=1 $(BIN)/pytest -n0 -m e2e tests/e2e/scheduler/test_platforms.py
	@DRA_INFRA_SOAK=1 $(BIN)/pytest -n0 -m e2e tests/e2e/node

# Tests of this folder are left alone by make e2e, and need nothing of make tools; without a GPU they fail and say so.
e2e-gpu: $(STAMP) ## The node plugin on a machine with NVIDIA GPUs, with pods that compute (needs: a GPU, root, make tools)
	@$(BIN)/pytest -n0 -v -m e2e --confcutdir=tests/gpu tests/gpu

parity: $(STAMP) ## Compare with the API servers of all minors and write docs/parity.md (N=100000 for a long run)
	@$(BIN)/python -m tests.support.parity $(if $(N),--count $(N))

parity-mutants: $(STAMP) ## Switch off each rule in turn: each has to be missed (after: make parity or make e2e)
	@$(BIN)/python -m tests.support.parity.mutants

docs: $(STAMP) ## Build the site of the documentation into .cache/docs/site and check its links
	@$(BIN)/python -m tools.docs_site

docs-version: docs ## Commit that site to the branch gh-pages of this clone as VERSION=1.2.3, beside the others; pushes nothing
	@$(BIN)/python -m tools.docs_versions "$(VERSION)"

release-check: $(STAMP) ## Build all that a release has twice to the same bytes, and try it (needs apt); TAG=v1.2.3 holds it to that version
	@$(BIN)/python -m tools.release $(if $(TAG),--tag "$(TAG)")

mcp-evaluation: $(STAMP) ## Run the 30 tasks for coding agents against the tools of `dra-infra mcp`
	@$(BIN)/python -m tests.support.agent_tools

advisories: $(STAMP) ## Compare all pins with the advisories in DATABASE=folder, as osv.dev publishes them; asks no network (needs Go)
	@$(BIN)/python -m tools.advisories "$(DATABASE)"

bench: $(STAMP) ## Speed beside the alternatives, medians in one run
	@$(BIN)/python -m benchmarks

compat: $(STAMP) ## Resolve the dependencies with wheels only for Python 3.11 to 3.14
	@for version in 3.11 3.12 3.13 3.14; do \
	  $(BIN)/uv pip compile --quiet --python-version $$version --only-binary :all: --no-header requirements/run.in --output-file /dev/null \
	  && echo "Python $$version: ok"; done

protos: $(STAMP) ## Write the messages of the node plugin's protocol from its .proto files
	@$(BIN)/python -m tools.protos

clean: ## Remove the virtual environment and caches of this folder
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
