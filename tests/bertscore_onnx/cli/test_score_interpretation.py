"""What is told of a mean F1."""

import os
import shutil
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.catalogue import Baseline
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.cli.score import interpretation

pytestmark = pytest.mark.slow

HIGH, LOW = Baseline(0.83, 0.83, 0.83), Baseline(0.4, 0.4, 0.4)
QUANTILES = np.linspace(0.4, 0.9, 101)


@pytest.fixture
def scorer_with(tiny_bundle, tmp_path):
    """Return a function that makes a scorer of a bundle with these baselines."""
    made = []

    def make(baselines=None, **fields):
        bundle = shutil.copytree(tiny_bundle, tmp_path / f"bundle-{len(made)}")
        changed = {code: [baseline] for code, baseline in (baselines or {}).items()}
        write_manifest(bundle, msgspec.structs.replace(read_manifest(bundle), baselines=changed))
        made.append(BERTScorer(bundle, device="cpu", **fields))
        return made[-1]

    yield make
    for scorer in made:
        scorer.close()


@pytest.fixture
def large(monkeypatch):
    """Let the tiny model's size be that of a large one."""
    monkeypatch.setattr("bertscore_onnx.cli.score.LARGE_SIZE", 32)


def test_where_unrelated_pairs_are_known_it_is_told_where_the_score_stands(scorer_with):
    assert interpretation(scorer_with(), 0.85, QUANTILES, None) == [
        "An F1 of 0.8500 is higher than that of 90.0 % of unrelated pairs; half of these get less than 0.6500, and "
        "99 % less than 0.8950."
    ]


@pytest.mark.parametrize(("f1", "share"), [(0.95, "all"), (0.89999, "99.9 % of"), (0.1, "0.0 % of")])
def test_only_what_is_higher_than_all_is_said_to_be(scorer_with, f1, share):
    assert f"is higher than that of {share} unrelated pairs" in interpretation(scorer_with(), f1, QUANTILES, None)[0]


def test_a_high_score_of_a_model_with_a_high_baseline_gets_two_commands(scorer_with):
    scorer = scorer_with({"en": HIGH, "zh": HIGH})
    note, rescale, measure = interpretation(scorer, 0.85, None, None)
    assert note.startswith("This model gives unrelated texts a high F1 too: 0.83 on average (en).")
    assert rescale == "  bertscore-onnx score ... --rescale-with-baseline --lang en"
    assert measure == f"  bertscore-onnx baseline --model {scorer.bundle.path} --corpus FILE --into-bundle en"


def test_the_language_of_the_texts_is_taken_where_it_has_a_baseline(scorer_with):
    assert interpretation(scorer_with({"en": HIGH, "zh": HIGH}), 0.85, None, "ZH")[1].endswith("--lang zh")


def test_a_language_without_a_baseline_is_measured_first(scorer_with):
    note, measure, rescale = interpretation(scorer_with({"en": HIGH}), 0.85, None, "de")
    assert "First measure it" in note
    assert measure.endswith("--into-bundle de")
    assert rescale.endswith("--lang de")


def test_a_large_model_without_baselines_gets_the_commands_too(scorer_with, large):
    assert len(interpretation(scorer_with(), 0.85, None, None)) == 3


@pytest.mark.parametrize(("baselines", "f1"), [({"en": HIGH}, 0.8), ({"en": LOW}, 0.85), ({}, 0.85)])
def test_a_lower_score_and_a_model_whose_scores_say_more_get_nothing(scorer_with, baselines, f1):
    assert interpretation(scorer_with(baselines), f1, None, None) == []


def test_a_known_low_baseline_counts_more_than_the_size(scorer_with, large):
    assert interpretation(scorer_with({"en": LOW}), 0.85, None, None) == []


def test_rescaled_scores_get_nothing(scorer_with):
    scorer = scorer_with({"en": HIGH}, lang="en", rescale_with_baseline=True)
    assert interpretation(scorer, 0.85, None, "en") == []


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of POSIX")
@pytest.mark.parametrize(
    ("options", "times"), [((), 1), (("-s",), 1), (("-q",), 0), (("--json",), 0), (("--output-format", "jsonl"), 0)]
)
def test_it_is_told_once_on_a_terminal_and_not_with_options_for_programs(scorer_with, write, options, times):
    import pty

    bundle = scorer_with({"en": HIGH}).bundle.path
    texts = write("texts.txt", "the cat\na dog\n")
    command = [sys.executable, "-m", "bertscore_onnx", "score", "-m", bundle, "-c", texts, "-r", texts, *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    terminal, end = pty.openpty()
    try:
        subprocess.run(command, stdout=subprocess.PIPE, stderr=end, env=environment, timeout=60, check=True)
        os.close(end)
        told = read_all(terminal)
    finally:
        os.close(terminal)
    assert told.count("gives unrelated texts a high F1") == times
    assert told.count("bertscore-onnx baseline") == times


def test_it_is_not_told_elsewhere(run, scorer_with, write):
    texts = write("texts.txt", "the cat\n")
    result = run("score", "-m", scorer_with({"en": HIGH}).bundle.path, "-c", texts, "-r", texts)
    assert (result.exit_code, result.stderr) == (0, "")


def read_all(terminal):
    """Return what was written to a terminal whose other end is closed."""
    content = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the end, on Linux
            break
        if not part:
            break
        content += part
    return content.decode()
