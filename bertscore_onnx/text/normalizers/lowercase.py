"""The step that lowers a text before special tokens are looked for in it."""

from collections.abc import Sequence

import msgspec

from bertscore_onnx.text.characters import CharacterMap, Transform, outside


class Lowercase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="lowercase"):
    """Lower every character by itself, but leave literal special tokens.

    One by one, a final sigma is lowered like any other, and `<UNK>` turns into a special token where `<unk>` is one.
    """

    def bind(self, literals: Sequence[str]) -> Transform:
        """Return the function that does it, with a memory of the characters it has met."""
        lowered = CharacterMap(str.lower)
        return outside(literals, lambda text: text.translate(lowered))
