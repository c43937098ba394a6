"""Slow tokenizers that transformers 5 no longer has.

These are their vocabularies, special tokens and rules. bert-score uses them by default, so their
ids are what a bundle in the slow mode reproduces. Each class has the name, the defaults and the
attributes of the one in transformers 4, and reads the same files.

The files alone are not enough: many models have only a vocabulary, and then their special tokens,
with flags and ids, are those of the class. The classes of transformers 5 have other special tokens,
and give other ids for edge cases, so the classes here also tokenise: every export compares its
tokenizer with them, and counts the texts with other ids.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import transformers
from sentencepiece import SentencePieceProcessor
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import CONFIG_MAPPING, PreTrainedTokenizer
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES as MBART_CODES
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART50_CODES
from transformers.tokenization_python import _is_punctuation

from bertscore_onnx_export.tokenizer.conversions import without_holes

_Tokens = Mapping[str, str | AddedToken]

_ROBERTA_TOKENS: _Tokens = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "cls_token": "<s>",
    "mask_token": AddedToken("<mask>", lstrip=True, special=True),  # takes the space before it
}
_WORDPIECE_TOKENS: _Tokens = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_BERT_TOKENS: _Tokens = {"bos_token": "[CLS]", "eos_token": "[SEP]", **_WORDPIECE_TOKENS}
_BERT_MASK: _Tokens = {"mask_token": AddedToken("[MASK]", lstrip=True, special=True)}


class _Lowercasing:
    """Lowercases a text by character, as transformers 4 did, before the tokenizer's class does."""

    def tokenize(self, text: str, **options: Any) -> list[str]:
        if getattr(self, "do_lower_case", False):
            text = _lower_between_tokens(self, text)
        tokenizer: Any = super()  # the class beside this one
        return list(tokenizer.tokenize(text, **options))


def _lower_between_tokens(tokenizer: Any, text: str) -> str:
    """Lowercase a text, but not the tokens that are cut out of it."""
    kept = list(tokenizer.all_special_tokens)
    for token in tokenizer.added_tokens_decoder.values():
        if not token.special and token.normalized:
            kept.append(token.content)
    if not kept:
        return _lower(text)
    pattern = "|".join(map(re.escape, kept))
    pieces = re.split(f"({pattern})", text)
    # The tokens are the second piece, the fourth, and so on.
    pieces[::2] = map(_lower, pieces[::2])
    return "".join(pieces)


def _lower(text: str) -> str:
    return "".join(map(str.lower, text))  # the last sigma of a word is as any other


# transformers is untyped, and so are the classes that it gives.


class ProphetNetTokenizer(_Lowercasing, transformers.ProphetNetTokenizer):  # type: ignore[misc]
    """That of transformers, where [X_SEP] has no special place in a text."""

    @property
    def all_special_tokens(self) -> list[str]:
        return [token for token in super().all_special_tokens if token != "[X_SEP]"]


class XLMTokenizer(_Lowercasing, transformers.XLMTokenizer):  # type: ignore[misc]
    """That of transformers."""


class RoCBertTokenizer(_Lowercasing, transformers.RoCBertTokenizer):  # type: ignore[misc]
    """That of transformers."""


class _Slow(_Lowercasing, PreTrainedTokenizer):  # type: ignore[misc]
    """A tokenizer with the special tokens and the flags that its class has in transformers 4."""

    special_tokens: ClassVar[_Tokens] = _ROBERTA_TOKENS
    extra_tokens: ClassVar[Sequence[str]] = ()
    """The special tokens without a role, if the files have none."""

    frame: ClassVar[tuple[Sequence[str], Sequence[str]]] = (("cls_token_id",), ("sep_token_id",))
    """The special tokens before and after a text."""

    def __init__(self, **settings: Any) -> None:
        given = {token.content for token in settings.get("added_tokens_decoder", {}).values()}
        tokens = {}
        for role, default in self.special_tokens.items():
            tokens[role] = _in_role(settings.get(role), default)
        extra = settings.pop("additional_special_tokens", None)
        if not extra:
            extra = settings.pop("extra_special_tokens", None)
        settings |= tokens
        settings["extra_special_tokens"] = self._extra(list(map(str, extra or ())))
        super().__init__(**settings)
        for token in tokens.values():  # the base class adds bare names
            if isinstance(token, AddedToken) and token.content not in given:
                self._added_tokens_decoder[self._added_tokens_encoder[token.content]] = token

    def _extra(self, given: list[str]) -> list[str]:
        """Return the special tokens without a role, of those in the files."""
        return given or list(self.extra_tokens)

    def build_inputs_with_special_tokens(
        self, ids: list[int], pair: list[int] | None = None
    ) -> list[int]:
        before, after = self.frame
        prefix = [getattr(self, name) for name in before]
        suffix = [getattr(self, name) for name in after]
        return [*prefix, *ids, *suffix]


