"""The cases: each returns its results; their goals are those of benchmarks/figures.md."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from benchmarks.contest import PEER, REST, Contest, Contestant
from benchmarks.flops import model_flops
from benchmarks.settings import Settings
from bertscore_onnx.concurrency.cpus import cpu_features, usable_cpus
from bertscore_onnx_evaluation.metric_scores import corpus_metric
from bertscore_onnx_evaluation.metrics.correlation import tie_calibrated_accuracy
from bertscore_onnx_evaluation.systems.paired_tests import paired_permutation
from harness.models import Model
from harness.processes import environment
from harness.results import Case, Goal, Timing, figure, percentile, ratio
from harness.texts import altered, of_lengths

OURS = "ours"
OPENVINO, INT8, BF16 = "ours-openvino", "ours-int8", "bert-score-bf16"
PEER_FAST, SCRIPT = "bert-score-fast", "script"
LATENCY, ALONE = "ours-latency", "model-alone"
# by whether the processor has an instruction for sums of products of bytes
INT8_GOALS = {True: 5.0, False: 3.0}
RANDOM_WEIGHTS = (
    "The weights are random; speed does not depend on their values, the difference in scores does."
)

FIRST_SCORE = """
import sys
from {package} import BERTScorer
scorer = BERTScorer({arguments}, device="cpu")
scorer.score(["A cat sat on the mat."], ["The cat sat on a mat."])
print("scored", flush=True)
"""
FEW_STREAMED, MANY_STREAMED = 10_000, 1_000_000
SYSTEMS, COMPARED_SYSTEMS = 10, 3

SEGMENTS = 3000
BLEU, PEER_BLEU = "BLEU and its test, ours", "BLEU and its test, sacreBLEU's PairedTest"

HOST_PAIRS, HOST_TOKENS = 4000, 50
HOST_GOAL = 250_000  # tokens per second and thread: 60 % of an H100 takes 900,000
ALL_THREADS, ONE_THREAD = "all-threads", "one-thread"

Pairs = tuple[list[str], list[str]]
# one contestant, another that it is compared with, and the goal
Comparison = tuple[str, str, float | None]


def minilm(settings: Settings) -> Case:
    """Score short texts with a small model."""
    model = settings.models.minilm
    pairs = settings.first_pairs(3004)
    case = Case("a", f"MiniLM, layer 4, {len(pairs[0])} pairs")
    comparisons = [
        (OURS, PEER, 1.8),
        (OPENVINO, PEER, 5.0),
        (OPENVINO, BF16, 1.8),
        (INT8, PEER, None),
    ]
    return compare_throughput(
        case, model, on_cpu(model, settings), pairs, settings, comparisons, outside_goal=4
    )


def roberta_large(settings: Settings) -> Case:
    """Score short texts with a large model."""
    model = settings.models.roberta_large
    pairs = settings.first_pairs(256)
    case = Case(
        "b", f"roberta-large's architecture, {model.num_layers} layers, {len(pairs[0])} pairs"
    )
    case.note = RANDOM_WEIGHTS if settings.roberta_folder is None else ""
    int8_goal = INT8_GOALS[
        not {"avx512_vnni", "avx_vnni", "amx_int8"}.isdisjoint(cpu_features() or [])
    ]
    comparisons = [
        (OURS, PEER, 2.0),
        (OPENVINO, PEER, 7.0),
        (OPENVINO, BF16, 1.8),
        (INT8, PEER, int8_goal),
    ]
    return compare_throughput(case, model, on_cpu(model, settings), pairs, settings, comparisons)


def documents(settings: Settings) -> Case:
    """Score texts that nearly fill the model."""
    model = settings.models.minilm
    count = settings.limit(64)
    draw = random.Random(0)
    lengths = [draw.randint(401, 512) for _ in range(count)]  # a text may have one token less
    candidates, references = (
        of_lengths(texts, lengths, model.token_counts) for texts in settings.all_pairs
    )
    tokens = model.token_counts([*candidates, *references])
    case = Case("c", f"MiniLM, {count} pairs of documents of {min(tokens)} to {max(tokens)} tokens")
    contestants = {
        OURS: ours(model),
        PEER: peer(model),
        PEER_FAST: peer(model, use_fast=True),
        SCRIPT: script(model),
    }
    return compare_throughput(
        case, model, contestants, (candidates, references), settings, [(OURS, PEER, 1.5)]
    )


def on_cpu(model: Model, settings: Settings) -> dict[str, Contestant]:
    """Return both engines in each precision that they have on a CPU."""
    return {
        OURS: ours(model),
        PEER: peer(model),
        PEER_FAST: peer(model, use_fast=True),
        SCRIPT: script(model),
        BF16: peer(model, "bfloat16"),
        INT8: ours(model, "int8"),
        OPENVINO: ours(model, label="ours, fp32 bundle on OpenVINO", device="openvino"),
    }


def ours(model: Model, precision: str = "fp32", label: str = "", **options: Any) -> Contestant:
    """Return this library with the bundle of one precision."""
    return Contestant(
        label or f"ours, {precision}",
        OURS,
        lambda: model.bundle(precision),
        {"device": "cpu", **options},
    )


def peer(
    model: Model, dtype: str = "float32", device: str = "cpu", *, use_fast: bool = False
) -> Contestant:
    """Return bert-score, its model cast to a type."""
    label = "bert-score 0.3.13" + ("" if dtype == "float32" else f", model in {dtype}")
    options = {
        "device": device,
        "num_layers": model.num_layers,
        "dtype": dtype,
        "use_fast": use_fast,
    }
    return Contestant(label + ", fast tokenizer" * use_fast, PEER, lambda: model.folder, options)


def script(model: Model) -> Contestant:
    """Return a script with the graph of the bundle and the model's fast tokenizer."""
    return Contestant(
        "a script", SCRIPT, model.bundle, {"tokenizer": str(model.folder / "tokenizer.json")}
    )


