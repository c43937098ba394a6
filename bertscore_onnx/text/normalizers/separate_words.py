"""Words set apart by single spaces, as BERTweet and the small BlenderBot do it."""

import re

import msgspec

from bertscore_onnx.text.characters import Transform

_WORD = re.compile(r"\S+\n?")  # a line break belongs to the word before it

_UNICODE_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space by the Unicode property; Python counts four control characters more."""

_DIALOGUE_WORD = re.compile(rf"[^{_UNICODE_SPACE}]+\n?")
_DIALOGUE_MARK = re.compile(r"([.,!?()])")
_DIALOGUE_SPACES = re.compile(rf"[{_UNICODE_SPACE}]{{2,}}")


class SeparateWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="separate_words"):
    """Take what stands between white space for words (BERTweet)."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        return lambda text: " ".join(_WORD.findall(text))


class SeparateDialogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="separate_dialogue"):
    """Put spaces before marks and around apostrophes, name line breaks, and lower words (small BlenderBot)."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        return lambda text: " ".join(part for word in _DIALOGUE_WORD.findall(text) for part in _dialogue_parts(word))


def _dialogue_parts(word: str) -> list[str]:
    spaced = _DIALOGUE_MARK.sub(r" \1", word).replace("'", " ' ")
    spaced = _DIALOGUE_SPACES.sub(" ", spaced).replace("\n", " __newln__")
    return [part.lower() for part in spaced.split(" ") if part]
