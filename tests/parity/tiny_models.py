"""Tiny random models with tokenizers trained on the spot, one for each family, saved as transformers saves them.

The weights are large enough for attention, positions and layers to show in the scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    AlbertTokenizer,
    AutoConfig,
    AutoModel,
    BertTokenizer,
    DistilBertTokenizer,
    ElectraTokenizer,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

from .texts import AWKWARD_PAIRS, ORDINARY_PAIRS

CORPUS = [text for pair in (*ORDINARY_PAIRS, *AWKWARD_PAIRS[:18]) for text in pair if text.strip()]
MAX_LENGTH = 64
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": MAX_LENGTH,
}


def wordpiece(tokenizer_class: Any) -> Callable[[Path], Any]:
    """Return what trains a WordPiece vocabulary for a tokenizer class."""

    def train(folder: Path) -> Any:
        trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106
        trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False
        )
        trained.train_from_iterator([text.lower() for text in CORPUS], trainer)
        vocabulary = sorted(trained.get_vocab(), key=trained.get_vocab().__getitem__)
        (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
        return tokenizer_class(str(folder / "vocab.txt"), model_max_length=MAX_LENGTH)

    return train


def byte_bpe(folder: Path) -> Any:
    """Train byte-level BPE for RoBERTa."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    trained.train_from_iterator(CORPUS, trainer)
    trained.model.save(str(folder))
    return RobertaTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=MAX_LENGTH)


def sentencepiece_unigram(tokenizer_class: Any, **options: Any) -> Callable[[Path], Any]:
    """Return what trains a SentencePiece Unigram model for a tokenizer class."""

    def train(folder: Path) -> Any:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(CORPUS),
            model_prefix=str(folder / "trained"),
            vocab_size=300,
            character_coverage=1.0,
            hard_vocab_limit=False,
            minloglevel=2,
            **options,
        )
        return tokenizer_class(str(folder / "trained.model"), model_max_length=MAX_LENGTH)

    return train


@dataclass(frozen=True)
class TinyModel:
    """How to make the tiny model of one family."""

    model_type: str
    train_tokenizer: Callable[[Path], Any]
    sizes: dict[str, Any]


ROBERTA_SIZES = {**SIZES, "max_position_embeddings": MAX_LENGTH + 2, "type_vocab_size": 1, "pad_token_id": 1}
TINY_MODELS = {
    "albert": TinyModel(
        "albert",
        sentencepiece_unigram(
            AlbertTokenizer,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            control_symbols=["[CLS]", "[SEP]"],
            user_defined_symbols=["[MASK]"],
        ),
        {**SIZES, "embedding_size": 16, "pad_token_id": 0},
    ),
    "bert": TinyModel("bert", wordpiece(BertTokenizer), SIZES),
    "distilbert": TinyModel(
        "distilbert",
        wordpiece(DistilBertTokenizer),
        {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": MAX_LENGTH},
    ),
    "electra": TinyModel("electra", wordpiece(ElectraTokenizer), {**SIZES, "embedding_size": 16}),
    "roberta": TinyModel("roberta", byte_bpe, ROBERTA_SIZES),
    "xlm-roberta": TinyModel("xlm-roberta", sentencepiece_unigram(XLMRobertaTokenizer), ROBERTA_SIZES),
}


def save_tiny_model(family: str, folder: Path) -> Path:
    """Make the tiny model of a family and save it in a folder."""
    recipe = TINY_MODELS[family]
    (folder / "vocabulary").mkdir(parents=True)
    tokenizer = recipe.train_tokenizer(folder / "vocabulary")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model = AutoModel.from_config(AutoConfig.for_model(recipe.model_type, vocab_size=len(tokenizer), **recipe.sizes))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.2 if parameter.dim() == 1 else 0.25))
    model.save_pretrained(folder)
    return folder
