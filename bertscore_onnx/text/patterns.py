"""Bounds of the steps that a regular expression may take.

The `tokenizers` package searches texts by backtracking, in native code that nothing interrupts. The
patterns of published tokenizers consist of characters, groups, alternatives, repeats, anchors and
lookarounds; other syntax is refused. `Pattern` reads a pattern and counts its steps.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bertscore_onnx.errors import shortened

MAX_SIZE = 10_000
"""The most pieces of a pattern, with bounded repeats written out.

The package does so when it loads the pattern.
"""

_ESCAPE = (
    r"\\(?:[pP]\{\^?[\w ]+\}|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    r"|[sSdDwWhHtnrfvae]|[\W_])"
)
_CLASS = (
    r"\[:\^?(?:al(?:num|pha)|ascii|blank|cntrl|x?digit|graph|lower|print|punct|space|upper"
    r"|word):\]"
)
_SET_BEGIN = r"\[(?:\^(?!\])|(?![\^\]]))"
_TOKEN = re.compile(
    r"(?P<repeat>[*+?][?+]?|\{(?:\d+,?\d*|,\d+)\}\??)|(?P<or>\|)|(?P<close>\))"
    r"|(?P<group>\((?!\?)|\(\?(?:[:>]|(?P<flags>[im]+):))|(?P<look>\(\?<?[=!])"
    rf"|(?P<anchor>[$^]|\\[bBAzZG])|(?P<character>{_ESCAPE}|[^\\\[()|*+?])"
    rf"|(?P<set>{_SET_BEGIN}(?:{_ESCAPE}|{_CLASS}"
    rf"|{_SET_BEGIN}(?!:)(?:{_ESCAPE}|[^\[\]\\])+\]|[^\[\]\\])+\])",
    re.DOTALL,
)
_FLAGS = re.compile(r"\(\?([im]+)\)")
"""Flags in front of a pattern, for the whole of it."""

_SIGNS = {"*": (0, math.inf), "+": (1, math.inf), "?": (0, 1)}
"""The least and the largest number of repeats."""

Stretch = Callable[[str], float]
"""Returns how many repeats of a piece a search finds at a place of a text.

It is given the piece's source.
"""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A character, an anchor, a lookaround or a group, with its repeats."""

    source: str

    width: int = 1
    """The least number of characters of one repeat; 0 for an anchor and a lookaround."""

    alternatives: Sequence[Sequence["_Piece"]] = ()
    """Those of a group or a lookaround."""

    is_look: bool = False
    least: int = 1
    largest: float = 1
    is_lazy: bool = False

    @property
    def may_fail(self) -> bool:
        """Whether there are texts that it does not match."""
        if self.least == 0:
            return False
        return self.is_look or all(map(_may_fail, self.alternatives))

    @property
    def varies(self) -> bool:
        """Whether it may match a text in several ways."""
        if self.is_look:
            return False
        if self.least != self.largest or len(self.alternatives) > 1:
            return True
        return any(map(_varies, self.alternatives))

    @property
    def size(self) -> float:
        """The number of pieces, with bounded repeats written out."""
        repeats = self.largest
        if repeats == math.inf:
            repeats = max(self.least, 1)
        return repeats * (1 + sum(map(_size, self.alternatives)))


class Pattern:
    """A regular expression of a tokenizer."""

    def __init__(self, source: str) -> None:
        """Read a pattern.

        Raises a ValueError if it has other syntax, or may take exponential time.
        """
        self._source = source
        flags = _FLAGS.match(source)
        if flags:
            self._alternatives, _ = _parse(source, flags.end(), flags[1])
        else:
            self._alternatives, _ = _parse(source, 0, "")
        if not any(self._alternatives):
            raise ValueError(f"its pattern {source!a} is empty")
        bound = MAX_SIZE
        if sum(map(_size, self._alternatives)) > bound:
            raise ValueError(
                f"its pattern {shortened(source)!a} has more than {bound:,} parts with its repeats",
            )
        self.width: int = min(map(_width, self._alternatives))
        """The least number of characters of a match."""

    def steps(self, length: int, stretch: Stretch) -> float:
        """Return an upper bound of the steps through a text of this length."""
        steps = 0.0
        for place, sequence in enumerate(self._alternatives):
            searched = _without_shared_repeat(sequence, self._alternatives[place + 1 :])
            _, steps_of_sequence = _count(searched, stretch, is_followed=False, is_kept=True)
            steps += steps_of_sequence
        return length * steps


def _parse(source: str, place: int, flags: str) -> tuple[list[list[_Piece]], int]:
    """Return the alternatives from a place on, and where they end: at the end of the pattern, or
    behind the parenthesis that closes their group.
    """
    alternatives: list[list[_Piece]] = [[]]
    while place < len(source):
        sequence = alternatives[-1]
        token = _TOKEN.match(source, place)
        if token is None:
            raise _refusal(source, place)
        start = place
        place = token.end()
        kind = token.lastgroup
        if kind == "close":
            break
        if kind == "or":
            alternatives.append([])
        elif kind == "repeat":
            if not sequence:
                raise _refusal(source, start)
            sequence[-1] = _repeated(sequence[-1], *_counts(token[0]), source)
        elif kind in ("group", "look"):
            is_look = kind == "look"
            inside, place = _parse(source, place, flags + (token["flags"] or ""))
            # The package tries every place before a lookbehind.
            if token[0].startswith("(?<") and any(map(_varies, inside)):
                raise _refusal(source, start)
            width = 0 if is_look else min(map(_width, inside))
            sequence.append(_Piece(_flagged(source[start:place], flags), width, inside, is_look))
        else:
            width = 0 if kind == "anchor" else 1
            sequence.append(_Piece(_flagged(token[0], flags), width))
    return alternatives, place


