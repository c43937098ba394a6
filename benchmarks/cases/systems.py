"""The outputs of several systems, against the same references."""

import random

from benchmarks.cases.comparison import OURS, add_stages, timing_of
from benchmarks.contest.contest import Contest, Contestant
from benchmarks.flops import model_flops
from benchmarks.settings import Settings
from harness.results import Case, Goal, Skipped, ratio
from harness.texts import altered

SYSTEMS = 10


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
    results, failed = Contest(contestants, "systems", work, ["once"]).run(settings.rounds)
    case.skipped = [Skipped(labels[name], reason) for name, reason in failed.items()]
    pairs = SYSTEMS * len(references)
    case.timings = [timing_of(labels[name], one, pairs) for name, one in results.items()]
    if "once" in results:
        add_stages(case, results["once"], model_flops(model, [*references, *(text for one in outputs for text in one)]))
    if len(results) == 2:
        once, each = ([calls[0] for calls in results[name].rounds] for name in ("once", "each"))
        case.figures.insert(0, ratio("encoded once, against each time", once, each, Goal(1.7)))
    return case
