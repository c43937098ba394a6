"""BPE within words whose last piece is marked: BERTweet, small BlenderBot and XLM."""

import itertools
from collections.abc import Callable

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizer

from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.normalizers import Moses, SeparateDialogue, SeparateWords
from bertscore_onnx_export.tokenizer.conversions.converted import Converted, without_holes

_END = "</w>"


def bertweet(slow: PreTrainedTokenizer) -> Converted:
    """Split at white space.

    Raises:
        ExportError: the tokenizer also rewrites tweets, which is off by default.
    """
    if slow.normalization:
        raise ExportError(
            "BERTweet's rewriting of tweets is not reproduced. Set `normalization` to false in tokenizer_config.json, "
            "and rewrite the texts themselves before they are scored."
        )
    tokenizer, vocab_size = _word_bpe(slow, _with_continuation)
    return Converted(tokenizer, [SeparateWords()], vocab_size=vocab_size)


def blenderbot_small(slow: PreTrainedTokenizer) -> Converted:
    """Split at white space, marks and apostrophes."""
    tokenizer, vocab_size = _word_bpe(slow, _with_continuation)
    return Converted(tokenizer, [SeparateDialogue()], vocab_size=vocab_size)


def xlm(slow: PreTrainedTokenizer) -> Converted:
    """Split as Moses does for English, which is what a text of no stated language gets."""
    tokenizer, vocab_size = _word_bpe(slow, str)
    moses = Moses(lowercase_and_strip_accents=slow.do_lowercase_and_remove_accent)
    return Converted(tokenizer, [moses], vocab_size=vocab_size)


def _with_continuation(symbol: str) -> str:
    """Return the vocabulary's name of a symbol where it is the earlier pieces of a word that are marked."""
    return symbol.removesuffix(_END) if symbol.endswith(_END) else symbol + "@@"


def _word_bpe(slow: PreTrainedTokenizer, name_of: Callable[[str], str]) -> tuple[Tokenizer, int]:
    """Build the BPE over its symbols, some of which the vocabulary may lack.

    Args:
        slow: has `encoder`, the vocabulary, and `bpe_ranks`, the merges.
        name_of: the vocabulary's name of a symbol.

    Returns:
        A tokenizer of words with a space between, and its first id that the vocabulary lacks.
    """
    merges = [pair for pair in sorted(slow.bpe_ranks, key=slow.bpe_ranks.__getitem__) if len(pair) == 2]
    symbols = dict.fromkeys(symbol for first, second in merges for symbol in (first, second, first + second))
    single = {one for name in slow.encoder for one in name}
    symbols |= dict.fromkeys(symbol for one in sorted(single) for symbol in (one, one + _END))
    vocab_size = max(slow.encoder.values()) + 1
    vocab = {str(slow.unk_token): slow.convert_tokens_to_ids(slow.unk_token)}
    unlisted = itertools.count(vocab_size)
    for symbol in symbols:
        listed = slow.encoder.get(name_of(symbol))
        vocab[symbol] = next(unlisted) if listed is None else listed
    if len(set(vocab.values())) < len(vocab):
        raise ExportError("Two pieces of the vocabulary have the same id; it cannot be reproduced in the slow mode.")
    tokenizer = Tokenizer(
        models.BPE(without_holes(vocab), merges, unk_token=str(slow.unk_token), end_of_word_suffix=_END)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    return tokenizer, vocab_size
