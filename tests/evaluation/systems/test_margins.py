"""Bounds of how much worse a system may be, and what a margin says by them."""

import pickle
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError, plural
from bertscore_onnx_evaluation import SegmentMeans, SummedStatistics, compare
from bertscore_onnx_evaluation.metric_scores import score_systems
from bertscore_onnx_evaluation.systems.margins import MarginBounds, margin_bounds
from bertscore_onnx_evaluation.systems.metric_results import margin_result
from bertscore_onnx_evaluation.systems.paired_tests import paired_permutation
from bertscore_onnx_evaluation.systems.verdicts import MetricResult, SystemResult, verdict
from bertscore_onnx_evaluation.table import latex_text
from tests.evaluation.simulations import LOSSES
from tests.support.scores import WORDS


def against_perfect(losses, worst=1.0):
    losses = np.atleast_2d(losses)
    return SegmentMeans([np.full(losses.shape[1], worst), *(worst - losses)])


@pytest.mark.parametrize(
    ("lost", "segments", "claims"), [(0, 50, 1), (0, 1000, 3), (3, 60, 1), (20, 400, 10)]
)
def test_of_losses_of_0_and_1_it_is_clopper_and_pearsons(lost, segments, claims):
    [bound] = margin_bounds(
        against_perfect(np.arange(segments) < lost), claims, score_range=(0, 1)
    ).loss
    assert bound == pytest.approx(
        stats.beta.ppf(1 - 0.025 / claims, lost + 1, segments - lost), rel=0.06
    )


def test_the_bound_is_that_of_a_plain_loop():
    rng = np.random.default_rng(5)
    base, new = rng.normal(0.6, 0.1, (2, 30))
    documents = np.arange(30) // np.array([1, 2, 3])[np.arange(30) % 3]
    _, documents = np.unique(documents, return_inverse=True)
    metric = SegmentMeans([base, new])
    weights = np.random.default_rng(3)
    sizes = np.bincount(documents)
    losses = np.bincount(documents, base - new)
    order = sorted(range(len(sizes)), key=lambda unit: (sizes[unit], losses[unit]))
    draws = []
    for _ in range(10_000):
        drawn = weights.standard_exponential(len(sizes) + 1)
        *of_units, of_worst = drawn * [*sizes[order], max(sizes)]
        total = sum(
            weight * losses[unit] / sizes[unit]
            for weight, unit in zip(of_units, order, strict=True)
        )
        draws.append((total + of_worst * (1.5 - 0.1)) / (sum(of_units) + of_worst))
    [bound] = margin_bounds(metric.by_document(documents), 1, score_range=(0.1, 1.5), seed=3).loss
    assert bound == pytest.approx(sorted(draws)[int(np.ceil(0.975 * 10_001)) - 1], rel=1e-12)


def test_a_higher_score_never_turns_a_pass_into_a_failure():
    rng = np.random.default_rng(1)
    for _ in range(500):
        segments, is_lower = int(rng.integers(5, 60)), rng.random() < 0.5
        base = (
            rng.integers(0, 6, segments) / 5
            if rng.random() < 0.5
            else rng.normal(0.5, 0.3, segments)
        )
        new = base + rng.choice([0, -0.2, 0.2], segments, p=[0.8, 0.12, 0.08])
        documents = rng.integers(0, 6, segments) if segments > 20 else np.arange(segments)
        _, documents = np.unique(documents, return_inverse=True)
        raised = new.copy()
        raised[rng.integers(segments)] += rng.exponential(0.5) * (-1 if is_lower else 1)
        before, after = (
            margin_bounds(
                SegmentMeans([base, scores], lower_is_better=is_lower).by_document(documents),
                1,
                score_range=(-5, 5),
            ).loss[0]
            for scores in (new, raised)
        )
        assert after <= before + 1e-12


