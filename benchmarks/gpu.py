"""Measures this library and its rivals on CUDA: `python -m benchmarks.gpu` (`make bench-gpu`).

First come probes, which find out how the GPU is used best, then the case h. Needs the extra `gpu`, bert-score and a
PyTorch with CUDA in one environment. If the packages of the export are missing, give a bundle with a scoring graph,
`--bundle roberta-large-fp16=PATH`, one in fp32, `--bundle roberta-large-fp32=PATH`, and the folder of the same weights,
`--roberta-large PATH`. `--rehearse` does all of it with a tiny model on the CPU, so that it works when there is a GPU.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from benchmarks.attention import UNFUSED, attention_kernels, describe_kernels
from benchmarks.cases import OURS, RANDOM_WEIGHTS, compare_throughput, peer
from benchmarks.contest import PEER, Contestant
from benchmarks.flops import product_rate
from benchmarks.probes import PROBES, Rows, run_probes
from benchmarks.run import run_cases
from benchmarks.settings import Settings, add_options
from harness.results import Case, Goal, figure

FP16, SDPA, UNPADDED = "bert-score-fp16", "torch-sdpa", "torch-unpadded"
CASE = 7
PRODUCT_SIZE = 8192
SHARE_GOAL = 40
SOAK = 600.0
REHEARSED_PAIRS = 60


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the probes and the case; exit with 1 if a probe failed, or if attention is not fused."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    add_options(parser)
    steps = sorted([*PROBES, CASE])
    parser.add_argument(
        "--step", type=int, action="append", choices=steps, help=f"a probe, or {CASE}, the case (default: all)"
    )
    parser.add_argument("--soak", type=float, default=SOAK, help="seconds of the last probe (default: 600)")
    parser.add_argument("--rehearse", dest="is_rehearsal", action="store_true", help="on the CPU, with a tiny model")
    options = vars(parser.parse_args(arguments))
    chosen, soak = options.pop("step") or steps, options.pop("soak")
    settings = Settings(**options, device="cuda")
    if settings.is_rehearsal:
        settings = replace(settings, device="cpu", rounds=1, pairs=min(settings.pairs or REHEARSED_PAIRS, 1000))
    facts = {} if settings.is_rehearsal else gpu_facts()
    settings.output.mkdir(parents=True, exist_ok=True)
    probed: dict[int, Rows] = {}
    works = run_probes(settings, [number for number in chosen if number < CASE], soak, probed)
    if CASE in chosen:
        dtype, size = ("float32", 256) if settings.is_rehearsal else ("float16", PRODUCT_SIZE)
        report = run_cases(
            [on_gpu], settings, "gpu", partial(product_rate, settings.device, dtype, [size]), SHARE_GOAL, facts
        )
        works &= UNFUSED not in report.cases[0].note
    works &= run_probes(settings, [number for number in chosen if number > CASE], soak, probed)
    if not works:
        raise SystemExit("A probe failed, or attention is not fused: see above.")


def on_gpu(settings: Settings) -> Case:
    """Score short texts with a large model on the GPU."""
    model, device = settings.gpu_model, settings.device
    pairs = settings.first_pairs(3004)
    case = Case("h", f"{model.name}'s architecture, {model.num_layers} layers, {len(pairs[0])} pairs, on {device}")
    bundle = partial(model.bundle, "fp16")
    in_torch = {"device": device, "num_layers": model.num_layers}
    contestants = {
        OURS: Contestant("ours, fp16", OURS, bundle, {"device": device}),
        PEER: peer(model, device=device),
        FP16: peer(model, "float16", device),
        SDPA: Contestant("PyTorch, fp16, sdpa", "torch", lambda: model.folder, in_torch),
        UNPADDED: Contestant("PyTorch, fp16, unpadded", "torch", lambda: model.folder, {**in_torch, "unpadded": True}),
    }
    comparisons = [
        (OURS, PEER, 10.0),
        (OURS, FP16, 2.0),
        (OURS, SDPA, 1.2),
        (OURS, UNPADDED, None),
    ]
    compare_throughput(case, model, contestants, pairs, settings, comparisons)
    differences = {timing.label: timing.score_difference for timing in case.timings}
    if (difference := differences.get(contestants[OURS].label)) is not None:
        name = "largest difference of F from bert-score in fp32"
        case.figures.append(figure(name, "/ 1,000", [1000 * difference], Goal(5, at_most=True)))
    kernels = describe_kernels(attention_kernels(bundle(), device))
    case.note = f"{RANDOM_WEIGHTS if settings.roberta_folder is None else ''} Attention: {kernels}.".strip()
    return case


def gpu_facts() -> dict[str, str]:
    """Return the name of the GPU; end with a message if PyTorch or ONNX Runtime cannot use CUDA here."""
    import onnxruntime
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device here. Run this on a machine with one.")
    providers = onnxruntime.get_available_providers()
    if "CUDAExecutionProvider" not in providers:
        raise SystemExit(
            f"ONNX Runtime offers only {', '.join(providers)}. Install the GPU wheel instead of the CPU one: "
            "`pip uninstall -y onnxruntime`, then `pip install 'bertscore-onnx[gpu]'`."
        )
    return {"gpu": torch.cuda.get_device_name("cuda"), "cuda": str(torch.version.cuda)}


if __name__ == "__main__":
    main()