def compare_throughput(
    case: Case,
    model: Model,
    contestants: Mapping[str, Contestant],
    pairs: Pairs,
    settings: Settings,
    comparisons: Sequence[Comparison],
    outside_goal: float | None = None,
) -> Case:
    """Let all contestants score the pairs in one call, and time our stages."""
    candidates, references = pairs
    work = {"candidates": candidates, "references": references}
    contest = Contest(case, contestants, "together", work, len(candidates), OURS)
    contest.run(settings.rounds, settings.left_out)
    for comparison in comparisons:
        contest.compare(*comparison)
    contest.add_stages(model_flops(model, [*candidates, *references]), outside_goal)
    return case


def one_pair(settings: Settings) -> Case:
    """Score one pair per call, and compare with the model's own time."""
    model = settings.models.minilm
    candidates, references = settings.first_pairs(100)
    case = Case("d", f"MiniLM, one pair a call, {len(candidates)} calls a round")
    case.note = (
        "The model alone repeats the very run of ONNX Runtime that scoring a pair for latency "
        "makes."
    )
    latency = {"device": "cpu", "optimize_for": "latency"}
    contestants = {
        OURS: ours(model, label="ours, for throughput", optimize_for="throughput"),
        LATENCY: ours(model, label="ours, for latency", **latency),
        ALONE: Contestant(
            "the model alone", ALONE, model.bundle, latency
        ),  # next to ours: clock rates change with time
        PEER: peer(model),
        PEER_FAST: peer(model, use_fast=True),
        SCRIPT: script(model),
    }
    work = {"candidates": candidates, "references": references}
    contest = Contest(case, contestants, "singly", work, 1, LATENCY).run(settings.rounds)
    results = contest.results
    for name, result in results.items():
        for percent in (50, 99):
            values = [1000 * percentile(calls, percent) for calls in result.rounds]
            case.figures.append(figure(f"p{percent} of {contestants[name].label}", "ms", values))
    few_cpus = usable_cpus() < 4
    if {LATENCY, ALONE} <= results.keys():
        whole_and_alone = zip(results[LATENCY].seconds, results[ALONE].seconds, strict=True)
        is_slow = few_cpus and "avx512f" not in (cpu_features() or [])
        goal = Goal(1.0 if is_slow else 0.6, at_most=True)
        over = [1000 * (whole - alone) for whole, alone in whole_and_alone]
        case.figures.append(figure("p50 for latency over the model alone", "ms", over, goal))
    contest.compare(
        LATENCY, PEER, 1 / (0.45 if few_cpus else 0.5), "p50 for latency, against bert-score 0.3.13"
    )
    contest.add_stages(model_flops(model, [*candidates, *references]))
    return case


def start(settings: Settings) -> Case:
    """Start a process and wait for its first score."""
    model = settings.models.minilm
    case = Case("e", "MiniLM, from the start of a process to its first score")
    ours = FIRST_SCORE.format(package="bertscore_onnx", arguments="sys.argv[1]")
    theirs = FIRST_SCORE.format(
        package="bert_score", arguments="sys.argv[1], num_layers=int(sys.argv[2])"
    )
    calls = {
        OURS: partial(_await_score, ours, str(model.bundle())),
        PEER: partial(_await_score, theirs, str(model.folder), str(model.num_layers)),
    }
    timings = _time_in_turn(calls, settings.rounds)
    case.timings = list(timings.values())
    ours_seconds, peer_seconds = timings[OURS].seconds, timings[PEER].seconds
    case.figures = [ratio("ours, against bert-score 0.3.13", ours_seconds, peer_seconds)]
    return case


