"""`bertscore-onnx meta --task auc`: how well metrics tell paraphrases from other pairs of texts."""

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.cli.inputs.judgements import Table, read_table
from bertscore_onnx.cli.tasks.options import MetaOptions
from bertscore_onnx.cli.tasks.scores import CANDIDATE_COLUMNS, REFERENCE_COLUMNS, scores_of_rows
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.auc import auc_of_labels

LABEL_COLUMNS = ("label", "is_duplicate")
FIRST_TEXTS, SECOND_TEXTS = ("sentence1", "question1"), ("sentence2", "question2")
"""What PAWS and QQP call their columns; the first texts are the references."""


def run(options: MetaOptions) -> None:
    """Run the task and print its result."""
    table = read_table(options.source, options.input_format)
    labels = _labels(table, table.find(options.columns.label or LABEL_COLUMNS, "--label-column"))
    metrics = scores_of_rows(options, table, (*CANDIDATE_COLUMNS, *SECOND_TEXTS), (*REFERENCE_COLUMNS, *FIRST_TEXTS))
    result = auc_of_labels(labels, metrics)
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))


def _labels(table: Table, column: str) -> NDArray[np.int64]:
    labels = table.numbers(column)
    for row in np.flatnonzero((labels != 0) & (labels != 1)):
        given = "nothing" if np.isnan(labels[row]) else f"{labels[row]:g}"
        raise InputError(f"{table.place(int(row))}: the column {column!r} holds {given}; expected 0 or 1.")
    return labels.astype(np.int64)
