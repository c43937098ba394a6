"""Cases d, e, f, g, i, j, l and growth: single pairs, starting, streams, systems, tests, the host, and long texts."""

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.contest import process
from benchmarks.contest.contest import REST, Contest, Contestant
from benchmarks.flops import model_flops
from benchmarks.settings import Settings
from benchmarks.throughput import OURS, PEER, add_stages, peer, timing_of
from bertscore_onnx.concurrency.cpus import cpu_features, usable_cpus
from bertscore_onnx.evaluation.correlation import tie_calibrated_accuracy
from bertscore_onnx.evaluation.metric_tests import perm_both
from bertscore_onnx.evaluation.metrics import corpus_metric
from bertscore_onnx.evaluation.significance import paired_bootstrap
from harness.processes import Child, environment
from harness.results import Case, Curve, Goal, Skipped, Timing, figure, percentile, ratio
from harness.texts import altered, of_lengths, repeated

LATENCY, ALONE = "ours-latency", "model-alone"

FIRST_SCORE = """
import sys
from {package} import BERTScorer
scorer = BERTScorer({arguments}, device="cpu")
scorer.score(["A cat sat on the mat."], ["The cat sat on a mat."])
print("scored", flush=True)
"""
FEW_STREAMED = 10_000
SYSTEMS, COMPARED_SYSTEMS = 10, 3

SEGMENTS = 3000
BLEU, PEER_BLEU = "BLEU and its bootstrap, ours", "BLEU and its bootstrap, sacreBLEU's PairedTest"

HOST_PAIRS, HOST_TOKENS = 4000, 50
ALL_THREADS, ONE_THREAD = "all-threads", "one-thread"

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
TOKENS_PER_SIDE = 16_384
COUNTS = (10, 30, 100, 300, 1000, 3000)
REFERENCES = (1, 2, 4, 8)
CANDIDATES = 300


def one_pair(settings: Settings) -> Case:
    """Score one pair per call, and compare with the model's own time."""
    model = settings.models.minilm
    candidates, references = settings.first_pairs(100)
    case = Case("d", f"MiniLM, one pair a call, {len(candidates)} calls a round")
    case.note = "The model alone repeats the very run of ONNX Runtime that scoring a pair for latency makes."
    bundle = str(model.bundle())
    throughput = {"device": "cpu", "optimize_for": "throughput"}
    latency = {"device": "cpu", "optimize_for": "latency"}
    contestants = {
        OURS: Contestant("ours, for throughput", OURS, bundle, throughput),
        LATENCY: Contestant("ours, for latency", OURS, bundle, latency),
        ALONE: Contestant("the model alone", ALONE, bundle, latency),  # next to ours: clock rates change with time
        PEER: peer(model).make(),
    }
    work = {name: {"candidates": candidates, "references": references} for name in contestants}
    results, failed = Contest(contestants, "singly", work, [LATENCY]).run(settings.rounds)
    case.skipped = [Skipped(contestants[name].label, reason) for name, reason in failed.items()]
    medians = {}
    for name, result in results.items():
        case.timings.append(timing_of(contestants[name].label, result, 1))
        medians[name] = [percentile(calls, 50) for calls in result.rounds]
        for percent in (50, 99):
            values = [1000 * percentile(calls, percent) for calls in result.rounds]
            case.figures.append(figure(f"p{percent} of {contestants[name].label}", "ms", values))
    few_cpus = usable_cpus() < 4
    if {LATENCY, ALONE} <= results.keys():
        over = [1000 * (whole - alone) for whole, alone in zip(medians[LATENCY], medians[ALONE], strict=True)]
        is_slow = few_cpus and "avx512f" not in (cpu_features() or [])
        goal = Goal(1.0 if is_slow else 0.6, at_most=True)
        case.figures.append(figure("p50 for latency over the model alone", "ms", over, goal))
    if {LATENCY, PEER} <= results.keys():
        goal = Goal(1 / (0.45 if few_cpus else 0.5))
        case.figures.append(ratio("p50 for latency, against bert-score 0.3.13", medians[LATENCY], medians[PEER], goal))
    if LATENCY in results:
        add_stages(case, results[LATENCY], model_flops(model, [*candidates, *references]))
    return case


