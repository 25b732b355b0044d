# Every target makes the environment it needs in .venv, and compiles what changed. Needed
# beforehand: Python 3.11+, gcc and make.
PYTHON ?= python3
BIN = .venv/bin
# Twice quiet: errors only, no remark on the package indexes that this machine is set up with.
PIP = $(BIN)/python -m pip install -q -q --disable-pip-version-check

SOURCES := $(shell find skanneal -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
# More for pytest, as in: make test ARGS="tests/project/test_layers.py -x"; for digests
# the names of its cases, as in: make digests ARGS="family move/gibbs"
ARGS =
# What `make digests` compares the working tree with.
REF = HEAD

.PHONY: demo test test-all lint doc figures bench digests build dist floors clean
# Two installations at once would collide.
.NOTPARALLEL:

demo: .venv/installed-plot
	$(BIN)/python examples/demo.py

test: .venv/installed-test
	$(BIN)/pytest -n auto $(ARGS)

test-all: .venv/installed-test,ray
	$(BIN)/pytest -n auto -m "" --resume $(ARGS)

lint: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" cython-lint skanneal  # it calls pycodestyle by name

doc: .venv/installed-docs
	$(BIN)/sphinx-build -W --keep-going -q doc doc/_build/html

# The papers' pictures and tables in the documentation, from benchmarks/results: no sampler runs.
figures: .venv/installed-docs
	$(BIN)/python benchmarks/papers/figures.py

bench: .venv/installed-test
	$(BIN)/python benchmarks/kernels/row_step.py
	$(BIN)/python benchmarks/kernels/permutation_step.py

# The working tree beside a commit, as in: make digests REF=HEAD~1
digests: .venv/installed-test
	$(BIN)/python benchmarks/harness/digests.py $(REF) $(ARGS)

build: .venv/installed-dev
	$(BIN)/python setup.py -q build_ext --inplace

# The sdist, the wheel built from that sdist, and the wheel imported where there is no source tree.
dist: .venv/installed-dev
	rm -rf dist .venv-dist
	$(BIN)/python -m build --outdir dist . > /dev/null
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install -q -q --disable-pip-version-check dist/*.whl
	cd dist && ../.venv-dist/bin/python -c "import skanneal; print(skanneal.__file__)"

# The package built and run with the oldest versions that pyproject.toml allows.
FLOORS = $(addprefix tests/, project/test_floors.py project/test_layers.py \
	encoding/test_encoding.py encoding/test_impute_containers.py predictive/test_outliers.py \
	summary/test_summary.py displays/test_displays.py schedules/test_schedules.py)
floors: .venv/build-requirements.txt
	rm -rf .venv-floors
	$(PYTHON) -m venv .venv-floors
	$(BIN)/python tests/project/floors.py > .venv-floors/floors.txt
	.venv-floors/bin/python -m pip install -q -q --disable-pip-version-check -r .venv-floors/floors.txt
	.venv-floors/bin/python -m pip install -q -q --disable-pip-version-check --no-build-isolation --no-deps .
	.venv-floors/bin/pytest -n auto $(FLOORS)

clean:
	rm -rf .venv .venv-dist .venv-floors .digests build dist *.egg-info
	rm -rf .hypothesis .pytest_cache .ruff_cache doc/_build doc/auto_examples doc/generated
	find skanneal -name '*.c' -delete -o -name '*.so' -delete
	find . -name __pycache__ -prune -exec rm -rf {} +

# Installed, not editable: tests and demo run on what a user gets, and build/ keeps the compiled
# objects, so that only what changed is compiled (an editable install starts from nothing each time).
# Not isolated: in a fresh environment NumPy's .pxd files are newer than all of Cython's output.
.venv/installed-%: .venv/build-requirements.txt setup.py $(SOURCES)
	@if [ -d build ]; then find build -name '*.py' -delete; fi  # a module since removed
	@$(PIP) --no-build-isolation ".[$*]"
	@touch $@

.venv/build-requirements.txt: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -c "import tomllib; requires = tomllib.load(open('pyproject.toml', 'rb')); \
	print(*requires['build-system']['requires'], sep='\n')" > $@
	@$(PIP) -r $@ || { rm $@; false; }
