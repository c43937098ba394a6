"""The scripts of `reproduce/` on small made-up data: each prints what plain loops in float64
give.
"""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from sacrebleu import BLEU, CHRF
from scipy.stats import mannwhitneyu, pearsonr

from reproduce import challenge_sets, darr, hybrid, labelled_pairs, perm_both, systems
from reproduce.tables import print_table

RNG = np.random.default_rng(8)
SYSTEMS = ("A", "B", "C", "D")
WORDS = [
    "a",
    "cat",
    "sat",
    "on",
    "the",
    "mat",
    "and",
    "saw",
    "two",
    "dogs",
    "near",
    "an",
    "old",
    "house",
]


@pytest.fixture
def table(capsys):
    """Run the `main` of a script, and return the cells that it prints by name."""

    def run(script, *arguments):
        assert script.main([*map(str, arguments)]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        return {name: cells for name, *cells in lines}

    return run


@pytest.fixture
def wmt_folder(tmp_path):
    """A folder in the layout of mt-metrics-eval, its human scores and those of two metrics,
    (systems, segments).
    """
    human = RNG.normal(size=(4, 12)) + np.arange(4)[:, None]
    human[0, 3] = np.nan
    metrics = {
        name: human + RNG.normal(scale=scale, size=human.shape)
        for name, scale in (("good", 0.5), ("poor", 3))
    }
    metrics = {name: np.nan_to_num(scores) for name, scores in metrics.items()}
    files = {"human-scores/xx-en.da": human} | {
        f"metric-scores/xx-en/{name}-refA": scores for name, scores in metrics.items()
    }
    for name, scores in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        for level, values in (("seg", scores), ("sys", np.nanmean(scores, axis=1, keepdims=True))):
            lines = [
                f"{system}\t{'None' if np.isnan(score) else score}\n"
                for system, row in zip(SYSTEMS, values, strict=True)
                for score in row.tolist()
            ]
            (tmp_path / f"{name}.{level}.score").write_text("".join(lines))
    texts = RNG.choice(WORDS, (12, 9))
    for name in (
        "references/xx-en.refA",
        *(f"system-outputs/xx-en/{system}" for system in SYSTEMS),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.txt").write_text("".join(" ".join(words) + "\n" for words in texts))
        texts = np.where(RNG.random(texts.shape) < 0.1, "mouse", texts)
    return tmp_path, human, metrics


def test_tables_are_compared_with_those_that_a_docstring_expects(capsys):
    expected = "Of a paper:\n\nset\n      r\nchrF  0.50\nBLEU  0.25\n"
    assert print_table("set", ["r"], {"chrF": ["0.50"]}, expected) == 0
    assert print_table("another set", ["r"], {"chrF": ["0.51"]}, expected) == 0
    assert print_table("set", ["r"], {"chrF": ["0.51"], "BLEU": ["0.25"]}, expected) == 1
    assert capsys.readouterr().err == "Expected: chrF  0.50\n"


def test_darr_counts_pairs_whose_assessments_differ_by_25(tmp_path, table):
    human = RNG.integers(0, 101, (3, 8)).astype(float)
    metric, of_other_reference = RNG.integers(0, 4, (2, 3, 8)).astype(float)
    cells = [*product(range(3), range(8))]
    names = ("A.1", "B.2", "C.3")
    (tmp_path / "metrics-ad-seg-scores-xx-en.csv").write_text(
        "SYS SEGID RAW.SCR\n"
        + "".join(f"{names[row]} d::{at} {human[row, at]}\n" for row, at in cells)
    )
    (tmp_path / "m.xx-en.seg.score").write_text(
        "".join(
            f"m\txx-en\tset\t{reference}\t{names[row]}\td\t{at}\t{scores[row, at]}\n"
            for reference, scores in (("set", metric), ("setB", of_other_reference))
            for row, at in cells
        )
        + "m\txx-en\tset\tset\tHuman-A.0\td\t1\t9\n"
    )

    def expected(metric):
        signs = [
            np.sign(human[one, at] - human[other, at])
            * np.sign(metric[one, at] - metric[other, at])
            for at in range(8)
            for one, other in combinations(range(3), 2)
            if abs(human[one, at] - human[other, at]) >= 25
        ]
        value = (2 * sum(sign > 0 for sign in signs) - len(signs)) / len(signs)
        decided = [sign for sign in signs if sign]
        ties = str(len(signs) - len(decided))
        return [f"{value:.4f}", str(len(signs)), ties, f"{sum(decided) / len(decided):.4f}"]

    assert table(darr, tmp_path, "xx-en", "m")["m"] == expected(metric)
    assert table(darr, tmp_path, "xx-en", "m", "--reference", "setB")["m"] == expected(
        of_other_reference
    )
    with pytest.raises(SystemExit, match="'setC'; it has set, setB"):
        darr.main([str(tmp_path), "xx-en", "m", "--reference", "setC"])


def test_systems_are_correlated_with_and_without_outliers(tmp_path, table):
    human, good, poor = (
        [0.1, 0.2, 0.25, 0.3, 0.4, -5.0],
        [1.0, 3.0, 2.0, 4.0, 5.0, -9.0],
        [1.0, 3.0, 1.0, 5.0, 2.0, 0.0],
    )
    rows = "".join("{} {} {}\n".format(*row) for row in zip(human, good, poor, strict=True))
    (tmp_path / "scores.csv").write_text("HUMAN good poor\n" + rows)
    found = table(systems, tmp_path / "scores.csv", "poor", "good")
    for name, metric in (("good", good), ("poor", poor)):
        r, of_inliers = (
            pearsonr(human, metric).statistic,
            pearsonr(human[:-1], metric[:-1]).statistic,
        )
        assert found[name][:2] == [f"{r:.3f}", f"{of_inliers:.3f}"]
    assert found["good"][2] == "best"
    assert 0 < float(found["poor"][2]) < 0.05


def test_hybrid_systems_are_means_of_the_drawn_outputs_and_bleu_is_of_their_texts(
    wmt_folder, table
):
    folder, human, metrics = wmt_folder
    found = table(hybrid, folder, "xx-en", "da", "refA", *metrics, "--hybrids", 300, "--trials", 50)
    hybrids = hybrid.draw_hybrids(human, 300, hybrid.SEED)
    means = np.array([[human[row[at], at] for at in range(12)] for row in hybrids]).mean(axis=1)
    assert np.isfinite(means).all()  # an output that nobody judged is never drawn
    texts = [
        (folder / f"system-outputs/xx-en/{name}.txt").read_text().splitlines() for name in SYSTEMS
    ]
    references = (folder / "references/xx-en.refA.txt").read_text().splitlines()
    scores = {
        name: np.array([[metric[row[at], at] for at in range(12)] for row in hybrids]).mean(axis=1)
        for name, metric in metrics.items()
    }
    scores["corpus-BLEU"] = [
        BLEU().corpus_score([texts[row[at]][at] for at in range(12)], [references]).score
        for row in hybrids
    ]
    rng = np.random.default_rng(hybrid.SEED)
    trials = [rng.choice(300, 100, replace=False) for _ in range(50)]
    for name, metric in scores.items():
        chosen = [drawn[np.argmax(np.asarray(metric)[drawn])] for drawn in trials]
        ranks = [
            1 + sum(means[drawn] > means[one]) for drawn, one in zip(trials, chosen, strict=True)
        ]
        lost = [means[drawn].max() - means[one] for drawn, one in zip(trials, chosen, strict=True)]
        expected = (
            pearsonr(means, metric).statistic,
            np.mean(np.array(ranks) == 1),
            np.mean(1 / np.array(ranks)),
        )
        assert [found[name][0], *found[name][2:]] == [
            f"{value:.4f}" for value in (*expected, np.mean(lost))
        ]
    assert found["good"][1] == "0"
    assert found["poor"][1] == "1"


def test_perm_both_exchanges_standardised_scores(wmt_folder, table):
    folder, human, metrics = wmt_folder
    is_judged = ~np.isnan(human)
    good, poor = (
        (m[is_judged] - m[is_judged].mean()) / m[is_judged].std() for m in metrics.values()
    )
    observed = (
        pearsonr(human[is_judged], good).statistic - pearsonr(human[is_judged], poor).statistic
    )
    rng = np.random.default_rng(4)
    deltas = []
    for _ in range(1000):
        is_kept = rng.random((4, 12), dtype=np.float32)[is_judged] > 0.5
        sides = np.where(is_kept, good, poor), np.where(is_kept, poor, good)
        deltas.append(np.subtract(*(pearsonr(human[is_judged], side).statistic for side in sides)))
    p = np.mean(np.array(deltas) >= observed - 1e-9)
    found = perm_both.perm_both(human, [*metrics.values()])
    assert found[0, 1] == p
    assert table(perm_both, folder, "xx-en", "da", "refA", *metrics)["good"][1] == "1"


def test_areas_are_those_of_all_pairs_of_labels(tmp_path, table):
    labels, scores = RNG.integers(0, 2, 40), RNG.integers(0, 9, 40).astype(float)
    rows = "".join(f"x\ty\t{label}\t{score}\n" for label, score in zip(labels, scores, strict=True))
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tlabel\tm\n" + rows)
    area = mannwhitneyu(scores[labels == 1], scores[labels == 0]).statistic / (
        labels.sum() * (1 - labels).sum()
    )
    precision = recall = 0.0
    for threshold in sorted(set(scores), reverse=True):
        taken = scores >= threshold
        rise = labels[taken].sum() / labels.sum() - recall
        precision, recall = precision + rise * labels[taken].mean(), recall + rise
    assert table(labelled_pairs, tmp_path / "pairs.tsv", "m")["m"] == [
        f"{area:.4f}",
        f"{precision:.4f}",
    ]


def test_texts_of_labelled_pairs_are_scored(tmp_path, table, tiny_bundle):
    (tmp_path / "pairs.tsv").write_text(
        "sentence1\tsentence2\tlabel\nthe cat sat\tthe cat sat\t1\nthe cat\ta mat\t0\n"
    )
    found = table(labelled_pairs, tmp_path / "pairs.tsv", "--model", tiny_bundle)
    assert found == {name: ["1.0000", "1.0000"] for name in ("bleu", "chrf", "bertscore")} | {
        "ROC": ["AUC", "AP"], "pairs.tsv:": ["1", "of", "2", "positive"]
    }  # fmt: skip


def test_conditions_of_a_challenge_set_are_strict(tmp_path, table, tiny_bundle):
    rows = [
        (
            "negation",
            "the cat sat on the mat",
            "a cat sat on the mat",
            "the cat did not sit",
            "the dog",
        ),
        ("negation", "two dogs saw a cat", "", "two dogs", "two dogs"),
        ("number", "the old house", "an old house", "an old house", ""),
        ("number", "", "", "the house", ""),
    ]
    header = (
        "Category\tCorrect Translation\tCorrect Translation\tIncorrect Translation\tIncorrect "
        "Translation\n"
    )
    (tmp_path / "set.txt").write_text(header + "".join("\t".join(row) + "\n" for row in rows))
    found = table(challenge_sets, tmp_path / "set.txt", "--model", tiny_bundle)
    chrf = [
        CHRF().sentence_score(good, [reference]).score
        for _, reference, good, *_ in (rows[0], rows[2])
    ]
    assert found["set.txt,"] == ["all:", "2,", "2,", "2", "examples"]
    assert found["chrF"] == [f"{np.mean(chrf):.3f}", "50.0", "50.0"]
    assert found["BERTScore"][1:] == ["50.0", "50.0"]


def test_matchings_of_moverscore_are_those_of_all_permutations():
    moverscore = pytest.importorskip("reproduce.moverscore")
    left, right = ((moverscore.unit(RNG.normal(size=(5, 8))), np.full(5, 0.2)) for _ in range(2))
    similarity = left[0] @ right[0].T
    best = max(
        np.mean([similarity[pair] for pair in enumerate(order)]) for order in permutations(range(5))
    )
    assert moverscore.assigned(left, right) == pytest.approx(best, abs=1e-12)
    # all tokens weigh the same
    assert moverscore.moved(left, right) == pytest.approx(best, abs=1e-9)
    assert moverscore.mover_1(left, right) == pytest.approx(2 * best - 1, abs=1e-9)
    precision, recall = (np.mean([max(row) for row in rows]) for rows in (similarity, similarity.T))
    assert moverscore.greedy(left, right) == pytest.approx(
        2 * precision * recall / (precision + recall), abs=1e-12
    )