def _in_role(given: str | AddedToken | None, default: str | AddedToken) -> str | AddedToken:
    """Return the files' special token, with the default's flags if it has none, or the default."""
    if isinstance(given, str) and isinstance(default, AddedToken):
        return AddedToken(given, lstrip=default.lstrip, special=True)
    return given or default


class _WordPiece(_Slow, BertTokenizerLegacy):  # type: ignore[misc]
    special_tokens = _WORDPIECE_TOKENS


class _ByteBpe(_Slow):
    vocab_files_names: ClassVar[Mapping[str, str]] = {
        "vocab_file": "vocab.json",
        "merges_file": "merges.txt",
    }

    def __init__(
        self, vocab_file: str, merges_file: str, *, add_prefix_space: bool = False, **settings: Any
    ) -> None:
        self.encoder: dict[str, int] = json.loads(Path(vocab_file).read_text(encoding="utf-8"))
        lines = Path(merges_file).read_text(encoding="utf-8").split("\n")[1:-1]
        self.bpe_ranks: dict[tuple[str, ...], int] = {}
        for rank, line in enumerate(lines):
            self.bpe_ranks[tuple(line.split())] = rank
        self.add_prefix_space = add_prefix_space
        merges = [pair for pair in self.bpe_ranks if len(pair) == 2]
        self._bpe = Tokenizer(models.BPE(without_holes(self.encoder), merges))
        self._bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        super().__init__(add_prefix_space=add_prefix_space, **settings)

    def get_vocab(self) -> dict[str, int]:
        return {**self.encoder, **self.added_tokens_encoder}

    def prepare_for_tokenization(self, text: str, **options: Any) -> tuple[str, dict[str, Any]]:
        is_prefixed = options.pop("add_prefix_space", self.add_prefix_space)
        if is_prefixed and text and not text[0].isspace():
            text = " " + text
        return text, options

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        return list(self._bpe.encode(text, add_special_tokens=False).tokens)

    def _convert_token_to_id(self, token: str) -> int | None:
        return self.encoder.get(token, self.encoder.get(str(self.unk_token)))


class LukeTokenizer(_ByteBpe):
    """Without its entities, whose special tokens are not in a text."""

    extra_tokens = ("<ent>", "<ent2>")

    def __init__(self, vocab_file: str, merges_file: str, **settings: Any) -> None:
        settings.pop("model_specific_special_tokens", None)
        super().__init__(vocab_file, merges_file, **settings)


