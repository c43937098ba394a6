"""Tables of text, aligned by tabulate."""

from collections.abc import Sequence

from bertscore_onnx.errors import needs_extra


def tabulated(
    rows: Sequence[Sequence[str]], header: Sequence[str], *, names: Sequence[int] = (0,), table_format: str = "simple"
) -> str:
    """Align rows, numbers to the right.

    Args:
        rows: cells, written as they are.
        header: the names of the columns.
        names: the columns that hold names, which are aligned to the left.
        table_format: as tabulate calls it.

    Raises:
        MissingExtraError: tabulate is not installed.
    """
    with needs_extra("evaluation", "Writing a table"):
        from tabulate import tabulate
    alignment = ["left" if column in names else "right" for column in range(len(header))]
    return str(tabulate(rows, header, tablefmt=table_format, colalign=alignment, disable_numparse=True))
