"""`examples/triton_client.py` scores with a repository by `triton_repository.py`, served by a fake
Triton.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from triton_repository import write_repository

from bertscore_onnx import BERTScorer, count_documents
from bertscore_onnx.bundle.catalogue import Baseline
from tests.examples.conftest import EXAMPLES
from tests.support.manifests import changed_copy

pytestmark = pytest.mark.integration
CLIENT = """
import json, sys
import triton_client
from triton_stand_in import serving
with serving(sys.argv.pop(1)) as (url, server):
    sys.argv += ["--url", url]
    try:
        triton_client.main()
    except SystemExit as error:
        print(error)
print(json.dumps(server.shapes))
"""


@pytest.fixture
def texts():
    """Lines of two files: the examples, some empty or too long, and more than one batch of a
    width.
    """
    candidates, references = (
        (EXAMPLES / f"{name}.txt").read_text().splitlines() for name in ("candidates", "references")
    )
    candidates += ["", "  A dog ran. ", "\ta b", "dog " * 600, *["It is cold."] * 70]
    references += [
        "It was late.",
        "",
        "A dog ran.",
        "the dog " * 400,
        *["It is very cold today."] * 70,
    ]
    return candidates, references


@pytest.fixture
def run_client(run, tmp_path):
    """Score two lists of lines with a model repository; return the printed lines and the shapes of
    the requests.
    """

    def run_client(repository, bundle, texts, *options):
        for name, lines in zip(("candidates.txt", "references.txt"), texts, strict=True):
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        path = os.pathsep.join([str(EXAMPLES), str(Path(__file__).parent)])
        arguments = [repository, bundle, "candidates.txt", "references.txt", *options]
        *printed, shapes = run(
            "tritonclient", "python", "-c", CLIENT, *arguments, PYTHONPATH=path
        ).splitlines()
        return printed, json.loads(shapes)

    return run_client


def numbers(printed):
    return np.array([line.split("\t") for line in printed], dtype=np.float64).T


@pytest.mark.filterwarnings("ignore")
def test_scores_are_those_of_the_scorer(run_client, texts, minilm_scoring_bundle, tmp_path):
    write_repository(str(minilm_scoring_bundle), tmp_path / "models")
    printed, shapes = run_client(tmp_path / "models", minilm_scoring_bundle, texts)
    with BERTScorer(minilm_scoring_bundle) as scorer:
        np.testing.assert_allclose(numbers(printed), scorer.score(*texts), atol=1e-5)
    sizes, widths = np.array(shapes).T
    assert sizes.max() == 64
    assert sizes.sum() == len(texts[0])
    assert set(widths) <= {*range(8, 33, 8), 512}


@pytest.mark.filterwarnings("ignore")
def test_rescaled_scores_by_idf(run_client, texts, scoring_bundle, tmp_path):
    baselines = {"en": [Baseline(0.3, 0.4, 0.5)]}
    bundle = changed_copy(scoring_bundle, tmp_path / "bundle", baselines=baselines, max_length=30)
    counts = count_documents(texts[1], bundle)
    counts.save(tmp_path / "counts.json")
    write_repository(str(bundle), tmp_path / "models", "idf", tmp_path / "counts.json")
    printed, shapes = run_client(
        tmp_path / "models", bundle, texts, "--name", "idf", "--lang", "en"
    )
    with BERTScorer(bundle, idf=counts, rescale_with_baseline=True, lang="en") as scorer:
        np.testing.assert_allclose(numbers(printed), scorer.score(*texts), atol=1e-5)
    # and none beyond the longest that the model takes
    assert {width for _, width in shapes} == {8, 16, 24, 30}


def test_another_model_or_bundle_or_number_of_texts_is_refused(
    run_client, minilm_scoring_bundle, scoring_bundle, tmp_path
):
    write_repository(str(minilm_scoring_bundle), tmp_path / "models")
    for bundle, texts, options, message in (
        (
            scoring_bundle,
            (["a"], ["b"]),
            [],
            "Pass the bundle that was passed to triton_repository.py",
        ),
        (minilm_scoring_bundle, (["a"], ["b"]), ["--name", "other"], "unknown model: other"),
        (minilm_scoring_bundle, (["a"], ["b"]), ["--lang", "en"], "has no baseline for 'en'"),
        (minilm_scoring_bundle, (["a"], ["b", "c"]), [], "differ in their number of lines"),
    ):
        [printed], _ = run_client(tmp_path / "models", bundle, texts, *options)
        assert message in printed


def test_no_lines_give_no_scores(run_client, scoring_bundle, tmp_path):
    write_repository(str(scoring_bundle), tmp_path / "models")
    assert run_client(tmp_path / "models", scoring_bundle, ([], [])) == ([], [])
