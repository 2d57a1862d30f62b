PYTHON ?= python3
BIN = .venv/bin
# one more than there are cores: some tests wait for servers and processes of their own
WORKERS ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() + 1)")

# what was compiled is kept, whatever the environment says: tests start many processes, which compile all anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-slow docs report mutants golden release bench bench-peers lint clean

setup: .venv/.ready-test .venv/.browser  ## everything that tests and benchmarks use

demo: .venv/.ready-demo  ## set up, then tell the whole story on bundled data
	$(BIN)/accord demo

test: setup  ## all but the slow tests
	$(MAKE) --no-print-directory -j 2 lint .venv/.compiled
	$(BIN)/pytest -m "not slow" -n $(WORKERS) --dist loadgroup

test-slow: setup  ## the others
	$(BIN)/pytest -m slow -n $(WORKERS) --dist loadgroup

docs: setup  ## the documentation as a site, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html -d docs/_build/tree docs docs/_build/html

report: setup  ## the technical report as one file, in docs/report.html
	$(BIN)/myst-docutils-html5 --myst-enable-extensions=dollarmath --myst-heading-anchors=3 --myst-all-links-external=yes \
		--math-output=MathML --strict \
		--embed-stylesheet --stylesheet-path=docs/report.css --image-loading=embed \
		docs/report.md docs/report.html

mutants: setup  ## change the code in small ways, and see whether a test notices (docs/audit.md)
	$(BIN)/python tests/mutants.py --jobs 2

golden: setup  ## write the golden files anew: read the difference, and say why in the commit's message
	ACCORD_WRITE_GOLDEN=1 $(BIN)/pytest -n auto -k "not test_all_releases" tests/golden

release: setup  ## what is checked before a version is given to anybody
	$(BIN)/python tests/release.py

bench: setup  ## ratios to DuckDB's own sums; what a ledger costs
	$(BIN)/python bench/run.py
	$(BIN)/python bench/ledger.py
	$(BIN)/python bench/regression.py
	$(BIN)/python bench/people.py
	$(BIN)/python bench/many.py
	$(BIN)/python bench/spark.py

bench-peers:  ## accord and other libraries on one file
	test -x bench/.venv/bin/python || $(PYTHON) -m venv bench/.venv
	bench/.venv/bin/pip install --quiet --disable-pip-version-check -r bench/peers.txt -e .
	bench/.venv/bin/python bench/peers.py

lint: setup
	$(BIN)/ruff check src tests bench docs
	$(BIN)/ruff format --check src tests bench docs
	$(BIN)/mypy

clean:
	rm -rf .venv bench/.data

.venv/bin/python:
	$(PYTHON) -m venv .venv

# by one process, while mypy uses the other core, so that the workers of pytest need not each do it
.venv/.compiled: $(shell find src tests -name '*.py') | setup
	$(BIN)/pytest --collect-only -qq >$@.txt || { cat $@.txt; exit 1; }
	@touch $@

.venv/.ready-demo: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[plot]'
	@touch $@

# Debian's Chromium, for tests of the service's pages, which are skipped without it (but not where CI=true)
.venv/.browser: | .venv/bin/python
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		(apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium) \
			>.venv/chromium.log 2>&1 || true; fi
	@if command -v chromium >/dev/null; then touch $@; \
		else echo "no browser: tests of pages are skipped. Install one as root: apt-get install chromium"; fi

.venv/.ready-test: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@ .venv/.ready-demo
