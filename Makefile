# Every target sets up what it needs, in private environments (.venv, .venv-*); nothing is global.
PYTHON ?= python3
ifeq ($(OS),Windows_NT)
BIN := Scripts
else
BIN := bin
endif

VENV := .venv
PY := $(VENV)/$(BIN)/python
STAMP := $(VENV)/.installed
# The adapters: whatever lies under integrations/ with a pyproject.toml.
ADAPTERS := $(patsubst integrations/%/pyproject.toml,%,$(wildcard integrations/*/pyproject.toml))
ADAPTER_PROJECTS := $(ADAPTERS:%=integrations/%/pyproject.toml)
# Kernels are built several times in a check; zig takes a second for what it has compiled before.
export ZIG_GLOBAL_CACHE_DIR ?= $(CURDIR)/$(VENV)/zig
# What the compiled kernels are made of.
BUILT := setup.py tools/build_backend.py $(wildcard bm25rag/kernels/*.p*)
# pip brings uv, so that a machine needs nothing but Python, and uv all else, in a fifth of the time; the
# environment of the demo is made by pip alone, as a user's may be. Modules are compiled when they are
# imported, which most never are.
PIP := -m pip --disable-pip-version-check -qq
UV := $(VENV)/$(BIN)/uv
UV_INSTALL = $(UV) pip install -q --python $(@D)
# The checkout, whose kernels .venv has compiled: half a minute of both cores less for each environment,
# and no compiled module is written where others run it.
UV_CHECKOUT = BM25RAG_PURE=1 $(UV_INSTALL)
# NLTK, which LlamaIndex reads with, refuses files that have a second name in a cache.
export UV_LINK_MODE ?= copy
# What the adapters' environments install, and what it is made from.
WHEELS := $(VENV)/wheels
SOURCES = $(shell find bm25rag integrations \( -name '*.py' -o -name '*.txt' -o -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.svg' -o -name '*.md' \) -not -path '*/tests/*')
PYTEST := -m pytest -q
# On all cores; the adapters' tests are too short for that.
PARALLEL := $(PYTEST) -n auto --dist=worksteal
# A few cases of what many tell (tests/support/cases.py), fewer examples of each property, and no test
# that is slow: in the modes beside the usual one, too.
FEWEST := -m "not slow and not further and not twin" --hypothesis-profile=quick
# Those modes leave out the tests of crashes, forged folders and benchmarks, for which the mode makes no
# difference; with NumPy alone, also the tests that force a backend themselves (tests/conftest.py).
ONCE := crashes distributed project/test_benchmarks.py storage/test_hostile_*.py
REPEATED := $(FEWEST) $(ONCE:%='--ignore-glob=tests/%')
# What needs no cluster: it runs with all tests.
IN_ONE_PROCESS := test_client_pages.py test_steps.py
# What no library takes part in, or only as it does in other tests.
BELOW := analysis/test_hostile_texts.py analysis/test_joined.py analysis/test_scanner.py concurrency evaluation/test_bench.py \
	evaluation/test_processes.py inspector/test_inspector_judging.py inspector/test_inspector_safety.py kernels/test_errors.py
# What runs no kernel of its own, or names the backends itself: one run is enough.
ABOVE := cli evaluation inspector operating project readers storage/test_remote.py analysis/test_scanner.py kernels/test_filtered.py
# The tests that reach every line of the kernels; the rest is measured as it is compiled.
KERNELS := kernels scoring search filters analysis/test_scanner.py analysis/test_words.py concurrency/test_gil.py \
	index/test_building.py index/test_merging.py storage/test_packed_texts.py
COVER := --cov-report= --cov-fail-under=0
# Pyodide's version counts Pythons: 314 has 3.14. What its one thread and small stack leave of the tests.
PYODIDE_VERSION := 314.0.7
PYRIGHT_VERSION := 1.1.414
IN_PYODIDE := $(addprefix tests/,filters metadata scoring search) \
	--ignore=tests/scoring/test_peers.py --ignore=tests/search/test_unknown_terms.py
# Every process would compile all modules anew, and pytest those of its plugins.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
ifndef AT_ONCE
.NOTPARALLEL:
endif
.DELETE_ON_ERROR:
.PHONY: help install demo test check lint types test-all test-interpreted coverage test-plain test-lowest \
	wheel dist adapters rest together docs pyodide public-types distributed sanitize soak test-long bench clean

help:  ## List the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

install: $(STAMP)  ## Make the private environment .venv.

QUESTION ?= How are dates compared in a filter?
demo: .venv-demo/.installed  ## Index real text, search, change, save and reopen it; answer a question (three minutes at first).
	.venv-demo/$(BIN)/python -m bm25rag demo
	.venv-demo/$(BIN)/python examples/frameworks.py "$(QUESTION)"
	HAYSTACK_TELEMETRY_ENABLED=False .venv-demo/$(BIN)/python examples/haystack_rag.py docs "$(QUESTION)" .venv-demo/index

test: $(STAMP)  ## Run the tests (under three minutes).
	$(PY) $(PARALLEL) $(FEWEST)

# --- the whole check ----------------------------------------------------------------

check: lint test-all test-interpreted test-plain test-lowest rest  ## Lint, types, the tests in all modes, the wheel, the adapters, a cluster.
	@echo "make check: everything passed"

lint: $(STAMP)  ## Check style, formatting, that imports point downward, and the workflows.
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(VENV)/$(BIN)/lint-imports --no-cache
	$(VENV)/$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/idea.yml
	$(VENV)/$(BIN)/check-jsonschema -q --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(VENV)/$(BIN)/check-jsonschema -q --builtin-schema vendor.citation-file-format CITATION.cff
	$(VENV)/$(BIN)/zizmor --offline --quiet --persona=pedantic .github

types: $(STAMP)  ## Check types, strictly.
	$(PY) -m mypy
	$(PY) -m mypy tools tests/index/test_types.py
	$(PY) -m mypy --config-file benchmarks/mypy.ini benchmarks

test-all: $(STAMP)  ## Run the tests, the slow ones too, but not those marked long.
	$(PY) $(PARALLEL) -m "not long" --cov=bm25rag $(COVER)

test-interpreted: $(STAMP)  ## Run the tests of the kernels with these interpreted.
	BM25RAG_KERNELS=interpreted $(PY) $(PARALLEL) $(FEWEST) --cov=bm25rag/kernels $(COVER) --cov-append $(KERNELS:%=tests/%) --ignore=tests/scoring/test_peers.py

coverage: $(STAMP)  ## Report what the two runs before have covered together.
	$(PY) -m coverage report

test-plain: $(STAMP)  ## Run the tests with NumPy alone.
	BM25RAG_KERNELS=numpy $(PY) $(PARALLEL) $(REPEATED) $(ABOVE:%=--ignore=tests/%)

test-lowest: .venv-lowest/.installed  ## Run the tests with the lowest versions that are claimed.
	.venv-lowest/$(BIN)/python $(PARALLEL) $(REPEATED) $(BELOW:%=--ignore=tests/%)

wheel: $(STAMP)  ## Build sdist and wheel; try the wheel alone in a new environment; compile one for arm64.
	$(PY) tools/check_wheel.py
ifeq ($(shell uname -s),Linux)
	$(PY) tools/cross.py aarch64-linux-gnu.2.17
endif

dist: $(STAMP)  ## Build all four distributions for a package index, into dist/.
	$(PY) tools/publishing.py dist

# What uses one core is done two at a time; what it says is shown when it has ended.
AT_A_TIME = @$(MAKE) --no-print-directory $(if $(findstring output-sync,$(.FEATURES)),-O) AT_ONCE=1
ADAPTER_CHECKS := $(foreach check,types lowest together,$(ADAPTERS:%=$(check)-%))
# Their environments are made beside the checks, too, but for one of two that have the checkout, which
# setuptools may not write in for both at once; and after the wheels, for which modules are compiled there.
BEFORE_ADAPTERS := $(WHEELS)/.built .venv-together/.installed
adapters: $(BEFORE_ADAPTERS)  ## Check each adapter: its types, its wheel alone, its lowest versions, and all in one environment.
	$(AT_A_TIME) -j2 $(ADAPTER_CHECKS)

# The longest first: a cluster is mostly waited for, so that there is room for two beside it. Its environment
# is made before, since make begins all that is ready before it looks again at what has become so.
rest: $(BEFORE_ADAPTERS) .venv-distributed/.installed
	$(AT_A_TIME) -j3 distributed types wheel coverage $(ADAPTER_CHECKS)

# The wheel where nothing else is, at the newest versions: it is imported, and its types are checked, and
# those of who uses it. Not from the root, where the core's sources would hide what is installed.
types-%: .venv-%/.installed
	cd $(firstword $(wildcard integrations/$*/src) integrations/$*) && set -e; \
		modules=$$(find . -name py.typed | sed 's,^./,,; s,/py.typed$$,,; s,/,.,g'); \
		for module in $$modules; do $(CURDIR)/.venv-$*/$(BIN)/python -P -c "import $$module"; done; \
		for checked in "$$(printf -- '-p %s ' $$modules)" $(CURDIR)/integrations/$*/tests/test_$*_types.py; do \
			$(CURDIR)/$(PY) -m mypy --config-file $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.mypy_cache/$* \
				--python-executable $(CURDIR)/.venv-$*/$(BIN)/python $$checked; \
		done

