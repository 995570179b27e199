# Two commands matter: `make run` and `make test`. Both set up everything they need; the second time is quick.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# uv installs in seconds what takes pip minutes, but is not told of the mirrors that pip is set to use.
DEPENDENCIES := --quiet -c constraints.txt -e ".[all]" --group dev
# Measuring takes time: `make test COVERAGE=` leaves it out.
COVERAGE ?= yes
# Tests start hundreds of processes: without compiled modules each would compile them all again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test lint kernels unit suite quick soak mutants mutants-ci bench docs kafka registry release clean
.DEFAULT_GOAL := help

help:  ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt
	@echo "==> set-up: a virtual environment in $(VENV) (once, and again when dependencies change)"
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "pip>=25.1" uv
	@$(BIN)/uv pip install --python $(BIN)/python $(DEPENDENCIES) || $(BIN)/python -m pip install $(DEPENDENCIES)
	@touch $@

run: $(READY)  ## set up and show a stream being anonymized, live, with the console
	@$(BIN)/portcullis demo

# Types are checked on one core while kernels are compiled: mypy has use for one only.
test: $(READY)  ## set up and run everything: ruff, mypy, the import contract, pytest
	@echo "==> types are checked while kernels are compiled: some minutes, the first time"
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint kernels
	@$(MAKE) --no-print-directory suite

lint: $(READY)  ## ruff, mypy, import contract
	@echo "==> ruff, mypy, import contract"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

kernels: $(READY)  ## compile what most tests need
	@echo "==> kernels"
	@$(BIN)/python -m tests.compile_kernels

unit: kernels suite  ## pytest

suite: $(READY)
	@echo "==> pytest"
	@$(BIN)/python -m pytest -m "not soak" -n auto --dist loadgroup $(if $(COVERAGE),--cov --cov-report= --cov-fail-under=0)
	@if [ -n "$(COVERAGE)" ]; then \
		echo "==> branch coverage in percent, without kernels and processes that tests start (pyproject.toml has the floor)"; \
		$(BIN)/coverage report --format=total; fi

# What needs nothing but its own process, and the embedded broker; a test that starts a process or takes long is `slow`.
QUICK := golden microdata privacy static_algos stream_algos $(addprefix service/,broker codec policy proposal publishing report worker)
quick: $(READY)  ## the fast part of the suite, within 90 seconds on two cores (once kernels are compiled)
	@PORTCULLIS_QUICK=1 $(BIN)/python -m pytest -m "not slow and not soak" --hypothesis-profile few \
		-n auto --dist load --durations 5 --durations-min 2 $(addprefix tests/,$(QUICK))

soak: $(READY)  ## the long runs, and the property tests with new examples
	@echo "==> pytest, the long ones"
	@$(BIN)/python -m pytest -m soak --timeout 0
	@echo "==> pytest, properties with new examples"
	@$(BIN)/python -m pytest -m "hypothesis and not soak" --hypothesis-profile new -n auto --dist loadgroup

mutants: $(READY)  ## break gate, audit, models, engines and worker on purpose, and report what no test notices
	@$(BIN)/python -m tests.mutation.run

mutants-ci: $(READY)  ## the same for the files that decide what is published, within five minutes on two cores
	@$(BIN)/python -m tests.mutation.run --quick

bench: $(READY)  ## every benchmark, small, within 20 minutes; writes docs/numbers.md
	@$(BIN)/python -m load_tests.bench

docs: $(READY)  ## the site, with its generated reference, in site/
	@$(BIN)/python -m mkdocs build --strict

release: $(READY)  ## build sdist and wheel, check them, and run the demo from the wheel in an empty environment
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --group release
	@PYTHON=$(BIN)/python deploy/release

kafka: $(READY)  ## a real Apache Kafka on a free loopback port, until Ctrl-C (needs Java 17 and Maven)
	@$(BIN)/python -m tests.service.kafka.real_kafka

registry: $(READY)  ## a real schema registry (Apicurio) on a free loopback port, until Ctrl-C (needs Java 17)
	@$(BIN)/python -m tests.service.registry.real_registry

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage build dist *.egg-info
