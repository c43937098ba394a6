"""The columns of candidates and references, as the options of the command line name them."""

from collections.abc import Sequence

from bertscore_onnx.tables.batches import Column


def candidate_column(name: str | None = None) -> Column:
    """Return the column of candidates, by default `candidate`."""
    return Column((name,) if name else ("candidate",), "--candidate-column")


def reference_columns(names: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return the columns of references, by default `reference` or `references`."""
    alternatives = [(name,) for name in names] if names else [("reference", "references")]
    return tuple(Column(some, "--reference-column", may_hold_lists=True) for some in alternatives)