# -P: what is imported is what was installed, not what lies in the checkout. Old frameworks beside new
# libraries warn on their own behalf.
lowest-%: .venv-%-lowest/.installed
	.venv-$*-lowest/$(BIN)/python -P $(PYTEST) -p no:cacheprovider -o filterwarnings=default integrations/$*/tests

# pytest-asyncio warns where its options are missing, as for adapters that do without it.
together-%: .venv-together/.installed
	.venv-together/$(BIN)/python -P $(PYTEST) -p no:cacheprovider -W ignore::pytest.PytestDeprecationWarning integrations/$*/tests

together: $(ADAPTERS:%=together-%)  ## Run the tests of all adapters in one environment.

# An adapter's environment has the core's wheel; what is editable cannot be verified.
public-types: .venv-langchain/.installed  ## Check that pyright knows the types of all public names (needs node and npm).
	npm install --silent --no-save --prefix .venv-npm pyright@$(PYRIGHT_VERSION)
	.venv-langchain/$(BIN)/python tools/public_types.py .venv-npm/node_modules/.bin/pyright

docs: .venv-docs/.installed  ## Build the site from docs/ and docstrings into .venv-docs/site, its notebooks executed; warnings are errors.
	.venv-docs/$(BIN)/python tools/build_site.py .venv-docs

