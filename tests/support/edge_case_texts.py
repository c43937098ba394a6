"""Random strings of what makes tokenizers differ: rare characters, odd spaces, special tokens, repetition."""

import random
from collections.abc import Sequence

from bertscore_onnx_export.verify.sample_texts import PLAIN_TEXTS

_BLOCKS = (
    (0x00, 0x1F), (0x20, 0x7E), (0x7F, 0x24F), (0x250, 0x3FF), (0x400, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF),
    (0xE00, 0xEFF), (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x20CF), (0x20D0, 0x2BFF), (0x3000, 0x30FF),
    (0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFFFF),
    (0x10000, 0x1FFFF), (0x20000, 0x2FA1F), (0xE0000, 0xE01EF),
)  # fmt: skip
_SPACES = (" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u200b", "\x1c", "\x85", "\u2028", "")
_REPEATED = "abehinost.!-?0123456789,_=*#'"


def edge_case_texts(count: int, special_tokens: Sequence[str], seed: int = 0) -> list[str]:
    """Return random strings; the same ones for the same arguments."""
    chance = random.Random(seed)  # noqa: S311
    words = [word for text in PLAIN_TEXTS for word in text.split()[:40]]
    specials = [*special_tokens, *(token.upper() for token in special_tokens), *map(_widened, special_tokens)]

    def part() -> str:
        match chance.randrange(8):
            case 0 | 1 | 2:
                return chance.choice(words)
            case 3:
                return chance.choice(specials)
            case 4:
                unit = "".join(chance.choices(_REPEATED, k=chance.randrange(1, 3)))
                return unit * chance.randrange(1, 20)
            case _:
                first, last = chance.choice(_BLOCKS)
                return "".join(chr(chance.randint(first, last)) for _ in range(chance.randrange(1, 6)))

    return ["".join(part() + chance.choice(_SPACES) for _ in range(chance.randrange(1, 14))) for _ in range(count)]


def _widened(text: str) -> str:
    """Return a text in full-width letters, which compatibility normalisation undoes."""
    return "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text)
