"""The scores of the rows of a batch, as columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertscore_onnx.errors import InputError
from bertscore_onnx.scores import Score
from bertscore_onnx.signature import Signature
from bertscore_onnx.tables.rows import Errors

if TYPE_CHECKING:
    import pyarrow

SIGNATURE = b"bertscore_onnx.signature"
"""The key of the signature in the metadata of an Arrow schema."""

REASON = "error"
"""The column that says why a row has no scores, where rows may have none."""


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """Which columns scores are put into."""

    all_layers: bool
    """Whether each value is a list, with a number for each layer."""

    errors: Errors
    """Whether rows may have none, and a reason."""

    @property
    def names(self) -> list[str]:
        """Their names, in order."""
        return ["precision", "recall", "f1", "best_reference", *([REASON] if self.may_be_null else [])]

    @property
    def may_be_null(self) -> bool:
        """Whether a row may have no scores."""
        return self.errors == "null"

    def check_free(self, names: Sequence[str], title: str, *, ignores_case: bool = False) -> None:
        """Check that there are no columns of these names yet.

        Args:
            names: the columns that are there.
            title: what has them, for a message.
            ignores_case: whether names that differ in case alone are the same.

        Raises:
            InputError: there are some.
        """
        taken = [name for name in names if (name.lower() if ignores_case else name) in self.names]
        if taken:
            raise InputError(
                f"{title} has columns {', '.join(map(repr, taken))} already, and scores would go there. Rename or drop "
                "them first."
            )

    def fields(self) -> "list[pyarrow.Field]":
        """Return them as fields of an Arrow schema."""
        import pyarrow

        types = [*[pyarrow.float32()] * 3, pyarrow.int64()]
        if self.all_layers:
            types = [pyarrow.list_(one) for one in types]
        types += [pyarrow.string()] * self.may_be_null
        return [pyarrow.field(name, one) for name, one in zip(self.names, types, strict=True)]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The scores of the rows of a batch."""

    scores: Sequence[Score]
    """Those of the rows that have some."""

    reasons: Sequence[str | None]
    """For each row why it has none, or None, (rows,)."""

    columns: ScoreColumns
    signature: Signature

    def values(self) -> dict[str, list[object]]:
        """Return the values of each column, (rows,); None where a row has no scores, or has no reason."""
        found = iter(self.scores)
        rows = list(self._rows(found))
        names = self.columns.names
        return {name: [row[position] for row in rows] for position, name in enumerate(names)}

    def _rows(self, found: Iterator[Score]) -> Iterator[tuple[object, ...]]:
        for reason in self.reasons:
            if reason is None:
                score = next(found)
                yield *score, score.best_reference, None
            else:
                yield None, None, None, None, reason
