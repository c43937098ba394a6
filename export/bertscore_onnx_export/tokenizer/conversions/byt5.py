"""Plain bytes: ByT5."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizer

from bertscore_onnx.text.normalizers import BYTE_CHARACTERS
from bertscore_onnx_export.tokenizer.conversions.converted import Converted, without_holes


def byt5(slow: PreTrainedTokenizer) -> Converted:
    """Give each byte of the UTF-8 its own id, by a byte-level BPE that merges nothing."""
    vocab = {written: byte + slow.offset for byte, written in BYTE_CHARACTERS.items()}
    tokenizer = Tokenizer(models.BPE(without_holes(vocab), []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return Converted(tokenizer)