# What the tests there need beside the wheel; of Hypothesis, the last version in pure Python.
FOR_PYODIDE := filelock hypothesis iniconfig packaging pluggy pygments pytest snowballstemmer sortedcontainers tqdm tzdata
pyodide: $(STAMP)  ## Run the wheel without compiled code in Pyodide, the Python of browsers (needs node and npm).
	rm -rf .venv-npm/wheels
	npm install --silent --no-save --prefix .venv-npm pyodide@$(PYODIDE_VERSION)
	BM25RAG_PURE=1 $(UV) build -q --wheel --no-build-isolation --python $(PY) --out-dir .venv-npm/wheels
	$(PY) $(PIP) download --no-deps --only-binary :all: --platform any --abi none --implementation py \
		--python-version 3.14 -d .venv-npm/wheels $(FOR_PYODIDE)
	$(PY) -P tests/support/whole_use.py > .venv-npm/wheels/expected.json
	node tools/pyodide.mjs .venv-npm/node_modules/pyodide .venv-npm/wheels $(IN_PYODIDE)

distributed: .venv-distributed/.installed  ## Run the tests on a cluster of Ray.
	.venv-distributed/$(BIN)/python $(PYTEST) tests/distributed $(IN_ONE_PROCESS:%=--ignore=tests/distributed/%)

# --- longer than a check ------------------------------------------------------------

sanitize: $(STAMP) .venv-sanitize/.installed  ## Run the tests of the kernels with bounds checked, and under AddressSanitizer and UBSan, by gcc or CC=clang.
	$(PY) $(PYTEST) tests/kernels/test_bounds.py
	$(PY) tools/sanitize.py .venv-sanitize/bin/python $(KERNELS:%=tests/%) tests/crashes/test_hardship.py

soak: $(STAMP)  ## Write, read, refresh and kill on one folder for ten minutes; interrupt and starve 2,000 processes; many more kills, crashes and forgeries.
	$(PY) tools/soak.py
	$(PY) tools/hardship.py interrupts
	$(PY) tools/hardship.py memory
	$(PY) $(PYTEST) --hypothesis-profile=soak tests/crashes tests/storage/test_hostile_forgeries.py

test-long: $(STAMP)  ## Run the tests with 130 times as many random examples (hours).
	$(PY) $(PYTEST) --hypothesis-profile=long

bench: .venv-bench/.installed  ## Measure all beside other engines (40 minutes; QUICK=1: a few).
	.venv-bench/$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

clean:  ## Remove the private environments and everything that was built.
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist build

# --- environments -------------------------------------------------------------------
# A stamp is newer than the files it was made from; `make clean` makes everything anew. It holds the folder
# of the checkout, which files of an environment name: in one that was moved or copied, Python would not
# find bm25rag, or that of the folder it was copied from.
MOVED := $(patsubst %/.installed,%,$(shell grep -LFxs -- "$$(pwd -P)" .venv*/.installed))
ifneq ($(MOVED),)
.PHONY: $(MOVED:%=%/.moved)
$(MOVED:%=%/.installed): %/.installed: %/.moved
$(MOVED:%=%/.moved): %/.moved:
	@echo "$* was made in another folder, and is made anew"
	@rm -rf $*
endif

define new_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bm25rag needs Python 3.11 or newer; run: make PYTHON=python3.12")'
@echo "setting up $(@D)"
@$(PYTHON) -m venv $(@D)
endef