def start(settings: Settings) -> Case:
    """Start a process and wait for its first score."""
    model = settings.models.minilm
    case = Case("e", "MiniLM, from the start of a process to its first score")
    scripts = {
        OURS: FIRST_SCORE.format(package="bertscore_onnx", arguments="sys.argv[1]"),
        PEER: FIRST_SCORE.format(package="bert_score", arguments="sys.argv[1], num_layers=int(sys.argv[2])"),
    }
    arguments = {OURS: [str(model.bundle())], PEER: [str(model.folder), str(model.num_layers)]}
    seconds: dict[str, list[float]] = {name: [] for name in scripts}
    for number in range(settings.rounds + 1):
        for name, script in scripts.items():
            taken = _seconds_to_first_line([script, *arguments[name]])
            if number:  # the first time fills the caches of the disk
                seconds[name].append(taken)
    case.timings = [Timing(name, taken) for name, taken in seconds.items()]
    case.figures = [ratio("ours, against bert-score 0.3.13", seconds[OURS], seconds[PEER])]
    return case


def _seconds_to_first_line(command: list[str]) -> float:
    time.sleep(REST)
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        taken = time.perf_counter() - begin
        if not line:
            raise SystemExit(f"This failed; run it to see why: python -c '{command[0]}' {' '.join(command[1:])}")
    return taken


def streaming(settings: Settings) -> Case:
    """Stream many pairs and few, and compare their memory."""
    model = settings.models.tiny
    few, many = FEW_STREAMED, settings.stream_pairs
    case = Case("f", f"a random BERT of one layer, {many:,} pairs streamed, against {few:,}")
    measured = {}
    for count in (few, many):
        name = f"{count:,} pairs"
        contestants = {name: Contestant(name, OURS, str(model.bundle()), {"device": "cpu"})}
        work = {name: {"count": count}}
        results, failed = Contest(contestants, "stream", work, [name] if count == few else [], warm_up=False).run(1)
        case.skipped += [Skipped(label, reason) for label, reason in failed.items()]
        if name in results:
            measured[count] = results[name]
            case.timings.append(timing_of(name, results[name], count))
    if len(measured) == 2:
        growth = 100 * (measured[many].peak_memory / measured[few].peak_memory - 1)
        case.figures.append(figure("growth of peak memory", "%", [growth], Goal(5, at_most=True)))
    if few in measured:
        case.stages = measured[few].stages
    return case


def systems(settings: Settings) -> Case:
    """Score ten systems against one set of references, encoded once or each time."""
    candidates, references = settings.first_pairs(500)
    case = Case("g", f"MiniLM, {SYSTEMS} systems of {len(references)} texts against one set of references")
    labels = {"once": "references encoded once", "each": "references encoded for each system"}
    choices = {name: {"encode_once": name == "once"} for name in labels}
    rounds = _score_two_ways(case, settings, "systems", labels, choices, outputs(candidates, SYSTEMS), references)
    if len(rounds) == 2:
        case.figures.insert(0, ratio("encoded once, against each time", rounds["once"], rounds["each"], Goal(1.7)))
    return case


def compared_systems(settings: Settings) -> Case:
    """Compare three systems, and only score them."""
    candidates, references = settings.first_pairs(3000)
    case = Case("j", f"MiniLM, {COMPARED_SYSTEMS} systems of {len(references)} texts compared")
    labels = {"compared": "compare", "scored": "each scored, references encoded once"}
    choices = {name: {"test": name == "compared"} for name in labels}
    texts = outputs(candidates, COMPARED_SYSTEMS)
    rounds = _score_two_ways(case, settings, "compared", labels, choices, texts, references)
    if len(rounds) == 2:
        shares = [ours / alone for ours, alone in zip(rounds["compared"], rounds["scored"], strict=True)]
        case.figures.insert(0, figure("compare, of the time of scoring", "×", shares, Goal(1.2, at_most=True)))
    return case


