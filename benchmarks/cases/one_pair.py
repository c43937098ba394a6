"""One pair a call."""

from benchmarks.cases.comparison import OURS, PEER, add_stages, peer, timing_of
from benchmarks.contest.contest import Contest, Contestant
from benchmarks.flops import model_flops
from benchmarks.settings import Settings
from harness.results import Case, Goal, Skipped, figure, percentile


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
    results, failed = Contest(contestants, "singly", work, [OURS]).run(settings.rounds)
    case.skipped = [Skipped(contestants[name].label, reason) for name, reason in failed.items()]
    for name, one in results.items():
        case.timings.append(timing_of(contestants[name].label, one, 1))
        for percent in (50, 99):
            values = [1000 * percentile(calls, percent) for calls in one.rounds]
            case.figures.append(figure(f"p{percent} of {contestants[name].label}", "ms", values))
    if {OURS, alone} <= results.keys():
        medians = [[percentile(calls, 50) for calls in results[name].rounds] for name in (OURS, alone)]
        over = [1000 * (whole - model_time) for whole, model_time in zip(*medians, strict=True)]
        case.figures.append(figure("p50 of ours over the model alone", "ms", over, Goal(1, at_most=True)))
    if OURS in results:
        add_stages(case, results[OURS], model_flops(model, [*candidates, *references]))
    return case