def test_the_order_of_segments_changes_no_bit():
    rng = np.random.default_rng(2)
    scores = np.rint(rng.normal(size=(4, 80)) * 5) / 5
    order = rng.permutation(80)
    one, other = (
        margin_bounds(SegmentMeans(matrix), 3, score_range=(-9, 9))
        for matrix in (scores, scores[:, order])
    )
    assert (one.loss.tolist(), one.gain.tolist()) == (other.loss.tolist(), other.gain.tolist())


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([0.5, 0.1, 0.2], {}, "Add score_range=["),
        (
            [0.5, 0.1, 0.79],
            {"score_range": (0.2, 1)},
            "new has the score 0.1 for segment 2; expected 0.2 to 1.",
        ),
        (
            [[0.5, 0.1, 0.2], [0.5, 0.1, 1.3]],
            {"score_range": (0, 1), "lower_is_better": ["score"]},
            "new has the score 1.3 for segment 3; expected 0 to 1.",
        ),
        ([0.5, 0.1, 0.2], {"score_range": (0, float("inf"))}, "the lowest and the highest score"),
        ([0.5, 0.1, 0.2], {"score_range": (1, 0)}, "the lowest and the highest score"),
        ([0.5, 0.1, 0.2], {"score_range": (0, 1), "margin": None}, "and a margin"),
    ],
)
def test_a_margin_needs_the_range_of_the_scores(scores, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        compare(scores={"old": [0.9, 0.8, 0.85], "new": scores}, **{"margin": 0.1} | options)


def test_of_a_corpus_score_no_range_can_be_stated():
    texts = {"old": ["the cat sat on the mat"] * 30, "new": ["the cat sat on a mat"] * 30}
    found = compare(texts, texts["old"], metrics=["bleu"], margin=90)
    assert "(97.5 % each, Gaffke's bounds, no guarantee for BLEU)" in " ".join(
        found.table().split()
    )
    assert found.regressions == []
    with pytest.raises(InputError, match="no mean of scores"):
        compare(texts, texts["old"], metrics=["bleu"], margin=90, score_range=(0, 1))


@pytest.mark.filterwarnings("ignore:1 pair scores 0")
def test_rescaled_scores_bring_what_an_empty_text_scores(tiny_bundle, baseline_path):
    references = ["the cat sat on the mat", "the dog sat", "a house"] * 12
    texts = {"old": references, "new": ["", *references[1:]]}
    with BERTScorer(tiny_bundle, baseline_path=baseline_path, rescale_with_baseline=True) as scorer:
        by_texts = compare(texts, references, scorer=scorer, margin=5)
        scores = {name: scorer.score(of_system, references) for name, of_system in texts.items()}
        [raw] = scorer.with_rescaling().score([""], ["a house"]).worst.F
    worst = float(scores["new"].F[0])
    assert worst < raw == 0
    for found in (by_texts, compare(scores=pickle.loads(pickle.dumps(scores)), margin=5)):
        assert found.metrics[0].score_range == (worst, 1)
        assert found.metrics[0].systems[1].largest_loss > -worst / 36
        assert found.regressions == []
        assert f"if all scores are from {worst:.9g} to 1)" in " ".join(found.notes)
    given = {name: of_system.F for name, of_system in scores.items()}
    with pytest.raises(InputError, match="score_range"):
        compare(scores=given, margin=5)


def test_no_sentence_stands_beside_a_number_that_refutes_it():
    rng, seen = np.random.default_rng(8), set()
    names, zeros = ("old", "new"), np.zeros((2, 30))
    for draw in range(5000):
        scale = 10.0 ** rng.integers(-3, 3)
        loss, gain = scale * rng.normal(0.3, 0.5), 0.0
        gain = scale * abs(rng.normal(0, 0.5)) - loss * (rng.random() < 0.5)
        margin = (
            float(
                abs(rng.choice([loss, gain]))
                * rng.choice([1 - 1e-5, 1 + 1e-5, rng.uniform(0.3, 2)])
            )
            or scale
        )
        margin = margin if draw % 3 else float(f"{margin:.2g}")
        loss = max(loss, -gain)
        judged = margin_result(margin, MarginBounds(np.array([loss]), np.array([gain])), 0)
        base, new = (SystemResult(name, scale) for name in names)
        new = replace(new, delta=-loss, p=0.5, p_holm=0.5, **judged)
        metric = MetricResult(
            "m", "", False, (base, new), (), zeros, margin, (30, "segment"), score_range=(-2, 60)
        )
        sentence = verdict(metric, new, "old").sentence
        [(words, level)] = re.findall(
            r"((?:Equivalent|At most|At least|Up to) .*) \((.*)\)\.$", sentence
        )
        assert (
            level
            == f"97.5 %{' each' * new.equivalent}, Gaffke's bound{'s' * new.equivalent}, if all scores are from -2 to 60"
        )
        numbers = [float(one) for one in re.findall(r"\d+\.\d+", words)]
        assert all(numbers)
        seen.add(re.sub(r"[\d.]+", "", words))
        if "not excluded" in words:
            assert numbers[0] > margin * (1 - 1e-9)
            assert not new.not_worse
        elif "less than" in words:
            assert numbers[0] < numbers[1] == pytest.approx(margin, rel=1e-8)
            assert new.not_worse
        elif "Equivalent" in words:
            assert all(number < numbers[0] for number in numbers[1:])
            assert new.equivalent
            assert ("and at most" in words.replace("worse and at most", "")) == (
                loss < 0 or gain < 0
            )
        elif "more than" in words:
            assert numbers[0] > numbers[1]
            assert -gain > margin
        else:
            assert words.startswith("At least")
            assert loss < 0
    assert len(seen) >= 7


def test_each_group_has_to_be_as_good_too():
    scores = np.random.default_rng(4).uniform(0.5, 1, 400)
    worse = np.where(np.arange(400) < 60, scores - 0.2, scores)
    groups = ["talks"] * 60 + ["news"] * 340
    options = {"by": groups, "margin": 0.08, "score_range": (0.2, 1)}
    found = compare(scores={"old": scores, "new": worse}, **options, higher_is_better=["score"])
    news, talks = found.metrics[0].groups
    assert found.metrics[0].systems[1].not_worse
    assert (news.systems[1].not_worse, talks.systems[1].not_worse) == (True, False)
    assert [one.partition(":")[0] for one in found.regressions] == ["score, talks"]
    level = r"\(97\.5 % for all 2, Gaffke's bound, if all scores are from 0\.2 to 1\)\."
    [sentence] = re.findall(
        rf"talks: new: At least 0\.1\d+ worse than old, more than 0\.0800 {level}",
        found.regressions[0],
    )
    assert all(sentence in " ".join(found.table(form).split()) for form in ("text", "tsv"))
    assert latex_text(sentence) in found.table("latex")
    assert all(sentence in words for words in (found.methods, " ".join(found.to_dict()["notes"])))
    other = compare(scores={"old": scores, "new": worse}, **options, seed=2).metrics[0].groups[1]
    assert other.systems[1].largest_loss != talks.systems[1].largest_loss
    few = compare(
        scores={"old": scores, "new": scores},
        **options | {"by": ["a"] * 395 + ["b"] * 5},
        higher_is_better=["score"],
    )
    [sentence] = few.regressions
    assert re.search(
        r"score, b: new: Up to 0\.\d+ worse than old is not excluded: .* in 5 segments", sentence
    )


TOGETHER = 500
"""Systems whose bounds share their weights, which takes far less time."""


def rates_at_the_margin(name, segments, number, *, systems=1):
    """Return how often a loss, or a gain, as large as that of some of so many systems is excluded,
    which all differ by the same.
    """
    shape, found = LOSSES[name], []
    for start in range(0, number * systems, TOGETHER):
        rng = np.random.default_rng([segments, start])
        metric = against_perfect(shape.draw(rng, (TOGETHER, segments)), shape.worst)
        bounds = margin_bounds(metric, systems, score_range=(0, shape.worst))
        found += np.stack([bounds.loss < shape.mean, bounds.gain < -shape.mean], axis=1).tolist()
    is_excluded = np.reshape(found[: number * systems], (number, systems, 2))
    return is_excluded.any(axis=1).mean(axis=0)


def test_a_system_worse_by_the_margin_is_seldom_found_not_worse():
    assert max(rates_at_the_margin("0 or 1, 12 % lost, 7 % won", 100, 300)) <= 0.05


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("segments", "systems"), [(20, 1), (40, 1), (100, 1), (400, 1), (100, 3), (100, 10)]
)
@pytest.mark.parametrize("name", LOSSES)
def test_errors_at_the_margin_over_many_trials(name, segments, systems, record_property):
    found = rates_at_the_margin(name, segments, 2000 if systems == 1 else 600, systems=systems)
    for side, found_side in zip(("loss", "gain"), found, strict=True):
        row = f"{name}, {side}, {plural(systems, 'system')}"
        record_property(f"{row} | {segments} segments", f"{found_side:.3f}")
    assert max(found) <= 0.035


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [20, 40, 100, 400])
def test_errors_at_the_margin_of_rescaled_scores(segments, record_property):
    """One output in 100 is empty and scores far below 0, the others as the baseline's."""
    floor, worst, found = 0.83, -0.83 / 0.17, []
    for start in range(0, 2000, TOGETHER):
        rng = np.random.default_rng([segments, start])
        base = (rng.uniform(0.86, 0.98, segments) - floor) / (1 - floor)
        is_empty = rng.random((TOGETHER, segments)) < 0.01
        metric = SegmentMeans([base, *np.where(is_empty, worst, base)])
        true_loss = 0.01 * ((0.92 - floor) / (1 - floor) - worst)
        found += (margin_bounds(metric, 1, score_range=(worst, 1)).loss < true_loss).tolist()
    record_property(
        f"rescaled F, 1 % empty, 1 system | {segments} segments", f"{np.mean(found):.3f}"
    )
    assert np.mean(found) <= 0.035


