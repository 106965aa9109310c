# Everything a newcomer or a maintainer runs. No target needs a step before it: each builds what it stands on.
SHELL := /bin/bash
PYTHON ?= $(shell tools/choose_python.sh)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NATIVE := $(VENV)/.native
PYTEST_FLAGS ?=
IMPL ?= auto
FUZZ_FLAGS ?=
DIFFERENTIAL_FLAGS ?=
API_FLAGS ?=
DEMO_FLAGS ?=
CHAOS_FLAGS ?=
PURE := tests/unit tests/property tests/conformance
COVERED := tests/unit tests/property tests/conformance tests/simulation tests/compat tests/integration

# Tests start hundreds of processes. Without bytecode each of them compiles the package anew, for 0.2 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup build release demo test test-python coverage check format docs interop browser pictures api chaos fuzz differential asan spark mqadmin compatibility architecture bench audit lock clean manifests

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: $(NATIVE) ## create .venv with every command in .venv/bin

$(READY): pyproject.toml requirements-dev.lock requirements-java.lock tools/check_machine.sh tools/install.py tools/setup_java.sh
	@tools/check_machine.sh $(PYTHON)
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/install.py requirements-dev.lock
	@tools/setup_java.sh $(BIN)/python
	@touch $@

# The compiled twins of the hot loops, where there is a C compiler.
$(NATIVE): $(READY) hatch_build.py $(wildcard src/cometmq/native/*.pyx src/cometmq/native/*.pxd src/cometmq/native/*.h)
	@$(BIN)/python hatch_build.py
	@touch $@

build: setup ## wheels in dist/, for pip: one for every machine, and a faster one for this Python on Linux
	@rm -f dist/cometmq-*.whl
	@COMETMQ_IMPL=python $(BIN)/python -m hatchling build -t wheel
	@$(BIN)/python -m hatchling build -t wheel
	@$(BIN)/python tools/portable_wheel.py dist

release: setup ## date the changelog, build wheel and sdist into dist/, check both, say what to do next; uploads nothing
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/docs/test_wheel.py
	@$(BIN)/python -m tools.release

demo: setup ## start a cluster, send, consume, run a pipeline, show what happened (ends by itself; DEMO_FLAGS=--stay keeps its dashboard)
	@$(BIN)/cometmq demo $(DEMO_FLAGS)

test: setup ## all tests that need nothing but this package (and Java 17 for those of Spark); IMPL=python or native: with that one
	COMETMQ_IMPL=$(IMPL) $(BIN)/python -m pytest -q -n 4 --dist loadgroup --no-loadscope-reorder $(PYTEST_FLAGS)

test-python: setup ## units, properties and conformance without the compiled twins, which `make test` has
	COMETMQ_IMPL=python $(BIN)/python -m pytest -q -n 4 --dist loadgroup --no-loadscope-reorder $(PURE) $(PYTEST_FLAGS)

coverage: setup ## branch coverage by module; fails below the floors in pyproject.toml (servers in processes of their own do not count)
	$(BIN)/coverage run -m pytest -q -n 0 -p no:cacheprovider $(COVERED) $(PYTEST_FLAGS)
	$(BIN)/coverage report
	$(BIN)/coverage json -q -o - | $(BIN)/python tools/coverage_floors.py

check: setup ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: setup ## rewrite files the way `check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

manifests: ## compare compose.yaml and deploy/kubernetes with the schemas of Docker Compose and Kubernetes (needs Go)
	@tools/check_deploy.sh

docs: .venv-docs/.ready ## the documentation as a site in site/, every link and anchor checked
	@.venv-docs/bin/sphinx-build -q -W --keep-going -E -a -d build/doctrees -c docs . site
	@cp site/README.html site/index.html
	@echo "written: site/index.html"

# An environment of its own: what builds the site shares no package version with the software, and `setup` stays small.
.venv-docs/.ready: requirements-docs.lock tools/check_machine.sh
	@tools/check_machine.sh $(PYTHON)
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	@touch $@

interop: setup ## software that is not ours with our servers, our client with theirs (needs a JDK 17, Maven, Go, Node)
	@tools/setup_etcd.sh
	@tools/setup_prometheus.sh
	COMETMQ_CLIENT_SERVERS=rocketmq-4.9.7 $(BIN)/python -m pytest -q -n 3 --dist loadscope --no-loadscope-reorder \
	  -p no:cacheprovider tests/interop tests/integration/client $(PYTEST_FLAGS)

browser: setup ## the dashboard in a real browser (Debian's Chromium; skipped without)
	@tools/setup_chromium.sh
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/browser $(PYTEST_FLAGS)

pictures: setup ## the pictures of the dashboard in docs/, made anew
	@tools/setup_chromium.sh
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/browser/test_every_page.py tests/browser/test_login.py --pictures

api: setup .venv-api/.ready ## the dashboard's API against its own description, with thousands of odd requests (API_FLAGS="--help")
	$(BIN)/python -m tests.schemathesis.run $(API_FLAGS)

# An environment of its own, as for the site: what it needs is not needed by anything else.
.venv-api/.ready: requirements-api.lock tools/check_machine.sh
	@tools/check_machine.sh $(PYTHON)
	@$(PYTHON) -m venv .venv-api
	@.venv-api/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-api.lock
	@touch $@

chaos: setup ## ten minutes of faults under load, and what survives: build/chaos.html (CHAOS_FLAGS="--help")
	@tools/setup_etcd.sh
	$(BIN)/python -m tests.chaos.run $(CHAOS_FLAGS)

fuzz: setup ## two million hostile inputs: decoders, clients, both servers with a healthy client beside them (FUZZ_FLAGS="--help")
	$(BIN)/python -m tests.hostile.run $(FUZZ_FLAGS)

differential: setup ## ten minutes of the same bytes into the Python modules and into their compiled twins (DIFFERENTIAL_FLAGS="--help")
	$(BIN)/python -m tests.differential.run $(DIFFERENTIAL_FLAGS)

asan: setup ## the compiled twins under AddressSanitizer and UBSan, in build/asan (needs gcc)
	@tools/asan.sh $(BIN)/python $(PYTEST_FLAGS)

spark: setup ## the long tests of the Spark part: executors of their own, kills, RocketMQ's broker (needs Java 17, Maven)
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/spark/long $(PYTEST_FLAGS)

mqadmin: setup ## compare what our mqadmin and RocketMQ's print for both clusters, and write docs/reference/mqadmin.md
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/interop/test_mqadmin.py tests/interop/test_own_mqadmin.py \
	  tests/interop/test_user_accounts.py tests/interop/test_plain_accounts.py -k mqadmin $(PYTEST_FLAGS)
	$(BIN)/python -m tools.mqadmin_page

compatibility: setup ## write docs/compatibility.md from what `make interop` found last
	$(BIN)/python tools/compatibility.py

architecture: setup ## write docs/architecture.md from the import graph
	$(BIN)/python tools/architecture.py

bench: setup ## our broker beside RocketMQ, our client and Spark parts beside others (needs a JDK 17, Maven, Go, a C compiler, 75 GB of disk; two hours)
	$(BIN)/python benchmarks/run.py

UV_COMPILE := uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
  --no-emit-index-url --no-emit-find-links --generate-hashes --upgrade pyproject.toml

audit: setup ## known vulnerabilities and licences of what is locked, and a bill of materials (AUDIT_FLAGS="--offline")
	$(BIN)/python tools/audit.py $(AUDIT_FLAGS)

lock: ## renew the requirements-*.lock files (needs uv)
	$(UV_COMPILE) --extra dev -o requirements-dev.lock
	$(UV_COMPILE) --extra java -c requirements-dev.lock -o requirements-java.lock
	$(filter-out pyproject.toml,$(UV_COMPILE)) --group docs -o requirements-docs.lock
	$(filter-out pyproject.toml,$(UV_COMPILE)) --group api -o requirements-api.lock

clean: ## remove what the targets made
	rm -rf src/cometmq/native/*.so $(VENV) .venv-docs .venv-api site build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
