# Two commands on a fresh machine with Python 3.10+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread a process: two test processes on two cores are faster than threads that compete.
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-all lint format clean
.DEFAULT_GOAL := demo

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("NeuroPareto needs Python 3.10 or newer: make demo PYTHON=python3.11" if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.user: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing NeuroPareto into $(VENV) (a few minutes the first time) ..."
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[plots]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "Installing NeuroPareto and its test tools into $(VENV) (a few minutes the first time) ..."
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.user

demo: $(VENV)/.user          ## the main job: a front, a picture and a report in demo-output/
	$(BIN)/neuropareto demo

test: $(VENV)/.dev           ## the fast suite with coverage
	$(BIN)/python -m pytest -n 2 -m 'not slow' --cov --cov-report=term

test-all: $(VENV)/.dev       ## the fast suite and the slow one
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term

lint: $(VENV)/.dev           ## format check, lint, strict types over package and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev         ## format and repair what can be repaired
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:                       ## remove the environment and what runs left behind
	rm -rf $(VENV) demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis htmlcov .coverage
