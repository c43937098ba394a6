"""A grammar of bodies: JSON that is right, wrong in a place, or damaged."""

import json
import random
from collections.abc import Callable

from reliability.cases.fuzzing.strings import odd_string

Draw = random.Random

_NUMBERS = [b"0", b"-0", b"-1", b"1e308", b"1e999", b"01", b"1.", b"0x1", b"9" * 400, b"18446744073709551616"]
_LITERALS = [b"null", b"true", b"false", b"NaN", b"-Infinity", b"undefined", b"nul", b"", b"'a'"]
_STRINGS = [b'""', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\x00"', b'"\n"', b'"\\x"', b'"\xff\xfe"', b'"a']
_BROKEN_UTF8 = [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xef\xbb\xbf", b"\x80"]
_SETTINGS = [b'"model"', b'"rescale"', b'"idf"', b'"pairs"', b'"candidate"', b'"unknown"', b'""', b'"Pairs"']
_OPENINGS = [(b"[", b"]"), (b'{"pairs":', b"}"), (b'{"a":[', b"]}")]
_SPACES = [b"", b"", b" ", b"\n", b"\t \r\n"]


def score_body(draw: Draw) -> bytes:
    """Return a body for `/v1/score`."""
    pairs = _list([pair_body(draw) for _ in range(draw.choice([0, 1, 1, 2, 5]))])
    members = [b'"pairs":' + _or_odd(pairs, draw)]
    while draw.random() < 0.2:
        members.append(draw.choice(_SETTINGS) + b":" + _value(draw))
    return _object(members, draw)


def pair_body(draw: Draw) -> bytes:
    """Return a body for `/v1/match`, which is also a line of a stream, and a pair of a body."""
    members = [b'"candidate":' + _or_odd(_string(draw), draw)]
    references = b'"references":' + _or_odd(_list([_string(draw) for _ in range(draw.randint(0, 3))]), draw)
    members.append(draw.choice([b'"reference":' + _or_odd(_string(draw), draw)] * 3 + [references]))
    if draw.random() < 0.1:
        members.append(draw.choice([*members, *_SETTINGS]) + draw.choice([b":", b""]) + _value(draw))
    if draw.random() < 0.05:
        members.pop(draw.randrange(len(members)))
    return _object(members, draw)


def lines_body(draw: Draw) -> bytes:
    """Return a stream of lines, with every kind of line end, and blank ones."""
    ends = [b"\n"] * 6 + [b"\r\n", b"\n\n", b"\r", b" \n", b"\x00\n"]
    return b"".join(damaged(pair_body(draw), draw) + draw.choice(ends) for _ in range(draw.choice([0, 1, 3, 20])))


def damaged(body: bytes, draw: Draw) -> bytes:
    """Return a body with a damage, in a part of all cases."""
    return draw.choice(_DAMAGES)(body, draw) if draw.random() < 0.25 else body


def _value(draw: Draw, depth: int = 3) -> bytes:
    kind = draw.randrange(8 if depth else 6)
    if kind == 6:
        return _list([_value(draw, depth - 1) for _ in range(draw.randint(0, 4))])
    if kind == 7:
        return _object([_string(draw) + b":" + _value(draw, depth - 1) for _ in range(draw.randint(0, 4))], draw)
    return draw.choice(_NUMBERS + _LITERALS) if kind < 3 else _string(draw)


def _string(draw: Draw) -> bytes:
    if draw.random() < 0.05:
        return draw.choice(_STRINGS)
    return json.dumps(odd_string(draw), ensure_ascii=draw.random() < 0.5).encode(errors="surrogatepass")


def _or_odd(sound: bytes, draw: Draw) -> bytes:
    return _value(draw) if draw.random() < 0.08 else sound


def _list(values: list[bytes]) -> bytes:
    return b"[" + b",".join(values) + b"]"


def _object(members: list[bytes], draw: Draw) -> bytes:
    """Join members in any order, now and then one of them again."""
    draw.shuffle(members)
    if members and draw.random() < 0.1:
        members += [draw.choice(members)] * draw.choice([1, 1, 9])
    return b"{" + (b"," + draw.choice(_SPACES)).join(members) + b"}"


def _cut(body: bytes, draw: Draw) -> bytes:
    return body[: draw.randrange(len(body) + 1)]


def _flip(body: bytes, draw: Draw) -> bytes:
    changed = bytearray(body or b" ")
    for _ in range(draw.randint(1, 5)):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _insert(body: bytes, draw: Draw) -> bytes:
    at = draw.randrange(len(body) + 1)
    noise = draw.choice([draw.randbytes(draw.randint(1, 200)), *_BROKEN_UTF8, *_NUMBERS, *_LITERALS])
    return body[:at] + noise + body[at:]


def _nest(body: bytes, draw: Draw) -> bytes:
    depth = draw.choice([10, 10, 1_000, 20_000])
    opening, closing = draw.choice(_OPENINGS)
    return opening * depth + body + closing * depth


def _double(body: bytes, draw: Draw) -> bytes:
    return draw.choice([body + body, body + b"," + body, b"\xef\xbb\xbf" + body, body[:-1] + b"," + body[1:]])


_DAMAGES: list[Callable[[bytes, Draw], bytes]] = [_cut, _flip, _insert, _nest, _double]
