"""Document counts, from which idf weights are computed.

They are integers, so that counts of parts add up exactly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import fspath
from typing import TYPE_CHECKING, Annotated, Literal, Self

import msgspec
import numpy as np

from bertscore_onnx.arrays import Int64Array
from bertscore_onnx.errors import Argument, IdfError, InputError, json_fault, needs_extra, shortened
from bertscore_onnx.files import StrPath, open_regular, read_named, write_whole
from bertscore_onnx.matching.greedy import document_frequency

if TYPE_CHECKING:
    import pyarrow

Format = Literal["bertscore-onnx document counts 1"]

FORMAT: Format = "bertscore-onnx document counts 1"
"""The first field of a file of counts."""

MAX_BYTES = 64_000_000
"""More than the counts of any tokenizer have: some 20 bytes for each of its tokens."""

ALL_DOCUMENTS = -1
"""The token of the row that holds the number of documents."""


@dataclass(frozen=True, slots=True, eq=False)
class DocumentCounts:
    """The number of documents, usually references, that each token occurs in.

    Duplicates count.

    `BERTScorer(idf=counts)` computes token weights from them. Counts of parts of a corpus add up
    with `+`, in any order, to those of the whole. They depend on the tokenizer of a model, but not
    on its weights.
    """

    tokens: Int64Array
    """The ids that occur, in increasing order, (tokens,)."""

    documents: Int64Array
    """The number of documents in which each id occurs, (tokens,), from 1 to `num_documents`."""

    num_documents: int
    """The number of all documents."""

    tokenization: str
    """The name of the tokenizer and its settings; counts of another cannot be added, nor used to
    score.
    """

    @classmethod
    def of_documents(
        cls, slices: Iterable[Sequence[Int64Array]], vocab_size: int, tokenization: str
    ) -> "DocumentCounts":
        """Count the documents that each id occurs in.

        Args:
            slices: the ids of each document, (tokens,), a few documents at a time.
            vocab_size: the number of ids; every id is below it.
            tokenization: the name of what made the ids.
        """
        frequency, number = np.zeros(vocab_size, dtype=np.int64), 0  # (vocab_size,)
        for documents in slices:
            if documents:
                frequency += document_frequency(documents, vocab_size)
                number += len(documents)
        tokens = np.flatnonzero(frequency)
        return cls(tokens, frequency[tokens], number, tokenization)

    @classmethod
    def of_rows(
        cls, tokens: Int64Array, documents: Int64Array, tokenization: str
    ) -> "DocumentCounts":
        """Add up rows of counts, such as `to_arrow` returns.

        Args:
            tokens: the id of each row, (rows,), in any order, any number of times; or
                `ALL_DOCUMENTS`.
            documents: the number of documents in which it occurs, (rows,).
            tokenization: the name of what made the ids.

        Raises:
            InputError: the numbers are impossible.
        """
        ids, position = np.unique(tokens, return_inverse=True)
        sums = np.zeros(len(ids), dtype=np.int64)
        np.add.at(sums, position, documents)
        is_token = ids != ALL_DOCUMENTS
        counts = cls(ids[is_token], sums[is_token], int(sums[~is_token].sum()), tokenization)
        if not counts._is_possible():
            raise InputError(
                f"The counts are of {counts.num_documents:,} documents, and a token is in fewer "
                f"than 1 or in more than all; expected a row with the token {ALL_DOCUMENTS} for "
                "the number of documents, and for each token a count from 1 to that number. "
                "Count the documents again."
            )
        return counts

    def __add__(self, other: "DocumentCounts") -> "DocumentCounts":
        """Return the counts of both.

        Raises:
            InputError: the tokenizers, or the lengths at which texts were cut, are different.
        """
        if not isinstance(other, DocumentCounts):
            return NotImplemented
        if self.tokenization != other.tokenization:
            raise InputError(
                f"The counts are of different tokenizations, {self.tokenization} and "
                f"{other.tokenization}. Count all documents with one bundle and the same settings."
            )
        tokens, documents = (
            np.concatenate(rows) for rows in zip(self._rows(), other._rows(), strict=True)
        )
        return self.of_rows(tokens, documents, self.tokenization)

    def __radd__(self, other: object) -> Self:
        """Allow `sum()` to start with 0."""
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Compare all fields."""
        return isinstance(other, DocumentCounts) and self._key() == other._key()

    def __hash__(self) -> int:
        """Return the same number for equal counts."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Show the size rather than the content."""
        return (
            f"DocumentCounts({self.num_documents:,} documents, {len(self.tokens):,} tokens, "
            f"{self.tokenization})"
        )

    def save(self, file: StrPath) -> None:
        """Write a file that `load` reads; equal counts give equal bytes.

        Raises:
            InputError: it cannot be written.
        """
        tokens, documents = self.tokens.tolist(), self.documents.tolist()
        content = _File(FORMAT, self.tokenization, self.num_documents, tokens, documents)
        write_whole(file, msgspec.json.encode(content))

    @staticmethod
    def are_saved_in(file: StrPath) -> bool:
        """Return whether a file begins like one that `save` wrote.

        Pipes are not read, and never do.
        """
        try:
            with open_regular(file) as opened:
                return FORMAT.encode() in opened.read(2 * len(FORMAT))
        except OSError:
            return False

    @classmethod
    def load(cls, file: StrPath) -> "DocumentCounts":
        """Read a file that `save` wrote.

        Raises:
            InputError: the file cannot be read, or holds something else.
        """
        name = fspath(file)
        try:
            content = msgspec.json.decode(read_named(name, MAX_BYTES), type=_File)
        except OSError as error:
            raise InputError(
                f"Cannot read {name!r} ({error.strerror}); expected a file of document counts."
            ) from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(
                f"{name} does not hold document counts ({json_fault(error)}). Write it with "
                "`bertscore-onnx count-documents`, or with `DocumentCounts.save`."
            ) from error
        tokens, documents = (
            np.array(content.tokens, dtype=np.int64),
            np.array(content.documents, dtype=np.int64),
        )
        counts = cls(tokens, documents, content.num_documents, content.tokenization)
        if (
            len(tokens) != len(documents)
            or (np.diff(tokens) <= 0).any()
            or not counts._is_possible()
        ):
            raise InputError(f"{name} holds impossible document counts. Count the documents again.")
        return counts

    def to_arrow(self) -> "pyarrow.Table":
        """Return the counts as a table.

        Its columns are `token` and `documents`, int64, and `tokenization`, a string. It has a row
        for each token, and one with the token -1 for the number of all documents. The rows of
        several tables, summed by tokenization and token, are counts again.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        with needs_extra("parquet", "A table of document counts"):
            import pyarrow
        tokens, documents = self._rows()
        names = pyarrow.array([self.tokenization] * len(tokens), pyarrow.string())
        return pyarrow.table({"token": tokens, "documents": documents, "tokenization": names})

    @classmethod
    def from_arrow(cls, table: "pyarrow.Table") -> "DocumentCounts":
        """Add up the rows of one or several tables from `to_arrow`.

        Their rows may be concatenated or summed.

        Raises:
            InputError: there are several tokenizations, or no row; or the numbers are impossible.
        """
        names = table["tokenization"].unique().to_pylist()
        if len(names) != 1:
            listed = ", ".join(map(str, names)) or "none, for there is no row"
            raise InputError(f"Document counts are of one tokenization; these are of {listed}.")
        return cls.of_rows(table["token"].to_numpy(), table["documents"].to_numpy(), names[0])

    def frequency(self, vocab_size: int, tokenization: str) -> Int64Array:
        """Return the number of documents in which each id occurs, (vocab_size,).

        The ids are those of a model.

        Raises:
            IdfError: the tokenizer, or the length at which texts were cut, is another.
        """
        if self.tokenization != tokenization or self.tokens[-1:].max(initial=-1) >= vocab_size:
            raise IdfError(
                "The document counts are of the tokenization "
                f"{shortened(self.tokenization, 200)}; the scorer's is {tokenization}. Count the "
                "documents with this bundle, and the same ",
                Argument("long_text"),
                " and ",
                Argument("max_length"),
                ".",
            )
        frequency = np.zeros(vocab_size, dtype=np.int64)
        frequency[self.tokens] = self.documents
        return frequency

    def _rows(self) -> tuple[Int64Array, Int64Array]:
        return np.append(self.tokens, ALL_DOCUMENTS), np.append(self.documents, self.num_documents)

    def _key(self) -> tuple[str, int, bytes, bytes]:
        return (
            self.tokenization,
            self.num_documents,
            self.tokens.tobytes(),
            self.documents.tobytes(),
        )

    def _is_possible(self) -> bool:
        in_range = (
            (self.tokens >= 0) & (self.documents >= 1) & (self.documents <= self.num_documents)
        )
        return self.num_documents >= 0 and bool(in_range.all())


Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """A file of counts."""

    format: Format
    tokenization: str
    num_documents: Count
    tokens: list[Count]
    documents: list[Count]
