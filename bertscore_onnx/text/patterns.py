"""Bounds the steps that a regular expression of a tokenizer may take on a text.

The `tokenizers` package searches by backtracking, in native code that nothing interrupts. The patterns of published
tokenizers consist of characters, groups, alternatives, repeats, anchors and lookarounds; other syntax is refused.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bertscore_onnx.errors import shortened

MAX_SIZE = 10_000
"""The most parts of a pattern, with bounded repeats written out as the package does when it loads the pattern."""

_ESCAPE = r"\\(?:[pP]\{\^?[\w ]+\}|x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[sSdDwWhHtnrfvae]|[\W_])"
_CLASS = r"\[:\^?(?:al(?:num|pha)|ascii|blank|cntrl|x?digit|graph|lower|print|punct|space|upper|word):\]"
_SET_BEGIN = r"\[(?:\^(?!\])|(?![\^\]]))"
_TOKEN = re.compile(
    r"(?P<repeat>[*+?][?+]?|\{(?:\d+,?\d*|,\d+)\}\??)|(?P<or>\|)|(?P<close>\))"
    r"|(?P<group>\((?!\?)|\(\?(?:[:>]|(?P<flags>[im]+):))|(?P<look>\(\?<?[=!])"
    rf"|(?P<anchor>[$^]|\\[bBAzZG])|(?P<character>{_ESCAPE}|[^\\\[()|*+?])"
    rf"|(?P<set>{_SET_BEGIN}(?:{_ESCAPE}|{_CLASS}|{_SET_BEGIN}(?!:)(?:{_ESCAPE}|[^\[\]\\])+\]|[^\[\]\\])+\])",
    re.DOTALL,
)
_FLAGS = re.compile(r"\(\?([im]+)\)")
"""Flags in front of a pattern, for the whole of it."""

Stretch = Callable[[str], float]
"""Returns how many repeats of a part a search finds at a place of a text, given the part's source."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A character, an anchor, a lookaround or a group, and how often it is repeated."""

    source: str

    width: int = 1
    """The least number of characters of one repeat; 0 for an anchor and a lookaround."""

    alternatives: Sequence[Sequence["_Part"]] = ()
    """Those of a group or a lookaround."""

    is_look: bool = False
    least: int = 1
    most: float = 1
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
        inside = [part.varies for sequence in self.alternatives for part in sequence]
        return self.least != self.most or len(self.alternatives) > 1 or any(inside)

    @property
    def size(self) -> float:
        """The number of parts, with bounded repeats written out."""
        repeats = max(self.least, 1) if self.most == math.inf else self.most
        return repeats * (1 + sum(map(_size, self.alternatives)))


class Pattern:
    """A regular expression of a tokenizer."""

    def __init__(self, source: str) -> None:
        """Read a pattern; raise a ValueError if it has other syntax, or may take exponential time."""
        self._source = source
        flags = _FLAGS.match(source)
        self._alternatives, _ = _parse(source, flags.end() if flags else 0, flags[1] if flags else "")
        if sum(map(_size, self._alternatives)) > MAX_SIZE:
            raise ValueError(f"its pattern {shortened(source)!a} has more than {MAX_SIZE:,} parts with its repeats")
        self.width: int = min(map(_width, self._alternatives))
        """The least number of characters of a match."""

    def steps(self, length: int, stretch: Stretch) -> float:
        """Return an upper bound of the steps through a text of `length` characters."""
        steps = 0.0
        for place, sequence in enumerate(self._alternatives):
            searched = _without_shared_repeat(sequence, self._alternatives[place + 1 :])
            steps += _count(searched, stretch, is_followed=False, is_kept=True)[1]
        return length * steps


def _parse(source: str, at: int, flags: str) -> tuple[list[list[_Part]], int]:
    """Return the alternatives from a place on, and the place after the parenthesis that ends them."""
    alternatives: list[list[_Part]] = [[]]
    while at < len(source):
        sequence = alternatives[-1]
        token = _TOKEN.match(source, at)
        if token is None:
            raise _refusal(source, at)
        start, at, kind = at, token.end(), token.lastgroup
        if kind == "close":
            break
        if kind == "or":
            alternatives.append([])
        elif kind == "repeat":
            if not sequence:
                raise _refusal(source, start)
            sequence[-1] = _repeated(sequence[-1], *_counts(token[0]), source)
        elif kind in ("group", "look"):
            inside, at = _parse(source, at, flags + (token["flags"] or ""))
            if token[0].startswith("(?<") and any(part.varies for parts in inside for part in parts):
                raise _refusal(source, start)  # the package tries every place before this one
            width = 0 if kind == "look" else min(map(_width, inside))
            sequence.append(_Part(_flagged(source[start:at], flags), width, inside, kind == "look"))
        else:
            sequence.append(_Part(_flagged(token[0], flags), 0 if kind == "anchor" else 1))
    return alternatives, at


