"""Words that a WordPiece vocabulary lacks and that must not be taken apart."""

import msgspec

from bertscore_onnx.text.characters import Transform


class UnknownWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unknown_words"):
    """Put the unknown token in the place of certain words (`never_split` of BERT's tokenizer)."""

    words: list[str]
    unknown_token: str

    def bind(self) -> Transform:
        """Return the function that does it."""
        unknown = frozenset(self.words)

        def apply(text: str) -> str:
            words = text.split()
            if unknown.isdisjoint(words):
                return text
            return " ".join(self.unknown_token if word in unknown else word for word in words)

        return apply
