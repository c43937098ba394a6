"""The labels of rows in pandas, which may be their ids."""

from dataclasses import replace

from bertscore_onnx.tables.columns import id_text
from bertscore_onnx.tables.joins import Rows


def is_indexed(rows: Rows) -> bool:
    """Return whether pandas' index holds ids: another than 0, 1, 2 and so on."""
    if rows.ids is not None or rows.labels is None:
        return False
    positions = list(map(str, range(rows.number)))
    return list(map(id_text, rows.labels)) != positions


def with_labels_as_ids(rows: Rows) -> Rows:
    """Return the rows with the labels of pandas as ids, if they have labels."""
    if rows.labels is None:
        return rows
    return replace(rows, ids=list(map(id_text, rows.labels)))
