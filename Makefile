# `make lab` sets up and opens the lab; `make test` sets up and tests it.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup fetch lab app test lint fuzz bench screenshots clean

# Python 3.11 if it is installed; set PYTHON to choose another.
PYTHON ?= $(firstword $(foreach python,python3.11 python3,\
    $(shell $(python) -c '' 2>/dev/null && echo $(python))))
# Waiting threads should sleep: a spinning thread takes the core that a browser or a
# second process needs, and every token then takes several times as long.
export OMP_WAIT_POLICY ?= PASSIVE

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

define NEED_PYTHON
import sys
sys.exit(sys.version_info < (3, 11) and
    "sampling_lab needs Python 3.11 or newer, and $(PYTHON) is %d.%d; install one, "
    "or name it: make PYTHON=/path/to/python3.11" % sys.version_info[:2])
endef
export NEED_PYTHON

help:
	@echo 'make lab     set up, fetch the default model, open the explorer in JupyterLab'
	@echo 'make app     the same, but serve the explorer alone, as a page without code'
	@echo 'make test    set up the same way; check the code, run all tests and notebooks'
	@echo 'make lint    check style, format and types'
	@echo 'make fuzz    load ten thousand damaged checkpoints'
	@echo 'make bench   print the speed figures'
	@echo 'make screenshots  take the pictures in notebooks/images again'
	@echo 'make clean   remove everything that make has set up, but not fetched models'

lab: setup fetch
	@$(BIN)/sampling-lab lab

app: setup fetch
	@$(BIN)/sampling-lab app

test: setup fetch lint
	@$(BIN)/pytest --numprocesses=2 --dist=loadgroup --durations=10 --cov
	@$(BIN)/pytest --nbval --nbval-current-env --nbval-cell-timeout=120 notebooks

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# Ten thousand damaged checkpoints; `make test` tries two thousand.
fuzz: setup
	@FUZZ=10000 $(BIN)/pytest tests/models/test_fuzz.py

# Pictures for the notebooks and the README, taken in a real browser.
screenshots: setup fetch
	@SAMPLING_LAB_SCREENSHOTS=notebooks/images $(BIN)/pytest tests/*/test_*browser.py

bench: setup fetch
	@$(BIN)/python -m tests.bench

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@[[ -n "$(PYTHON)" ]] || { echo 'sampling_lab needs Python 3.11 or newer, and there is no python3 here; install it' >&2; exit 1; }
	@$(PYTHON) -c "$$NEED_PYTHON"
	@echo 'Setting up $(VENV); this is done once.' >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--upgrade --constraint constraints.txt pip
	@$(BIN)/python tools/install.py
	@touch $@

# Without network access there is only a warning: the bundled checkpoints are used.
fetch: setup
	@$(BIN)/sampling-lab fetch --optional smollm2 r50k_base >/dev/null

clean:
	rm -rf $(VENV) .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
