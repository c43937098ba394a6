"""Tries a tokenizer before it is converted: damaged vocabularies load, and give ids that the model has not."""

from pathlib import Path

from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerBase

from bertscore_onnx.bundle.manifest import SlowDifferences
from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.model.source import Source, loading
from bertscore_onnx_export.tokenizer.write import (
    UNSTATED_LENGTH,
    TokenizerFacts,
    different_texts,
    load_tokenizer,
    original_ids,
)
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, GOLDEN_PAIRS, PLAIN_TEXTS

_LARGEST_ID = 10_000_000
"""Of a vocabulary's; the largest vocabulary of the catalogue has 250,112 ids."""


def check_tokenizer(original: PreTrainedTokenizerBase, source: Source, vocab_size: int) -> None:
    """Encode the golden texts."""
    _check_unknown_token(original, source)
    with loading("tokenizer", source):
        ids = {index for pair in GOLDEN_PAIRS for text in ("", *pair) for index in original_ids(original, text, None)}
        special = {*original.all_special_ids}
        weightless = {original.cls_token_id, original.sep_token_id} - {None}
        largest = max(original.get_vocab().values(), default=0)
    unusable = [index for index in (*ids, *weightless) if type(index) is not int or not 0 <= index < vocab_size]
    if unusable:
        wrong = f"gives the id {unusable[0]}, where the model has those from 0 to {vocab_size - 1}"
    elif ids <= special:
        wrong = "knows no word of an ordinary text"
    elif largest > _LARGEST_ID:
        wrong = f"has the id {largest}, and none beyond {_LARGEST_ID} is expected"
    elif not _is_length(original.model_max_length):
        wrong = f"gives its longest text as {original.model_max_length!r}; expected a whole number of tokens"
    else:
        return
    raise ExportError(
        f"The {type(original).__name__} of {source.name_or_path} {wrong}; its files are damaged, or of another model. "
        f"{source.remedy}"
    )


def _check_unknown_token(original: PreTrainedTokenizerBase, source: Source) -> None:
    """Raise an ExportError for a WordPiece whose vocabulary lacks the token that stands for unknown words."""
    if original.is_fast:
        backend = original.backend_tokenizer
        if not isinstance(backend.model, WordPiece):
            return
        unknown, vocab = backend.model.unk_token, backend.get_vocab(with_added_tokens=False)
    elif (pieces := getattr(original, "wordpiece_tokenizer", None)) is not None:
        unknown, vocab = pieces.unk_token, original.vocab
    else:
        return
    if unknown not in vocab:
        raise ExportError(
            f"The vocabulary of {source.name_or_path} lacks {unknown!r}, so a word that it does not know would get no "
            "id. Put that token into it, where it was when the model was trained, or name the right one as `unk_token` "
            f"in tokenizer_config.json. {source.remedy}"
        )


def _is_length(stated: object) -> bool:
    """Tell whether a tokenizer's maximum can be one; transformers writes 1e30 for none."""
    return isinstance(stated, int | float) and (stated >= UNSTATED_LENGTH or (type(stated) is int and stated > 0))


# Compares the tokenizer of a bundle in the fast mode with the slow one, whose ids are bert-score's default.


EXAMPLES = 5
"""How many texts of other ids are kept."""


def compare_with_slow(source: Source, facts: TokenizerFacts, folder: Path) -> SlowDifferences | None:
    """Encode the sample texts by both tokenizers."""
    texts = [*PLAIN_TEXTS, *EDGE_CASE_TEXTS]
    written = TextTokenizer(folder, spec=None, max_length=facts.max_length, empty_ids=facts.empty_ids)
    try:
        slow = load_tokenizer(source, "slow")
        with loading("tokenizer", source):
            different = different_texts(slow, written, facts.max_length, texts)
    except ExportError:
        return None
    return SlowDifferences(len(texts), len(different), different[:EXAMPLES])
