# Everything a newcomer or a maintainer runs. No target needs a step before it: each builds what it stands on.
SHELL := /bin/bash
PYTHON ?= $(shell tools/choose_python.sh)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST_FLAGS ?=
FUZZ_FLAGS ?=
CHAOS_FLAGS ?=
COVERED := tests/unit tests/property tests/conformance tests/simulation tests/compat tests/integration

.PHONY: help setup build release demo test coverage check format docs interop chaos fuzz spark mqadmin compatibility architecture bench lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

setup: $(READY) ## create .venv with every command in .venv/bin

$(READY): pyproject.toml requirements-dev.lock requirements-java.lock tools/check_machine.sh tools/install.py tools/setup_java.sh
	@tools/check_machine.sh $(PYTHON)
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/install.py requirements-dev.lock
	@tools/setup_java.sh $(BIN)/python
	@touch $@

build: setup ## a wheel in dist/, for pip
	@$(BIN)/python -m hatchling build -t wheel

release: setup ## date the changelog, build wheel and sdist into dist/, check both, say what to do next; uploads nothing
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/docs/test_wheel.py
	@$(BIN)/python tools/release.py

demo: setup ## start a cluster, send, consume, run a pipeline, show what happened (ends by itself)
	@$(BIN)/cometmq demo

test: setup ## all tests that need nothing but this package (and Java 17 for those of Spark)
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup $(PYTEST_FLAGS)

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
	COMETMQ_CLIENT_SERVERS=rocketmq-4.9.7 $(BIN)/python -m pytest -q -n 3 --dist loadscope --no-loadscope-reorder \
	  -p no:cacheprovider tests/interop tests/integration/client $(PYTEST_FLAGS)

chaos: setup ## ten minutes of faults under load, and what survives: build/chaos.html (CHAOS_FLAGS="--help")
	@tools/setup_etcd.sh
	$(BIN)/python -m tests.chaos.run $(CHAOS_FLAGS)

fuzz: setup ## two million hostile frames at both servers, a healthy client beside them (`make test` has some seconds of it)
	$(BIN)/python -m tests.hostile.run $(FUZZ_FLAGS)

spark: setup ## the long tests of the Spark part: executors of their own, kills, RocketMQ's broker (needs Java 17, Maven)
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/spark/long $(PYTEST_FLAGS)

mqadmin: setup ## compare what RocketMQ's mqadmin prints for our cluster and for its own
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/interop/test_mqadmin.py $(PYTEST_FLAGS)

compatibility: setup ## write docs/compatibility.md from what `make interop` found last
	$(BIN)/python tools/compatibility.py

architecture: setup ## write docs/architecture.md from the import graph
	$(BIN)/python tools/architecture.py

bench: setup ## our broker beside RocketMQ, our client and Spark parts beside others (needs a JDK 17, Maven, a C compiler; an hour)
	$(BIN)/python benchmarks/run.py

UV_COMPILE := uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
  --no-emit-index-url --no-emit-find-links --generate-hashes --upgrade pyproject.toml

lock: ## renew the requirements-*.lock files (needs uv)
	$(UV_COMPILE) --extra dev -o requirements-dev.lock
	$(UV_COMPILE) --extra java -c requirements-dev.lock -o requirements-java.lock
	$(filter-out pyproject.toml,$(UV_COMPILE)) --group docs -o requirements-docs.lock

clean: ## remove what the targets made
	rm -rf $(VENV) .venv-docs site build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
