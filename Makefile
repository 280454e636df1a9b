# Every target sets up what it needs: a virtual environment from the hashed lock, then gpufare itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_HOME := data/demo

.PHONY: demo test lint docs lock mutants stress audit wheel clean

demo: $(READY)
	GPUFARE_HOME=$(DEMO_HOME) $(BIN)/gpufare demo tests/pages

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqruff lint sql

# docs/sources.md; a test fails when it is out of date.
docs: $(READY)
	$(BIN)/python -m tests.sources_table

lock: $(READY)
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes \
		--no-emit-index-url --no-header --output-file requirements.lock

# Hours on two cores; `make mutants ONLY='pipeline.parsing*'` does a part. Interrupted, it goes on where it was.
mutants: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/mutmut run $(ONLY)
	$(BIN)/mutmut results

# At most an hour; docs/stress.md says what is done. Interrupted, it goes on where it was.
stress: $(READY)
	$(BIN)/python -m tests.stress --seed "$(or $(SEED),1)" --only "$(ONLY)"

# Needs the Python Package Index, so no part of `make test`. Fails also when a package cannot be looked up.
audit:
	$(PYTHON) -m venv data/audit
	data/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	data/audit/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes -r requirements.lock

wheel: $(READY)
	$(BIN)/hatchling build -t wheel

clean:
	rm -rf $(VENV) data build dist mutants

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(READY)
