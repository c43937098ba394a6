"""The cleaning of ALBERT and XLNet."""

import unicodedata

import msgspec

from bertscore_onnx.text.characters import CharacterMap, Transform


class CleanQuotes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="clean_quotes"):
    """Collapse white space, make `` and '' plain quotation marks, and drop accents and case where they do not count."""

    collapse_space: bool
    strip_accents: bool
    lowercase: bool

    def bind(self) -> Transform:
        """Return the function that does it."""
        unaccented = CharacterMap(_without_accents)

        def apply(text: str) -> str:
            if self.collapse_space:
                text = " ".join(text.split())
            text = text.replace("``", '"').replace("''", '"')
            if self.strip_accents and not text.isascii():
                text = text.translate(unaccented)
            return text.lower() if self.lowercase else text

        return apply


def _without_accents(character: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one))
