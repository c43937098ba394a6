"""The columns of scores: their names, their types and their values."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from bertscore_onnx.errors import Argument, InputError

if TYPE_CHECKING:
    import pyarrow

    from bertscore_onnx.scores import Score

SCORE_NAMES = ("precision", "recall", "f1")
"""The columns of scores, unless other names are chosen."""


UNKNOWN = "unknown"
"""The name of the column with the share of unknown tokens, beside the column of truncated texts."""


BEST = "best_reference"
"""The column with the position of the best reference."""


REASON = "error"
"""The column with the reason why a row has no scores, if rows may have none."""


RENAME_SCORES = "give the scores other names, such as --columns f1=NAME"


def check_free(
    names: Iterable[str],
    added: Collection[str],
    place: str,
    remedy: tuple[str | Argument, ...] = (RENAME_SCORES,),
) -> None:
    """Raise InputError if a column already has the name of a new column.

    The remedy is what helps beside renaming it.
    """
    for name in names:
        if name not in added:
            continue
        # The column of the best reference has one name, whatever the scores are called.
        is_fixed = name == BEST and remedy == (RENAME_SCORES,)
        alternative = () if is_fixed else (", or ", *remedy)
        raise InputError(
            f"{place}: there is a column {name!r} already, and scores would go there. Rename it",
            *alternative,
            ".",
        )


def check_score_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of precision, recall and F1.

    Beside a fourth, of truncated texts, `UNKNOWN`.

    Raises an InputError unless they are three or four different ones.
    """
    if not _are_score_names(names):
        raise InputError(
            f"The columns of scores are called {names!r}; expected three different names, such as "
            f"p, r and f, or a fourth for whether a text was truncated, other than {BEST}, "
            f"{UNKNOWN} and {REASON}."
        )
    if len(names) > len(SCORE_NAMES):
        return (*names, UNKNOWN)
    return tuple(names)


def _are_score_names(names: object) -> bool:
    """Return whether these are three or four different names that are free."""
    if not isinstance(names, Sequence) or isinstance(names, str):
        return False
    if len(names) not in (3, 4) or not all(isinstance(name, str) for name in names):
        return False
    taken = ("", BEST, REASON, UNKNOWN)
    return len({*names, *taken}) == len(names) + len(taken)


Errors = Literal["raise", "null"]
"""How to handle a row that cannot be scored: raise an InputError with its number, or write nulls
and a reason.
"""


def check_errors(errors: str) -> None:
    """Raise InputError unless this is one of `Errors`."""
    if errors not in get_args(Errors):
        raise InputError(f'errors is {errors!r}; expected "raise" or "null".')


SIGNATURE = b"bertscore_onnx.signature"
"""The key of the signature in the metadata of an Arrow schema."""

Kind = Literal["float32", "int64", "bool", "string"]
"""The kind of the values of a column, as Arrow calls it."""

_SCORE_KINDS: tuple[Kind, ...] = ("float32", "float32", "float32", "bool", "float32")
"""The kinds of `ScoreColumns.scores`."""

Values = dict[str, list[object]]
"""The values of the added columns, each (rows,)."""


@dataclass(frozen=True, slots=True)
class ScoreColumns:
    """The columns that scores are put into."""

    all_layers: bool = False
    """Whether each value is a list, with a number for each layer."""

    errors: Errors = "raise"
    """Whether rows may have nulls, and a reason."""

    scores: tuple[str, ...] = SCORE_NAMES
    """The names of the columns of precision, recall and F1.

    Maybe also of whether a text was truncated, and of the share of unknown tokens.
    """

    has_best: bool = True
    """Whether there is a column of the best reference."""

    @property
    def names(self) -> list[str]:
        """Their names, in order."""
        names = list(self.scores)
        if self.has_best:
            names.append(BEST)
        if self.may_be_null:
            names.append(REASON)
        return names

    @property
    def may_be_null(self) -> bool:
        """Whether a row may have no scores."""
        return self.errors == "null"

    def types(
        self,
        type_of: Callable[[Kind], Any],
        list_of: Callable[[Any], Any],
    ) -> dict[str, Any]:
        """Return the type of each column by its name.

        Args:
            type_of: returns the type of a kind of values.
            list_of: returns the type of lists of these, for all layers.
        """
        kinds: dict[str, Kind] = dict(zip(self.scores, _SCORE_KINDS, strict=False))
        kinds |= {BEST: "int64", REASON: "string"}
        have_layers: set[str] = set()
        if self.all_layers:
            have_layers = {*self.scores[: len(SCORE_NAMES)], BEST}
        types = {}
        for name in self.names:
            types[name] = type_of(kinds[name])
            if name in have_layers:
                types[name] = list_of(types[name])
        return types

    def fields(self) -> "list[pyarrow.Field]":
        """Return them as fields of an Arrow schema."""
        import pyarrow

        types = self.types(pyarrow.type_for_alias, pyarrow.list_)
        return [pyarrow.field(name, kind) for name, kind in types.items()]

    def row(self, score: "Score") -> list[Any]:
        """Return the values for one row with scores."""
        values = [*score, score.truncated, score.unknown][: len(self.scores)]
        if self.has_best:
            values.append(score.best_reference)
        if self.may_be_null:
            values.append(None)
        return values

    def values(self, scores: "Sequence[Score]", reasons: Sequence[str | None]) -> Values:
        """Return the values for rows.

        Args:
            scores: of the rows without a reason.
            reasons: why a row has no scores, or None, (rows,).
        """
        scored = map(self.row, scores)
        nothing = [None] * (len(self.names) - 1)
        rows = []
        for reason in reasons:
            rows.append(next(scored) if reason is None else [*nothing, reason])
        values: Values = {}
        for position, name in enumerate(self.names):
            values[name] = [row[position] for row in rows]
        return values
