"""WordPiece: BERT and its kin."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizer

from bertscore_onnx.text.normalizers import BasicTokenize
from bertscore_onnx_export.tokenizer.conversions.converted import Converted, without_holes


def wordpiece(slow: PreTrainedTokenizer) -> Converted:
    """Leave only WordPiece itself to `tokenizer.json`; the basic tokenizer before it becomes a pre-tokenizer."""
    pieces = slow.wordpiece_tokenizer
    vocab, longest = without_holes(slow.vocab), pieces.max_input_chars_per_word
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token=pieces.unk_token, max_input_chars_per_word=longest))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if not slow.do_basic_tokenize:
        return Converted(tokenizer)
    basic = slow.basic_tokenizer
    accents = basic.strip_accents is not False if basic.do_lower_case else bool(basic.strip_accents)
    basic_tokenize = BasicTokenize(
        lowercase=basic.do_lower_case,
        strip_accents=accents,
        split_chinese=basic.tokenize_chinese_chars,
        never_split=sorted({*slow.all_special_tokens, *basic.never_split}, key=str),
    )
    return Converted(tokenizer, [basic_tokenize])
