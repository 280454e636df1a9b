# Every target sets up what it needs: a virtual environment from a lock with hashes, and gpufare itself. The demo and
# questions need a small part of the environment; all other targets need the whole.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_READY := $(VENV)/.ready-for-demo
READY := $(VENV)/.ready

# The tracer is a project of its own, in an environment that adds to the one above. TORCH is the version that
# catalog/traces.csv was traced with.
TRACE_VENV := tracer/.venv
TRACE_BIN := $(TRACE_VENV)/bin
TRACE_READY := $(TRACE_VENV)/.ready
TORCH := torch==2.13.0
DEMO_HOME := data/demo

# Locked without their dependencies; requirements-consumers.in gives the reason.
CONSUMERS_ALONE := skypilot==0.14.1 gpuhunt==0.1.34

# Versions of DuckDB that open the published file, as docs/how-to/sql-and-bi.md states; each is alone with the packages that
# the page names. They are pinned by version, because pip accepts one version per package in a file of hashes.
DUCKDB_CLIENTS := 1.2.2 1.3.2 1.4.5 1.5.6
DUCKDB_WASM := 1.32.0
CLIENTS := .venv-consumers/duckdb

# $(call install,FOLDER,PACKAGES): with uv if it is installed, in a tenth of pip's processor time; without it, or if it
# fails, with pip, whose settings may name another index. pip compiles packages; uv is told to if Python may not later.
UV ?= $(shell command -v uv 2>/dev/null)
UV_OPTIONS := $(if $(PYTHONDONTWRITEBYTECODE),--compile-bytecode)
install = $(if $(UV),$(UV) pip install $(UV_OPTIONS) --python $(1)/bin/python $(2) ||) \
	$(1)/bin/pip install --disable-pip-version-check $(2)

# $(call install_lock,LOCK): installs a lock into the environment, and says what, how long it took, and the size.
define install_lock
@set -e; began=$$(date +%s); \
echo "Installing $(1) into $(VENV): $$(sed -n 's/==.*//p' $(1) | sort -u | wc -l) packages"; \
[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); \
$(call install,$(VENV),--no-deps --require-hashes -r $(1)); \
echo "Installed in $$(($$(date +%s) - began)) s; $(VENV) takes $$(du -sh $(VENV) | cut -f1)"
endef

LINTERS := lint-ruff lint-format lint-types lint-rooms lint-sql

.PHONY: demo test pytest nightly trace-check trace-tests trace-sample traces lint $(LINTERS) docs lock mutants mutants-sql \
	mutants-python stress bench audit wheel clean

demo: $(DEMO_READY)
	GPUFARE_HOME=$(DEMO_HOME) $(BIN)/gpufare demo

test: lint pytest

pytest: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal

# What takes longer than a pull request may: fuzzing, kills, other tools, the tracer, mutants. Ends with a table.
# PARTS="fuzz store" runs some parts. Parts that need packages of another environment are skipped without them.
nightly: $(READY)
	-$(MAKE) --jobs 2 --keep-going $(VENV)/lake/.ready .venv-consumers/.ready $(CLIENTS)/.ready
	$(BIN)/python -m tests.nightly $(PARTS)

# Skipped, not failed, if torch cannot be installed.
trace-check: trace-tests trace-sample

trace-tests: $(TRACE_READY)
	@[ ! -e $(TRACE_READY) ] || (cd tracer && .venv/bin/python -m pytest -n auto --dist worksteal $(TRACE_TESTS))

trace-sample: $(TRACE_READY)
	@[ ! -e $(TRACE_READY) ] || $(TRACE_BIN)/gpufare trace-grid --check --jobs 2

# Repeats traces that a moved pin or a changed recipe made stale, shows which peaks changed, notes the peaks under
# these versions, and learns from the traces. Resumes if interrupted.
traces: $(TRACE_READY)
	$(TRACE_BIN)/gpufare trace-grid --jobs 2
	$(TRACE_BIN)/gpufare trace-grid --by-version --jobs 2
	$(TRACE_BIN)/gpufare learn-traces

lint: $(LINTERS)

lint-ruff: $(READY)
	$(BIN)/ruff check .

lint-format: $(READY)
	$(BIN)/ruff format --check .

lint-types: $(READY)
	$(BIN)/mypy
	cd tracer && ../$(BIN)/mypy

lint-rooms: $(READY)
	$(BIN)/lint-imports

lint-sql: $(READY)
	$(BIN)/sqruff lint sql

# Writes the generated pages of docs/, and builds the site from all pages, with the examples' results in the demo.
docs: $(READY) demo
	$(BIN)/python -m docs.generate
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env -d data/site-cache -D demo_home=$(DEMO_HOME) docs data/site
	@echo "The site: data/site/index.html"

lock: $(READY)
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes \
		--no-emit-index-url --no-header --output-file requirements.lock
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
	| grep -v ^dagster | $(BIN)/uv pip compile - --group build --python-version 3.11.1 --universal --generate-hashes \
		--no-emit-index-url --no-header --no-annotate --constraint requirements.lock --output-file requirements-demo.lock
	echo '$(TORCH)' | $(BIN)/uv pip compile tracer/pyproject.toml - --python-version 3.11.1 --universal --generate-hashes \
		--no-emit-index-url --no-header --no-emit-package gpufare --constraint requirements.lock --quiet \
	| awk 'NR == FNR { locked[$$0]; next } /^[a-z]/ { skip = $$0 in locked || /^(torch|nvidia|cuda)[-=]/ } !skip' \
		requirements.lock - > tracer/requirements.lock
	$(BIN)/uv pip compile requirements-lake.in --universal --generate-hashes --no-emit-index-url --no-header \
		--output-file requirements-lake.lock
	$(BIN)/uv pip compile requirements-consumers.in --universal --generate-hashes --no-emit-index-url --no-header \
		--output-file requirements-consumers.lock
	printf '%s\n' $(CONSUMERS_ALONE) | $(BIN)/uv pip compile - --no-deps --universal --generate-hashes \
		--no-emit-index-url --no-header --no-annotate --quiet >> requirements-consumers.lock

