"""bert-score's place in programs that call it: `import bert_score` gives this library, HF evaluate its metric."""

from bertscore_onnx.compat.evaluate_metric import evaluate_metric
from bertscore_onnx.compat.stand_in import install, uninstall

__all__ = ["evaluate_metric", "install", "uninstall"]