def outputs(candidates: list[str], count: int) -> list[list[str]]:
    """Make up systems: the candidates, and others with different texts."""
    draw = random.Random(0)
    return [candidates] + [[altered(text, draw) for text in candidates] for _ in range(count - 1)]


def _score_two_ways(
    case: Case,
    settings: Settings,
    workload: str,
    labels: Mapping[str, str],
    choices: Mapping[str, Mapping[str, bool]],
    systems: list[list[str]],
    references: list[str],
) -> dict[str, list[float]]:
    """Score the same systems in two ways in turn, and fill in the case; return the seconds of each round by name."""
    model = settings.models.minilm
    bundle = str(model.bundle())
    contestants = {name: Contestant(label, OURS, bundle, {"device": "cpu"}) for name, label in labels.items()}
    work = {name: {"systems": systems, "references": references, **choice} for name, choice in choices.items()}
    first = next(iter(labels))
    results, failed = Contest(contestants, workload, work, [first]).run(settings.rounds)
    case.skipped = [Skipped(labels[name], reason) for name, reason in failed.items()]
    case.timings = [timing_of(labels[name], one, len(systems) * len(references)) for name, one in results.items()]
    if first in results:
        add_stages(case, results[first], model_flops(model, [*references, *chain.from_iterable(systems)]))
    return {name: result.round_seconds for name, result in results.items()}


def judging(settings: Settings) -> Case:
    """Test systems by their scores, and metrics by human scores; no model runs."""
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
    candidates, references = settings.first_pairs(SEGMENTS)
    texts = outputs(candidates, SYSTEMS)
    on_texts = {BLEU: lambda: p_of_ours(texts, references), PEER_BLEU: lambda: p_of_peer(texts, references)}
    calls = {name: call for name, (_, call) in on_scores.items()}
    seconds = _time_in_turn({**calls, **on_texts}, settings.rounds)
    case = Case("i", f"{SYSTEMS} systems of {SEGMENTS:,} segments; for PERM-BOTH 10 metrics of 15 × 1,200 scores")
    case.note = f"BLEU is computed from {SYSTEMS} × {len(references):,} texts, and its p-values are those of sacreBLEU."
    case.timings = [Timing(name, taken) for name, taken in seconds.items()]
    case.figures = [figure(name, "s", seconds[name], Goal(goal, at_most=True)) for name, (goal, _) in on_scores.items()]
    case.figures.append(ratio("BLEU, against sacreBLEU's PairedTest", seconds[BLEU], seconds[PEER_BLEU]))
    return case


def p_of_ours(systems: list[list[str]], references: list[str]) -> list[float]:
    """Compare all systems with the first by the paired bootstrap of BLEU."""
    corpus = corpus_metric("bleu", systems, references).corpus
    assert corpus is not None
    p: list[float] = paired_bootstrap(corpus).p.tolist()
    return p


