"""The same scores on many processes and machines: what an engine calls, and the same on Ray Data and Spark.

`bertscore_onnx.distributed.ray` and `.spark` need the extras of these names; `ScoreBatch` needs no engine.
"""

from bertscore_onnx.distributed.batches import CountBatch, ScoreBatch

__all__ = ["CountBatch", "ScoreBatch"]
