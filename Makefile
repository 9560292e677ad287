# Targets for developers and for continuous integration.
#   make demo    simulate a quadrotor into out/: recording, report, picture; needs only python3 and make
#   make test    run the complete suite, compiled and interpreted
#   make docs    build the documentation site into out/docs
# PYTHON=python3.12 selects the interpreter of any target, VENV=... the folder of the environment.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo docs test test-compiled test-interpreted lint format types bench requirements pages clean

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
OUT ?= out
ARGS ?=

BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install -c constraints.txt
INPUTS := pyproject.toml constraints.txt Makefile

# Show only the lines of pip that report progress.
PROGRESS := { grep --line-buffered -E '^ *(Downloading|Installing collected|Successfully installed)|^(ERROR|error)' || true; } | cut -c 1-100

# Without bytecode, each process would rewrite the assertions of all tests, which takes ten seconds.
export PYTHONDONTWRITEBYTECODE :=

CACHE = NUMBA_CACHE_DIR="$(CURDIR)/.cache/numba"

help:
	@echo 'make demo | docs | test | lint | format | types | bench | requirements | pages | clean'

# Debian's python3 lacks ensurepip, and an incomplete environment would look complete, so check first.
$(STAMPS)/venv:
	@echo "==> environment in $(VENV)"
	@if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo 'navsense needs Python 3.11 or newer with venv: apt-get install python3-venv (or PYTHON=python3.11 make ...)' >&2; \
	    exit 2; \
	fi
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || ! $(PYTHON) -m venv --clear $(VENV) >/dev/null; then \
	    rm -rf $(VENV); \
	    echo 'this python3 cannot create environments: apt-get install python3-venv' >&2; \
	    exit 2; \
	fi
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/run: $(STAMPS)/venv $(INPUTS)
	@echo '==> installing navsense (the first time about 100 MB, one or two minutes)'
	@$(PIP) -e . | $(PROGRESS)
	@touch $@

$(STAMPS)/test: $(STAMPS)/venv $(INPUTS)
	@echo '==> installing navsense and its test requirements (the first time about 100 MB, one or two minutes)'
	@$(PIP) -e '.[test]' | $(PROGRESS)
	@touch $@ $(STAMPS)/run

$(STAMPS)/lint: $(STAMPS)/run
	@echo '==> installing ruff and mypy'
	@$(PIP) -e '.[lint,test]' | $(PROGRESS)
	@touch $@ $(STAMPS)/test

$(STAMPS)/docs: $(STAMPS)/run
	@echo '==> installing Sphinx'
	@$(PIP) -e '.[docs]' | $(PROGRESS)
	@touch $@

demo: $(STAMPS)/run
	@$(CACHE) $(BIN)/navsense demo -o $(OUT)

# Each worker takes adjacent files, so that few kernels are compiled twice.
PYTEST = pytest -n $(JOBS) --dist worksteal

COMPILED_ONLY = devices messages recordings sdf streams test_bench.py test_cli.py test_declared.py test_demo.py \
    test_documentation.py test_examples.py test_house_style.py test_packaging.py test_picture.py test_requirements.py \
    $(addprefix calibration/test_,cli.py ellipsoid_trust.py picture.py result.py units.py verdict.py)

test: test-compiled test-interpreted

test-compiled: $(STAMPS)/test
	@echo '==> pytest, compiled'
	@$(CACHE) $(BIN)/python -m $(PYTEST) $(ARGS)

# The same tests without compilation: compiled and interpreted code must agree. Tests of files, messages, recordings,
# streams, verdicts, pictures, examples and the command line are skipped: other tests cover their kernels.
test-interpreted: $(STAMPS)/test test-compiled
	@echo '==> pytest, interpreted'
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m $(PYTEST) -m 'not compiled' \
	    $(foreach path,$(COMPILED_ONLY),--ignore=tests/$(path)) $(ARGS) \
	    || { code=$$?; [ $$code -eq 5 ] && [ -n '$(strip $(ARGS))' ] || exit $$code; }  # 5: ARGS selected none of these

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

# The generated pages of docs/. The last two take a minute.
pages: requirements
	@$(BIN)/python tools/parts.py
	@$(BIN)/python tools/reference.py
	@$(CACHE) $(BIN)/python tools/declared.py
	@$(CACHE) $(BIN)/python tools/dvl_gaps.py

# The build runs without network. A warning, such as a broken link, is an error.
docs: $(STAMPS)/docs
	@$(CACHE) $(BIN)/sphinx-build -b html -d .cache/doctrees -W --keep-going -q docs $(OUT)/docs
	@echo 'wrote $(OUT)/docs/index.html'

clean:
	rm -rf $(VENV) $(OUT) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
