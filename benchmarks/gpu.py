"""Measures this library and its rivals on CUDA in five minutes: `python -m benchmarks.gpu` (`make
bench-gpu`).

Needs the extra `gpu`, bert-score and a PyTorch with CUDA in one environment, and says first what is
missing. If the packages of the export are missing, give a bundle, `--bundle
roberta-large-fp16=PATH`, one in fp32, `--bundle roberta-large-fp32=PATH`, and the folder of the
same weights, `--roberta-large PATH`. `--rehearse` does all of it with a tiny model on the CPU, so
that it works when there is a GPU.
"""

import argparse
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from benchmarks.attention import UNFUSED, attention_kernels, describe_kernels
from benchmarks.calls import first_and_single
from benchmarks.cases import OURS, RANDOM_WEIGHTS, peer
from benchmarks.contest import PEER, Contest, Contestant
from benchmarks.flops import model_flops, product_rate
from benchmarks.run import run_cases
from benchmarks.settings import SYNTHETIC_PAIRS, Settings, add_options
from harness.results import Case, Goal, figure
from harness.texts import synthetic_pairs

FP16, SDPA, UNPADDED = "bert-score-fp16", "torch-sdpa", "torch-unpadded"
MANY = 10_000
PRODUCT_SIZE, SHARE_GOAL = 8192, 40
REHEARSED_PAIRS = 60
NEEDED = (
    "onnxruntime",
    "torch",
    "transformers",
    "bert_score",
    "threadpoolctl",
    "onnx",
    "starlette",
    "uvicorn",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases; exit with 1 if attention is not fused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    add_options(parser)
    parser.set_defaults(rounds=3)
    parser.add_argument(
        "--rehearse", dest="is_rehearsal", action="store_true", help="on the CPU, with a tiny model"
    )
    settings = Settings(**vars(parser.parse_args(arguments)), device="cuda")
    if settings.is_rehearsal:
        settings = replace(
            settings, device="cpu", rounds=1, pairs=min(settings.pairs or REHEARSED_PAIRS, 1000)
        )
    facts = {} if settings.is_rehearsal else gpu_facts()
    with ThreadPoolExecutor(2) as exports:
        list(exports.map(settings.gpu_model.bundle, ("fp16", "fp32")))
    dtype, size = ("float32", 256) if settings.is_rehearsal else ("float16", PRODUCT_SIZE)
    peak = partial(product_rate, settings.device, dtype, [size])
    report = run_cases(
        [few_pairs, many_pairs, first_and_single], settings, "gpu", peak, SHARE_GOAL, facts
    )
    if UNFUSED in report.cases[0].note:
        raise SystemExit("Attention is not fused: see above.")


def few_pairs(settings: Settings) -> Case:
    """Score short texts with a large model on the GPU."""
    number = settings.limit(SYNTHETIC_PAIRS)
    comparisons = [(OURS, PEER, 18.0), (OURS, FP16, 4.0), (OURS, SDPA, 1.5), (OURS, UNPADDED, None)]
    case = throughput(settings, "h", number, comparisons)
    differences = {timing.label: timing.score_difference for timing in case.timings}
    if (difference := differences.get("ours, fp16")) is not None:
        name = "largest difference of F from bert-score in fp32"
        case.figures.append(figure(name, "/ 1,000", [1000 * difference], Goal(1, at_most=True)))
    kernels = describe_kernels(
        attention_kernels(settings.gpu_model.bundle("fp16"), settings.device)
    )
    case.note = f"{case.note} Attention: {kernels}.".strip()
    return case


def many_pairs(settings: Settings) -> Case:
    """Score more pairs, so that the card is busy."""
    return throughput(
        settings, "n", settings.limit(MANY), [(OURS, SDPA, 2.0), (OURS, UNPADDED, 1.3)]
    )


def throughput(
    settings: Settings, name: str, number: int, comparisons: list[tuple[str, str, float | None]]
) -> Case:
    """Let the library and those that it is compared with score pairs, warm."""
    model, device = settings.gpu_model, settings.device
    candidates, references = settings.all_pairs if settings.texts else synthetic_pairs(number)
    candidates, references = candidates[:number], references[:number]
    case = Case(
        name,
        f"{model.name}'s architecture, {model.num_layers} layers, {len(candidates):,} pairs, on "
        f"{device}",
    )
    case.note = RANDOM_WEIGHTS if settings.roberta_folder is None else ""
    in_torch = {"device": device, "num_layers": model.num_layers}
    contestants = {
        OURS: Contestant("ours, fp16", OURS, partial(model.bundle, "fp16"), {"device": device}),
        PEER: peer(model, device=device),
        FP16: peer(model, "float16", device),
        SDPA: Contestant("PyTorch, fp16, sdpa", "torch", lambda: model.folder, in_torch),
        UNPADDED: Contestant(
            "PyTorch, fp16, unpadded", "torch", lambda: model.folder, {**in_torch, "unpadded": True}
        ),
    }
    taking_part = {OURS, *(other for _, other, _ in comparisons)}
    contestants = {key: contestant for key, contestant in contestants.items() if key in taking_part}
    work = {"candidates": candidates, "references": references}
    contest = Contest(case, contestants, "together", work, len(candidates), OURS)
    contest.run(settings.rounds, settings.left_out)
    for comparison in comparisons:
        contest.compare(*comparison)
    contest.add_stages(model_flops(model, [*candidates, *references]))
    return case


def gpu_facts() -> dict[str, str]:
    """Return the name of the GPU; end with a message that names all that is missing here."""
    missing = [f"the package {name}" for name in NEEDED if importlib.util.find_spec(name) is None]
    if not missing:
        import onnxruntime
        import torch

        if not torch.cuda.is_available():
            missing.append("a CUDA device that PyTorch finds")
        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            missing.append(
                "ONNX Runtime for CUDA (`pip uninstall -y onnxruntime`, then `pip install "
                "'bertscore-onnx[gpu]'`)"
            )
    if missing:
        raise SystemExit(f"Missing here: {', '.join(missing)}.")
    return {"gpu": torch.cuda.get_device_name("cuda"), "cuda": str(torch.version.cuda)}


if __name__ == "__main__":
    main()
