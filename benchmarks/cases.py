"""The cases on the CPU, one function each."""

import random
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.contest import REST, Contest, Contestant, environment
from benchmarks.growth import measure_growth
from benchmarks.models import Model
from benchmarks.results import Case, Contender, Goal, Skipped, figure, percentile, ratio
from benchmarks.settings import Settings
from benchmarks.texts import altered, of_lengths
from benchmarks.throughput import (
    OURS,
    PEER,
    Entry,
    Versus,
    add_stages,
    compare_throughput,
    contender,
    ours,
    ours_on_openvino,
    peer,
)

SYSTEMS = 10
FEW_STREAMED = 10_000


def minilm(settings: Settings) -> Case:
    """Score short texts with a small model."""
    model = settings.models.minilm
    pairs = settings.some_pairs(3004)
    case = Case("a", f"MiniLM, layer 4, {len(pairs[0])} pairs")
    comparisons = [
        Versus(OURS, PEER, 1.8),
        Versus("ours-openvino", PEER, 5),
        Versus("ours-openvino", "bert-score-bf16", 1.8),
        Versus("ours-int8", PEER),
    ]
    compare_throughput(case, model, _all_precisions(model, settings), pairs, settings, comparisons, outside_goal=5)
    return case


def roberta_large(settings: Settings) -> Case:
    """Score short texts with a large model."""
    model = settings.models.roberta_large
    pairs = settings.some_pairs(256)
    case = Case("b", f"roberta-large's architecture, {model.num_layers} layers, {len(pairs[0])} pairs")
    if settings.roberta_folder is None:
        case.note = "The weights are random; speed does not depend on their values, the difference in scores does."
    comparisons = [
        Versus(OURS, PEER, 2.0),
        Versus("ours-openvino", PEER, 7),
        Versus("ours-openvino", "bert-score-bf16", 1.8),
        Versus("ours-int8", PEER, 5),
    ]
    compare_throughput(case, model, _all_precisions(model, settings), pairs, settings, comparisons)
    return case


def _all_precisions(model: Model, settings: Settings) -> list[Entry]:
    """Return both engines, each in the precisions it has on a CPU."""
    return [
        ours(model),
        peer(model),
        peer(model, "bert-score-bf16", "bfloat16"),
        ours(model, "ours-int8", "ours, int8", "int8"),
        ours_on_openvino(model, settings.openvino_python),
    ]


def documents(settings: Settings) -> Case:
    """Score texts that nearly fill the model."""
    model = settings.models.minilm
    count = settings.limit(64)
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    lengths = [draw.randint(401, 512) for _ in range(count)]  # a text may have one less
    candidates, references = (of_lengths(texts, lengths, model.token_counts) for texts in settings.all_pairs)
    tokens = model.token_counts([*candidates, *references])
    case = Case("c", f"MiniLM, {count} pairs of documents of {min(tokens)} to {max(tokens)} tokens")
    entries = [ours(model), peer(model)]
    return compare_throughput(case, model, entries, (candidates, references), settings, [Versus(OURS, PEER, 1.5)])


def one_pair(settings: Settings) -> Case:
    """Score one pair a call, and see what that costs over the model's own time."""
    model = settings.models.minilm
    candidates, references = settings.some_pairs(100)
    case = Case("d", f"MiniLM, one pair a call, {len(candidates)} calls a round")
    case.note = "The model alone repeats the very runs of ONNX Runtime that scoring a pair makes, in the same session."
    bundle, device = str(model.bundle()), {"device": "cpu"}
    alone = "model-alone"
    contestants = {
        OURS: Contestant("ours", OURS, bundle, device),
        alone: Contestant("the model alone", alone, bundle, device),  # next to ours, since machines change their speed
        PEER: peer(model).make(),
    }
    work = {name: {"candidates": candidates, "references": references} for name in contestants}
    results, absent = Contest(contestants, "singly", work, [OURS]).hold(settings.rounds)
    case.skipped = [Skipped(contestants[name].label, reason) for name, reason in absent.items()]
    for name, one in results.items():
        case.contenders.append(contender(contestants[name].label, one, 1))
        for percent in (50, 99):
            values = [1000 * percentile(calls, percent) for calls in one.rounds]
            case.figures.append(figure(f"p{percent} of {contestants[name].label}", "ms", values))
    if {OURS, alone} <= results.keys():
        medians = [[percentile(calls, 50) for calls in results[name].rounds] for name in (OURS, alone)]
        over = [1000 * (whole - model_time) for whole, model_time in zip(*medians, strict=True)]
        case.figures.append(figure("p50 of ours over the model alone", "ms", over, Goal(1, at_most=True)))
    if OURS in results:
        add_stages(case, results[OURS], model.encode_flops([*candidates, *references]))
    return case


