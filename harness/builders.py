"""What takes PyTorch to make: random models and bundles. Called in a process of its own."""

import json
from pathlib import Path
from typing import Any

from harness.texts import SYLLABLES, WORDS

ROBERTA_LARGE = {
    "vocab_size": 50265,
    "hidden_size": 1024,
    "num_hidden_layers": 17,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}
"""roberta-large as far as the layer that bert-score takes."""

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def save_random_roberta(folder: Path, texts: list[str], sizes: dict[str, int]) -> None:
    """Save a random RoBERTa, with a tokenizer that learned its merges from the texts."""
    import torch
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel

    learned = ByteLevelBPETokenizer()
    special_tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    learned.train_from_iterator(texts, vocab_size=8000, special_tokens=special_tokens, show_progress=False)
    _save_tokenizer(learned, folder, "RobertaTokenizer", 512)
    torch.manual_seed(0)
    config = RobertaConfig(layer_norm_eps=1e-5, **{**ROBERTA_LARGE, **sizes})
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


def save_tiny_bert(folder: Path) -> None:
    """Save a random BERT of one layer, with a tokenizer that learned the words of `distinct_pairs`."""
    import torch
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel

    learned = BertWordPieceTokenizer()
    learned.train_from_iterator([*WORDS, *SYLLABLES], vocab_size=1000, min_frequency=1, show_progress=False)
    _save_tokenizer(learned, folder, "BertTokenizer", TINY["max_position_embeddings"])
    torch.manual_seed(0)
    config = BertConfig(vocab_size=learned.get_vocab_size(), **TINY)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)


def _save_tokenizer(learned: Any, folder: Path, tokenizer_class: str, max_length: int) -> None:
    """Save what a slow tokenizer is loaded from, whatever the version of transformers."""
    folder.mkdir(parents=True, exist_ok=True)
    learned.save_model(str(folder))
    config = {"tokenizer_class": tokenizer_class, "model_max_length": max_length}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def export(folder: Path, name: str, num_layers: int, precision: str, output: Path) -> None:
    """Export a model folder into a bundle."""
    from bertscore_onnx_export.pipeline import export_model

    options: dict[str, Any] = {} if precision == "fp32" else {"precision": precision}
    export_model(str(folder), name=name, num_layers=num_layers, output=output, force=True, **options)
