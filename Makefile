# Every target makes the environment it needs. Needed beforehand: Python 3.11+, gcc and make.
PYTHON ?= python3
# Twice quiet: only errors; a warning about an index of the machine's own is none of the user's business.
PIP = -m pip install --quiet --quiet --disable-pip-version-check

SOURCES := $(shell find skanneal -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

extras-demo = plot
extras-doc = docs
extras-test = test,dev

.PHONY: demo test test-all lint doc bench build dist clean
# The environments share the extensions built in place: two builds at once would collide.
.NOTPARALLEL:

demo: .venv-demo/installed
	.venv-demo/bin/python examples/demo.py

test: .venv-test/installed
	.venv-test/bin/pytest

test-all: .venv-test/installed
	.venv-test/bin/pytest -m ""

lint: .venv-test/installed
	.venv-test/bin/ruff check
	.venv-test/bin/ruff format --check
	.venv-test/bin/cython-lint skanneal

doc: .venv-doc/installed
	.venv-doc/bin/sphinx-build -W --keep-going -q doc doc/_build/html

bench: .venv-test/installed
	.venv-test/bin/python benchmarks/row_step.py

build: .venv-test/installed

# The sdist, the wheel built from that sdist, and the wheel imported where there is no source tree.
dist: .venv-test/installed
	rm -rf dist .venv-dist
	.venv-test/bin/python -m build --outdir dist . > /dev/null
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python $(PIP) dist/*.whl
	cd dist && ../.venv-dist/bin/python -c "import skanneal; print(skanneal.__file__)"

clean:
	rm -rf build dist *.egg-info .venv-demo .venv-dist .venv-doc .venv-test
	rm -rf .pytest_cache .ruff_cache .hypothesis doc/_build doc/auto_examples doc/generated
	find skanneal -name '*.c' -delete -o -name '*.so' -delete
	find . -name __pycache__ -prune -exec rm -rf {} +

# An editable install: the tests and the demo see the tree as it is. Made again, compiling only
# what changed, whenever a Cython source or the build's definition is newer.
.venv-%/installed: pyproject.toml setup.py $(SOURCES)
	@test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/python $(PIP) --editable ".[$(extras-$*)]"
	@touch $@
