# make demo    analyze synthetic recordings, simulate    make test   all checks (what .ci/run runs)
# make bench   speed against other engines               make lint   style, types, layers
# make soak    the long tests (hours)                    make docs   the documentation, into site/
# make test-oldest   the tests with the oldest dependencies that pyproject.toml admits, on the oldest Python found
# make test-pythons  the tests on every other supported Python found

# the first supported Python; `make PYTHON=python3.12 test` to choose
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
WORKERS ?= 2
# byte code is kept: tests start Python hundreds of times
export PYTHONDONTWRITEBYTECODE :=
# supported interpreters: those on PATH that run, and those of pyenv
PYTHONS = $(shell for v in 3.11 3.12 3.13; do for p in python$$v $(HOME)/.pyenv/versions/$$v.*/bin/python; do \
	$$p -c '' 2> /dev/null && echo $$p && break; done; done)

.PHONY: demo test test-oldest test-pythons lint bench soak docs clean
.DEFAULT_GOAL := test

demo: $(VENV)/.made
	@$(BIN)/borelli demo

# kernels are compiled once, before two workers would each do it; the second run shows that tests that need data are
# skipped where there are none
test: lint docs
	@$(BIN)/borelli doctor
	@BORELLI_DATA=/nowhere $(BIN)/python -m pytest -n $(WORKERS) -m "data and not slow"
	@$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

lint: $(VENV)/.made-test
	@$(BIN)/ruff check src tests examples
	@$(BIN)/ruff format --check --quiet src tests examples
	@$(BIN)/mypy
	@$(BIN)/lint-imports > .lint-imports.log || { cat .lint-imports.log; exit 1; }
	@rm -f .lint-imports.log

bench: $(VENV)/.made-test ode
	@$(BIN)/borelli bench --peers

soak: $(VENV)/.made-test
	@SYSTEMS=20 $(BIN)/python -m pytest tests/physics/solver
	@$(BIN)/python -m pytest -m slow -rP

# uv resolves each dependency to its lower bound, which pip cannot; referees (other engines) are left out
test-oldest:
	@test -n "$(PYTHONS)" || { echo "no supported Python was found" >&2; exit 1; }
	@echo "installing the oldest dependencies with $$($(firstword $(PYTHONS)) --version)"
	@rm -rf .venv-oldest && $(firstword $(PYTHONS)) -m venv .venv-oldest
	@.venv-oldest/bin/python -m pip install -qq --disable-pip-version-check uv
	@.venv-oldest/bin/uv pip install -q --python .venv-oldest/bin/python --resolution lowest-direct -e ".[view,optimal]"
	@.venv-oldest/bin/uv pip install -q --python .venv-oldest/bin/python pytest pytest-xdist hypothesis mypy
	@.venv-oldest/bin/borelli doctor
	@.venv-oldest/bin/python -m pytest -n $(WORKERS) -m "not slow"

test-pythons:
	@for python in $(wordlist 2,9,$(PYTHONS)); do \
		venv=.venv-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
		$(MAKE) --no-print-directory VENV=$$venv PYTHON=$$python $$venv/.made-test && $$venv/bin/borelli doctor \
			&& $$venv/bin/python -m pytest -n $(WORKERS) -m "not slow" || exit 1; \
	done

docs: $(VENV)/.made-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "the documentation is in site/index.html"

clean:
	rm -rf $(VENV) .venv-* site demo build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

# ODE is a system library: used for comparison, never required
.PHONY: ode
ode:
	@if ! [ -e /usr/include/ode/ode.h ] && command -v apt-get > /dev/null; then \
		echo "installing libode-dev and a C compiler, for comparison"; \
		SUDO=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
		{ $$SUDO apt-get -qq update && $$SUDO apt-get -qq install -y gcc libc6-dev libode-dev; } > /dev/null 2>&1 \
			|| echo "could not install it: the table will not have ODE"; fi

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "borelli needs Python 3.11, 3.12 or 3.13; none was found" >&2; exit 1; }
	@if ! $(PYTHON) -c 'import ensurepip, venv' 2> /dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		echo "installing python3-venv"; apt-get -qq update > /dev/null 2>&1; \
		apt-get -qq install -y python3-venv > /dev/null 2>&1 || true; fi
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null \
		|| { echo "Python lacks the venv module: install it (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.made: pyproject.toml | $(VENV)/bin/python
	@echo "installing what borelli needs (a minute or two, once)"
	@$(PIP) -e ".[view]"
	@touch $@

$(VENV)/.made-test: pyproject.toml | $(VENV)/bin/python
	@echo "installing what the tests need (a minute or two, once)"
	@$(PIP) -e ".[test]"
	@touch $@ $(VENV)/.made

$(VENV)/.made-docs: pyproject.toml | $(VENV)/bin/python
	@echo "installing what the documentation needs"
	@$(PIP) -e ".[docs]"
	@touch $@
