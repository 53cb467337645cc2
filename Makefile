# Two commands do everything on a fresh machine with Python 3.11 or later: make demo, make test.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA := $(wildcard ../shared/data)

# real data sets for tests and experiments, where they are at hand
ifneq ($(DATA),)
export EGOCNN_DATA ?= $(abspath $(DATA))
endif

.PHONY: demo test fuzz lint format docs install clean

demo: $(VENV)/installed
	$(BIN)/egocnn demo -o runs/demo

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n auto --dist loadfile

# hostile input for every reader, so many seconds of it each; docs/hostile-input.md tells what is looked for
SECONDS ?= 8
fuzz: $(VENV)/installed-dev
	$(BIN)/python -m fuzz --each $(SECONDS)

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# the site: docs/_build/html/index.html, which needs no network; a warning is an error
docs: $(VENV)/installed-dev
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

install: $(VENV)/installed

# constraints.txt pins the versions that were tested together; without it pip may fetch gigabytes of GPU libraries.
# torch goes first: the requirement of another package must find it there.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "egocnn needs Python 3.11 or later; set PYTHON=...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[all]"
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) runs build dist
