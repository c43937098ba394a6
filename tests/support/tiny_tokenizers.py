"""A tiny slow tokenizer of every kind, trained here on the sample texts, as real ones need the Hub."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import transformers
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast
from transformers.models.deprecated.xlm_prophetnet.tokenization_xlm_prophetnet import XLMProphetNetTokenizer

TRAINING_TEXTS = [line for text in (*PLAIN_TEXTS, *EDGE_CASE_TEXTS) for line in text[:500].split("\n") if line.strip()]
_T5_IDS = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
_BERT_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[X_SEP]"]
_MPNET_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]

Make = Callable[[Path], PreTrainedTokenizer]


def _unigram(kind: type[PreTrainedTokenizer], *, rule: str = "nmt_nfkc", options: Any = None, **training: Any) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([*TRAINING_TEXTS * 3, *["000 0000 167 0"] * 9]),
            model_prefix=str(folder / "trained"),
            vocab_size=600,
            hard_vocab_limit=False,
            normalization_rule_name=rule,
            minloglevel=2,
            **training,
        )
        return kind(str(folder / "trained.model"), **(options or {}))

    return make


def _wordpiece(kind: type[PreTrainedTokenizer], special_tokens: list[str], **options: Any) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        characters = sorted({one for text in TRAINING_TEXTS for one in text + text.lower() if not one.isspace()})
        words = sorted({word.lower() for text in TRAINING_TEXTS for word in text.split() if word.isalpha()})
        pieces = [*characters, *(f"##{one}" for one in characters), *words[::2], *(f"##{word[2:]}" for word in words)]
        names = dict.fromkeys([*special_tokens, *pieces])
        file = folder / "words.txt"
        file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        return kind(str(file), **options)

    return make


def _byte_bpe(kind: type[PreTrainedTokenizer], special_tokens: list[str], **options: Any) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=700, special_tokens=special_tokens, initial_alphabet=alphabet, show_progress=False
        )
        vocab, merges = _trained_bpe(trainer, byte_level)
        return kind(*_write_bpe(folder, vocab, ["#version: 0.2", *map(" ".join, merges)]), **options)

    return make


def fast_byte_bpe(folder: Path) -> PreTrainedTokenizerFast:
    """Make a tokenizer as ModernBERT's, which has no slow one: byte-level BPE with BERT's special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=_BERT_TOKENS, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TRAINING_TEXTS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    )
    names = {f"{name[1:-1].lower()}_token": name for name in _BERT_TOKENS[:5]}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _trained_bpe(trainer: trainers.BpeTrainer, words: pre_tokenizers.PreTokenizer) -> tuple[dict[str, int], list[Any]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = words
    tokenizer.train_from_iterator([one for text in TRAINING_TEXTS for one in (text, text.lower())], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def _write_bpe(folder: Path, vocab: dict[str, int], merges: list[str]) -> tuple[str, str]:
    files = folder / "vocab.json", folder / "merges.txt"
    files[0].write_text(json.dumps(vocab), encoding="utf-8")
    files[1].write_text("".join(f"{line}\n" for line in merges), encoding="utf-8")
    return str(files[0]), str(files[1])


def _word_symbols() -> tuple[list[str], list[Any]]:
    """Return symbols of a BPE within words, some left out, and its merges."""
    trainer = trainers.BpeTrainer(vocab_size=700, end_of_word_suffix="</w>", show_progress=False)
    vocab, merges = _trained_bpe(trainer, pre_tokenizers.WhitespaceSplit())
    return [symbol for place, symbol in enumerate(vocab) if place % 17 and symbol.isprintable()], merges


def _continued(symbol: str) -> str:
    return symbol.removesuffix("</w>") if symbol.endswith("</w>") else f"{symbol}@@"


def _bertweet(folder: Path) -> PreTrainedTokenizer:
    symbols, merges = _word_symbols()
    files = folder / "words.txt", folder / "codes.txt"
    files[0].write_text("".join(f"{_continued(symbol)} 1\n" for symbol in symbols), encoding="utf-8")
    files[1].write_text("".join(f"{first} {second} 1\n" for first, second in merges), encoding="utf-8")
    return transformers.BertweetTokenizer(*map(str, files))


def _blenderbot_small(folder: Path) -> PreTrainedTokenizer:
    symbols, merges = _word_symbols()
    names = dict.fromkeys(["__null__", "__start__", "__end__", "__unk__", *map(_continued, symbols)])
    vocab = {name: place for place, name in enumerate(names)}
    files = _write_bpe(folder, vocab, ["#version: 0.2", *map(" ".join, merges)])
    return transformers.BlenderbotSmallTokenizer(*files)


def _xlm(**options: Any) -> Make:
    def make(folder: Path) -> PreTrainedTokenizer:
        symbols, merges = _word_symbols()
        names = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{place}>" for place in range(10)), *symbols]
        vocab = {name: place for place, name in enumerate(names)}
        return transformers.XLMTokenizer(
            *_write_bpe(folder, vocab, [" ".join([*pair, "1"]) for pair in merges]), **options
        )

    return make


_CONTROL = {"control_symbols": "[CLS],[SEP],[MASK]", "pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
_ROBERTA_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]

KINDS: dict[str, Make] = {
    "albert": _unigram(transformers.AlbertTokenizer, **_CONTROL, user_defined_symbols=["(", ")", ".", "-", "£", "€"]),
    "albert-accents": _unigram(
        transformers.AlbertTokenizer, **_CONTROL, options={"keep_accents": True, "do_lower_case": False}
    ),
    "bart": _byte_bpe(transformers.BartTokenizer, _ROBERTA_TOKENS),
    "bert": _wordpiece(transformers.BertTokenizer, _BERT_TOKENS),
    "bert-cased": _wordpiece(transformers.BertTokenizer, _BERT_TOKENS, do_lower_case=False),
    "bert-accents": _wordpiece(transformers.BertTokenizer, _BERT_TOKENS, strip_accents=False),
    "bertweet": _bertweet,
    "bigbird": _unigram(transformers.BigBirdTokenizer, **_CONTROL),
    "bigbird-bpe": _unigram(
        transformers.BigBirdTokenizer,
        **_CONTROL,
        model_type="bpe",
        byte_fallback=True,
        user_defined_symbols=["(", "ab", "<n>"],
    ),
    "bigbird-bpe-plain": _unigram(
        transformers.BigBirdTokenizer,
        rule="identity",
        remove_extra_whitespaces=False,
        model_type="bpe",
        options={"cls_token": "<s>", "sep_token": "</s>"},
    ),
    "bigbird-characters": _unigram(transformers.BigBirdTokenizer, **_CONTROL, model_type="char"),
    "bigbird-suffix": _unigram(transformers.BigBirdTokenizer, **_CONTROL, treat_whitespace_as_suffix=True),
    "bigbird-words": _unigram(transformers.BigBirdTokenizer, **_CONTROL, model_type="word"),
    "blenderbot": _byte_bpe(transformers.BlenderbotTokenizer, _ROBERTA_TOKENS, add_prefix_space=True),
    "blenderbot-small": _blenderbot_small,
    "byt5": lambda folder: transformers.ByT5Tokenizer(),
    "camembert": _unigram(transformers.CamembertTokenizer),
    "convbert": _wordpiece(transformers.ConvBertTokenizer, _BERT_TOKENS),
    "deberta": _byte_bpe(transformers.DebertaTokenizer, _BERT_TOKENS),
    "deberta-v2": _unigram(transformers.DebertaV2Tokenizer, **_CONTROL, byte_fallback=True),
    "deberta-v2-marks": _unigram(
        transformers.DebertaV2Tokenizer, **_CONTROL, options={"split_by_punct": True, "do_lower_case": True}
    ),
    "distilbert": _wordpiece(transformers.DistilBertTokenizer, _BERT_TOKENS),
    "electra": _wordpiece(transformers.ElectraTokenizer, _BERT_TOKENS),
    "led": _byte_bpe(transformers.LEDTokenizer, _ROBERTA_TOKENS),
    "longformer": _byte_bpe(transformers.LongformerTokenizer, _ROBERTA_TOKENS),
    "mbart": _unigram(transformers.MBartTokenizer),
    "mbart50": _unigram(transformers.MBart50Tokenizer),
    "mpnet": _wordpiece(transformers.MPNetTokenizer, _MPNET_TOKENS),
    "mt5": _unigram(transformers.MT5Tokenizer, **_T5_IDS, byte_fallback=True, options={"extra_ids": 0}),
    "pegasus": _unigram(transformers.PegasusTokenizer, **_T5_IDS),
    "prophetnet": _wordpiece(transformers.ProphetNetTokenizer, _BERT_TOKENS),
    "roberta": _byte_bpe(transformers.RobertaTokenizer, _ROBERTA_TOKENS),
    "squeezebert": _wordpiece(transformers.SqueezeBertTokenizer, _BERT_TOKENS),
    "t5": _unigram(transformers.T5Tokenizer, **_T5_IDS),
    "t5-short": _unigram(transformers.T5Tokenizer, **_T5_IDS, options={"model_max_length": 12}),
    "xlm": _xlm(),
    "xlm-cased": _xlm(do_lowercase_and_remove_accent=False),
    "xlm-prophetnet": _unigram(XLMProphetNetTokenizer),
    "xlm-roberta": _unigram(transformers.XLMRobertaTokenizer),
    "xlm-roberta-folded": _unigram(transformers.XLMRobertaTokenizer, rule="nmt_nfkc_cf"),
    "xlm-roberta-plain": _unigram(
        transformers.XLMRobertaTokenizer,
        rule="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["½", "e\u0301", "<eop>"],
    ),
    "xlnet": _unigram(
        transformers.XLNetTokenizer,
        control_symbols="<cls>,<sep>,<pad>,<mask>,<eod>,<eop>",
        user_defined_symbols=["£", "€"],
    ),
}
"""By a name for the test's report."""
