"""Plain bytes: ByT5."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizer

from bertscore_onnx_export.tokenizer.conversions.converted import Converted, without_holes

_PRINTS = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _PRINTS]
_VISIBLE = {byte: chr(byte) for byte in _PRINTS} | {byte: chr(0x100 + place) for place, byte in enumerate(_HIDDEN)}
"""The character that byte-level BPE writes for a byte: itself if it prints, else one from U+0100 on."""


def byt5(slow: PreTrainedTokenizer) -> Converted:
    """Give each byte of the UTF-8 its own id, by a byte-level BPE that merges nothing."""
    vocab = {written: byte + slow.offset for byte, written in _VISIBLE.items()}
    tokenizer = Tokenizer(models.BPE(without_holes(vocab), []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return Converted(tokenizer)
