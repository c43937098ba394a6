"""A drop-in replacement for bert-score.

`import bert_score` imports this library, and HF evaluate has its metric.
"""

from bertscore_onnx.compat.evaluate_metric import evaluate_metric
from bertscore_onnx.compat.stand_in import install, uninstall

__all__ = ["evaluate_metric", "install", "uninstall"]
