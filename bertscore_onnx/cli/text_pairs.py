"""Reads files that belong together line by line: candidates, and one or more of references."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest

from bertscore_onnx.cli.text_files import TextFile, open_text_file
from bertscore_onnx.errors import InputError

TextPair = tuple[str, list[str]]
"""A candidate and its references, in the order of the files."""


class TextPairs:
    """The pairs of rereadable files; they are rereadable too, and their number is known."""

    def __init__(self, files: Sequence[TextFile], number: int) -> None:
        """Take the file of candidates and those of references, of `number` lines each."""
        self._files = files
        self._number = number

    def __len__(self) -> int:
        """Return the number of pairs."""
        return self._number

    def __iter__(self) -> Iterator[TextPair]:
        """Read the files from their start; only one iteration can go on at a time."""
        return _read_in_step(self._files)


@contextmanager
def open_pairs(
    candidates: str, references: Sequence[str], *, to_read_again: bool = False
) -> Iterator[Iterable[TextPair]]:
    """Open a file of candidates and files of references with as many lines.

    Rereadable files are read once here, so that what is wrong with them is found before anything is scored.

    Args:
        candidates: a file, or `-` for standard input.
        references: one file or more, one of which may be `-` where `candidates` is not.
        to_read_again: whether the pairs must be rereadable; then pipes are read to their end, into temporary files.

    Yields:
        The pairs, which are read as they are needed: `TextPairs`, or an iterator where a file is a pipe.

    Raises:
        InputError: a file cannot be read, or the numbers of lines differ; that of a pipe is known at its end only.
    """
    with ExitStack() as stack:
        files = [
            stack.enter_context(open_text_file(name, to_read_again=to_read_again)) for name in (candidates, *references)
        ]
        counted = [(file.title, file.count_lines()) for file in files if file.is_rereadable]
        for title, number in counted[1:]:
            if number != counted[0][1]:
                raise _unequal(*counted[0], title, str(number))
        yield TextPairs(files, counted[0][1]) if len(counted) == len(files) else _read_in_step(files)


def _read_in_step(files: Sequence[TextFile]) -> Iterator[TextPair]:
    for number, (candidate, *references) in enumerate(zip_longest(*(file.lines() for file in files))):
        texts = [text for text in references if text is not None]
        if candidate is None or len(texts) < len(references):
            ended = [text is None for text in (candidate, *references)]
            raise _unequal(files[ended.index(True)].title, number, files[ended.index(False)].title, "more")
        yield candidate, texts


def _unequal(title: str, number: int, other: str, other_number: str) -> InputError:
    return InputError(
        f"{title} has {number} {'line' if number == 1 else 'lines'} and {other} has {other_number}; expected as many "
        "references as candidates, in the same order. Blank lines count: they are empty sentences."
    )