define new_uv
@echo "setting up $(@D)"
@$(UV) venv -q --clear --python $(PY) $(@D)
endef

$(STAMP): pyproject.toml $(BUILT)
	$(new_venv)
	@echo "compiling bm25rag, and installing all that development needs: a minute or two"
	@$(PY) $(PIP) install --no-compile 'uv>=0.8'
	@$(UV_INSTALL) 'Cython>=3.1' 'setuptools>=77' 'ziglang>=0.13'
	@$(UV_INSTALL) --no-build-isolation -e '.[dev]'
	@pwd -P > $@

$(WHEELS)/.built: $(STAMP) $(SOURCES) $(ADAPTER_PROJECTS)
	@rm -rf $(@D)
	@$(UV) build -q --wheel --no-build-isolation --python $(PY) --out-dir $(@D)/core
	@set -e; for name in $(ADAPTERS); do \
		$(UV) build -q --wheel --no-build-isolation --python $(PY) --out-dir $(@D)/$$name integrations/$$name; \
	done
	@touch $@

# All adapters beside the core and what the examples need; not what develops and tests them.
# Step by step, so that nobody who tries this sees nothing for a minute.
.venv-demo/.installed: pyproject.toml $(BUILT) $(ADAPTER_PROJECTS)
	$(new_venv)
	@echo "compiling bm25rag, with a compiler that pip downloads for it; installing NumPy and PyStemmer"
	@$(@D)/$(BIN)/python $(PIP) install -e '.[cli]'
	@set -e; for name in $(ADAPTERS); do \
		echo "installing $$name and its adapter"; \
		$(@D)/$(BIN)/python $(PIP) install -e "integrations/$$name[examples]"; \
	done
	@pwd -P > $@

.venv-together/.installed: $(STAMP) $(ADAPTER_PROJECTS)
	$(new_uv)
	@$(UV_CHECKOUT) -e '.[test]' $(ADAPTERS:%=-e 'integrations/%[test,examples]')
	@pwd -P > $@

.venv-docs/.installed: $(STAMP) $(ADAPTER_PROJECTS)
	$(new_uv)
	@$(UV_CHECKOUT) -e '.[cli,docs]' $(ADAPTERS:%=-e 'integrations/%')
	@pwd -P > $@

.venv-distributed/.installed: $(STAMP)
	$(new_uv)
	@$(UV_CHECKOUT) -e '.[distributed-test]'
	@pwd -P > $@

.venv-lowest/.installed: $(STAMP)
	$(new_uv)
	@$(UV_CHECKOUT) --resolution lowest-direct -e '.[test]'
	@pwd -P > $@

# Beside the peers that the extras `bench` name; PISA and a Java have no wheels for some systems. Of
# pyserini, the jar with Lucene 10 is wanted alone: it runs from Java 21 on, with any Python. LlamaIndex's
# retriever works with a newer PyStemmer than it demands.
.venv-bench/.installed: pyproject.toml $(BUILT) $(ADAPTER_PROJECTS)
	$(new_venv)
	@$(@D)/$(BIN)/python $(PIP) install -e '.[bench]' $(ADAPTERS:%=-e 'integrations/%[bench]')
	@$(@D)/$(BIN)/python $(PIP) install -e '.[pisa]' || echo "PISA cannot be installed here"
	@$(@D)/$(BIN)/python $(PIP) install -e '.[lucene]' && \
		$(@D)/$(BIN)/python $(PIP) install --no-deps --ignore-requires-python 'pyserini>=2.4' \
		|| echo "Lucene cannot be installed here"
	@$(@D)/$(BIN)/python $(PIP) install --no-deps 'llama-index-retrievers-bm25>=0.6'
	@pwd -P > $@

# What is tested there is compiled every time (tools/sanitize.py).
.venv-sanitize/.installed: $(STAMP)
	$(new_uv)
	@pwd -P > $@

# The wheels, not the folders: what is installed must work away from the checkout.
.venv-%/.installed: $(WHEELS)/.built
	$(new_uv)
	@$(UV_INSTALL) $(WHEELS)/core/*.whl "$$(echo $(WHEELS)/$*/*.whl)[test]"
	@pwd -P > $@

# uv takes for direct what a project file demands, not what a wheel does.
.venv-%-lowest/.installed: $(WHEELS)/.built
	$(new_uv)
	@$(UV_INSTALL) --resolution lowest-direct $(WHEELS)/core/*.whl $(WHEELS)/$*/*.whl \
		-r integrations/$*/pyproject.toml --extra test
	@pwd -P > $@

.PRECIOUS: .venv-%/.installed .venv-%-lowest/.installed
