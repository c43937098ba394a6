"""What `bertscore-onnx score` adds to a mean F1."""

import shutil

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


@pytest.mark.parametrize(
    ("f1", "share"), [(0.85, "90.0 % of"), (0.95, "all"), (0.89999, "99.9 % of"), (0.1, "0.0 % of")]
)
def test_where_unrelated_pairs_are_known_the_score_has_a_rank_among_them(scorer_with, f1, share):
    assert interpretation(scorer_with(), f1, QUANTILES, None) == [
        f"An F1 of {f1:.4f} is higher than that of {share} unrelated pairs; half of these get less than 0.6500, and "
        "99 % less than 0.8950."
    ]


@pytest.mark.parametrize(
    ("baselines", "lang", "large_size", "ends"),
    [
        ({"en": HIGH, "zh": HIGH}, None, 64, ["like yours get:", "score ... --rescale-with-baseline --lang en", " en"]),
        ({"en": HIGH, "zh": HIGH}, "ZH", 64, ["like yours get:", "--lang zh", "--corpus FILE --into-bundle zh"]),
        ({"en": HIGH}, "de", 64, ["First measure it, then rescale:", "--into-bundle de", "--lang de"]),
        ({}, None, 32, ["First measure it, then rescale:", "--into-bundle CODE", "--lang CODE"]),
    ],
)
def test_a_high_score_of_a_model_with_a_high_baseline_gets_two_commands(
    scorer_with, monkeypatch, baselines, lang, large_size, ends
):
    monkeypatch.setattr("bertscore_onnx.cli.score.LARGE_SIZE", large_size)  # the tiny model's size is 32
    scorer = scorer_with(baselines)
    note, *commands = interpretation(scorer, 0.85, None, lang)
    assert [line.endswith(end) for line, end in zip([note, *commands], ends, strict=True)] == [True] * 3
    assert ("0.83 on average" in note) == ("like yours" in ends[0])
    assert f"  bertscore-onnx baseline --model {scorer.bundle.path} " in "\n".join(commands)


@pytest.mark.parametrize(
    ("baselines", "f1", "large_size"),
    [({"en": HIGH}, 0.8, 64), ({"en": LOW}, 0.85, 64), ({}, 0.85, 64), ({"en": LOW}, 0.85, 32)],
)
def test_a_lower_score_and_a_model_whose_scores_mean_more_get_nothing(
    scorer_with, monkeypatch, baselines, f1, large_size
):
    monkeypatch.setattr("bertscore_onnx.cli.score.LARGE_SIZE", large_size)
    assert interpretation(scorer_with(baselines), f1, None, None) == []


def test_rescaled_scores_get_nothing(scorer_with):
    scorer = scorer_with({"en": HIGH}, lang="en", rescale_with_baseline=True)
    assert interpretation(scorer, 0.85, None, "en") == []


@pytest.mark.parametrize(
    ("options", "times"), [((), 1), (("-s",), 1), (("-q",), 0), (("--json",), 0), (("--output-format", "jsonl"), 0)]
)
def test_it_is_printed_once_on_a_terminal_and_not_with_options_for_programs(
    run, score_on, scorer_with, write, options, times
):
    texts = write("texts.txt", "the cat\na dog\n")
    arguments = ["score", "-m", scorer_with({"en": HIGH}).bundle.path, "-c", texts, "-r", texts, *options]
    assert "unrelated" not in run(*arguments).stderr  # where there is no terminal
    score_on(terminal=True)
    shown = run(*arguments).stderr
    assert shown.count("gives unrelated texts a high F1") == times
    assert shown.count("bertscore-onnx baseline") == times
