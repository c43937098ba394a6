"""WordPiece: BERT and its kin."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizer

from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.normalizers import BasicTokenize, UnknownWords
from bertscore_onnx_export.tokenizer.conversions.converted import Converted, without_holes


def wordpiece(slow: PreTrainedTokenizer) -> Converted:
    """Leave only WordPiece itself to `tokenizer.json`; the basic tokenizer before it becomes a pre-tokenizer.

    Raises:
        ExportError: a word of `never_split` is longer than WordPiece takes.
    """
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
    unknown = sorted({*basic.never_split} - slow.vocab.keys(), key=str)
    if too_long := [word for word in basic.never_split if word in slow.vocab and len(word) > longest]:
        raise ExportError(
            f"A word of `never_split`, {too_long[0][:20]!r}…, has more than the {longest} characters that WordPiece "
            "takes. Remove it from tokenizer_config.json, or export with `--tokenizer-mode fast`."
        )
    return Converted(tokenizer, [basic_tokenize, *([UnknownWords(unknown, pieces.unk_token)] if unknown else [])])
