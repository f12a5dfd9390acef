# make demo   a small comparison with a figure, from nothing, in about a minute
# make demo-live  a page with live experiments that move, from nothing, in about a minute
# make check  lint, types and the quick tests, in about half a minute
# make test   everything that must pass
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A file's tests share kernels and fixtures: one worker has them all.
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile $(LEFT_OUT)
# More than two cores have: many tests wait for a server, a disk, a browser or another process.
WORKERS := 3
LIVE := live service page cli/test_demo_live.py cli/test_service.py cli/test_stores.py \
    cli/test_report.py docs/test_service_pages.py
# Hundreds of processes import the same files: each is compiled once, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE
# What these commands leave in the checkout: what `make clean` removes, and what took too long for that.
MADE := $(VENV) .matrix demo paper site build dist \
    .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
KEPT := studies scaling tenth
# Where the stages of `make test` write down what they have skipped.
SKIPPED := $(CURDIR)/build/left-out
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: help demo demo-live check check-live test test-library lint docs pictures test-quick test-compiled test-interpreted \
    test-wheel wheel coverage test-matrix test-plain-numba chaos golden clean \
    numbers regrets levels noon bench reproduction studies scaling tried turns decide mutants logs live load page \
    browser tutorial

help:
	@echo 'make demo      install, compare six policies, draw the figure: demo/regret.png'
	@echo 'make demo-live install, and serve a page with live experiments and simulated visitors'
	@echo 'make check     lint, types and the quick tests: before every commit'
	@echo 'make check-live  the same of live experiments, their service and their page'
	@echo 'make test      all that must pass: lint, types, the site, every test, the wheel'
	@echo 'make test-library  the same without live experiments, their service and their page'
	@echo 'make coverage  the lines that no test reaches interpreted; at least 95 % must be (six minutes)'
	@echo 'make test-matrix  the quick tests on every Python, and on the oldest dependencies'
	@echo 'make wheel     a wheel, into dist/, tried in an empty environment'
	@echo 'make chaos     live experiments and servers, killed 50 times on each database (some minutes)'
	@echo 'make browser   a Chromium for the tests of the page, where there is none (Debian, as root)'
	@echo 'make docs      the documentation as a site: site/index.html'
	@echo 'make tutorial  the pictures of the tutorial, made anew in a browser'
	@echo 'The numbers in docs/, each written by the command that makes it:'
	@echo 'make numbers   those that take seconds; $(BIN)/python benchmarks/quick_numbers.py NAME makes one'
	@echo 'make bench     how long a duel, a first answer, the reproduction and the tests take (half an hour)'
	@echo 'make levels    how often a test of an assumption alarms where all is well (a minute)'
	@echo 'make noon      what a player by the clock learns from bursts at noon (minutes)'
	@echo 'make reproduction  the evaluation of the paper, into paper/ (a minute or two)'
	@echo 'make regrets   final regrets against independent programs, and what is recommended (minutes)'
	@echo 'make turns     coin or turns, 1000 runs of either (half an hour)'
	@echo 'make tried     what was tried for recommend(), on generated problems; the best one checked (hours)'
	@echo 'make decide    how soon a winner is declared, and how often wrongly (a quarter of an hour)'
	@echo 'make logs      how often intervals from a log cover the truth (a quarter of an hour)'
	@echo 'make live      live experiments: speed, growth, false declarations (a quarter of an hour)'
	@echo 'make load      the service beside a bare route that writes the same rows (two minutes)'
	@echo 'make page      the page of a million duels in a browser: bytes and seconds (two minutes)'
	@echo 'make scaling   from 5 to 1000 arms: regret, time and memory (half an hour)'
	@echo 'make studies   every study, into studies/ (an hour)'
	@echo 'make mutants MODULE=ledger/votes  changes to a module that no test notices (minutes)'
	@echo 'make clean     remove what these have left here, and the environment:'
	@echo '               $(wordlist 1,7,$(MADE)), caches, byte code;'
	@echo '               $(KEPT) stay, which take half an hour and more'

demo: $(VENV)/.ready
	$(BIN)/duelay simulate --dataset six-rankers \
	    --policy recommended \
	    --policy rucb-delay --policy rr-db-delay --policy mrr-db-delay:constants=0.5/0.1/0.1 \
	    --policy rucb:alpha=1 --policy rucb:alpha=1,counting=append-only \
	    --delay geometric:0.01 --horizon 100000 --runs 20 --out demo
	@echo 'The command is $(BIN)/duelay.'

# Ctrl-C stops it, and ten minutes do. It needs little of what the others install.
demo-live: $(VENV)/.ready-live
	$(BIN)/duelay demo-live

# Leaves out what compiles, and what takes more than a second interpreted: `make test` has it.
check: lint
	$(MAKE) --no-print-directory test-quick LEFT_OUT='$(addprefix --ignore=tests/,$(LIVE))'

# What `make check` leaves out: the quick tests of live experiments, their service and their page.
check-live: lint
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m 'not slow and not long' $(addprefix tests/,$(LIVE))

# What was skipped, and why, is said once more at the end, also if something has failed.
# Two at a time: while tests of the one stage wait for servers, those of the other compile.
test: $(VENV)/.ready-dev
	@rm -rf $(SKIPPED)
	@DUELAY_LEFT_OUT=$(SKIPPED) $(MAKE) --no-print-directory -j 2 \
	    test-wheel lint docs test-compiled test-interpreted; \
	status=$$?; $(BIN)/python tests/left_out.py $(SKIPPED); exit $$status

