"""Measures this library against bert-score on CUDA: `python -m benchmarks.gpu` (`make bench-gpu`).

Needs the extra `gpu`, bert-score and a PyTorch with CUDA in one environment. If the packages of the export are missing,
give a bundle, `--bundle roberta-large-fp16=PATH`, and the folder of the same weights, `--roberta-large PATH`.
"""

import argparse
from collections.abc import Sequence

from benchmarks.flops import product_rate
from benchmarks.run import run_cases
from benchmarks.settings import Settings, add_options
from benchmarks.throughput import on_gpu

PRODUCT_SIZE = 8192
SHARE_GOAL = 40
REHEARSAL = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}  # on the CPU


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    add_options(parser)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)  # "cpu" rehearses, with a tiny model
    chosen = parser.parse_args(arguments)
    rehearsal = chosen.device == "cpu"
    facts = {} if rehearsal else gpu_facts(chosen.device)
    settings = Settings(**vars(chosen), roberta_sizes=REHEARSAL if rehearsal else None)
    dtype, size = ("float32", 256) if rehearsal else ("float16", PRODUCT_SIZE)
    run_cases([on_gpu], settings, "gpu", lambda: product_rate(chosen.device, dtype, [size]), SHARE_GOAL, facts)


def gpu_facts(device: str) -> dict[str, str]:
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
    return {"gpu": torch.cuda.get_device_name(device), "cuda": str(torch.version.cuda)}


if __name__ == "__main__":
    main()