def _await_score(script: str, *arguments: str) -> None:
    """Start a process and wait for its first line."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        process.kill()
    if not line:
        raise SystemExit(
            f"This failed; run it to see why: python -c '{script}' {' '.join(arguments)}"
        )


def streaming(settings: Settings) -> Case:
    """Stream many pairs and few, and compare their memory."""
    few, many = FEW_STREAMED, settings.limit(MANY_STREAMED)
    case = Case("f", f"a random BERT of one layer, {many:,} pairs streamed, against {few:,}")
    peaks = []
    for count in (few, many):
        name = f"{count:,} pairs"
        contestants = {name: ours(settings.models.tiny, label=name)}
        profiled = name if count == few else ""
        contest = Contest(
            case, contestants, "stream", {"count": count}, count, profiled, warm_up=False
        ).run(1)
        contest.add_stages()
        peaks += [result.peak_memory for result in contest.results.values()]
    if len(peaks) == 2:
        growth = 100 * (peaks[1] / peaks[0] - 1)
        case.figures.append(figure("growth of peak memory", "%", [growth], Goal(5, at_most=True)))
    return case


def systems(settings: Settings) -> Case:
    """Score ten systems against one set of references, encoded once or each time."""
    candidates, references = settings.first_pairs(500)
    case = Case(
        "g", f"MiniLM, {SYSTEMS} systems of {len(references)} texts against one set of references"
    )
    once, each = "references encoded once", "references encoded for each system"
    ways = {once: {"encode_once": True}, each: {"encode_once": False}}
    contest = _score_two_ways(
        case, settings, "systems", ways, outputs(candidates, SYSTEMS), references
    )
    contest.compare(once, each, 1.7, "encoded once, against each time")
    return case


def compared_systems(settings: Settings) -> Case:
    """Compare three systems, and only score them."""
    candidates, references = settings.first_pairs(3000)
    case = Case("j", f"MiniLM, {COMPARED_SYSTEMS} systems of {len(references)} texts compared")
    compared, scored = "compare", "each scored, references encoded once"
    labels = {compared: {"test": True}, scored: {"test": False}}
    texts = outputs(candidates, COMPARED_SYSTEMS)
    results = _score_two_ways(case, settings, "compared", labels, texts, references).results
    if len(results) == 2:
        seconds = zip(results[compared].seconds, results[scored].seconds, strict=True)
        shares = [ours / alone for ours, alone in seconds]
        case.figures.append(
            figure("compare, of the time of scoring", "×", shares, Goal(1.2, at_most=True))
        )
    return case


def outputs(candidates: list[str], count: int) -> list[list[str]]:
    """Make up systems: the candidates, and others with different texts."""
    draw = random.Random(0)
    return [candidates] + [[altered(text, draw) for text in candidates] for _ in range(count - 1)]


def _score_two_ways(
    case: Case,
    settings: Settings,
    workload: str,
    ways: Mapping[str, Mapping[str, bool]],
    systems: list[list[str]],
    references: list[str],
) -> Contest:
    """Score the same systems in two ways in turn, and time the stages of the first."""
    model = settings.models.minilm
    contestants = {
        label: Contestant(label, OURS, model.bundle, {"device": "cpu"}, way)
        for label, way in ways.items()
    }
    work = {"systems": systems, "references": references}
    pairs = len(systems) * len(references)
    contest = Contest(case, contestants, workload, work, pairs, next(iter(ways))).run(
        settings.rounds
    )
    contest.add_stages(model_flops(model, [*references, *chain.from_iterable(systems)]))
    return contest


def judging(settings: Settings) -> Case:
    """Test systems by their scores, and a metric by human scores; no model runs."""
    draw = np.random.default_rng(0)
    bertscore = draw.normal(0.9, 0.03, (3, SYSTEMS, SEGMENTS))  # P, R and F
    # 124,020 pairs
    ratings, scores = draw.integers(0, 26, (13, 1590)) / 25, draw.normal(size=(13, 1590))
    on_scores = {
        "10,000 swaps of P, R and F": (
            4.0,
            lambda: [paired_permutation(matrix) for matrix in bertscore],
        ),
        "acc*_eq of 124,020 pairs": (0.2, lambda: tie_calibrated_accuracy(ratings, scores)),
    }
    candidates, references = settings.first_pairs(SEGMENTS)
    texts = outputs(candidates, SYSTEMS)
    on_texts = {
        BLEU: lambda: p_of_ours(texts, references),
        PEER_BLEU: lambda: p_of_peer(texts, references),
    }
    calls = {name: call for name, (_, call) in on_scores.items()}
    case = Case("i", f"{SYSTEMS} systems of {SEGMENTS:,} segments")
    case.note = (
        f"BLEU is computed from {SYSTEMS} × {len(references):,} texts, and tested with 10,000 "
        "swaps."
    )
    timings = _time_in_turn({**calls, **on_texts}, settings.rounds)
    case.timings = list(timings.values())
    case.figures = [
        figure(name, "s", timings[name].seconds, Goal(goal, at_most=True))
        for name, (goal, _) in on_scores.items()
    ]
    case.figures.append(
        ratio(
            "BLEU, against sacreBLEU's PairedTest",
            timings[BLEU].seconds,
            timings[PEER_BLEU].seconds,
        )
    )
    return case


def p_of_ours(systems: list[list[str]], references: list[str]) -> list[float]:
    """Compare all systems with the first by swaps of BLEU."""
    corpus = corpus_metric("bleu", systems, references).corpus
    assert corpus is not None
    p: list[float] = paired_permutation(corpus).p.tolist()
    return p


def p_of_peer(systems: list[list[str]], references: list[str]) -> list[float]:
    """Do the same with sacreBLEU, which caches the n-grams of the references."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.significance import PairedTest, Result

    named: list[tuple[str, Sequence[str]]] = [
        (str(number), texts) for number, texts in enumerate(systems)
    ]
    _, results = PairedTest(named, {"BLEU": BLEU(references=[references])}, None, test_type="ar")()
    return [
        result.p_value
        for result in results["BLEU"][1:]
        if isinstance(result, Result) and result.p_value
    ]