class _SentencePiece(_Slow):
    vocab_files_names: ClassVar[Mapping[str, str]] = {"vocab_file": "spiece.model"}
    offset = 0
    """What is added to the ids of the pieces."""

    first_tokens: ClassVar[Sequence[str]] = ()
    """The tokens of the first ids, which are not ids of pieces."""

    last_tokens: ClassVar[Sequence[str]] = ()
    """The tokens whose ids follow the pieces'."""

    def __init__(self, vocab_file: str | None = None, **settings: Any) -> None:
        if vocab_file is None:
            raise TypeError("There is no vocab_file.")
        library_settings = settings.get("sp_model_kwargs") or {}
        self.sp_model = SentencePieceProcessor(model_file=vocab_file, **library_settings)
        start = len(self.sp_model) + self.offset
        numbered = chain(enumerate(self.first_tokens), enumerate(self.last_tokens, start))
        self.fixed = {token: index for index, token in numbered}
        self._by_id = {index: token for token, index in self.fixed.items()}
        given = settings.get("added_tokens_decoder", {})
        settings["added_tokens_decoder"] = self._added(given, settings)
        super().__init__(**settings)

    def _added(
        self, given: dict[int, AddedToken], settings: Mapping[str, Any]
    ) -> dict[int, AddedToken]:
        """Return the added tokens, by id: from the files, and from the class."""
        return given

    def get_vocab(self) -> dict[str, int]:
        size = len(self.sp_model) + self.offset + len(self.last_tokens)
        vocab = {}
        for index in range(size):
            vocab[self.convert_ids_to_tokens(index)] = index
        return vocab | self.added_tokens_encoder

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        return list(self.sp_model.encode(text, out_type=str))

    def _convert_token_to_id(self, token: str) -> int:
        if token in self.fixed:
            return self.fixed[token]
        index = self.sp_model.piece_to_id(token)
        # 0 stands for an unknown piece, which is among the first tokens if there are any.
        if not index and self.first_tokens:
            return int(self.unk_token_id)
        return int(index + self.offset)

    def _convert_id_to_token(self, index: int) -> str:
        return str(self._by_id.get(index) or self.sp_model.IdToPiece(index - self.offset))


class _CleanedSentencePiece(_SentencePiece):
    lowercases = False

    def __init__(
        self, *, remove_space: bool = True, keep_accents: bool = False, **settings: Any
    ) -> None:
        self.do_lower_case = settings.pop("do_lower_case", self.lowercases)
        self.remove_space = remove_space
        self.keep_accents = keep_accents
        super().__init__(**settings)

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        if self.remove_space:
            text = " ".join(text.split())
        text = text.replace("``", '"').replace("''", '"')
        if not self.keep_accents:
            decomposed = unicodedata.normalize("NFKD", text)
            text = "".join(sign for sign in decomposed if not unicodedata.combining(sign))
        if self.do_lower_case:
            text = text.lower()
        pieces = []
        for piece in self.sp_model.encode(text, out_type=str):
            pieces += self._split_comma(piece)
        return pieces

    def _split_comma(self, piece: str) -> list[str]:
        """Split a comma from the digits before it."""
        if not (len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()):
            return [piece]
        pieces = self.sp_model.encode(piece[:-1].replace("▁", ""), out_type=str)
        if piece[0] != "▁" and pieces[0][0] == "▁":
            pieces[0] = pieces[0][1:]
        return [*filter(None, pieces), ","]


class DebertaV2Tokenizer(_SentencePiece):
    """May split off punctuation."""

    vocab_files_names: ClassVar[Mapping[str, str]] = {"vocab_file": "spm.model"}
    special_tokens = _BERT_TOKENS

    def __init__(self, *, split_by_punct: bool = False, **settings: Any) -> None:
        self.do_lower_case = settings.pop("do_lower_case", False)
        self.split_by_punct = split_by_punct
        super().__init__(**settings)

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        if not self.split_by_punct:
            return super()._tokenize(text)
        pieces = []
        for segment in _split_at_punctuation(text):
            pieces += super()._tokenize(segment)
        return pieces


def _split_at_punctuation(text: str) -> Iterator[str]:
    """Yield the marks of a text and what is between them."""
    segments = [""]
    for sign in text:
        if _is_punctuation(sign):
            segments += [sign, ""]
        else:
            segments[-1] += sign
    return filter(None, segments)


class T5Tokenizer(_SentencePiece):
    """With tokens for spans after the pieces, counted backwards."""

    special_tokens: ClassVar[_Tokens] = {
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
    }

    def __init__(
        self, *, extra_ids: int = 100, legacy: bool | None = None, **settings: Any
    ) -> None:
        self.legacy = legacy is None or legacy
        self._spans = [f"<extra_id_{place}>" for place in range(extra_ids)]
        super().__init__(**settings)

    def _added(
        self, given: dict[int, AddedToken], settings: Mapping[str, Any]
    ) -> dict[int, AddedToken]:
        flags = {"lstrip": True, "rstrip": True, "special": True, "normalized": False}
        last = len(self.sp_model) + len(self._spans) - 1
        spans = {}
        for place, span in enumerate(self._spans):
            spans[last - place] = AddedToken(span, **flags)
        return spans | given

    def _extra(self, given: list[str]) -> list[str]:
        if any("<extra_id_" in token for token in given):
            return given
        return [*given, *self._spans]

    def build_inputs_with_special_tokens(
        self, ids: list[int], pair: list[int] | None = None
    ) -> list[int]:
        if ids and ids[-1] == self.eos_token_id:
            return list(ids)
        return [*ids, self.eos_token_id]


