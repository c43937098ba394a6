"""Byte-level BPE: GPT-2's, as RoBERTa, BART, DeBERTa and others use it."""

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Tokenizer, PreTrainedTokenizer, RobertaTokenizer

from bertscore_onnx.text.normalizers import PrefixSpace
from bertscore_onnx_export.tokenizer.conversions.converted import Converted, without_holes


def byte_bpe(slow: PreTrainedTokenizer) -> Converted:
    """Put the space before the first word by hand; byte-level BPE's own option adds it after special tokens too."""
    merges = [pair for pair in sorted(slow.bpe_ranks, key=slow.bpe_ranks.__getitem__) if len(pair) == 2]
    tokenizer = Tokenizer(models.BPE(without_holes(slow.encoder), merges, unk_token=str(slow.unk_token)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    prefix = takes_prefix_space(slow) or slow.add_prefix_space
    return Converted(tokenizer, normalizers=[PrefixSpace()] if prefix else [])


def takes_prefix_space(tokenizer: PreTrainedTokenizer) -> bool:
    """Tell whether bert-score asks this tokenizer for a space before the first word."""
    return isinstance(tokenizer, GPT2Tokenizer | RobertaTokenizer)
