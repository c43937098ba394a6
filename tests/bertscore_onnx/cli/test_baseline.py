import json

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.baselines import compute_baseline
from bertscore_onnx.bundle.bundle import read_manifest
from tests.support.scores import WORDS

RNG = np.random.default_rng(2)
TEXTS = [" ".join(RNG.choice(WORDS.split(), size=6)) for _ in range(220)]
CORPUS = "\n".join([*TEXTS[:40], "", *TEXTS[40:], "the " * 40]) + "\n"


@pytest.fixture
def corpus(write):
    return write("corpus.txt", CORPUS)


@pytest.fixture
def measure(run, bundle, corpus):
    def measure(*options, model=bundle):
        return run("baseline", "--model", model, "--corpus", corpus, *options)

    return measure


@pytest.fixture
def expected(bundle):
    with BERTScorer(bundle, device="cpu") as scorer:
        return compute_baseline(scorer, TEXTS)


def test_standard_output_is_the_baseline_file_and_the_standard_error_is_reported(measure, expected):
    result = measure()
    assert result.stdout == expected.to_csv()
    assert result.stderr.startswith(
        "110 pairs; the largest standard error of a mean is "
        f"{expected.largest_standard_error:.1e}; "
    )
    assert measure("-q").stderr == ""


def test_every_layer_of_a_bundle_of_all_is_measured(measure, all_layers_bundle):
    lines = measure(model=all_layers_bundle).stdout.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["LAYER", "0", "1", "2", "3"]


def test_json_is_the_librarys_with_pairs_seed_and_words_as_options(measure, bundle, expected):
    assert json.loads(measure("--format", "json").stdout) == json.loads(expected.to_json())
    content = json.loads(
        measure("--pairs", "10", "--seed", "3", "--max-words", "50", "--format", "json").stdout
    )
    with BERTScorer(bundle, device="cpu") as scorer:
        other = compute_baseline(scorer, CORPUS.splitlines(), num_pairs=10, seed=3, max_words=50)
    assert content == json.loads(other.to_json())


def test_into_the_bundle_it_rescales_and_counts_pairs_above_it(
    measure, run_json, bundle, write, expected
):
    before = read_manifest(bundle).digest
    result = measure("--into-bundle", "en")
    after = read_manifest(bundle)
    assert result.stdout == expected.to_csv()
    assert after.digest != before
    assert f"now has the baseline of en; its digest is {after.digest[:12]}" in result.stderr
    files = "-c", write("c.txt", "the cat\n"), "-r", write("r.txt", "a cat\n")
    content = run_json("score", "-m", bundle, *files)
    assert content["f1_above_unrelated"] in (0, 1)
    rescaled = run_json("score", "-m", bundle, *files, "--rescale-with-baseline", "--lang", "en")
    assert "|rescale:en|" in rescaled["signature"]
    assert "replacing the previous one" in measure("--into-bundle", "en").stderr


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", [], "is empty; expected texts"),
        ("the cat\n" * 10, [], "All pairs score 1"),
        (b"a\nb\xff\nc\nd\n", [], "is not UTF-8: line 2"),
        (CORPUS, ["--into-bundle", "english"], "expected a language code"),
    ],
)
def test_what_cannot_be_measured_is_refused_and_changes_nothing(
    refused, bundle, write, tmp_path, content, options, message
):
    before = (bundle / "bertscore.json").read_bytes()
    into = [] if "--into-bundle" in options else ["--into-bundle", "en"]
    arguments = ["baseline", "--model", bundle, "--corpus", write("bad.txt", content), *into]
    assert message in refused(*arguments, *options, "-o", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    assert (bundle / "bertscore.json").read_bytes() == before


def test_a_file_that_cannot_be_written_is_named_before_the_work(refused, bundle, tmp_path, corpus):
    arguments = ["baseline", "--model", bundle, "--corpus", corpus, "-o"]
    before = (bundle / "bertscore.json").read_bytes()
    assert "Cannot write" in refused(*arguments, tmp_path / "none" / "out.csv")
    assert "is one of the files to read" in refused(*arguments, corpus)
    assert "is in the folder of a bundle" in refused(*arguments, bundle / "bertscore.json")
    assert (corpus.read_text(), (bundle / "bertscore.json").read_bytes()) == (CORPUS, before)