FIRST_SCORE = {
    "ours": """
import sys
from bertscore_onnx import BERTScorer
scorer = BERTScorer(sys.argv[1], device="cpu")
scorer.score(["A cat sat on the mat."], ["The cat sat on a mat."])
print("scored", flush=True)
""",
    "bert-score": """
import sys
from bert_score import BERTScorer
scorer = BERTScorer(sys.argv[1], num_layers=int(sys.argv[2]), device="cpu")
scorer.score(["A cat sat on the mat."], ["The cat sat on a mat."])
print("scored", flush=True)
""",
}


def start(settings: Settings) -> Case:
    """Start a fresh process and wait for its first score."""
    model = settings.models.minilm
    case = Case("e", "MiniLM, from the start of a process to its first score")
    commands = {
        OURS: [FIRST_SCORE[OURS], str(model.bundle())],
        PEER: [FIRST_SCORE[PEER], str(model.folder), str(model.num_layers)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(settings.rounds + 1):
        for name, command in commands.items():
            taken = _seconds_to_first_line(command)
            if number:  # the first time fills the caches of the disk
                seconds[name].append(taken)
    case.contenders = [Contender(name, taken) for name, taken in seconds.items()]
    case.figures = [ratio("ours, against bert-score 0.3.13", seconds[OURS], seconds[PEER])]
    return case


def streaming(settings: Settings) -> Case:
    """Stream many pairs and few, and see whether memory grows."""
    model = settings.models.tiny
    few, many = FEW_STREAMED, settings.stream_pairs
    case = Case("f", f"a random BERT of one layer, {many:,} pairs streamed, against {few:,}")
    measured = {}
    for count in (few, many):
        name = f"{count:,} pairs"
        contestants = {name: Contestant(name, OURS, str(model.bundle()), {"device": "cpu"})}
        work = {name: {"count": count}}
        results, absent = Contest(contestants, "stream", work, [name] if count == few else [], warm_up=False).hold(1)
        case.skipped += [Skipped(label, reason) for label, reason in absent.items()]
        if name in results:
            measured[count] = results[name]
            case.contenders.append(contender(name, results[name], count))
    if len(measured) == 2:
        growth = 100 * (measured[many].peak_memory / measured[few].peak_memory - 1)
        case.figures.append(figure("growth of peak memory", "%", [growth], Goal(5, at_most=True)))
    if few in measured:
        case.stages = measured[few].stages
    return case


def systems(settings: Settings) -> Case:
    """Score ten systems against one set of references, encoded once or each time."""
    model = settings.models.minilm
    candidates, references = settings.some_pairs(500)
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    outputs = [candidates] + [[altered(text, draw) for text in candidates] for _ in range(SYSTEMS - 1)]
    case = Case("g", f"MiniLM, {SYSTEMS} systems of {len(references)} texts against one set of references")
    labels = {"once": "references encoded once", "each": "references encoded for each system"}
    contestants = {
        name: Contestant(label, OURS, str(model.bundle()), {"device": "cpu"}) for name, label in labels.items()
    }
    work = {name: {"systems": outputs, "references": references, "encode_once": name == "once"} for name in contestants}
    results, absent = Contest(contestants, "systems", work, ["once"]).hold(settings.rounds)
    case.skipped = [Skipped(labels[name], reason) for name, reason in absent.items()]
    pairs = SYSTEMS * len(references)
    case.contenders = [contender(labels[name], one, pairs) for name, one in results.items()]
    if "once" in results:
        add_stages(case, results["once"], model.encode_flops([*references, *(text for one in outputs for text in one)]))
    if len(results) == 2:
        once, each = ([calls[0] for calls in results[name].rounds] for name in ("once", "each"))
        case.figures.insert(0, ratio("encoded once, against each time", once, each, Goal(1.7)))
    return case


def _seconds_to_first_line(command: list[str]) -> float:
    time.sleep(REST)  # or the threads of the process before count in
    begin = time.perf_counter()
    with subprocess.Popen(  # noqa: S603 -- our own code
        [sys.executable, "-c", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        taken = time.perf_counter() - begin
        if not line:
            raise SystemExit(f"This failed; run it to see why: python -c '{command[0]}' {' '.join(command[1:])}")
    return taken


CASES: dict[str, Callable[[Settings], Case]] = {
    "a": minilm,
    "b": roberta_large,
    "c": documents,
    "d": one_pair,
    "e": start,
    "f": streaming,
    "g": systems,
    "growth": measure_growth,
}
"""What `--case` chooses from."""