def draw_documents(rng, sizes, number):
    """Draw losses of segments, of which 5 % of the documents lose all, and others a little,
    (number, segments).
    """
    fails = rng.random((number, len(sizes))) < 0.05
    return np.where(fails.repeat(sizes, axis=1), 1.0, rng.normal(0, 0.02, (number, sizes.sum())))


@pytest.mark.calibration
@pytest.mark.parametrize("name", ["equal", "Zipf"])
def test_errors_at_the_margin_by_documents(name, record_property):
    number = 150
    sizes = (
        np.full(number, 8)
        if name == "equal"
        else np.ceil(100 / np.arange(1, number + 1)).astype(int)
    )
    documents, found = np.arange(number).repeat(sizes), []
    for start in range(0, 2000, TOGETHER):
        losses = draw_documents(np.random.default_rng(start), sizes, TOGETHER)
        found += (
            margin_bounds(
                against_perfect(losses).by_document(documents), 1, score_range=(0, 1)
            ).loss
            < 0.05
        ).tolist()
    record_property(f"{name} | 5 % fail, 150 documents", f"{np.mean(found):.3f}")
    assert np.mean(found) <= 0.035


@pytest.mark.calibration
def test_errors_at_the_margin_in_any_group(record_property):
    shape, found = LOSSES["0 or 1, 12 % lost, 7 % won"], []
    for start in range(0, 2000, TOGETHER):
        passes = []
        for group, segments in enumerate((20, 60, 120, 300)):
            rng = np.random.default_rng([start, group])
            metric = against_perfect(shape.draw(rng, (TOGETHER, segments)), shape.worst)
            passes.append(margin_bounds(metric, 4, score_range=(0, shape.worst)).loss < shape.mean)
        found += np.any(passes, axis=0).tolist()
    record_property("four groups of 20 to 300 segments | not worse in any", f"{np.mean(found):.3f}")
    assert np.mean(found) <= 0.035


