# What a person types; continuous integration calls the same targets.
#   make demo    a world simulated into a recording, from a machine that has only python3 and make
#   make test    the whole suite, compiled and interpreted
# Any target takes PYTHON=python3.12 to choose the interpreter, VENV=... to place the environment.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test test-compiled test-interpreted lint format types bench requirements pages clean

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
OUT ?= out
ARGS ?=

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install -c constraints.txt
ASKED := pyproject.toml constraints.txt Makefile

# Pip's many lines cut down to the ones that show that it moves.
PROGRESS := { grep --line-buffered -E '^ *(Downloading|Installing collected|Successfully installed)|^(ERROR|error)' || true; } | cut -c 1-100

# Where the environment forbids bytecode, each process would rewrite the assertions of all tests anew, ten seconds long.
export PYTHONDONTWRITEBYTECODE :=

# A compiled kernel is cached by its own file, not by the files of what it calls: one cache for each state of src.
CACHE = NUMBA_CACHE_DIR="$(CURDIR)/.cache/numba-$$($(BIN)/python tools/source_hash.py src)"

help:
	@echo 'make demo | test | lint | format | types | bench | requirements | pages | clean'

# Debian ships python3 without ensurepip; a half-made environment would look like a whole one, so ask first.
$(STAMPS)/made:
	@echo "==> environment in $(VENV)"
	@if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo 'navsense needs Python 3.11 or newer with venv: apt-get install python3-venv (or PYTHON=python3.11 make ...)' >&2; \
	    exit 2; \
	fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || ! $(PYTHON) -m venv --clear $(VENV) >/dev/null; then \
	    rm -rf $(VENV); \
	    echo 'this python3 cannot make environments: apt-get install python3-venv' >&2; \
	    exit 2; \
	fi
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/run: $(STAMPS)/made $(ASKED)
	@echo '==> installing navsense (the first time some 100 MB, a minute or two)'
	@$(PIP) -e . | $(PROGRESS)
	@touch $@

$(STAMPS)/test: $(STAMPS)/made $(ASKED)
	@echo '==> installing navsense and what its tests need (the first time some 100 MB, a minute or two)'
	@$(PIP) -e '.[test]' | $(PROGRESS)
	@touch $@ $(STAMPS)/run

$(STAMPS)/lint: $(STAMPS)/run
	@echo '==> installing ruff and mypy'
	@$(PIP) -e '.[lint,test]' | $(PROGRESS)
	@touch $@ $(STAMPS)/test

demo: $(STAMPS)/run
	@mkdir -p $(OUT)
	@echo '==> navsense run examples/quadrotor.sdf --duration 30 --epoch 1767225600 -o $(OUT)/quadrotor.mcap'
	@$(CACHE) $(BIN)/navsense run examples/quadrotor.sdf --duration 30 --epoch 1767225600 -o $(OUT)/quadrotor.mcap
	@echo '==> navsense info $(OUT)/quadrotor.mcap'
	@$(BIN)/navsense info $(OUT)/quadrotor.mcap

# Each worker goes through files that stand together, so that few kernels are compiled by two of them at once.
PYTEST = pytest -n $(JOBS) --dist worksteal

HELD_ONCE = devices messages recordings sdf test_bench.py test_cli.py test_declared.py test_examples.py test_house_style.py \
    test_packaging.py test_picture.py test_requirements.py \
    $(addprefix calibration/test_,cli.py ellipsoid_trust.py picture.py result.py units.py verdict.py)

test: test-compiled test-interpreted

test-compiled: $(STAMPS)/test
	@echo '==> pytest, compiled'
	@$(CACHE) $(BIN)/python -m $(PYTEST) $(ARGS)

# The same tests without the compiler: what is compiled and what the interpreter runs are held to be equal. Readers of
# files, writers of messages and recordings, verdicts, pictures, examples and the command line call kernels that others
# hold, and are left out.
test-interpreted: $(STAMPS)/test test-compiled
	@echo '==> pytest, interpreted'
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m $(PYTEST) -m 'not compiled' \
	    $(foreach held,$(HELD_ONCE),--ignore=tests/$(held)) $(ARGS) \
	    || { code=$$?; [ $$code -eq 5 ] && [ -n '$(strip $(ARGS))' ] || exit $$code; }  # 5: ARGS picked none of these

lint: $(STAMPS)/lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(STAMPS)/lint
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

types: $(STAMPS)/lint
	@$(BIN)/mypy

bench: $(STAMPS)/test
	@for script in benchmarks/bench_*.py; do \
	    [ -e "$$script" ] || { echo 'no benchmarks/bench_*.py yet'; break; }; \
	    echo "==> $$script"; $(CACHE) $(BIN)/python "$$script" $(ARGS); \
	done

requirements: $(STAMPS)/run
	@$(BIN)/python tools/requirements.py

# The pages of docs/ that programs write; the one before the last takes a minute.
pages: requirements
	@$(BIN)/python tools/parts.py
	@$(CACHE) $(BIN)/python tools/declared.py
	@$(CACHE) $(BIN)/python tools/dvl_gaps.py

clean:
	rm -rf $(VENV) $(OUT) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
