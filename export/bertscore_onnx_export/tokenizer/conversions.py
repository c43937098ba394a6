"""The conversion of each slow tokenizer of transformers.

There is one table, and a function for each kind.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizer, PreTrainedTokenizerBase

from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.normalizers import (
    BYTE_CHARACTERS,
    BasicTokenize,
    CleanQuotes,
    Compose,
    Moses,
    Normalizer,
    PrefixSpace,
    SeparateDialogue,
    SeparateWords,
    UnknownWords,
)
from bertscore_onnx.text.spec import SentencePieceSpec


@dataclass(frozen=True, slots=True)
class Converted:
    """A converted tokenizer without its special tokens.

    The tokenizer spec handles these alike for all kinds.
    """

    tokenizer: Tokenizer
    """The content of `tokenizer.slow.json`.

    It maps a prepared segment to ids, or (SentencePiece) only names them.
    """

    pre_tokenizers: list[Normalizer] = field(default_factory=list)
    """The changes to a segment between special tokens."""

    normalizers: list[Normalizer] = field(default_factory=list)
    """The changes to a whole text, which come first."""

    sentencepiece: SentencePieceSpec | None = None
    """The rules for `spiece.model`; None if `tokenizer.slow.json` encodes the texts."""

    sentencepiece_model: bytes = b""
    """The content of `spiece.model`."""

    vocab_size: int | None = None
    """The number of ids of the model, if `tokenizer.slow.json` has more.

    The others then count as unknown.
    """


SlowConversion = Callable[[PreTrainedTokenizer], Converted]
"""Converts a slow tokenizer by its own tables."""


def without_holes(vocab: Mapping[str, int]) -> dict[str, int]:
    """Name the ids that a vocabulary skips.

    The `tokenizers` package requires it; no word begins with a space.
    """
    taken = set(vocab.values())
    whole = {}
    for index in range(max(taken, default=0)):
        if index not in taken:
            whole[f" {index}"] = index
    return whole | dict(vocab)


# Plain bytes: ByT5.


def byt5(slow: PreTrainedTokenizer) -> Converted:
    """Give each byte of the UTF-8 its own id.

    The tokenizer is a byte-level BPE without merges.
    """
    vocab = {written: byte + slow.offset for byte, written in BYTE_CHARACTERS.items()}
    tokenizer = Tokenizer(models.BPE(without_holes(vocab), []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return Converted(tokenizer)


# Byte-level BPE: GPT-2's, as RoBERTa, BART, DeBERTa and others use it.


def byte_bpe(slow: PreTrainedTokenizer) -> Converted:
    """Add the space before the first word by a normalizer.

    BPE's own option adds it after special tokens too.
    """
    vocab = without_holes(slow.encoder)
    model = models.BPE(vocab, _merges(slow), unk_token=str(slow.unk_token))
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if takes_prefix_space(slow) or slow.add_prefix_space:
        return Converted(tokenizer, normalizers=[PrefixSpace()])
    return Converted(tokenizer)


def _merges(slow: PreTrainedTokenizer) -> list[tuple[str, str]]:
    """Return the pairs that a BPE merges, the first ones first."""
    pairs = sorted(slow.bpe_ranks, key=slow.bpe_ranks.__getitem__)
    return [pair for pair in pairs if len(pair) == 2]


def takes_prefix_space(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether bert-score requests a space before the first word.

    It does from tokenizers of some classes.
    """
    names = {ancestor.__name__ for ancestor in type(tokenizer).__mro__}
    return not (tokenizer.is_fast or names.isdisjoint({"GPT2Tokenizer", "RobertaTokenizer"}))


# SentencePiece: XLM-RoBERTa, ALBERT, T5 and many others.


def sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Copy the model file, which the runtime uses for encoding.

    `tokenizer.slow.json` names the ids.
    """
    return _from_library(slow, slow.sp_model)


def cleaned_sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Convert ALBERT and XLNet.

    They clean texts first and split commas from numbers.
    """
    cleaning = CleanQuotes(
        collapse_space=slow.remove_space,
        strip_accents=not slow.keep_accents,
        lowercase=slow.do_lower_case,
    )
    return _from_library(slow, slow.sp_model, [cleaning], split_number_comma=True)


