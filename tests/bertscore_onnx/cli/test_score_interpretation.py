"""What `bertscore-onnx score` adds to a mean F1."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.catalogue import Baseline
from bertscore_onnx.cli.score import Means, interpretation
from bertscore_onnx.scores import Score
from tests.support.manifests import changed_copy

pytestmark = pytest.mark.slow

HIGH, LOW = Baseline(0.83, 0.83, 0.83), Baseline(0.4, 0.4, 0.4)
QUANTILES = np.linspace(0.4, 0.9, 101)


@pytest.fixture
def scorer_with(tiny_bundle, tmp_path):
    made = []

    def make(baselines=None, **fields):
        changed = {code: [baseline] for code, baseline in (baselines or {}).items()}
        bundle = changed_copy(tiny_bundle, tmp_path / f"bundle-{len(made)}", baselines=changed)
        made.append(BERTScorer(bundle, device="cpu", **fields))
        return made[-1]

    yield make
    for scorer in made:
        scorer.close()


def means_of(*f1, unrelated=None):
    means = Means(unrelated)
    for one in f1:
        means.add(Score(one, one, one, 0))
    return means


def test_where_unrelated_pairs_are_known_pairs_above_them_are_counted(scorer_with):
    # a mean alone would hide the fourth
    means = means_of(0.8949, 0.8951, 0.99, 0.1, unrelated=QUANTILES)
    assert interpretation(scorer_with(), means, QUANTILES, None) == [
        "50.0% of the pairs have an F1 above 0.8950, which 99 % of unrelated pairs do not "
        "exceed; half of these get less than 0.6500."
    ]
    layers = np.stack([QUANTILES, QUANTILES + 0.1])
    means = Means(layers)
    means.add(Score(*np.full((3, 2), 0.95), [0, 0]))
    assert means.above_unrelated() == [1, 0]


@pytest.mark.parametrize(
    ("baselines", "lang", "large_size", "ends"),
    [
        (
            {"en": HIGH, "zh": HIGH},
            None,
            64,
            ["like yours get:", "score ... --rescale-with-baseline --lang en", " en"],
        ),
        (
            {"en": HIGH, "zh": HIGH},
            "ZH",
            64,
            ["like yours get:", "--lang zh", "--corpus FILE --into-bundle zh"],
        ),
        (
            {"en": HIGH},
            "de",
            64,
            ["First measure it, then rescale:", "--into-bundle de", "--lang de"],
        ),
        ({}, None, 32, ["First measure it, then rescale:", "--into-bundle CODE", "--lang CODE"]),
    ],
)
def test_a_high_score_of_a_model_with_a_high_baseline_gets_two_commands(
    scorer_with, monkeypatch, baselines, lang, large_size, ends
):
    # the tiny model's size is 32
    monkeypatch.setattr("bertscore_onnx.cli.score.LARGE_SIZE", large_size)
    scorer = scorer_with(baselines)
    note, *commands = interpretation(scorer, means_of(0.85), None, lang)
    assert [line.endswith(end) for line, end in zip([note, *commands], ends, strict=True)] == [
        True
    ] * 3
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
    assert interpretation(scorer_with(baselines), means_of(f1), None, None) == []


def test_rescaled_scores_get_nothing(scorer_with):
    scorer = scorer_with({"en": HIGH}, lang="en", rescale_with_baseline=True)
    assert interpretation(scorer, means_of(0.85), None, "en") == []


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ((), 1),
        (("-s",), 1),
        (("-q",), 0),
        (("--format", "json"), 0),
        (("--format", "jsonl"), 0),
    ],
)
def test_it_is_printed_once_on_a_terminal_and_not_with_options_for_programs(
    run, score_on, scorer_with, write, options, times
):
    texts = write("texts.txt", "the cat\na dog\n")
    arguments = [
        "score",
        "-m",
        scorer_with({"en": HIGH}).bundle.path,
        "-c",
        texts,
        "-r",
        texts,
        *options,
    ]
    assert "unrelated" not in run(*arguments).stderr  # where there is no terminal
    score_on(terminal=True)
    shown = run(*arguments).stderr
    assert shown.count("gives unrelated texts a high F1") == times
    assert shown.count("bertscore-onnx baseline") == times
