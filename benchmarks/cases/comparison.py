"""Many pairs in one call: ours against bert-score, on the same weights and texts."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contest.contest import Contest, Contestant, Results
from benchmarks.contest.worker import ContestantError
from benchmarks.flops import model_flops
from benchmarks.settings import Settings
from harness.child import ChildError
from harness.models import Model
from harness.results import Case, Figure, Goal, Skipped, Timing, figure, percentile, ratio

OURS, PEER = "ours", "bert-score"
Pairs = tuple[list[str], list[str]]


@dataclass(frozen=True, slots=True)
class Entry:
    """A contestant before its bundle is made, which may fail."""

    name: str
    label: str
    make: Callable[[], Contestant]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison to report."""

    ours: str
    theirs: str
    goal: float | None = None
    """How many times faster ours should be."""


def ours(
    model: Model, name: str = OURS, label: str = "ours, fp32", precision: str = "fp32", device: str = "cpu"
) -> Entry:
    """Enter this library with the bundle of one precision."""
    return Entry(name, label, lambda: Contestant(label, OURS, str(model.bundle(precision)), {"device": device}))


def ours_on_openvino(model: Model, python: Path | None) -> Entry:
    """Enter this library on OpenVINO, in an environment of its own."""
    label = "ours, fp32 bundle on OpenVINO"

    def make() -> Contestant:
        if python is None:
            raise ContestantError("no --openvino-python was given")
        return Contestant(label, OURS, str(model.bundle()), {"device": "openvino"}, str(python))

    return Entry("ours-openvino", label, make)


def peer(model: Model, name: str = PEER, dtype: str = "float32", device: str = "cpu") -> Entry:
    """Enter bert-score, its model cast to a type."""
    label = "bert-score 0.3.13" + ("" if dtype == "float32" else f", model in {dtype}")
    options = {"device": device, "num_layers": model.num_layers, "dtype": dtype}
    return Entry(name, label, lambda: Contestant(label, "bert-score", str(model.folder), options))


def compare_throughput(
    case: Case,
    model: Model,
    entries: Sequence[Entry],
    pairs: Pairs,
    settings: Settings,
    comparisons: Sequence[Comparison],
    outside_goal: float | None = None,
) -> Case:
    """Let all entries score the pairs, and fill in what the case found.

    Args:
        case: the case so far.
        model: what is scored with.
        entries: the contestants; the first is the one whose stages are timed.
        pairs: candidates and references.
        settings: how often, and who is left out.
        comparisons: which of them to compare.
        outside_goal: the most percent of our time that may pass outside the model.
    """
    contestants, case.skipped = admit(entries, settings.left_out)
    candidates, references = pairs
    work = {"candidates": candidates, "references": references}
    contest = Contest(contestants, "together", dict.fromkeys(contestants, work), [entries[0].name])
    results, failed = contest.run(settings.rounds)
    labels = {entry.name: entry.label for entry in entries}
    case.skipped += [Skipped(labels[name], reason) for name, reason in failed.items()]
    scores = results[PEER].scores if PEER in results else []
    for name, one in results.items():
        case.timings.append(timing_of(labels[name], one, len(candidates), [] if name == PEER else scores))
    for comparison in comparisons:
        if {comparison.ours, comparison.theirs} <= results.keys():
            case.figures.append(_compared(comparison, labels, results))
    if entries[0].name in results:
        add_stages(case, results[entries[0].name], model_flops(model, [*candidates, *references]), outside_goal)
    return case


def admit(entries: Sequence[Entry], left_out: Sequence[str]) -> tuple[dict[str, Contestant], list[Skipped]]:
    """Make the contestants; those that cannot be made are skipped with the reason."""
    admitted: dict[str, Contestant] = {}
    skipped = []
    for entry in entries:
        if entry.name in left_out:
            skipped.append(Skipped(entry.label, "left out by --skip"))
            continue
        try:
            admitted[entry.name] = entry.make()
        except (ContestantError, ChildError) as error:
            skipped.append(Skipped(entry.label, str(error).strip().splitlines()[-1]))  # of a traceback, what it is
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
    """Fill in where our time went, and how fast the model ran meanwhile."""
    case.stages = results.stages
    outside = 100 * (1 - results.stages["encode"])
    target = None if goal is None else Goal(goal, at_most=True)
    case.figures.append(figure("our time outside the model", "%", [outside], target))
    case.encode_rate = flops / results.encode_seconds


def _compared(comparison: Comparison, labels: Mapping[str, str], results: Mapping[str, Results]) -> Figure:
    goal = None if comparison.goal is None else Goal(comparison.goal)
    name = f"{labels[comparison.ours]}, against {labels[comparison.theirs]}"
    our, their = ([calls[0] for calls in results[one].rounds] for one in (comparison.ours, comparison.theirs))
    return ratio(name, our, their, goal)