class PegasusTokenizer(_SentencePiece):
    """With unknown tokens before the pieces."""

    special_tokens: ClassVar[_Tokens] = {
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask_2>",
    }
    frame = ((), ("eos_token_id",))

    def __init__(
        self, *, offset: int = 103, mask_token_sent: str | None = "<mask_1>", **settings: Any
    ) -> None:
        named = settings.get("model_specific_special_tokens") or {}
        self.mask_token_sent = named.pop("mask_token_sent", mask_token_sent)
        self.offset = offset
        super().__init__(**settings)

    def _added(
        self, given: dict[int, AddedToken], settings: Mapping[str, Any]
    ) -> dict[int, AddedToken]:
        roles = {**self.special_tokens, **settings}
        tokens = [roles["pad_token"], roles["eos_token"]]
        if self.mask_token_sent is not None:
            tokens += [self.mask_token_sent, roles["mask_token"]]
        tokens += _unknown_tokens(2, self.offset)
        return _with_first(given, tokens)

    def _extra(self, given: list[str]) -> list[str]:
        listed = given
        if self.mask_token_sent is not None and str(self.mask_token_sent) not in given:
            listed = [str(self.mask_token_sent), *given]
        first = len(listed) if given else 2
        end = self.offset - 1 if given else self.offset
        return [*listed, *_unknown_tokens(first, end)]

    def _convert_id_to_token(self, index: int) -> str:
        piece = index if index < self.offset else index - self.offset
        return str(self.sp_model.IdToPiece(piece))


def _unknown_tokens(first: int, end: int) -> list[str]:
    """Return the unknown tokens of Pegasus, from a number to before another."""
    return [f"<unk_{number}>" for number in range(first, end)]


def _with_first(given: dict[int, AddedToken], tokens: Sequence[Any]) -> dict[int, AddedToken]:
    """Return added tokens with special tokens at the first ids."""
    added = dict(given)
    for index, token in enumerate(tokens):
        added[index] = AddedToken(str(token), special=True)
    return added


class CamembertTokenizer(_SentencePiece):
    """With five added tokens in front.

    The library's unknown piece is beside fairseq's.
    """

    vocab_files_names: ClassVar[Mapping[str, str]] = {"vocab_file": "sentencepiece.bpe.model"}
    extra_tokens = ("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED")
    offset = 4

    def _added(
        self, given: dict[int, AddedToken], settings: Mapping[str, Any]
    ) -> dict[int, AddedToken]:
        pad = settings.get("pad_token") or _ROBERTA_TOKENS["pad_token"]
        unknown = settings.get("unk_token") or _ROBERTA_TOKENS["unk_token"]
        return _with_first(given, ["<s>NOTUSED", pad, "</s>NOTUSED", unknown, "<unk>NOTUSED"])

    def _convert_token_to_id(self, token: str) -> int:
        index = self.sp_model.piece_to_id(token)
        return index + self.offset if index else int(self.unk_token_id)


class _Fairseq(_SentencePiece):
    vocab_files_names: ClassVar[Mapping[str, str]] = {"vocab_file": "sentencepiece.bpe.model"}
    first_tokens = ("<s>", "<pad>", "</s>", "<unk>")
    last_tokens = ("<mask>",)
    offset = 1


class _OfLanguages(_Fairseq):
    def __init__(self, *, src_lang: str | None = None, **settings: Any) -> None:
        self.language = src_lang or "en_XX"
        super().__init__(**settings)

    @property
    def language_id(self) -> int:
        return self.fixed[self.language]

    def _extra(self, given: list[str]) -> list[str]:
        languages = self.last_tokens[:-1]
        return list(dict.fromkeys([*languages, *given]))


