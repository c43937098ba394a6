"""Lowercasing before special tokens are looked for."""

import re

import msgspec

from bertscore_onnx.text.characters import CharacterMap, Transform


class Lowercase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="lowercase"):
    """Lower every character by itself, but leave certain strings.

    One by one, a final sigma is lowered like any other, and `<UNK>` turns into a special token where `<unk>` is one.
    """

    never_lower: list[str]
    """The strings that stay as they are; of two that begin at one place the earlier in the list."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        lowered = CharacterMap(str.lower)
        if not self.never_lower:
            return lambda text: text.translate(lowered)
        kept = re.compile("(" + "|".join(map(re.escape, self.never_lower)) + ")")

        def apply(text: str) -> str:
            parts = kept.split(text)  # what is kept stands at the odd places
            parts[::2] = [part.translate(lowered) for part in parts[::2]]
            return "".join(parts)

        return apply
