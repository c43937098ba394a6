"""Short texts, many in one call, with a large model on CUDA."""

from benchmarks.cases.comparison import OURS, PEER, Comparison, compare_throughput, ours, peer
from benchmarks.settings import Settings
from harness.results import Case


def on_gpu(settings: Settings) -> Case:
    """Score short texts with a large model on the GPU."""
    model = settings.models.roberta_large
    pairs = settings.some_pairs(3004)
    size = f"{model.num_layers} layers, {len(pairs[0])} pairs, on {settings.device}"
    case = Case("h", f"roberta-large's architecture, {size}")
    if settings.roberta_folder is None:
        case.note = "The weights are random; speed does not depend on their values, the difference in scores does."
    precision = "fp32" if settings.device == "cpu" else "fp16"
    entries = [
        ours(model, label=f"ours, {precision}", precision=precision, device=settings.device),
        peer(model, device=settings.device),
        peer(model, "bert-score-fp16", "float16", settings.device),
    ]
    comparisons = [Comparison(OURS, PEER, 8), Comparison(OURS, "bert-score-fp16", 1.5)]
    return compare_throughput(case, model, entries, pairs, settings, comparisons)
