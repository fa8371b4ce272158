# Every target does its own set-up in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export LITELLM_LOCAL_MODEL_COST_MAP := True

.PHONY: demo test test-again test-all lint format bench docs constraints clean
.DEFAULT_GOAL := test

$(STAMP): constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --no-compile --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP)
	@# The demo ends with a decision to take: exit code 3.
	@$(BIN)/loop demo $(DEMO_ARGS) || [ $$? -eq 3 ]

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

test-again: lint
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none -rfEp

test-all: lint
	$(BIN)/python -m pytest -m "" --numprocesses auto

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m benchmarks

docs: $(STAMP)
	$(BIN)/python docs/generate.py

constraints:
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --extra dev --extra demo --extra otel pyproject.toml -o constraints.new
	{ sed -n '/^#/p' constraints.txt; cat constraints.new; } > constraints.both
	mv constraints.both constraints.txt && rm constraints.new

clean:
	rm -rf $(VENV)
