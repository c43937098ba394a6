"""Measures the exporters of this environment on one model: time, memory, size, speed of scoring,
and scores.

    python scripts/measure_exporters.py MODEL NUM_LAYERS [EXPORTER …]

MODEL is a folder with weights and a tokenizer. EXPORTER is `torch` (TorchScript), `dynamo` (PyTorch
without it), `transformers` or `optimum`; by default all that are installed. Each runs in a process
of its own. The times are those of the processor, so that other work on the machine changes them
little. Prints rows of docs/export.md.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROUNDS = 3
TEXTS = [
    f"At the very last moment they called the concert number {number} of the year off."
    for number in range(64)
]


def main() -> None:
    """Print a row for each exporter."""
    model, num_layers, *exporters = sys.argv[1:]
    if exporters[:1] == ["--one"]:
        export(model, int(num_layers), exporters[1], Path(exporters[2]))
        return
    print(
        "| exporter | export | memory | model.onnx | scoring 64 pairs | largest difference of P, "
        "R, F |"
    )
    print("|---|---|---|---|---|---|")
    first = None
    for exporter in exporters or ["torch", "dynamo", "transformers", "optimum"]:
        with tempfile.TemporaryDirectory() as folder:
            bundle = Path(folder) / "bundle"
            command = [sys.executable, __file__, model, num_layers, "--one", exporter, str(bundle)]
            run = subprocess.run(command, capture_output=True, text=True)
            if run.returncode:
                print(f"| {exporter} | {run.stderr.strip().splitlines()[-1]} | | | | |", flush=True)
                continue
            seconds, memory = map(float, run.stdout.split()[-2:])
            size = sum(file.stat().st_size for file in bundle.glob("model.onnx*"))
            scores, pace = score(bundle)
            first = scores if first is None else first
            print(
                f"| {exporter} | {seconds:.1f} s | {memory / 1e9:.2f} GB | {size / 1e6:,.1f} MB | "
                f"{pace:.2f} s | {np.abs(scores - first).max():.1e} |",
                flush=True,
            )


def export(model: str, num_layers: int, exporter: str, bundle: Path) -> None:
    """Write the graph alone; print the seconds it took and the most memory of this process."""
    import torch

    from bertscore_onnx_export.pipeline import export_model
    from bertscore_onnx_export.quiet import quiet_libraries

    quiet_libraries()
    if exporter == "dynamo":
        write = torch.onnx.export

        def without_torchscript(*arguments: Any, dynamo: bool, **options: Any) -> Any:
            if not dynamo:
                raise TypeError("removed")
            return write(*arguments, dynamo=dynamo, **options)

        torch.onnx.export = without_torchscript
    began: list[float] = []
    export_model(
        model,
        name="measured",
        num_layers=num_layers,
        exporter="torch" if exporter == "dynamo" else exporter,  # type: ignore[arg-type]
        output=bundle,
        report=lambda stage: began.append(time.process_time()),
    )
    print(began[3] - began[2], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def score(bundle: Path) -> tuple[Any, float]:
    """Return the scores of pairs, and the least time of the processor that they took."""
    from bertscore_onnx import BERTScorer

    times = []
    with BERTScorer(bundle, device="cpu", nthreads=1) as scorer:
        for _ in range(ROUNDS + 1):
            began = time.process_time()
            scores = np.stack(scorer.score(TEXTS, TEXTS[::-1]))
            times.append(time.process_time() - began)
    return scores, min(times[1:])


if __name__ == "__main__":
    main()
