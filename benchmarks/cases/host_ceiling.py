"""What the host does around a model that takes almost no time, so that it could feed a GPU."""

from benchmarks.cases.comparison import OURS, timing_of
from benchmarks.contest.contest import Contest, Contestant
from benchmarks.settings import Settings
from bertscore_onnx.concurrency.cpus import usable_cpus
from harness.results import Case, Goal, Skipped, ratio
from harness.texts import of_lengths

PAIRS, TOKENS = 4000, 50
ALL, ONE = "all-threads", "one-thread"


def host_ceiling(settings: Settings) -> Case:
    """Score pairs of distinct texts with the embeddings of roberta-large alone, on one thread and on all."""
    model = settings.models.roberta_embeddings
    number, cpus = settings.limit(PAIRS), usable_cpus()
    case = Case("l", f"roberta-large's architecture at layer 0, {number:,} pairs of {TOKENS}-token texts")
    words = [text for side in settings.all_pairs for text in side]
    texts = of_lengths(words, [TOKENS] * (2 * number), model.token_counts)
    work = {"candidates": texts[:number], "references": texts[number:]}
    bundle = str(model.bundle())
    contestants = {
        ALL: Contestant(f"ours, {cpus} threads", OURS, bundle, {"device": "cpu"}),
        ONE: Contestant("ours, one thread", OURS, bundle, {"device": "cpu", "nthreads": 1}),
    }
    contest = Contest(contestants, "together", dict.fromkeys(contestants, work), [ONE])
    results, failed = contest.run(settings.rounds)
    case.skipped = [Skipped(contestants[name].label, reason) for name, reason in failed.items()]
    case.timings = [timing_of(contestants[name].label, one, number) for name, one in results.items()]
    if {ALL, ONE} <= results.keys():
        many, one = ([calls[0] for calls in results[name].rounds] for name in (ALL, ONE))
        case.figures.append(ratio(f"{cpus} threads, against one", many, one, Goal(3) if cpus >= 4 else None))
    if ONE in results:
        case.stages = results[ONE].stages
    return case