def p_of_peer(systems: list[list[str]], references: list[str]) -> list[float]:
    """Do the same with sacreBLEU, which caches the n-grams of the references."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest, Result

    named: list[tuple[str, Sequence[str]]] = [(str(number), texts) for number, texts in enumerate(systems)]
    _, results = PairedTest(named, {"BLEU": BLEU(references=[references])}, None, test_type="bs")()
    return [result.p_value for result in results["BLEU"][1:] if isinstance(result, Result) and result.p_value]


def _time_in_turn(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Time each call once per round, each round in the reverse order of the last, after a warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    order = [*calls]
    for _ in range(rounds + 1):
        order.reverse()
        for name in order:
            time.sleep(REST)
            begin = time.perf_counter()
            calls[name]()
            seconds[name].append(time.perf_counter() - begin)
    return {name: taken[1:] for name, taken in seconds.items()}


def host_ceiling(settings: Settings) -> Case:
    """Score with only the embeddings of roberta-large, on one thread and all: whether the host could feed a GPU."""
    model = settings.models.roberta_embeddings
    number, cpus = settings.limit(HOST_PAIRS), usable_cpus()
    case = Case("l", f"roberta-large's architecture at layer 0, {number:,} pairs of {HOST_TOKENS}-token texts")
    words = [text for side in settings.all_pairs for text in side]
    texts = of_lengths(words, [HOST_TOKENS] * (2 * number), model.token_counts)
    work = {"candidates": texts[:number], "references": texts[number:]}
    bundle = str(model.bundle())
    contestants = {
        ALL_THREADS: Contestant(f"ours, {cpus} threads", OURS, bundle, {"device": "cpu"}),
        ONE_THREAD: Contestant("ours, one thread", OURS, bundle, {"device": "cpu", "nthreads": 1}),
    }
    contest = Contest(contestants, "together", dict.fromkeys(contestants, work), [ONE_THREAD])
    results, failed = contest.run(settings.rounds)
    case.skipped = [Skipped(contestants[name].label, reason) for name, reason in failed.items()]
    case.timings = [timing_of(contestants[name].label, result, number) for name, result in results.items()]
    if {ALL_THREADS, ONE_THREAD} <= results.keys():
        many, one = (results[name].round_seconds for name in (ALL_THREADS, ONE_THREAD))
        case.figures.append(ratio(f"{cpus} threads, against one", many, one, Goal(3) if cpus >= 4 else None))
    if ONE_THREAD in results:
        case.stages = results[ONE_THREAD].stages
    return case


def growth(settings: Settings) -> Case:
    """Measure pairs per second along three properties of the texts."""
    model = settings.models.minilm
    case = Case("growth", "MiniLM, how the cost grows")
    with Child() as worker:
        worker.do(process.load, OURS, str(model.bundle()), {"device": "cpu"})

        def rate(candidates: Sequence[str], references: Sequence[Any]) -> float:
            return _candidates_per_second(worker, settings.rounds, candidates, references)

        case.curves = [
            Curve("tokens of a text", [(float(length), rate(*_texts_of(length, settings))) for length in LENGTHS]),
            Curve("pairs", [(float(count), rate(*_repeated_pairs(count, settings))) for count in _counts(settings)]),
            Curve(
                "references of a candidate",
                [(float(count), count * rate(*_groups_of(count, settings))) for count in REFERENCES],
            ),
        ]
    return case


def _texts_of(length: int, settings: Settings) -> list[list[str]]:
    lengths = [length] * settings.limit(TOKENS_PER_SIDE // length)
    return [of_lengths(texts, lengths, settings.models.minilm.token_counts) for texts in settings.all_pairs]


def _counts(settings: Settings) -> list[int]:
    return sorted({settings.limit(count) for count in COUNTS})


def _repeated_pairs(count: int, settings: Settings) -> list[list[str]]:
    return [repeated(texts, count) for texts in settings.all_pairs]


def _groups_of(count: int, settings: Settings) -> tuple[list[str], list[list[str]]]:
    """Return candidates with this many references each, no reference twice."""
    candidates, _ = settings.first_pairs(CANDIDATES)
    references = settings.all_pairs[1]
    return candidates, [repeated(references, count, count * number) for number in range(len(candidates))]


def _candidates_per_second(worker: Child, rounds: int, candidates: Sequence[str], references: Sequence[Any]) -> float:
    """Return the median over the rounds."""
    worker.do(process.prepare, "together", {"candidates": candidates, "references": references})
    worker.do(process.run)
    seconds: list[float] = []
    for _ in range(rounds):
        time.sleep(REST)
        seconds += worker.do(process.run)
    return len(candidates) / statistics.median(seconds)