# Random samples of small changes to the logic, which the quick tests should notice; SEED=2 draws others, SAMPLE=1000000
# takes all, ONLY=jobs/ or ONLY=pipeline.gates some. docs/explanation/mutation-testing.md.
mutants: mutants-sql mutants-python

mutants-sql: $(READY)
	$(BIN)/python -m tests.nightly.mutants sql --seed "$(or $(SEED),1)" --sample "$(or $(SAMPLE),100)" --only "$(ONLY)"

mutants-python: $(READY)
	$(BIN)/python -m tests.nightly.mutants python --seed "$(or $(SEED),1)" --sample "$(or $(SAMPLE),100)" --only "$(ONLY)"

# Takes about an hour; ONLY="kills or year" runs some parts, SEED=2 draws other faults. docs/explanation/stress.md.
stress: $(READY)
	STRESS_ALL=1 STRESS_SEED="$(or $(SEED),1)" $(BIN)/python -m pytest -n auto --dist worksteal \
		tests/nightly/stress tests/nightly/fuzz -k "$(ONLY)"

# docs/reference/speed.md says how long it took; PARTS="large questions" runs some parts. Compares with gpuhunt if available.
bench: $(READY)
	-$(BIN)/pip install --quiet --disable-pip-version-check --upgrade --target data/bench -r benchmarks/requirements.txt
	$(BIN)/python -m benchmarks $(PARTS) $(if $(PARTS),,--write docs/reference/speed.md)

# Needs the Python Package Index, so it is not part of `make test`. Also fails if a package cannot be looked up.
audit:
	$(PYTHON) -m venv data/audit
	data/audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	data/audit/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes -r requirements.lock

wheel: $(READY)
	$(BIN)/hatchling build -t wheel

clean:
	rm -rf $(VENV) $(TRACE_VENV) .venv-consumers data build dist mutants

# The packages that `gpufare lake` has in front: DuckLake is packaged for this older DuckDB, not for DuckDB 2 yet.
$(VENV)/lake/.ready: requirements-lake.lock | $(READY)
	rm -rf $(@D)
	$(call install,$(VENV),--quiet --target $(@D) --no-deps --require-hashes -r requirements-lake.lock)
	touch $@

# The other tools, in their own versions, with which tests load the exports.
.venv-consumers/.ready: requirements-consumers.lock
	[ -x .venv-consumers/bin/python ] || $(PYTHON) -m venv .venv-consumers
	$(call install,.venv-consumers,--quiet --no-deps --require-hashes -r requirements-consumers.lock)
	touch $@

# DuckDB-WASM is installed only if npm is available.
$(CLIENTS)/.ready: Makefile | .venv-consumers/.ready
	rm -rf $(@D)
	$(foreach version,$(DUCKDB_CLIENTS),{ $(call install,.venv-consumers,--quiet --no-deps \
		--target $(@D)/$(version) duckdb==$(version) pytz); } &&) true
	! command -v npm || npm install --silent --no-audit --no-fund --prefix $(@D)/wasm @duckdb/duckdb-wasm@$(DUCKDB_WASM)
	touch $@

# An existing environment keeps its Python and is updated. The whole environment begins with the part for the demo.
$(READY): requirements.lock | $(DEMO_READY)
	$(call install_lock,$<)
	@touch $@

$(DEMO_READY): requirements-demo.lock pyproject.toml
	$(call install_lock,$<)
	@$(call install,$(VENV),--quiet --no-deps --no-build-isolation --editable .)
	@touch $@

# tracer/requirements.lock has the packages that requirements.lock lacks, except torch and its CUDA libraries: a machine
# may use the build for CUDA or for CPUs, whose hashes and dependencies differ, and pip checks all hashes of a file
# or none. Traces are the same with both. So torch is pinned by its version, and brings its build's dependencies.
$(TRACE_READY): tracer/requirements.lock tracer/pyproject.toml | $(READY)
	rm -rf $(TRACE_VENV)
	$(PYTHON) -m venv $(TRACE_VENV)
	$(BIN)/python -c "import sysconfig; print('import site; site.addsitedir(%r)' % sysconfig.get_path('purelib'))" \
		> "$$($(TRACE_BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/gpufare.pth"
	@pip="$(TRACE_BIN)/pip -qq --disable-pip-version-check install --no-compile"; \
	if $$pip --retries 1 --no-deps $(TORCH) 2> $(TRACE_VENV)/pip.log; then \
		{ $(call install,$(TRACE_VENV),--quiet --no-deps --require-hashes -r tracer/requirements.lock); } && $$pip $(TORCH) \
			&& $$pip --ignore-installed --no-deps --no-build-isolation --editable . --editable tracer \
			&& touch $(TRACE_READY); \
	elif grep -q "No matching distribution" $(TRACE_VENV)/pip.log; then \
		echo "trace-check: skipped, $(TORCH) is in no package index that pip reaches here"; \
	else \
		cat $(TRACE_VENV)/pip.log >&2; exit 1; \
	fi