# More than half of all tests are of live experiments: with real databases, servers and a browser.
test-library:
	$(MAKE) --no-print-directory test LEFT_OUT='$(addprefix --ignore=tests/,$(LIVE))'

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A page that no other leads to, a link or an anchor that leads nowhere: each stops the build.
docs: $(VENV)/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# After a change to docs/pictures/make.py, or to what is recommended: the README's figure has it.
pictures: $(VENV)/.ready
	$(BIN)/python docs/pictures/make.py

# The pictures of the tutorial, after a change to the page.
tutorial: $(VENV)/.ready-dev
	NUMBA_DISABLE_JIT=1 DUELAY_TUTORIAL=docs/tutorials $(BIN)/python -m pytest -q tests/page/test_tutorial.py

# A Chromium for the tests of the page, where there is none and Debian's can be had. Without one they
# are left out, and say so.
browser:
	@for name in "$$DUELAY_CHROMIUM" chromium chromium-browser google-chrome; do \
	    if [ -n "$$name" ] && command -v "$$name" > /dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo 'installing chromium ...'; export DEBIAN_FRONTEND=noninteractive; \
	    { apt-get -qq update && apt-get -qq install -y --no-install-recommends \
	        chromium fonts-noto-core; } > /dev/null 2>&1 && exit 0; fi; \
	echo 'there is no chromium: the page is not tested in a browser'

test-quick: $(VENV)/.ready-dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m 'not slow and not long'

# What is about compiled code, or long, or the same for all policies: golden duels and the contract.
test-compiled: $(VENV)/.ready-dev
	$(PYTEST) -m '(kernels or compiled) and not slow'

# Interpreted, the same code is the oracle of the compiled one.
test-interpreted: $(VENV)/.ready-dev
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m 'not slow and (interpreted or not long or not kernels)'

# What is run interpreted reaches nearly every line, and to count takes nearly as long again.
coverage: $(VENV)/.ready-dev
	$(BIN)/python -m coverage erase
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run -m pytest -q -n 2 --dist loadfile \
	    -m 'not slow and (interpreted or not long or not kernels)'
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report

# As with a release of Numba that is newer than those tested: slower, and the same numbers.
test-plain-numba: $(VENV)/.ready-dev
	DUELAY_PLAIN_NUMBA=1 $(PYTEST) -m '(kernels or compiled) and not slow'

# The wheel alone in an empty environment, with no extra.
test-wheel: $(VENV)/.ready-dev
	$(BIN)/python tests/wheel.py

# The same wheel, copied into dist/.
wheel: $(VENV)/.ready-dev
	$(BIN)/python tests/wheel.py --out dist

# Some ten minutes: environments of their own, in .matrix.
test-matrix: $(BIN)/python
	$(BIN)/python tests/matrix.py

# Kills by the dozen, a database away for ten seconds, a full disk: is all there, once, that was
# acknowledged? `make test` does the same with a few kills.
chaos: $(VENV)/.ready-dev
	DUELAY_KILLS=50 NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/live/test_chaos.py \
	    tests/service/test_service_chaos.py

# Numbers on pages stand between marks, are kept in docs/numbers, and are written by these alone.
numbers: $(VENV)/.ready
	$(BIN)/python benchmarks/quick_numbers.py

levels: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/levels.py

# Bursts at noon and a duel a minute at night, 20 seeds.
noon: $(VENV)/.ready
	$(BIN)/python benchmarks/noon.py

regrets: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -q -n 2 -m slow tests
	$(BIN)/python benchmarks/recommended.py

bench: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/duel_cost.py --peers --write
	$(BIN)/python benchmarks/starts.py --write
	$(BIN)/python benchmarks/whole.py --write

# What paper/ and studies/ hold already is not computed again.
reproduction: $(VENV)/.ready
	$(BIN)/python benchmarks/reproduction.py paper

studies: $(VENV)/.ready
	$(BIN)/python benchmarks/studies.py --out studies

# What scaling/ holds already is not computed again.
scaling: $(VENV)/.ready
	$(BIN)/python benchmarks/scaling.py

# What was tried for `recommend`, on generated problems; what tenth/ holds is not computed again.
tried: $(VENV)/.ready
	$(BIN)/python benchmarks/tried.py
	$(BIN)/python benchmarks/tenth.py

# Coin or turns: 1000 runs of either.
turns: $(VENV)/.ready
	$(BIN)/python benchmarks/coin_or_turns.py

# Live experiments: how fast, as large as a million duels, how often a false winner.
live: $(VENV)/.ready
	$(BIN)/python benchmarks/live_store.py --write

# The service beside a bare route that writes the same rows.
load: $(VENV)/.ready
	$(BIN)/python benchmarks/load.py --write

# The page of a million duels in a real Chromium: bytes, seconds, updates.
page: $(VENV)/.ready-dev
	$(BIN)/python benchmarks/page_cost.py --write

# How often intervals that are estimated from logs cover the truth.
logs: $(VENV)/.ready
	$(BIN)/python benchmarks/logs.py --write

# How soon a winner is declared, how often wrongly, and whether the intervals hold.
decide: $(VENV)/.ready
	$(BIN)/python benchmarks/decide.py

# After a change that is meant to give other duels: write down the new ones, and say so in the
# changelog.
golden: $(VENV)/.ready-dev
	$(BIN)/python tests/engine/test_golden.py

# Mutation testing of one module, or of several: benchmarks/mutants.toml has those that there are.
MODULE ?= ledger/votes
SAMPLE ?= 0
mutants: $(VENV)/.ready-mutants
	$(BIN)/python benchmarks/mutants.py $(MODULE) --sample $(SAMPLE)

# All of it, and $(KEPT), is in .gitignore. Pages, pictures and docs/numbers are part of the sources.
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

$(VENV)/.ready-mutants: $(VENV)/.ready-dev
	$(PIP) --editable '.[dev,mutants]'
	@touch $@
