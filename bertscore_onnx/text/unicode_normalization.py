"""Unicode's canonical normal forms, in time that grows with the text alone.

`unicodedata.normalize` puts combining marks in order by insertion, which takes the square of their number: minutes for
a letter with a million marks. So where many stand in a row, the text is decomposed and its marks sorted before. It is
the canonical ordering of The Unicode Standard (3.11), and so the normal form is the same.
"""

import re
import unicodedata
from typing import Literal

import numpy as np

LONG_RUN = 64
"""From this many marks in a row on they are sorted before; the square of fewer is not worth it."""

_SAMPLE_STEP = LONG_RUN // 2
_SAMPLED_RUN = re.compile(rb"[^\0]{2}")

_MARKS_OF_CLASS_0 = {0x0F73: "\u0f71\u0f72", 0x0F75: "\u0f71\u0f74", 0x0F81: "\u0f71\u0f80"}
"""The characters that decompose into nothing but marks, though their own combining class is that of a letter."""


def normalize(form: Literal["NFC", "NFD"], text: str) -> str:
    """Return what `unicodedata.normalize` returns."""
    if unicodedata.is_normalized(form, text):
        return text
    return unicodedata.normalize(form, _in_canonical_order(text) if _may_have_long_runs(text) else text)


def _may_have_long_runs(text: str) -> bool:
    """Tell whether marks may stand in long runs, each of which has two neighbours of the sample."""
    sample = text[::_SAMPLE_STEP].translate(_MARKS_OF_CLASS_0)
    return _SAMPLED_RUN.search(_combining_classes(sample)) is not None


def _in_canonical_order(text: str) -> str:
    """Return a text decomposed, its marks sorted by class between letters, those of one class as they stand."""
    decomposed = text.translate({ord(one): unicodedata.normalize("NFD", one) for one in set(text)})
    code_points = np.frombuffer(decomposed.encode("utf-32-le", "surrogatepass"), dtype="<u4")  # (characters,)
    classes = np.frombuffer(_combining_classes(decomposed), dtype=np.uint8)  # (characters,), 0 for letters
    order = np.lexsort((classes, np.cumsum(classes == 0)))  # (characters,)
    return code_points[order].tobytes().decode("utf-32-le", "surrogatepass")


def _combining_classes(text: str) -> bytes:
    return bytes(map(unicodedata.combining, text))