def _refusal(source: str, at: int) -> ValueError:
    return ValueError(
        f"its pattern {shortened(source)!a} has {shortened(source[at:], 12)!a}; only characters, groups, alternatives, "
        "repeats, anchors and lookarounds are accepted, without calls, back references and conditions"
    )


def _flagged(source: str, flags: str) -> str:
    return f"(?{flags}:{source})" if flags else source


def _counts(repeat: str) -> tuple[int, float, bool]:
    """Return the least and the most number of repeats, and whether the search begins with the least."""
    is_lazy = repeat.endswith("?") and len(repeat) > 1
    if repeat[0] != "{":
        least, most = {"*": (0, math.inf), "+": (1, math.inf), "?": (0, 1)}[repeat[0]]
        return least, most, is_lazy
    first, comma, last = repeat.strip("{}?").partition(",")
    if not comma:
        return 0 if is_lazy else int(first), int(first), is_lazy  # `a{3}?` is three times or not at all
    numbers = int(first or 0), int(last) if last else math.inf
    return int(min(numbers)), max(numbers), is_lazy


def _repeated(part: _Part, least: int, most: float, is_lazy: bool, source: str) -> _Part:
    if (part.least, part.most) != (1, 1):
        part = _Part(f"(?:{part.source}{{{part.least}}})", part.least * part.width, [[part]])
    if most > 1 and (part.varies or part.width == 0):
        raise ValueError(
            f"its pattern {shortened(source)!a} repeats a group that matches in several ways or without characters, "
            "which may take exponential time"
        )
    return replace(part, least=least, most=most, is_lazy=is_lazy)


def _may_fail(sequence: Sequence[_Part]) -> bool:
    return any(part.may_fail for part in sequence)


def _width(sequence: Sequence[_Part]) -> int:
    return sum(part.least * part.width for part in sequence)


def _size(sequence: Sequence[_Part]) -> float:
    return sum(part.size for part in sequence)


# A search goes back to each repeat and each alternative that something may fail behind, and tries the others. So the
# steps of what follows are multiplied by the ways of what stands before. If nothing that follows may fail, the repeats
# are kept: their steps are those of the characters that they take, which no later search looks at.


def _count(sequence: Sequence[_Part], stretch: Stretch, *, is_followed: bool, is_kept: bool) -> tuple[float, float]:
    """Return the ways of matching at one place, and the steps to try them.

    `is_followed` is whether something after the sequence may fail, `is_kept` whether a match takes its characters.
    """
    followed = [is_followed]
    for part in reversed(sequence[1:]):
        followed.append(followed[-1] or part.may_fail)
    ways, steps = 1.0, 0.0
    for part in sequence:
        is_part_followed = followed.pop()
        part_ways, part_steps = _count_part(part, stretch, is_followed=is_part_followed, is_kept=is_kept)
        steps += ways * part_steps
        if is_part_followed:
            ways *= part_ways
    return ways, steps


def _count_part(part: _Part, stretch: Stretch, *, is_followed: bool, is_kept: bool) -> tuple[float, float]:
    ways, steps = 0.0, 1.0
    for sequence in part.alternatives:
        inside = is_followed and not part.is_look
        more_ways, more_steps = _count(sequence, stretch, is_followed=inside, is_kept=is_kept and not part.is_look)
        ways += more_ways
        steps += more_steps
    if part.is_look or not part.alternatives:
        ways = 1.0
    if part.most <= 1:
        return ways + (part.least == 0), steps
    if is_kept and not is_followed:
        return 1, max(part.least, 1) * steps
    repeats = max(part.least, stretch(part.source) if part.most == math.inf else part.most)
    return repeats + 1, repeats * steps


def _without_shared_repeat(sequence: Sequence[_Part], later: Sequence[Sequence[_Part]]) -> Sequence[_Part]:
    r"""Return an alternative without its endless repeat if a later one keeps what that has looked at.

    As in `\s*[\r\n]+|\s+(?!\S)|\s+`: whatever the first two find, white space is searched three times at most.
    """
    repeat = _leading_repeat(sequence)
    for other in later:
        same = _leading_repeat(other)
        if repeat is None or same is None or same.source != repeat.source or same.is_lazy or same.least > 1:
            break
        if not _may_fail(other[other.index(same) + 1 :]):
            return [replace(part, least=0, most=1) if part is repeat else part for part in sequence]
    return sequence


def _leading_repeat(sequence: Sequence[_Part]) -> _Part | None:
    """Return the endless repeat of a sequence, unless it stands behind something that may fail."""
    for part in sequence:
        if part.most == math.inf:
            return part
        if part.may_fail:
            break
    return None
