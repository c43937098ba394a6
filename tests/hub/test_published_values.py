"""Figures that others have published, checked on the real weights; needs a model hub (`make
test-hub`).

PUBLISHED is a JSON file with bert-score's own test cases (`tests/test_score_function.py` of its
repository): "cands", "refs" and "cases", each with "name", "kwargs" and the expected "P", "R" and
"F". WMT16 is a table of the WMT16 segment-level judgements, tab-separated and gzipped, with the
columns lang_pair, reference, candidate and human_score; PEARSON is a JSON file that gives for a
model's name its "layer" and, as "comment", its published mean correlation (bert-score,
`utils.py:model2layers`); MODEL says which of them to check.
"""

import csv
import gzip
import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from bertscore_onnx import BERTScorer, score
from bertscore_onnx_export.pipeline import export_model

pytestmark = [pytest.mark.hub, pytest.mark.filterwarnings("default")]

MODEL = os.environ.get("MODEL", "roberta-large")


def given(variable):
    """Return the path in an environment variable, or skip the test."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} names no file; see the top of this module")
    return path


def load_json(variable):
    return json.loads(Path(given(variable)).read_bytes())


@pytest.fixture(scope="session", autouse=True)
def _hub():
    """Skip where the hub is out of reach."""
    from huggingface_hub import HfApi

    try:
        HfApi().model_info("roberta-large", timeout=10)
    except Exception as error:
        pytest.skip(f"no model hub within reach: {type(error).__name__}")


@pytest.fixture(scope="session")
def exported():
    """Return a function that exports a model into the home folder, once."""
    done = set()

    def export(model, num_layers, tokenizer_mode="slow"):
        if (model, num_layers, tokenizer_mode) not in done:
            export_model(model, num_layers=num_layers, tokenizer_mode=tokenizer_mode)
            done.add((model, num_layers, tokenizer_mode))

    return export


def test_scores_equal_those_of_bert_scores_own_tests(exported):
    published = load_json("PUBLISHED")
    for case in published["cases"]:
        options = dict(case["kwargs"])
        language_only = "model_type" not in options
        model = "allenai/scibert_scivocab_uncased" if language_only else options["model_type"]
        mode = "fast" if options.get("use_fast_tokenizer") else "slow"
        exported(model, 8 if language_only else options["num_layers"], mode)
        scores, _ = score(published["cands"], published["refs"], **{**options, "return_hash": True})
        expected = np.array([case["P"], case["R"], case["F"]])
        assert np.abs(np.stack(scores) - expected).max() < 1e-4, case["name"]


def test_the_best_of_several_references_is_as_published(exported):
    demo = load_json("PUBLISHED")["extra"]["multi_ref_demo"]
    exported("roberta-large", 17)
    scores = score([demo["cand"]], [demo["refs"]], lang="en", rescale_with_baseline=True)
    assert scores.F[0] == pytest.approx(demo["F_rescaled_4dp"], abs=1e-4)


def test_the_correlation_with_human_judgement_is_as_published(exported):
    published = load_json("PEARSON")[MODEL]
    assert mean_pearson(exported, published["layer"]) == pytest.approx(
        float(published["comment"]), abs=1e-3
    )


def mean_pearson(exported, num_layers):
    """Return Pearson's correlation of F with the human scores, averaged over the language pairs
    into English.
    """
    segments = defaultdict(list)
    with gzip.open(given("WMT16"), "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["lang_pair"].endswith("-en"):
                segments[row["lang_pair"]].append(
                    (row["candidate"], row["reference"], float(row["human_score"]))
                )
    exported(MODEL, num_layers)
    correlations = []
    with BERTScorer(MODEL, num_layers=num_layers) as scorer:
        for rows in segments.values():
            candidates, references, human = zip(*rows, strict=True)
            correlations.append(np.corrcoef(scorer.score(candidates, references).F, human)[0, 1])
    return np.mean(correlations)
