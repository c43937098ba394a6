"""Loads a `tokenizer.json`, unless the package would work on it without a bound of time or memory, in native code."""

import math
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from tokenizers import Tokenizer
from tokenizers.models import Unigram

from bertscore_onnx.errors import shortened

MAX_ID = 10_000_000
"""The largest id that is read: forty times as many as mT5 has. The package makes room for all ids below it."""

MAX_ADDED = 1000
"""The most characters of a token added to a vocabulary, where 1,000 take 0.02 s to load and 16,000 took 4.5 s; the most
tokens put around a text; and the most that normalizers, or the repeats of a pattern, may multiply."""

_PARTS = re.compile(
    r"(?P<escape>\\[pPx]\{[^}]*\}|\\.)|(?P<set>\[\^?\]?(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\]\\])*\])"
    r"|(?P<open>\((?:\?[^:=!>)]*[:=!>)])?)|(?P<close>\))|(?P<repeat>(?:[*+?]|\{\d*,?\d*\})[?+]?)|(?P<or>\|)|(?P<literal>.)",
    re.DOTALL,
)
"""The parts of a regular expression, as far as repeats need them."""

_WIDTHLESS = {"\\b", "\\B", "\\A", "\\z", "\\Z", "\\G", "\\K", "^", "$"}


class _Model(msgspec.Struct):
    unk_token: str | None = None
    unk_id: int | None = None
    byte_fallback: bool = False
    vocab: dict[str, int] | list[tuple[str, float]] = []


class _TokenizerJson(msgspec.Struct):
    """The parts of a `tokenizer.json` that are checked, or read more exactly than by the package."""

    model: _Model = msgspec.field(default_factory=_Model)
    normalizer: Any = None
    pre_tokenizer: Any = None
    post_processor: Any = None
    added_tokens: list[dict[str, Any]] = []


def load_tokenizer_json(path: Path) -> tuple[Tokenizer, int | None]:
    """Load a `tokenizer.json` without padding and truncation; also return its id of what the vocabulary lacks.

    Raises a ValueError if its time or memory would have no bound.
    """
    content = msgspec.json.decode(path.read_bytes(), type=_TokenizerJson)
    model, added = content.model, content.added_tokens
    longest = max((len(token["content"]) for token in added), default=0)
    if longest > MAX_ADDED:
        raise ValueError(f"it adds a token of {longest:,} characters, and at most {MAX_ADDED:,} are read")
    ids = model.vocab.values() if isinstance(model.vocab, dict) else ()
    if (largest := max([*ids, *(token["id"] for token in added)], default=0)) > MAX_ID:
        raise ValueError(f"it has the id {largest}, and at most {MAX_ID:,} is accepted")
    if (growth := math.prod(map(_growth, _objects(content.normalizer)))) > MAX_ADDED:
        raise ValueError(
            f"its normalizers may lengthen a text {growth:.0e} times, and at most {MAX_ADDED:,} is accepted"
        )
    if (number := sum(map(_num_special, _objects(content.post_processor)))) > MAX_ADDED:
        raise ValueError(f"it puts {number:,} tokens around a text, and at most {MAX_ADDED:,} are accepted")
    for part in _objects([content.normalizer, content.pre_tokenizer]):
        if isinstance(pattern := part.get("Regex"), str):
            _check_pattern(pattern)
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if isinstance(tokenizer.model, Unigram) and isinstance(model.vocab, list):
        # The package reads about one score in four wrong in the last bit, which decides between segmentations of equal
        # score; some of its scores correspond to no decimal at all. So the model is built from the stated scores.
        tokenizer.model = Unigram(model.vocab, model.unk_id, model.byte_fallback)
    return tokenizer, model.unk_id if model.unk_token is None else tokenizer.token_to_id(model.unk_token)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a value of JSON, the outer ones first."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _objects(item)


def _growth(normalizer: dict[str, Any]) -> float:
    """Return about how many times longer a text may become by a normalizer itself."""
    if isinstance(table := normalizer.get("precompiled_charsmap"), str):
        return _growth_by_table(b64decode(table))
    added, replaced = len(normalizer.get("content") or normalizer.get("prepend") or ""), 1
    if isinstance(pattern := normalizer.get("pattern"), dict):
        regex = pattern.get("Regex")
        replaced = int(_takes_a_character(regex)) if isinstance(regex, str) else len(pattern.get("String") or "")
    return max(1.0, added / replaced if replaced else 1.0 + added)


def _growth_by_table(table: bytes) -> int:
    """Return the bytes of the longest replacement; raise a ValueError for a table that is shorter than it states.

    It begins with the number of bytes of its first part, and the package would read as many, and run out of memory.
    The replacements follow, each ended by a byte of 0.
    """
    size = int.from_bytes(table[:4], "little")
    if size > len(table):
        raise ValueError(f"a precompiled_charsmap of {len(table):,} bytes claims to have {size:,} bytes")
    return max(map(len, table[4 + size :].split(b"\0")))


def _takes_a_character(pattern: str) -> bool:
    """Return whether each match surely has a character."""
    first = _PARTS.match(pattern)
    if first is None or first.lastgroup not in ("escape", "set", "literal") or first[0] in _WIDTHLESS:
        return False
    return "|" not in pattern and not pattern.startswith(("*", "?", "{0", "{,"), first.end())


def _num_special(processor: dict[str, Any]) -> int:
    """Return the number of tokens that a post-processor itself puts around a text."""
    special = processor.get("special_tokens")
    names = [part["SpecialToken"]["id"] for part in processor.get("single") or [] if "SpecialToken" in part]
    return sum(len(special[name]["ids"]) for name in names if isinstance(special, dict) and name in special)


def _check_pattern(pattern: str) -> None:
    """Raise a ValueError if a group is repeated that matches in several ways: backtracking tries all combinations."""
    groups = [(False, 1)]  # around this part, from the outermost on: whether it varies, and the product of its repeats
    atom = (False, 1)
    for part in _PARTS.finditer(pattern):
        kind, (varies, product) = part.lastgroup, groups[-1]
        if kind == "open" and not part[0].endswith(")"):
            groups.append((False, 1))
        elif kind == "close" and len(groups) > 1:
            atom = groups.pop()
            groups[-1] = (groups[-1][0] or atom[0], max(groups[-1][1], atom[1]))
        elif kind == "repeat":
            counts = [int(number) for number in re.findall(r"\d+", part[0])]
            is_endless = part[0][0] in "*+" or part[0].rstrip("?+").endswith(",}")
            most = max([*counts, 1])
            if atom[0] and (is_endless or most > 1):
                raise ValueError(
                    f"its pattern {shortened(pattern)!a} repeats a group that matches in several ways, which may take "
                    "exponential time"
                )
            if atom[1] * most > MAX_ADDED:
                raise ValueError(f"its pattern {shortened(pattern)!a} repeats a part more than {MAX_ADDED:,} times")
            is_fixed = part[0][0] == "{" and not is_endless and len({*counts}) == 1 and ",}" not in part[0]
            groups[-1] = (varies or not is_fixed, max(product, atom[1] * most))
        elif kind == "or":
            groups[-1] = (True, product)
        else:
            atom = (False, 1)
