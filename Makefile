# Every target sets up what it needs in a private .venv; nothing is installed globally.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test check lint types bench soak clean

help:  ## List the targets.
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

install: $(STAMP)  ## Make the private environment.

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bm25rag needs Python 3.11 or newer; run: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)  ## Index the standard library's documentation, search it, change it, save and reopen it.
	$(BIN)/python -m bm25rag demo

test: $(STAMP)  ## Run the tests (under five minutes).
	$(BIN)/python -m pytest -q -m "not slow"