def _row(name: str, rules: type[PreTrainedTokenizer], **facts: Any) -> type[PreTrainedTokenizer]:
    """Return the class of a family that differs from others by facts alone."""
    return type(f"{name}Tokenizer", (rules,), facts)


def _rows(rules: type[PreTrainedTokenizer], *names: str) -> list[type[PreTrainedTokenizer]]:
    return [_row(name, rules) for name in names]


_FAMILIES: Sequence[type[PreTrainedTokenizer]] = (
    ProphetNetTokenizer,
    RoCBertTokenizer,
    XLMTokenizer,
    *_rows(_WordPiece, "Bert", "ConvBert", "DistilBert", "Electra", "MobileBert", "SqueezeBert"),
    _row("MPNet", _WordPiece, special_tokens={**_ROBERTA_TOKENS, "unk_token": "[UNK]"}),
    *_rows(_ByteBpe, "Roberta", "Bart", "LED", "Longformer"),
    LukeTokenizer,
    _row("Blenderbot", _ByteBpe, frame=((), ("eos_token_id",))),
    _row("Deberta", _ByteBpe, special_tokens={**_BERT_TOKENS, **_BERT_MASK}),
    _row(
        "GPT2",
        _ByteBpe,
        special_tokens=dict.fromkeys(("unk_token", "bos_token", "eos_token"), "<|endoftext|>"),
        frame=((), ()),
    ),
    _row(
        "BigBird",
        _SentencePiece,
        special_tokens={
            **_ROBERTA_TOKENS,
            "sep_token": "[SEP]",
            "cls_token": "[CLS]",
            **_BERT_MASK,
        },
    ),
    _row(
        "RemBert",
        _SentencePiece,
        vocab_files_names={"vocab_file": "sentencepiece.model"},
        special_tokens={**_BERT_TOKENS, **_BERT_MASK},
    ),
    _row(
        "Albert",
        _CleanedSentencePiece,
        lowercases=True,
        special_tokens={**_BERT_TOKENS, "unk_token": "<unk>", "pad_token": "<pad>", **_BERT_MASK},
    ),
    _row(
        "XLNet",
        _CleanedSentencePiece,
        special_tokens={**_ROBERTA_TOKENS, "sep_token": "<sep>", "cls_token": "<cls>"},
        extra_tokens=("<eop>", "<eod>"),
        frame=((), ("sep_token_id", "cls_token_id")),
    ),
    DebertaV2Tokenizer,
    T5Tokenizer,
    _row("MT5", T5Tokenizer),
    PegasusTokenizer,
    CamembertTokenizer,
    _row("XLMRoberta", _Fairseq),
    _row(
        "MBart",
        _OfLanguages,
        last_tokens=(*MBART_CODES, "<mask>"),
        frame=((), ("eos_token_id", "language_id")),
    ),
    _row(
        "MBart50",
        _OfLanguages,
        last_tokens=(*MBART50_CODES, "<mask>"),
        frame=(("language_id",), ("eos_token_id",)),
    ),
)
"""transformers still has the other slow tokenizers."""

_TYPES = {
    "data2vec-text": "roberta",
    "ernie": "bert",
    "gte": "xlm-roberta",
    "ibert": "roberta",
    "megatron-bert": "bert",
    "nystromformer": "albert",
    "roberta-prelayernorm": "roberta",
    "umt5": "t5",
    "xlm-roberta-xl": "xlm-roberta",
    "xmod": "xlm-roberta",
}
"""The types of models with the tokenizer of another type, to that type."""


def class_of(name: str | None, model_type: str) -> type[PreTrainedTokenizer] | None:
    """Return the class of a slow tokenizer; None if a model has none.

    The name in the model's files decides, or else the model's type.
    """
    model_type = _TYPES.get(model_type, model_type)
    if name is None and model_type in CONFIG_MAPPING:
        name = f"{CONFIG_MAPPING[model_type].__name__.removesuffix('Config')}Tokenizer"
    name = (name or "").removesuffix("Fast")
    families = {family.__name__: family for family in _FAMILIES}
    kind = families.get(name) or getattr(transformers, name, None)
    if not isinstance(kind, type) or kind is PreTrainedTokenizer:
        return None
    return kind if issubclass(kind, PreTrainedTokenizer) else None
