"""Bodies that cost much more than others of their size."""

import random

from harness.texts import synthetic_pairs
from reliability.traffic import MATCH, NDJSON, SCORE, pair_body, pairs_body, request_of

LARGEST = 1_900_000
"""Bytes; a little less than a server takes by default."""

MARKS = "\u0315\u0300\u0315\u0323"
"""Combining marks, each of another class than the one before."""

DOTS = 47_000
"""Bytes, most of which are a token."""

FIELDS = 34
"""Bytes of a pair besides its texts."""


def duplicate_keys() -> list[bytes]:
    """Return objects that have one key all over, known and unknown, in a pair and around it."""
    members = [b'"candidate":"a"', b'"k":0']
    many = [b",".join([member] * min(175_000, LARGEST // (len(member) + 1))) for member in members]
    pairs = [b'{"reference":"b","candidate":"a",' + member + b"}" for member in many]
    outer = b",".join([b'"model":null'] * 140_000)
    return [
        *(request_of(b'{"pairs":[' + pair + b"]}") for pair in pairs),
        request_of(b'{"pairs":[{"candidate":"a","reference":"b"}],' + outer + b"}"),
        *(request_of(pair, MATCH) for pair in pairs),
        *(request_of(pair + b"\n", SCORE, NDJSON) for pair in pairs),
    ]


def combining_marks() -> list[bytes]:
    """Return one letter with very many marks, whose order has to be found, to every endpoint."""
    requests = []
    for size in (200_000, LARGEST):
        pair = pair_body("a" + MARKS * (size // len(MARKS.encode())), "b")
        requests += [
            request_of(b'{"pairs":[' + pair + b"]}"),
            request_of(pair + b"\n", SCORE, NDJSON),
            request_of(pair, MATCH),
        ]
    return requests


def dots() -> list[bytes]:
    """Return bodies of texts of a token a byte: many short ones, many of words, few long ones, and one pair."""
    return [dense_body(DOTS, words, longest) for words, longest in ((1, 4), (2, 6), (40, 6), (1, DOTS // 2))]


def dense_body(size: int, words: int, longest: int, most_pairs: int = 1_000) -> bytes:
    """Return a body of pairs of punctuation, no two texts alike where they are long enough.

    Args:
        size: about how many bytes it is to have.
        words: how many each text has.
        longest: the most characters of a word.
        most_pairs: how many pairs it has at most.
    """
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    pairs: list[tuple[str, str]] = []
    while size > 0 and len(pairs) < most_pairs:
        candidate, reference = (
            " ".join("".join(draw.choices("?!.,;", k=longest)) for _ in range(words)) for _ in range(2)
        )
        pairs.append((candidate, reference))
        size -= len(candidate) + len(reference) + FIELDS
    return request_of(pairs_body(pairs))


def token_bombs() -> list[bytes]:
    """Return texts that become more, or longer, than they look: each in a body as large as may be."""
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
    long_ones = [text * (LARGEST // (2 * len(text.encode()))) for text in ("\ufdfa", "x", family)]
    many = pairs_body([(f"{number} " + "\ufdfa" * 1_200, f"{number} " + "\u00e9" * 1_800) for number in range(256)])
    longer = pairs_body([(f"{number}" + " word" * 720, f"{number}" + "?" * 3_600) for number in range(256)])
    return [*(request_of(pairs_body([(text, text)])) for text in long_ones), request_of(many), request_of(longer)]


def long_matches() -> list[bytes]:
    """Return pairs of long texts, whose tokens are all to be compared."""
    prose = " ".join(synthetic_pairs(3_000)[1])
    return [request_of(pair_body(prose[:size], prose[size : 2 * size]), MATCH) for size in (40_000, 110_000)]


def largest_body() -> bytes:
    """Return a body of many pairs of prose, as large as may be."""
    prose = " ".join(synthetic_pairs(20_000)[1])
    texts = [prose[start : start + 1_800] for start in range(0, LARGEST - 60_000, 1_800)]
    return request_of(pairs_body(list(zip(texts[::2], texts[1::2], strict=False))))
