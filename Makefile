# `make help` lists the targets. What writes numbers into docs/ is not here: `python -m benchmarks`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Hundreds of processes import the same files: each is compiled once, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE
# More workers than the two cores they are made for: many tests wait for a server, a disk, a browser
# or another process. All tests of a file run in one worker, because they share kernels and fixtures.
WORKERS := 3
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile
# Tests of live experiments, their service and their page: more than half of all, and the slower half.
LIVE := live service page cli/test_demo_live.py cli/test_service.py cli/test_stores.py \
    cli/test_report.py docs/test_service_pages.py
# What `make check` runs: TESTS='tests/live tests/page' runs these instead.
TESTS := $(addprefix --ignore=tests/,$(LIVE))
# Where the stages of `make test` write which tests they skipped.
SKIPPED := $(CURDIR)/build/left-out
# `make clean` removes MADE, and keeps KEPT, which takes half an hour or more to compute.
MADE := $(VENV) .matrix demo paper site build dist \
    .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
KEPT := studies scaling tenth
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: help setup demo demo-live format lint check test test-compiled test-interpreted docs wheel \
    bench browser clean

help:
	@echo 'make demo       install, compare six policies, draw the figure: demo/regret.png'
	@echo 'make demo-live  install, and serve a page with live experiments and simulated visitors'
	@echo 'make setup      install everything for development into $(VENV)'
	@echo 'make format     format the code, and fix what ruff can fix'
	@echo 'make lint       ruff, layers of imports, types'
	@echo 'make check      lint and the quick tests, before every commit (half a minute);'
	@echo '                TESTS="tests/live tests/page" runs the quick tests of these folders instead'
	@echo 'make test       everything that must pass: lint, the site, the wheel, and all tests:'
	@echo '                test-compiled and test-interpreted (below ten minutes)'
	@echo 'make docs       build the documentation: site/index.html'
	@echo 'make wheel      build a wheel into dist/, and try it in an empty environment'
	@echo 'make bench      list the commands that write the numbers of docs/: $(BIN)/python -m benchmarks'
	@echo 'make browser    install a Chromium for the tests of the page (Debian, as root)'
	@echo 'make clean      remove the environment and what these commands have made;'
	@echo '                $(KEPT) stay'

setup: $(VENV)/.ready-dev

demo: $(VENV)/.ready
	$(BIN)/duelay simulate --dataset six-rankers \
	    --policy recommended \
	    --policy rucb-delay --policy rr-db-delay --policy mrr-db-delay:constants=0.5/0.1/0.1 \
	    --policy rucb:alpha=1 --policy rucb:alpha=1,counting=append-only \
	    --delay geometric:0.01 --horizon 100000 --runs 20 --out demo
	@echo 'The command is $(BIN)/duelay.'

# Ctrl-C stops it, and so does the end of ten minutes. It needs few of the dependencies.
demo-live: $(VENV)/.ready-live
	$(BIN)/duelay demo-live

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Leaves out what compiles, and what takes more than a second interpreted: `make test` runs that.
check: lint
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m 'not slow and not long' $(TESTS)

# Two stages at a time: while the tests of one wait for servers, those of the other compile. The
# skipped tests and their reasons are listed at the end, also if something has failed.
test: $(VENV)/.ready-dev
	@rm -rf $(SKIPPED)
	@DUELAY_LEFT_OUT=$(SKIPPED) $(MAKE) --no-print-directory -j 2 \
	    wheel lint docs test-compiled test-interpreted; \
	status=$$?; $(BIN)/python tests/left_out.py $(SKIPPED); exit $$status

# Tests of compiled code, long tests, and what is the same for all policies (golden duels, contract).
test-compiled: $(VENV)/.ready-dev
	$(PYTEST) -m '(kernels or compiled) and not slow'

# Interpreted, the same code is the oracle of the compiled one.
test-interpreted: $(VENV)/.ready-dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m 'not slow and (interpreted or not long or not kernels)'

# A page outside of the navigation, a broken link or anchor, and a name without code stop the build.
docs: $(VENV)/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(VENV)/.ready-dev
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python tests/wheel.py

bench: $(VENV)/.ready
	$(BIN)/python -m benchmarks

# Without a Chromium the tests of the page in a browser are skipped, and the end of the run says so.
browser:
	@for name in "$$DUELAY_CHROMIUM" chromium chromium-browser google-chrome; do \
	    if [ -n "$$name" ] && command -v "$$name" > /dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo 'installing chromium ...'; export DEBIAN_FRONTEND=noninteractive; \
	    { apt-get -qq update && apt-get -qq install -y --no-install-recommends \
	        chromium fonts-noto-core; } > /dev/null 2>&1 && exit 0; fi; \
	echo 'there is no chromium: the page is not tested in a browser'

# All of it, and KEPT, is in .gitignore. Pages, pictures and docs/numbers are part of the sources.
clean:
	rm -rf $(MADE)
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
	    "duelay needs Python 3.11 or later, this is %s; try: make PYTHON=python3.12" \
	    % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: pyproject.toml | $(BIN)/python
	@echo 'installing into $(VENV) ...'
	$(PIP) --editable '.[all]'
	@touch $@ $(VENV)/.ready-live

$(VENV)/.ready-live: pyproject.toml | $(BIN)/python
	@echo 'installing into $(VENV) ...'
	$(PIP) --editable '.[cli,service]'
	@touch $@

$(VENV)/.ready-dev: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.ready $(VENV)/.ready-live
