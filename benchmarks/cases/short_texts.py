"""Short texts, many in one call, with a small model and a large one."""

from benchmarks.cases.comparison import OURS, PEER, Comparison, Entry, compare_throughput, ours, ours_on_openvino, peer
from benchmarks.settings import Settings
from harness.models import Model
from harness.results import Case


def minilm(settings: Settings) -> Case:
    """Score short texts with a small model."""
    model = settings.models.minilm
    pairs = settings.some_pairs(3004)
    case = Case("a", f"MiniLM, layer 4, {len(pairs[0])} pairs")
    comparisons = [
        Comparison(OURS, PEER, 1.8),
        Comparison("ours-openvino", PEER, 5),
        Comparison("ours-openvino", "bert-score-bf16", 1.8),
        Comparison("ours-int8", PEER),
    ]
    compare_throughput(case, model, _all_precisions(model, settings), pairs, settings, comparisons, outside_goal=4)
    return case


def roberta_large(settings: Settings) -> Case:
    """Score short texts with a large model."""
    model = settings.models.roberta_large
    pairs = settings.some_pairs(256)
    case = Case("b", f"roberta-large's architecture, {model.num_layers} layers, {len(pairs[0])} pairs")
    if settings.roberta_folder is None:
        case.note = "The weights are random; speed does not depend on their values, the difference in scores does."
    comparisons = [
        Comparison(OURS, PEER, 2.0),
        Comparison("ours-openvino", PEER, 7),
        Comparison("ours-openvino", "bert-score-bf16", 1.8),
        Comparison("ours-int8", PEER, 5),
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