def deberta_sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Convert DeBERTa v2 and v3, which may split off punctuation first."""
    processor = slow.sp_model if hasattr(slow, "sp_model") else slow._tokenizer.spm
    return _from_library(slow, processor, split_punctuation=slow.split_by_punct)


def t5_sentencepiece(slow: PreTrainedTokenizer) -> Converted:
    """Convert T5 and mT5 in the way that transformers calls legacy.

    It is the default there.
    """
    if not slow.legacy:
        raise ExportError(
            "T5 tokenizers with `legacy=False` are not reproduced in the slow mode. Export with "
            "`--tokenizer-mode fast`, or set `legacy` to true in tokenizer_config.json."
        )
    return sentencepiece(slow)


def _from_library(
    slow: PreTrainedTokenizer,
    processor: SentencePieceProcessor,
    pre_tokenizers: Sequence[Normalizer] = (),
    *,
    split_number_comma: bool = False,
    split_punctuation: bool = False,
) -> Converted:
    pieces = [processor.id_to_piece(piece) for piece in range(processor.get_piece_size())]
    ids = slow.convert_tokens_to_ids(pieces)
    vocab: dict[str, int] = {}
    for index in range(max(ids) + 1):
        vocab.setdefault(slow.convert_ids_to_tokens(index), index)
    spec = SentencePieceSpec(
        id_runs=_runs(ids),
        split_number_comma=split_number_comma,
        split_punctuation=split_punctuation,
    )
    return Converted(
        Tokenizer(models.WordLevel(without_holes(vocab), str(slow.unk_token))),
        list(pre_tokenizers),
        sentencepiece=spec,
        sentencepiece_model=processor.serialized_model_proto(),
    )


def _runs(ids: list[int]) -> list[tuple[int, int]]:
    """Return the index and the first id of each run of consecutive ids.

    The index is that of the first piece.
    """
    runs = [(0, ids[0])]
    for index, (first, second) in enumerate(pairwise(ids), 1):
        if second != first + 1:
            runs.append((index, second))
    return runs


# BPE within words, with the last piece of a word marked: BERTweet, small BlenderBot, XLM and
# FlauBERT.

_END = "</w>"


def bertweet(slow: PreTrainedTokenizer) -> Converted:
    """Convert BERTweet, which splits at white space."""
    if slow.normalization:
        raise ExportError(
            "BERTweet's rewriting of tweets is not reproduced. Set `normalization` to false in "
            "tokenizer_config.json, and normalise the texts before they are scored."
        )
    tokenizer, vocab_size = _word_bpe(slow, _with_continuation)
    return Converted(tokenizer, [SeparateWords()], vocab_size=vocab_size)


def blenderbot_small(slow: PreTrainedTokenizer) -> Converted:
    """Convert the small BlenderBot.

    It splits at white space, marks and apostrophes.
    """
    tokenizer, vocab_size = _word_bpe(slow, _with_continuation)
    return Converted(tokenizer, [SeparateDialogue()], vocab_size=vocab_size)


def xlm(slow: PreTrainedTokenizer) -> Converted:
    """Convert XLM.

    It splits a text without a language as Moses splits English.
    """
    tokenizer, vocab_size = _word_bpe(slow, str)
    moses = Moses(lowercase_and_strip_accents=slow.do_lowercase_and_remove_accent)
    return Converted(tokenizer, [moses], vocab_size=vocab_size)


def flaubert(slow: PreTrainedTokenizer) -> Converted:
    """Convert FlauBERT, which splits every text as Moses splits French."""
    tokenizer, vocab_size = _word_bpe(slow, str)
    moses = Moses(lowercase_and_strip_accents=False, language="fr")
    return Converted(tokenizer, [Compose(slow.do_lowercase), moses], vocab_size=vocab_size)


def _with_continuation(symbol: str) -> str:
    """Return the name of a symbol in a vocabulary.

    The vocabulary marks all pieces of a word but the last.
    """
    return symbol.removesuffix(_END) if symbol.endswith(_END) else symbol + "@@"


def _word_bpe(slow: PreTrainedTokenizer, name_of: Callable[[str], str]) -> tuple[Tokenizer, int]:
    """Return the BPE and the size of its vocabulary.

    The vocabulary may lack some of the symbols.
    """
    merges = _merges(slow)
    symbols = []
    for first, second in merges:
        symbols += [first, second, first + second]
    for character in sorted(set().union(*slow.encoder)):
        symbols += [character, character + _END]
    vocab_size = max(slow.encoder.values()) + 1
    vocab = {str(slow.unk_token): slow.convert_tokens_to_ids(slow.unk_token)}
    unlisted = itertools.count(vocab_size)
    for symbol in dict.fromkeys(symbols):
        listed = slow.encoder.get(name_of(symbol))
        vocab[symbol] = next(unlisted) if listed is None else listed
    if len(set(vocab.values())) < len(vocab):
        raise ExportError(
            "Two pieces of the vocabulary have the same id; it cannot be reproduced in the slow "
            "mode."
        )
    unknown = str(slow.unk_token)
    model = models.BPE(without_holes(vocab), merges, unk_token=unknown, end_of_word_suffix=_END)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    return tokenizer, vocab_size


# WordPiece: BERT and similar models.


def wordpiece(slow: PreTrainedTokenizer) -> Converted:
    """Put only WordPiece itself into `tokenizer.slow.json`.

    The basic tokenizer before it becomes a pre-tokenizer.
    """
    pieces = slow.wordpiece_tokenizer
    vocab = without_holes(slow.vocab)
    longest = pieces.max_input_chars_per_word
    tokenizer = Tokenizer(
        models.WordPiece(vocab, unk_token=pieces.unk_token, max_input_chars_per_word=longest)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if not slow.do_basic_tokenize:
        return Converted(tokenizer)
    basic = slow.basic_tokenizer
    # Lowercasing strips accents too, unless the settings say otherwise.
    accents = bool(basic.strip_accents)
    if basic.do_lower_case:
        accents = basic.strip_accents is not False
    basic_tokenize = BasicTokenize(
        lowercase=basic.do_lower_case,
        strip_accents=accents,
        split_chinese=basic.tokenize_chinese_chars,
        never_split=sorted({*slow.all_special_tokens, *basic.never_split}, key=str),
    )
    unknown = sorted(set(basic.never_split) - slow.vocab.keys(), key=str)
    for word in basic.never_split:
        if word in slow.vocab and len(word) > longest:
            raise ExportError(
                f"A word of `never_split`, {word[:20]!r}…, has more than the {longest} "
                "characters that WordPiece accepts. Remove it from tokenizer_config.json, or "
                "export with `--tokenizer-mode fast`."
            )
    if not unknown:
        return Converted(tokenizer, [basic_tokenize])
    return Converted(tokenizer, [basic_tokenize, UnknownWords(unknown, pieces.unk_token)])


CONVERSIONS: Mapping[str, SlowConversion] = {
    "AlbertTokenizer": cleaned_sentencepiece,
    "BartTokenizer": byte_bpe,
    "BertTokenizer": wordpiece,
    "BertweetTokenizer": bertweet,
    "BigBirdTokenizer": sentencepiece,
    "BlenderbotSmallTokenizer": blenderbot_small,
    "BlenderbotTokenizer": byte_bpe,
    "ByT5Tokenizer": byt5,
    "CamembertTokenizer": sentencepiece,
    "ConvBertTokenizer": wordpiece,
    "DebertaTokenizer": byte_bpe,
    "DebertaV2Tokenizer": deberta_sentencepiece,
    "DistilBertTokenizer": wordpiece,
    "ElectraTokenizer": wordpiece,
    "FlaubertTokenizer": flaubert,
    "GPT2Tokenizer": byte_bpe,
    "LEDTokenizer": byte_bpe,
    "LongformerTokenizer": byte_bpe,
    "LukeTokenizer": byte_bpe,
    "MBart50Tokenizer": sentencepiece,
    "MBartTokenizer": sentencepiece,
    "MPNetTokenizer": wordpiece,
    "MobileBertTokenizer": wordpiece,
    "PegasusTokenizer": sentencepiece,
    "ProphetNetTokenizer": wordpiece,
    "RemBertTokenizer": sentencepiece,
    "RoCBertTokenizer": wordpiece,
    "RobertaTokenizer": byte_bpe,
    "SqueezeBertTokenizer": wordpiece,
    "T5Tokenizer": t5_sentencepiece,
    "XLMProphetNetTokenizer": sentencepiece,
    "XLMRobertaTokenizer": sentencepiece,
    "XLMTokenizer": xlm,
    "XLNetTokenizer": cleaned_sentencepiece,
}
"""By the class of the slow tokenizer.

It is more specific than a model's type: BERTweet has the type `roberta`.
"""


def convert(slow: PreTrainedTokenizer) -> Converted:
    """Convert a slow tokenizer by the row of its class.

    A class without a row has that of its nearest base class.
    """
    for ancestor in type(slow).__mro__:
        if ancestor.__name__ in CONVERSIONS:
            return _convert(slow, CONVERSIONS[ancestor.__name__])
    raise ExportError(
        f"The slow tokenizer {type(slow).__name__} cannot be converted by this version. Export "
        "with `--tokenizer-mode fast` if it has a fast one."
    )


def _convert(slow: PreTrainedTokenizer, conversion: SlowConversion) -> Converted:
    try:
        return conversion(slow)
    except Exception as error:
        # the `tokenizers` package raises nothing narrower; other classes are bugs
        if type(error) is not Exception:
            raise
        raise ExportError(
            f"The vocabulary files of {slow.name_or_path} do not match: {error}. Download or save "
            "them again."
        ) from error
