# make demo    install, train the sample system (minutes, CPU), and show what it translates
# make test    install with the tools of developers, and run the tests
# make check   ruff and mypy
# make docs    write the generated parts of docs/ anew
#
# PYTHON=python3.12 chooses the interpreter, PIP_INSTALL_FLAGS goes to pip, e.g. for torch without CUDA:
#   make demo PIP_INSTALL_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu"

VENV := .venv
PYTHON ?= $(firstword $(foreach python,python3 python3.13 python3.12 python3.11,\
	$(shell $(python) -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $(python))))
PIP_INSTALL_FLAGS ?=
INSTALL = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(PIP_INSTALL_FLAGS)
# Puts the checkout itself on Python's path, behind everything else. pip's own hook, which finds cli/ as nmt.cli, comes
# too late for a folder that only looks like the package: in the parent folder of a checkout, its name is nmt as well.
ON_PATH = $(VENV)/bin/python -c 'import os, sysconfig; \
	print(os.getcwd(), file=open(sysconfig.get_path("purelib") + "/nmt-checkout.pth", "w"))'
NMT := $(VENV)/bin/nmt
SAMPLE := data/sample-en-de
RUN := runs/sample

.PHONY: demo test check docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(NMT) run recipes/sample.toml --run-dir $(RUN)
	@echo
	@echo "Sentences it has never seen ($(SAMPLE)/test):"
	@head -n 8 $(SAMPLE)/test.en | $(NMT) translate $(RUN) --quiet > $(RUN)/demo.de
	@paste $(SAMPLE)/test.en $(SAMPLE)/test.de $(RUN)/demo.de | head -n 8 | \
		awk -F '\t' '{ printf "\n  English      %s\n  reference    %s\n  translation  %s\n", $$1, $$2, $$3 }'
	@echo
	@echo "Go on with:"
	@echo "  echo 'Save the file.' | $(NMT) translate $(RUN)"
	@echo "  $(NMT) translate $(RUN) --input $(SAMPLE)/test.en | $(NMT) score $(SAMPLE)/test.de --language de"
	@echo "  $(NMT) recipe new --source YOURS.en --target YOURS.de    a recipe for your own text"

test: $(VENV)/.installed-dev
	$(VENV)/bin/python -m pytest -n 2 --dist worksteal

check: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

docs: $(VENV)/.installed-dev
	$(VENV)/bin/python docs/generate.py

# Installed again only when what is to be installed has changed.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing nmt into $(VENV) (torch is large: this may take minutes) ..."
	@$(INSTALL) -e .
	@$(ON_PATH)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing nmt and the tools of developers into $(VENV) (torch is large: this may take minutes) ..."
	@$(INSTALL) -e ".[dev]"
	@$(ON_PATH)
	@touch $@ $(VENV)/.installed

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "error: no Python from 3.11 on is installed" >&2; \
		echo "hint: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

clean:
	rm -rf build dist nmt.egg-info .mypy_cache .ruff_cache .pytest_cache
