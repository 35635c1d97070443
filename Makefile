# Two commands on a machine with Python 3.11, pip and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint tables

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with seq2see and every extra

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[words,data,cjk,mecab,serve,ct2,tensorboard,vision,diffusers,test,dev]'
	touch $@

demo: $(READY) ## train on the embedded corpus, score, translate, draw (runs/demo)
	$(BIN)/seq2see demo

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint ## lint, then all tests
	$(BIN)/pytest

tables: $(READY) ## write the tables of READMEs and docs from the raw figures
	PYTHONPATH=benchmarks $(BIN)/python -m tables
