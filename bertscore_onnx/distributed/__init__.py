"""The same scores in many processes, on any number of machines.

`ScoreBatch` and `CountBatch` need no engine; `bertscore_onnx.distributed.ray` and `.spark` need the extras of these
names.
"""

from bertscore_onnx.distributed.batches import CountBatch, ScoreBatch

__all__ = ["CountBatch", "ScoreBatch"]