def _time_in_turn(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Time each call once per round, each round in the reverse order of the last, after a warm-up
    round.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    processor_seconds: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for _ in range(rounds + 1):
        order.reverse()
        for name in order:
            time.sleep(REST)
            begin, processor_begin = time.perf_counter(), _processor_time()
            calls[name]()
            seconds[name].append(time.perf_counter() - begin)
            processor_seconds[name].append(_processor_time() - processor_begin)
    return {name: Timing(name, seconds[name][1:], processor_seconds[name][1:]) for name in calls}


def _processor_time() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def host_ceiling(settings: Settings) -> Case:
    """Score with only the embeddings of roberta-large, on one thread and all: whether the host
    could feed a GPU.
    """
    model = settings.models.roberta_embeddings
    number, cpus = settings.limit(HOST_PAIRS), usable_cpus()
    case = Case(
        "l",
        f"roberta-large's architecture at layer 0, {number:,} pairs of {HOST_TOKENS}-token texts",
    )
    contestants = {
        ALL_THREADS: ours(model, label=f"ours, {cpus} threads"),
        ONE_THREAD: ours(model, label="ours, one thread", nthreads=1),
    }
    contest = Contest(
        case, contestants, "together", _host_work(settings, number), number, ONE_THREAD
    )
    contest.run(settings.rounds).compare(
        ALL_THREADS, ONE_THREAD, 3 if cpus >= 4 else None, f"{cpus} threads, against one"
    )
    contest.add_stages()
    return case


def host_alone(settings: Settings) -> Case:
    """Tokenise, plan and pad for roberta-large, and run no model: the most that the host can
    prepare.
    """
    model = settings.models.roberta_embeddings
    number, cpus = settings.limit(HOST_PAIRS), usable_cpus()
    case = Case(
        "m",
        f"tokenised, planned and padded for roberta-large, {number:,} pairs of "
        f"{HOST_TOKENS}-token texts",
    )
    case.note = "The session is a stand-in that takes no time, and nothing is matched."
    work = _host_work(settings, number)
    contestants = {
        name: Contestant(label, "host-alone", model.bundle, {"device": "cpu", "nthreads": threads})
        for name, label, threads in (
            (ALL_THREADS, f"ours, {cpus} threads", cpus),
            (ONE_THREAD, "ours, one thread", 1),
        )
    }
    results = Contest(case, contestants, "prepared", work, number).run(settings.rounds).results
    tokens = sum(model.token_counts([*work["candidates"], *work["references"]]))
    for name, threads in ((ONE_THREAD, 1), (ALL_THREADS, cpus)):
        if name in results:
            rates = [tokens / seconds / threads for seconds in results[name].seconds]
            label = f"tokens/s of each thread, {contestants[name].label}"
            case.figures.append(figure(label, "tokens/s", rates, Goal(HOST_GOAL)))
    return case


def _host_work(settings: Settings, number: int) -> dict[str, list[str]]:
    """Make pairs of texts of one length."""
    words = [text for side in settings.all_pairs for text in side]
    count_tokens = settings.models.roberta_embeddings.token_counts
    texts = of_lengths(words, [HOST_TOKENS] * (2 * number), count_tokens)
    return {"candidates": texts[:number], "references": texts[number:]}
