"""One pair a call."""

from benchmarks.cases.comparison import OURS, PEER, add_stages, peer, timing_of
from benchmarks.contest.contest import Contest, Contestant
from benchmarks.flops import model_flops
from benchmarks.settings import Settings
from bertscore_onnx.concurrency.cpus import cpu_features, usable_cpus
from harness.results import Case, Goal, Skipped, figure, percentile, ratio

LATENCY, ALONE = "ours-latency", "model-alone"


def one_pair(settings: Settings) -> Case:
    """Score one pair a call, and see what that costs over the model's own time."""
    model = settings.models.minilm
    candidates, references = settings.some_pairs(100)
    case = Case("d", f"MiniLM, one pair a call, {len(candidates)} calls a round")
    case.note = "The model alone repeats the very run of ONNX Runtime that scoring a pair for latency makes."
    bundle = str(model.bundle())
    throughput = {"device": "cpu", "optimize_for": "throughput"}
    latency = {"device": "cpu", "optimize_for": "latency"}
    contestants = {
        OURS: Contestant("ours, for throughput", OURS, bundle, throughput),
        LATENCY: Contestant("ours, for latency", OURS, bundle, latency),
        ALONE: Contestant("the model alone", ALONE, bundle, latency),  # next to ours, since machines change their speed
        PEER: peer(model).make(),
    }
    work = {name: {"candidates": candidates, "references": references} for name in contestants}
    results, failed = Contest(contestants, "singly", work, [LATENCY]).run(settings.rounds)
    case.skipped = [Skipped(contestants[name].label, reason) for name, reason in failed.items()]
    medians = {}
    for name, one in results.items():
        case.timings.append(timing_of(contestants[name].label, one, 1))
        medians[name] = [percentile(calls, 50) for calls in one.rounds]
        for percent in (50, 99):
            values = [1000 * percentile(calls, percent) for calls in one.rounds]
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
