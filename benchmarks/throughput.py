"""Cases a, b, c and h: many pairs in one call, ours against bert-score, with the same weights and texts."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contest.contest import Contest, Contestant, Results
from benchmarks.flops import model_flops
from benchmarks.settings import Settings
from harness.models import Model
from harness.processes import ChildError
from harness.results import Case, Goal, Skipped, Timing, figure, percentile, ratio
from harness.texts import of_lengths

OURS, PEER = "ours", "bert-score"  # names of contestants, and of engines
OPENVINO, INT8, BF16 = "ours-openvino", "ours-int8", "bert-score-bf16"
RANDOM_WEIGHTS = "The weights are random; speed does not depend on their values, the difference in scores does."

Pairs = tuple[list[str], list[str]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A contestant before its bundle is made, which may fail."""

    name: str
    label: str
    make: Callable[[], Contestant]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison to report: how many times faster one contestant is than another."""

    ours: str
    theirs: str
    goal: float | None = None


def minilm(settings: Settings) -> Case:
    """Score short texts with a small model."""
    model = settings.models.minilm
    pairs = settings.first_pairs(3004)
    case = Case("a", f"MiniLM, layer 4, {len(pairs[0])} pairs")
    comparisons = [
        Comparison(OURS, PEER, 1.8),
        Comparison(OPENVINO, PEER, 5),
        Comparison(OPENVINO, BF16, 1.8),
        Comparison(INT8, PEER),
    ]
    compare_throughput(case, model, _cpu_entries(model, settings), pairs, settings, comparisons, outside_goal=4)
    return case


def roberta_large(settings: Settings) -> Case:
    """Score short texts with a large model."""
    model = settings.models.roberta_large
    pairs = settings.first_pairs(256)
    case = Case("b", f"roberta-large's architecture, {model.num_layers} layers, {len(pairs[0])} pairs")
    if settings.roberta_folder is None:
        case.note = RANDOM_WEIGHTS
    comparisons = [
        Comparison(OURS, PEER, 2.0),
        Comparison(OPENVINO, PEER, 7),
        Comparison(OPENVINO, BF16, 1.8),
        Comparison(INT8, PEER, 5),
    ]
    return compare_throughput(case, model, _cpu_entries(model, settings), pairs, settings, comparisons)


def documents(settings: Settings) -> Case:
    """Score texts that nearly fill the model."""
    model = settings.models.minilm
    count = settings.limit(64)
    draw = random.Random(0)
    lengths = [draw.randint(401, 512) for _ in range(count)]  # a text may have one token less
    candidates, references = (of_lengths(texts, lengths, model.token_counts) for texts in settings.all_pairs)
    tokens = model.token_counts([*candidates, *references])
    case = Case("c", f"MiniLM, {count} pairs of documents of {min(tokens)} to {max(tokens)} tokens")
    entries = [ours(model), peer(model)]
    return compare_throughput(case, model, entries, (candidates, references), settings, [Comparison(OURS, PEER, 1.5)])


def on_gpu(settings: Settings) -> Case:
    """Score short texts with a large model on the GPU."""
    model = settings.models.roberta_large
    pairs = settings.first_pairs(3004)
    size = f"{model.num_layers} layers, {len(pairs[0])} pairs, on {settings.device}"
    case = Case("h", f"roberta-large's architecture, {size}")
    if settings.roberta_folder is None:
        case.note = RANDOM_WEIGHTS
    precision = "fp32" if settings.device == "cpu" else "fp16"
    entries = [
        ours(model, precision=precision, device=settings.device),
        peer(model, device=settings.device),
        peer(model, "bert-score-fp16", "float16", settings.device),
    ]
    comparisons = [Comparison(OURS, PEER, 8), Comparison(OURS, "bert-score-fp16", 1.5)]
    return compare_throughput(case, model, entries, pairs, settings, comparisons)


def _cpu_entries(model: Model, settings: Settings) -> list[Entry]:
    """Return both engines in each precision that they have on a CPU."""
    return [
        ours(model),
        peer(model),
        peer(model, BF16, "bfloat16"),
        ours(model, INT8, "int8"),
        ours_on_openvino(model, settings.openvino_python),
    ]


def ours(model: Model, name: str = OURS, precision: str = "fp32", device: str = "cpu") -> Entry:
    """Enter this library with the bundle of one precision."""
    label = f"ours, {precision}"
    return Entry(name, label, lambda: Contestant(label, OURS, str(model.bundle(precision)), {"device": device}))


def ours_on_openvino(model: Model, python: Path | None) -> Entry:
    """Enter this library on OpenVINO, which needs an environment of its own."""
    label = "ours, fp32 bundle on OpenVINO"

    def make() -> Contestant:
        if python is None:
            raise ChildError("no --openvino-python was given")
        return Contestant(label, OURS, str(model.bundle()), {"device": "openvino"}, str(python))

    return Entry(OPENVINO, label, make)


def peer(model: Model, name: str = PEER, dtype: str = "float32", device: str = "cpu") -> Entry:
    """Enter bert-score, its model cast to a type."""
    label = "bert-score 0.3.13" + ("" if dtype == "float32" else f", model in {dtype}")
    options = {"device": device, "num_layers": model.num_layers, "dtype": dtype}
    return Entry(name, label, lambda: Contestant(label, PEER, str(model.folder), options))


def compare_throughput(
    case: Case,
    model: Model,
    entries: Sequence[Entry],
    pairs: Pairs,
    settings: Settings,
    comparisons: Sequence[Comparison],
    outside_goal: float | None = None,
) -> Case:
    """Let all entries score the pairs, and add the results to the case; the stages of the first entry are timed.

    `outside_goal` is the largest percentage of our time that may pass outside the model.
    """
    contestants, case.skipped = admit(entries, settings.left_out)
    candidates, references = pairs
    work = {"candidates": candidates, "references": references}
    contest = Contest(contestants, "together", dict.fromkeys(contestants, work), [entries[0].name])
    results, failed = contest.run(settings.rounds)
    labels = {entry.name: entry.label for entry in entries}
    case.skipped += [Skipped(labels[name], reason) for name, reason in failed.items()]
    scores = results[PEER].scores if PEER in results else []
    for name, result in results.items():
        case.timings.append(timing_of(labels[name], result, len(candidates), [] if name == PEER else scores))
    for comparison in comparisons:
        if {comparison.ours, comparison.theirs} <= results.keys():
            name = f"{labels[comparison.ours]}, against {labels[comparison.theirs]}"
            our, their = (results[one].round_seconds for one in (comparison.ours, comparison.theirs))
            goal = None if comparison.goal is None else Goal(comparison.goal)
            case.figures.append(ratio(name, our, their, goal))
    if entries[0].name in results:
        add_stages(case, results[entries[0].name], model_flops(model, [*candidates, *references]), outside_goal)
    return case


def admit(entries: Sequence[Entry], left_out: Sequence[str]) -> tuple[dict[str, Contestant], list[Skipped]]:
    """Make the contestants; skip those that cannot be made, with the reason."""
    admitted: dict[str, Contestant] = {}
    skipped = []
    for entry in entries:
        if entry.name in left_out:
            skipped.append(Skipped(entry.label, "left out by --skip"))
            continue
        try:
            admitted[entry.name] = entry.make()
        except ChildError as error:
            skipped.append(Skipped(entry.label, error.reason))
    return admitted, skipped


def timing_of(label: str, results: Results, pairs: int, peer_scores: Sequence[float] = ()) -> Timing:
    """Sum up one contestant; a round of many calls counts as their median."""
    seconds = [percentile(calls, 50) for calls in results.rounds]
    work = pairs if len(results.rounds[0]) == 1 else 1
    difference = None
    if peer_scores and results.scores:
        difference = max(abs(our - their) for our, their in zip(results.scores, peer_scores, strict=True))
    return Timing(label, seconds, work / statistics.median(seconds), results.peak_memory, difference)


def add_stages(case: Case, results: Results, flops: float, goal: float | None = None) -> None:
    """Add to a case the share of each stage, and the rate of the model."""
    case.stages = results.stages
    outside = 100 * (1 - results.stages["encode"])
    target = None if goal is None else Goal(goal, at_most=True)
    case.figures.append(figure("our time outside the model", "%", [outside], target))
    case.encode_rate = flops / results.encode_seconds
