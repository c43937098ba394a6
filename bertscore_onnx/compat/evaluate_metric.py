"""The path of the metric script for Hugging Face's `evaluate`."""

from pathlib import Path


def evaluate_metric() -> str:
    """Return the path of this library's metric script, for `evaluate.load`.

    The metric's arguments are as of `score`. Unlike the `bertscore` script of `evaluate`, which
    keeps the idf weights of the first references, it computes them from the references of each
    call.
    """
    return str(Path(__file__).with_name("metric") / "bertscore_onnx_metric.py")