@cache
def corpora(name, rate, cut=0.0):
    """Return the corpus of 3,000 segments of two systems; the second changes more words, or cuts
    the last of some.
    """
    rng = np.random.default_rng(6)
    words = WORDS.split()
    references = [rng.choice(words, rng.integers(5, 30)).tolist() for _ in range(3000)]
    quality = rng.beta(2, 2, 3000)

    def changed(share):
        return [
            " ".join(rng.choice(words) if rng.random() < share * q else word for word in text)
            for text, q in zip(references, quality, strict=True)
        ]

    texts = [changed(0.5), changed(0.5 + rate)]
    if cut:
        texts[1] = [text.rsplit(" ", 1)[0] if rng.random() < cut else text for text in texts[0]]
    return score_systems({name: {}}, texts, [[" ".join(text) for text in references]] * 2)[
        name
    ].corpus


@pytest.mark.calibration
@pytest.mark.parametrize("rate", [0.02, 0.2])
@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_errors_at_the_margin_of_corpus_scores(name, rate, record_property):
    corpus = corpora(name, rate)
    [loss] = corpus.deltas(np.array([[0, 1]])) * (1 if corpus.lower_is_better else -1)
    rng, found = np.random.default_rng(1), []
    for _ in range(600):
        drawn = corpus.of_segments(rng.integers(3000, size=200))
        found.append(margin_bounds(drawn, 1, score_range=(0, 100)).loss[0] < loss)
    size = "small" if rate < 0.1 else "large"
    record_property(f"{name} | {size} difference, 200 segments", f"{np.mean(found):.3f}")
    assert isinstance(corpus, SummedStatistics)


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("case", "rate", "cut"),
    [
        ("small difference", 0.02, 0),
        ("large difference", 0.2, 0),
        ("a fifth lose the last word", 0, 0.2),
    ],
)
@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_intervals_of_corpus_scores_hold_the_difference(name, case, rate, cut, record_property):
    corpus, pair = corpora(name, rate, cut), np.array([[0, 1]])
    [delta] = corpus.deltas(pair)
    rng, found = np.random.default_rng(2), []
    for _ in range(600):
        drawn = paired_permutation(corpus.of_segments(rng.integers(3000, size=200)), num_swaps=1000)
        found.append(drawn.interval[0, 0] <= delta <= drawn.interval[0, 1])
    record_property(f"{name}, interval | {case}", f"{np.mean(found):.3f}")
    assert np.mean(found) >= 0.92