def _refusal(source: str, place: int) -> ValueError:
    return ValueError(
        f"its pattern {shortened(source)!a} has {shortened(source[place:], 12)!a}; only "
        "characters, groups, alternatives, repeats, anchors and lookarounds are accepted, without "
        "calls, back references and conditions"
    )


def _flagged(source: str, flags: str) -> str:
    return f"(?{flags}:{source})" if flags else source


def _counts(repeat: str) -> tuple[int, float, bool]:
    """Return the least and the largest number of repeats.

    Also return whether the search begins with the least.
    """
    is_lazy = repeat.endswith("?") and len(repeat) > 1
    if repeat[0] != "{":
        least, largest = _SIGNS[repeat[0]]
        return least, largest, is_lazy
    first, comma, last = repeat.strip("{}?").partition(",")
    if not comma:
        # `a{3}?` is three times or not at all.
        return 0 if is_lazy else int(first), int(first), is_lazy
    start = int(first or 0)
    end = int(last) if last else math.inf
    # The numbers may stand in either order.
    return int(min(start, end)), max(start, end), is_lazy


def _repeated(piece: _Piece, least: int, largest: float, is_lazy: bool, source: str) -> _Piece:
    if (piece.least, piece.largest) != (1, 1):
        # A piece that is repeated already becomes a group.
        piece = _Piece(f"(?:{piece.source}{{{piece.least}}})", piece.least * piece.width, [[piece]])
    if largest > 1 and (piece.varies or piece.width == 0):
        raise ValueError(
            f"its pattern {shortened(source)!a} repeats a group that matches in several ways or "
            "without characters, which may take exponential time"
        )
    return replace(piece, least=least, largest=largest, is_lazy=is_lazy)


def _may_fail(sequence: Sequence[_Piece]) -> bool:
    return any(piece.may_fail for piece in sequence)


def _varies(sequence: Sequence[_Piece]) -> bool:
    return any(piece.varies for piece in sequence)


def _width(sequence: Sequence[_Piece]) -> int:
    return sum(piece.least * piece.width for piece in sequence)


def _size(sequence: Sequence[_Piece]) -> float:
    return sum(piece.size for piece in sequence)


# When a piece fails, the search returns to each repeat and each alternative before it and tries the
# next possibility. So the steps of a piece are multiplied by the possibilities of those before it.
# If no later piece may fail, repeats are kept: they cost one step for each character that they
# take, and no later search looks at these characters.


def _count(
    sequence: Sequence[_Piece],
    stretch: Stretch,
    *,
    is_followed: bool,
    is_kept: bool,
) -> tuple[float, float]:
    """Return the ways of matching at one place, and the steps to try them.

    `is_followed` is whether something after the sequence may fail, `is_kept` whether a match takes
    its characters.
    """
    # Whether something behind each piece may fail; the first piece's answer is the last one.
    followed = [is_followed]
    for piece in reversed(sequence[1:]):
        followed.append(followed[-1] or piece.may_fail)
    num_ways = 1.0
    steps = 0.0
    for piece in sequence:
        is_piece_followed = followed.pop()
        ways_of_piece, steps_of_piece = _count_piece(
            piece,
            stretch,
            is_followed=is_piece_followed,
            is_kept=is_kept,
        )
        steps += num_ways * steps_of_piece
        if is_piece_followed:
            num_ways *= ways_of_piece
    return num_ways, steps


def _count_piece(
    piece: _Piece,
    stretch: Stretch,
    *,
    is_followed: bool,
    is_kept: bool,
) -> tuple[float, float]:
    num_ways = 0.0
    steps = 1.0
    for sequence in piece.alternatives:
        # A search does not go back into a lookaround, and takes no characters there.
        ways_of_sequence, steps_of_sequence = _count(
            sequence,
            stretch,
            is_followed=is_followed and not piece.is_look,
            is_kept=is_kept and not piece.is_look,
        )
        num_ways += ways_of_sequence
        steps += steps_of_sequence
    if piece.is_look or not piece.alternatives:
        num_ways = 1.0
    if piece.largest <= 1:
        return num_ways + (piece.least == 0), steps
    if is_kept and not is_followed:
        return 1, max(piece.least, 1) * steps
    longest = stretch(piece.source) if piece.largest == math.inf else piece.largest
    repeats = max(piece.least, longest)
    return repeats + 1, repeats * steps


def _without_shared_repeat(
    sequence: Sequence[_Piece],
    later: Sequence[Sequence[_Piece]],
) -> Sequence[_Piece]:
    r"""Return an alternative without an endless repeat that another keeps.

    A later alternative keeps what the repeat has looked at, as in `\s*[\r\n]+|\s+(?!\S)|\s+`:
    whatever the first two find, white space is searched three times at most.
    """
    repeat = _leading_repeat(sequence)
    if repeat is None:
        return sequence
    for other in later:
        shared = _leading_repeat(other)
        if shared is None or shared.source != repeat.source:
            break
        if shared.is_lazy or shared.least > 1:
            break
        if not _may_fail(other[other.index(shared) + 1 :]):
            taken_once = replace(repeat, least=0, largest=1)
            place = sequence.index(repeat)
            return [*sequence[:place], taken_once, *sequence[place + 1 :]]
    return sequence


def _leading_repeat(sequence: Sequence[_Piece]) -> _Piece | None:
    """Return a sequence's endless repeat, or None if there is none or an earlier piece may fail."""
    for piece in sequence:
        if piece.largest == math.inf:
            return piece
        if piece.may_fail:
            break
    return None
