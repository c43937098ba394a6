"""The space before the first word."""

import msgspec

from bertscore_onnx.text.characters import Transform


class PrefixSpace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="prefix_space"):
    """Put a space before the first word, so that it is tokenised like any other (slow RoBERTa and GPT-2)."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        return lambda text: " " + text
