"""Pairs in a stream, and the memory that they take."""

from benchmarks.cases.comparison import OURS, timing_of
from benchmarks.contest.contest import Contest, Contestant
from benchmarks.settings import Settings
from harness.results import Case, Goal, Skipped, figure

FEW_STREAMED = 10_000


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
