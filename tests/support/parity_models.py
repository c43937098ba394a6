"""Tiny random models with tokenizers trained on the spot, of every family, saved as transformers saves them."""

from pathlib import Path

from bertscore_onnx_export.model.families import family_of
from transformers import AutoConfig

from tests.support.tiny_models import SETTINGS, save_tiny_model
from tests.support.tiny_tokenizers import KINDS, fast_byte_bpe

UNBOUNDED_LENGTH = 72
"""The maximum length of the tokenizers of models that have no bound."""

_KIND_OF = {
    "bert-relative-key": "bert",
    "bert-relative-key-query": "bert-cased",
    "bort": "roberta",
    "convbert-groups": "convbert",
    "deberta-absolute": "deberta",
    "deberta-v3": "deberta-v2",
    "electra-same-size": "electra",
    "mbart-50": "mbart50",
    "xlm-languages": "xlm-cased",
}
"""Model to the kind of its tokenizer, where that has another name."""

FAST = {"modernbert": fast_byte_bpe}
"""Models that have no slow tokenizer, to what makes the fast one."""

_SETTINGS_OF = {"bertweet": "roberta", "bort": "bert", "mbart-50": "mbart"}
"""Model to its architecture, where that has another name; "t5" in a name would make bert-score take it for a T5."""

TINY_MODELS = sorted({*SETTINGS, *_SETTINGS_OF})


def save_model_and_tokenizer(name: str, folder: Path) -> Path:
    """Save a model and its tokenizer in a folder; both know the same ids and the same maximum length."""
    (folder / "training").mkdir(parents=True)
    make_tokenizer = FAST[name] if name in FAST else KINDS[_KIND_OF.get(name, name)]
    tokenizer = make_tokenizer(folder / "training")
    model_type, settings = SETTINGS[_SETTINGS_OF.get(name, name)]
    settings = {**settings, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if "block_size" in settings:
        settings["block_size"] = 64  # longer than the texts: bert-score goes block-sparse until a short batch comes
    if "pad_index" in settings:
        settings["pad_index"] = tokenizer.pad_token_id
    config = AutoConfig.for_model(model_type, **settings)
    tokenizer.model_max_length = family_of(config).max_tokens(config) or UNBOUNDED_LENGTH
    tokenizer.save_pretrained(folder)
    save_tiny_model(model_type, settings, folder)
    return folder
