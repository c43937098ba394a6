"""`score()` keeps the models of the last settings, and gives what a new scorer gives."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bertscore_onnx import BERTScorer, score
from bertscore_onnx.errors import (
    BertScoreOnnxError,
    ClosedError,
    DigestError,
    UnknownModelError,
)
from tests.support.processes import forks, in_forked_child, run_python
from tests.support.scores import CANDIDATES, REFERENCES, largest_difference


@pytest.fixture(autouse=True)
def _without_models():
    score.clear()
    yield
    score.clear()


def test_calls_with_the_same_settings_load_the_model_once(loaded, tiny_bundle):
    for candidate, reference in zip(CANDIDATES, REFERENCES, strict=True):
        score([candidate], [reference], tiny_bundle)
    assert len(loaded) == 1
    loaded[0].get()
    score.clear()
    with pytest.raises(ClosedError, match="was closed"):
        loaded[0].get()
    score(["a cat"], ["the cat"], tiny_bundle)
    assert len(loaded) == 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"idf": True},
        {"idf": True, "idf_sents": REFERENCES},
        {"idf": dict.fromkeys(range(30), 2.0)},
        {"rescale_with_baseline": True},
    ],
)
def test_scores_are_those_of_a_new_scorer_after_other_calls(
    loaded, tiny_bundle, baseline_path, options
):
    if "rescale_with_baseline" in options:
        options = {**options, "baseline_path": baseline_path}
    score(
        CANDIDATES,
        REFERENCES,
        tiny_bundle,
        idf=True,
        rescale_with_baseline=True,
        baseline_path=baseline_path,
    )
    scores, line = score(CANDIDATES, REFERENCES, tiny_bundle, return_hash=True, **options)
    assert len(loaded) == 1
    with BERTScorer(tiny_bundle, **options) as scorer:
        assert largest_difference(scores, scorer.score(CANDIDATES, REFERENCES)) == pytest.approx(
            0, abs=1e-6
        )
        assert line == scorer.hash


def test_the_models_of_the_last_two_settings_are_kept(loaded, tiny_bundle, all_layers_bundle):
    def one(**options):
        score(["a cat"], ["the cat"], tiny_bundle, **options)

    one()
    score(["a cat"], ["the cat"], all_layers_bundle, all_layers=True)
    one()
    assert len(loaded) == 2
    one(nthreads=1)  # puts out the second
    one()
    assert len(loaded) == 3
    score(["a cat"], ["the cat"], all_layers_bundle, all_layers=True)
    assert len(loaded) == 4


def test_a_bundle_that_was_replaced_is_loaded_again(tiny_bundle, all_layers_bundle, tmp_path):
    place = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, place)
    before = score(["a cat"], ["the dog sat"], place, return_hash=True)
    shutil.rmtree(place)
    with pytest.raises(BertScoreOnnxError):
        score(["a cat"], ["the dog sat"], place)
    shutil.copytree(all_layers_bundle, place)
    after = score(["a cat"], ["the dog sat"], place, all_layers=True)
    assert after.F.shape == (4, 1)
    shutil.rmtree(place)
    shutil.copytree(tiny_bundle, place)
    assert score(["a cat"], ["the dog sat"], place, return_hash=True)[1] == before[1]
    with (place / "model.onnx").open("ab") as graph:
        graph.write(b"0")
    with pytest.raises(DigestError):
        score(["a cat"], ["the dog sat"], place)


def test_a_relative_path_is_that_of_the_working_directory(
    loaded, tiny_bundle, tmp_path, monkeypatch
):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        shutil.copytree(tiny_bundle, tmp_path / name / "bundle")
        monkeypatch.chdir(tmp_path / name)
        score(["a cat"], ["the cat"], "bundle")
    assert len(loaded) == 2


def test_the_store_may_change(home, monkeypatch, tiny_bundle):
    shutil.copytree(tiny_bundle, home / "bundles" / "tiny-bert" / "layer-2-slow-fp32")
    score(["a cat"], ["the cat"], "tiny-bert", num_layers=2)
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(home / "elsewhere"))
    with pytest.raises(UnknownModelError):
        score(["a cat"], ["the cat"], "tiny-bert", num_layers=2)


def test_threads_load_the_model_once(loaded, tiny_bundle):
    start = threading.Barrier(8)

    def one(_):
        start.wait()
        return score(CANDIDATES, REFERENCES, tiny_bundle).F

    with ThreadPoolExecutor(8) as threads:
        results = [*threads.map(one, range(8))]
    assert len(loaded) == 1
    assert all(np.array_equal(result, results[0]) for result in results)


@pytest.mark.slow  # it loads the model again and again
def test_clearing_while_others_score_loses_nothing(tiny_bundle):
    expected = score(CANDIDATES, REFERENCES, tiny_bundle).F
    done = threading.Event()

    def clear():
        while not done.is_set():
            score.clear()

    clearing = threading.Thread(target=clear)
    clearing.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            results = [
                *threads.map(lambda _: score(CANDIDATES, REFERENCES, tiny_bundle).F, range(16))
            ]
    finally:
        done.set()
        clearing.join()
    assert all(np.array_equal(result, expected) for result in results)


@forks
def test_a_forked_child_scores_too(tiny_bundle):
    expected = score(["a cat"], ["the dog sat"], tiny_bundle).F[0]
    found = in_forked_child(lambda: float(score(["a cat"], ["the dog sat"], tiny_bundle).F[0]))
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_missing_model_is_refused_and_displaces_no_other(loaded, tiny_bundle, home):
    for name in ("nothing", "of", "these", "these"):
        score(["a cat"], ["the cat"], tiny_bundle)
        with pytest.raises(UnknownModelError):
            score(["a cat"], ["the cat"], name, num_layers=1)
    assert len(loaded) == 1


AT_EXIT = """
import atexit, sys

def report():
    try:
        score(["a cat"], ["the cat"], sys.argv[1], matching=matching)
    except Exception as error:
        print(type(error).__name__, error)

atexit.register(report)  # before the import, so that it runs after the library's own
from bertscore_onnx import Matching, score
matching = Matching(**eval(sys.argv[2]))
"""


def test_loading_after_the_exit_has_begun_is_refused(tiny_bundle):
    ended = run_python(AT_EXIT, tiny_bundle, {"words": ["the"]})
    assert ended.stdout.startswith("ClosedError Python is exiting"), ended.stderr
