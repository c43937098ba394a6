"""Measures this library against bert-score on CUDA: `python -m benchmarks.gpu` (`make bench-gpu`).

Needs the extra `gpu`, bert-score and a PyTorch with CUDA in one environment. If the packages of the export are missing,
give a bundle, `--bundle roberta-large-fp16=PATH`, and the folder of the same weights, `--roberta-large PATH`.
"""

import argparse
from collections.abc import Sequence

from benchmarks.cases import on_gpu
from benchmarks.flops import product_rate
from benchmarks.run import run_cases
from benchmarks.settings import Settings, add_options

PRODUCT_SIZE = 8192
SHARE_GOAL = 40


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    add_options(parser)
    settings = Settings(**vars(parser.parse_args(arguments)), device="cuda")
    facts = gpu_facts()
    run_cases([on_gpu], settings, "gpu", lambda: product_rate("cuda", "float16", [PRODUCT_SIZE]), SHARE_GOAL, facts)


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
