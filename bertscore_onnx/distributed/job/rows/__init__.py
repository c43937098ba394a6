"""The rows of input files: Parquet, CSV, TSV and JSON lines, as batches with the columns to keep and the texts."""

from bertscore_onnx.distributed.job.rows.input_table import InputTable, RowBatch, TableSettings
from bertscore_onnx.distributed.job.rows.reading import inspect_table, read_rows

__all__ = ["InputTable", "RowBatch", "TableSettings", "inspect_table", "read_rows"]
