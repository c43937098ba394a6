"""Systems by group of segments, and ranked by the tests of all pairs; plain loops with scipy are
the oracle.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import compare
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans
from bertscore_onnx_evaluation.systems.metric_results import group_results, metric_result
from bertscore_onnx_evaluation.systems.paired_tests import paired_permutation
from tests.evaluation.simulations import exact_p, rate


def holm_by_loop(p_values):
    adjusted, largest = {}, 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, (len(p_values) - done) * p_values[place])
        adjusted[place] = min(largest, 1.0)
    return [adjusted[place] for place in range(len(p_values))]


def few_differences(seed, systems, segments, differing=10):
    """Draw scores of systems that differ from each other in few segments only."""
    rng = np.random.default_rng(seed)
    scores = np.tile(rng.normal(size=segments).round(2), (systems, 1))
    chosen = rng.choice(segments, differing, replace=False)
    scores[:, chosen] += rng.integers(-1, 6, (systems, differing)) * rng.integers(
        0, 3, (systems, 1)
    )
    return scores


@pytest.mark.parametrize("seed", range(10))
def test_groups_are_tested_as_a_plain_loop_does(seed):
    parts = {
        "news": few_differences(seed, 3, 24),
        "talks": few_differences(seed + 50, 3, 30),
        "web": few_differences(9, 3, 19),
    }
    rng = np.random.default_rng(seed)
    order = rng.permutation(73)
    groups = np.repeat(list(parts), [24, 30, 19])[order]
    frame = pd.DataFrame(
        np.concatenate([*parts.values()], axis=1).T[order], columns=["base", "a", "b"]
    ).assign(domain=groups)
    metric = compare(scores=frame, systems=["base", "a", "b"], by="domain").metrics[0]
    found = {group.name: group for group in metric.groups}
    assert [*found] == ["news", "talks", "web"]
    p_values = [
        exact_p(parts[name][row] - parts[name][0]) for name in ("news", "talks") for row in (1, 2)
    ]
    tested = [one for name in ("news", "talks") for one in found[name].systems[1:]]
    assert [one.p for one in tested] == pytest.approx(p_values)
    assert [one.p_holm for one in tested] == pytest.approx(holm_by_loop(p_values))
    for name, scores in parts.items():
        assert [one.score for one in found[name].systems] == pytest.approx(scores.mean(axis=1))
    assert [one.p for one in found["web"].systems] == [None] * 3


TASKS = np.repeat(["large", "b", "c", "d"], [1500, 60, 60, 60])


def test_the_mean_of_the_groups_counts_each_as_much():
    rng = np.random.default_rng(0)
    base = rng.normal(0.6, 0.1, len(TASKS))
    new = base + rng.normal(0, 0.05, len(TASKS)) + np.where(TASKS == "large", 0.006, -0.045)
    metric = compare(scores={"base": base, "new": new}, by=TASKS.tolist()).metrics[0]
    assert metric.systems[1].p > 0.05
    mean = metric.mean_of_groups.systems[1]
    deltas = [(new - base)[name == TASKS].mean() for name in np.unique(TASKS)]
    assert mean.delta == pytest.approx(np.mean(deltas))
    assert mean.p < 0.001
    weights = 1 / 4 / np.array([(name == TASKS).sum() for name in TASKS])
    kept = 2 * np.random.default_rng(12345).integers(2, size=(10_000, len(TASKS)), dtype=bool) - 1
    swapped = kept @ ((new - base) * weights)
    assert mean.p == (np.sum(np.abs(swapped) >= abs(np.mean(deltas))) + 1) / 10_001
    assert metric.parts[-1] is metric.mean_of_groups


def test_the_mean_of_groups_of_texts_is_that_of_their_corpus_scores():
    texts = {
        "a": ["a cat sat on the mat", "a dog ran"] * 20,
        "b": ["the cat sat on the mat", "the dog ran off"] * 20,
    }
    references, groups = ["the cat sat on a mat", "the dog ran away"] * 20, ["x"] * 30 + ["y"] * 10
    options = {"by": groups, "documents": [*range(20)] * 2, "num_resamples": 50}
    metric = compare(texts, references, metrics=["chrf"], **options).metrics[0]
    for system in range(2):
        of_groups = [group.systems[system].score for group in metric.groups]
        assert metric.mean_of_groups.systems[system].score == pytest.approx(np.mean(of_groups))
    assert metric.mean_of_groups.num_units == 20


def test_groups_are_joined_by_the_ids_of_segments():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"id": range(60), "base": rng.normal(size=60), "new": rng.normal(size=60)})
    groups = pd.DataFrame(
        {"id": range(60), "document": "d", "level": [segment % 2 for segment in range(60)]}
    )
    groups["document"] = [f"d{segment // 2}" for segment in range(60)]
    named = ["base", "new"]
    expected = compare(scores=frame.merge(groups), systems=named, documents=groups, by="level")
    shuffled = compare(
        scores=frame.sample(frac=1, random_state=1),
        systems=named,
        documents=groups.sample(frac=1, random_state=2),
        by="level",
    )
    assert shuffled.to_dict()["groups"] == expected.to_dict()["groups"]
    assert {group.num_units for group in expected.metrics[0].groups} == {30}
    listed = compare(
        scores=frame[["base", "new"]],
        systems=named,
        documents=groups["document"],
        by=groups["level"],
    )
    assert listed.to_dict()["groups"] == expected.to_dict()["groups"]
    long = frame.melt("id", var_name="system", value_name="score").merge(groups)
    assert (
        compare(scores=long, documents=groups, by="level").to_dict()["groups"]
        == expected.to_dict()["groups"]
    )


def test_a_column_of_groups_is_no_system_and_not_ignored():
    columns = {"base": [0.1, 0.3] * 20, "new": [0.2, 0.5] * 20, "bucket": [1, 2] * 20}
    found = compare(scores=pd.DataFrame(columns), systems=["base", "new"], by="bucket")
    assert found.systems == ("base", "new")
    [choice] = found.choices
    assert (choice.systems, choice.roles, choice.ignored) == (
        ("base", "new"),
        {"group": ("bucket",)},
        (),
    )


def test_groups_that_cannot_be_are_refused():
    columns = {"base": [0.1, 0.3] * 20, "new": [0.2, 0.5] * 20, "domain": ["x"] * 40}
    frame = pd.DataFrame(columns)
    with pytest.raises(
        InputError, match="no column 'genre' to group by; the tables have base, new, domain"
    ):
        compare(scores=frame, systems=["base", "new"], by="genre")
    with pytest.raises(InputError, match="no column 'genre' to group by; there is no table"):
        compare({"a": ["a b"] * 40, "b": ["a c"] * 40}, ["a b"] * 40, metrics=["chrf"], by="genre")
    with pytest.raises(InputError, match="All segments are in the group 'x'"):
        compare(scores=frame, systems=["base", "new"], by="domain")
    with pytest.raises(InputError, match="`by` has 3 values"):
        compare(scores={name: frame[name] for name in ("base", "new")}, by=["x", "y", "z"])
    texts = {"id": range(40), "candidate": ["a b"] * 40, "domain": ["x", "y"] * 20}
    other = {"id": range(40), "candidate": ["a c"] * 40, "domain": ["y", "x"] * 20}
    with pytest.raises(
        InputError,
        match=r"Segment '0' is in the group 'x' in candidates\['a'\], and in 'y' in cand",
    ):
        compare(
            {"a": pd.DataFrame(texts), "b": pd.DataFrame(other)},
            ["a b"] * 40,
            metrics=["chrf"],
            by="domain",
            columns={"segment": "id"},
        )


def test_a_table_of_tsv_has_a_row_for_each_group_and_system():
    frame = {"base": np.arange(50) % 7, "new": np.arange(50) % 5}
    found = compare(scores=frame, by=["big"] * 45 + ["tiny"] * 5)
    names, *rows = (line.split("\t") for line in found.table("tsv").splitlines())
    groups = [row[names.index("group")] for row in rows]
    assert groups[::2] == groups[1::2] == ["", "big", "tiny", "mean of the groups"]


@pytest.mark.parametrize("seed", range(10))
def test_ranks_are_those_of_a_plain_loop(seed):
    scores = few_differences(seed, 5, 40)
    names = [f"s{row}" for row in range(5)]
    systems = (
        compare(scores=dict(zip(names, scores, strict=True)), all_pairs=True).metrics[0].systems
    )
    pairs = [(one, other) for one in range(5) for other in range(one)]
    p_values = holm_by_loop([exact_p(scores[one] - scores[other]) for one, other in pairs])
    means = scores.mean(axis=1)
    better = {
        (one, other) if means[one] > means[other] else (other, one)
        for (one, other), p in zip(pairs, p_values, strict=True)
        if p < 0.05
    }
    ranks = [
        (
            1 + sum((other, row) in better for other in range(5)),
            5 - sum((row, other) in better for other in range(5)),
        )
        for row in range(5)
    ]
    assert [(one.rank_low, one.rank_high) for one in systems] == ranks


def test_several_systems_have_a_matrix_of_their_pairs():
    rng = np.random.default_rng(1)
    scores = {f"system-{row}": rng.normal(size=40) + row for row in range(7)}
    found = compare(scores=scores, all_pairs=True, num_resamples=2000)
    text = found.table()
    matrix = [line.split()[2:] for line in text.splitlines() if line[:1].isdigit()]
    assert matrix == [["<"] * row + [">"] * (6 - row) for row in range(7)]
    assert "all others" in text
    assert "▲" in found.to_html()
    three = dict([*scores.items()][:3])
    few = compare(scores=three, all_pairs=True).table()
    verdict, table, *_ = few.split("\n\n")
    assert [line.split()[0] for line in table.splitlines()[2:5]] == [
        "system-2",
        "system-1",
        "system-0",
    ]
    assert verdict == "system-2 scores best: significantly better than system-1 and system-0."
    assert (
        compare(scores=three)
        .to_dict()["headlines"]["score"]
        .endswith("system-0; not tested against system-1.")
    )


@pytest.mark.calibration
def test_equal_systems_seldom_differ_in_any_group(record_property):
    sizes = [20, 30, 50, 100, 200]
    groups = np.repeat([*"abcde"], sizes)
    test = partial(paired_permutation, num_swaps=1999)

    def differ(seed):
        corpus = SegmentMeans(np.random.default_rng(seed).normal(size=(3, sum(sizes))))
        found = group_results(corpus, ["base", "a", "b"], groups, None, test)
        return any(one.p_holm < 0.05 for group in found for one in group.systems[1:])

    share = rate(differ, 2000)
    record_property(
        "three systems, five groups of 20 to 200 segments | any p < 0.05", f"{share:.3f}"
    )
    assert share <= 0.06


@pytest.mark.calibration
def test_ranks_hold_the_true_ones(record_property):
    quality = np.array([0.0, 0.0, 0.0, 0.15, 0.15, 0.5])

    def holds(seed):
        scores = np.random.default_rng(seed).normal(size=(6, 200)) + quality[:, None]
        tested = paired_permutation(scores, all_pairs=True, num_swaps=1999)
        metric = MetricScores(scores.mean(axis=1), scores, "m")
        systems = metric_result(
            "m", metric, tested, [*"abcdef"], (200, "segment"), all_pairs=True
        ).systems
        return all(
            one.rank_low <= 1 + (quality > own).sum() and one.rank_high >= 6 - (quality < own).sum()
            for one, own in zip(systems, quality, strict=True)
        )

    share = rate(holds, 2000)
    record_property(
        "six systems, three and two of them equal | ranks that all hold", f"{share:.3f}"
    )
    assert share >= 0.94


@pytest.mark.calibration
def test_means_of_groups_of_equal_systems_seldom_differ(record_property):
    groups = np.arange(4).repeat([20, 50, 100, 400])
    found = []
    for seed in range(40):  # 50 systems share their swaps, which takes far less time
        rng = np.random.default_rng(seed)
        scores = np.concatenate([np.zeros((1, 570)), rng.normal(size=(50, 570)) * (1 + groups)])
        found.append(
            paired_permutation(
                SegmentMeans(scores).mean_of_groups(groups), num_swaps=1999, seed=seed
            ).p
            < 0.05
        )
    share = np.mean(found)
    record_property("mean of four groups of 20 to 400 segments | any p < 0.05", f"{share:.3f}")
    assert share <= 0.055
