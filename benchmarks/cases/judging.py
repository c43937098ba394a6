"""Tests of systems and of metrics, where no model runs."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from benchmarks.cases.systems import SYSTEMS, outputs
from benchmarks.contest.contest import REST
from benchmarks.settings import Settings
from bertscore_onnx.evaluation.correlation import tie_calibrated_accuracy
from bertscore_onnx.evaluation.metric_tests import perm_both
from bertscore_onnx.evaluation.metrics import corpus_metric
from bertscore_onnx.evaluation.significance import CorpusScores, paired_bootstrap
from harness.results import Case, Goal, Timing, figure, ratio

SEGMENTS = 3000
OURS, PEER = "BLEU and its bootstrap, ours", "BLEU and its bootstrap, sacreBLEU's PairedTest"


def judging(settings: Settings) -> Case:
    """Test systems by their scores, and metrics by people's."""
    draw = np.random.default_rng(0)
    bertscore = draw.normal(0.9, 0.03, (3, SYSTEMS, SEGMENTS))  # P, R and F
    ratings, scores = draw.integers(0, 26, (13, 1590)) / 25, draw.normal(size=(13, 1590))  # 124,020 pairs
    human = draw.normal(size=(15, 1200))
    metrics = [human + draw.normal(scale=1 + number / 10, size=human.shape) for number in range(10)]
    on_scores = {
        "1,000 resamples of P, R and F": (1.0, lambda: [paired_bootstrap(matrix) for matrix in bertscore]),
        "acc*_eq of 124,020 pairs": (0.2, lambda: tie_calibrated_accuracy(ratings, scores)),
        "PERM-BOTH over all cells": (20.0, lambda: perm_both(human, metrics)),
        "PERM-BOTH by segment": (20.0, lambda: perm_both(human, metrics, level="segment")),
    }
    candidates, references = settings.some_pairs(SEGMENTS)
    systems = outputs(candidates, SYSTEMS)
    on_texts = {OURS: lambda: p_of_ours(systems, references), PEER: lambda: p_of_peer(systems, references)}
    calls = {name: call for name, (_, call) in on_scores.items()}
    seconds = _in_turns({**calls, **on_texts}, settings.rounds)
    case = Case("i", f"{SYSTEMS} systems of {SEGMENTS:,} segments; for PERM-BOTH 10 metrics of 15 × 1,200 scores")
    case.note = f"BLEU is computed from {SYSTEMS} × {len(references):,} texts, and its p-values are those of sacreBLEU."
    case.timings = [Timing(name, taken) for name, taken in seconds.items()]
    case.figures = [figure(name, "s", seconds[name], Goal(goal, at_most=True)) for name, (goal, _) in on_scores.items()]
    case.figures.append(ratio("BLEU, against sacreBLEU's PairedTest", seconds[OURS], seconds[PEER]))
    return case


def p_of_ours(systems: list[list[str]], references: list[str]) -> list[float]:
    """Compare all systems with the first by the paired bootstrap of BLEU."""
    corpus = cast("CorpusScores", corpus_metric("bleu", systems, references).corpus)
    p: list[float] = paired_bootstrap(corpus).p.tolist()
    return p


def p_of_peer(systems: list[list[str]], references: list[str]) -> list[float]:
    """Do the same with sacreBLEU, which keeps what it took from the references."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest, Result

    named: list[tuple[str, Sequence[str]]] = [(str(number), texts) for number, texts in enumerate(systems)]
    _, results = PairedTest(named, {"BLEU": BLEU(references=[references])}, None, test_type="bs")()
    return [result.p_value for result in results["BLEU"][1:] if isinstance(result, Result) and result.p_value]


def _in_turns(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Time each call once a round, each round in the reverse order of the last, after one that is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    order = [*calls]
    for _ in range(rounds + 1):
        order.reverse()
        for name in order:
            time.sleep(REST)  # or the threads of the call before count in
            begin = time.perf_counter()
            calls[name]()
            seconds[name].append(time.perf_counter() - begin)
    return {name: taken[1:] for name, taken in seconds.items()}
