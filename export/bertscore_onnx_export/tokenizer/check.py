"""Checks a tokenizer before its conversion.

It also compares the fast tokenizer with the slow one.
"""

from itertools import chain
from pathlib import Path

from tokenizers.models import WordPiece
from transformers import PreTrainedTokenizerBase

from bertscore_onnx.bundle.manifest import SlowDifferences
from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.model.source import Source, loading
from bertscore_onnx_export.tokenizer.load import load_tokenizer
from bertscore_onnx_export.tokenizer.write import (
    UNSTATED_LENGTH,
    TokenizerFacts,
    different_texts,
    original_ids,
)
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, GOLDEN_PAIRS, PLAIN_TEXTS

EXAMPLES = 5
"""The number of texts with different ids that are kept."""

_LARGEST_ID = 10_000_000
"""The largest vocabulary in the catalogue has 250,112 ids."""


def check_tokenizer(original: PreTrainedTokenizerBase, source: Source, vocab_size: int) -> None:
    """Raise an ExportError for a damaged vocabulary.

    It may load and give ids that the model does not have.
    """
    _check_unknown_token(original, source)
    _check_sampling(original, source)
    with loading("tokenizer", source):
        ids = set(original_ids(original, "", None))
        for text in chain(*GOLDEN_PAIRS):
            ids.update(original_ids(original, text, None))
        special = set(original.all_special_ids)
        zero_weight = {original.cls_token_id, original.sep_token_id} - {None}
        largest = max(original.get_vocab().values(), default=0)
    unusable = []
    for index in (*ids, *zero_weight):
        if type(index) is not int or not 0 <= index < vocab_size:
            unusable.append(index)

    # A damaged file may load, and have ids of another model or unknown words alone.
    if unusable:
        wrong = f"gives the id {unusable[0]}, but the model has ids from 0 to {vocab_size - 1}"
    elif ids <= special:
        wrong = "has no word of an ordinary text"
    elif largest > _LARGEST_ID:
        wrong = f"has the id {largest}; expected at most {_LARGEST_ID}"
    elif not _is_length(original.model_max_length):
        wrong = (
            f"has {original.model_max_length!r} as model_max_length; expected a whole number of "
            "tokens"
        )
    else:
        return
    raise ExportError(
        f"The {type(original).__name__} of {source.name_or_path} {wrong}; its files are damaged, "
        f"or of another model. {source.remedy}"
    )


def _check_unknown_token(original: PreTrainedTokenizerBase, source: Source) -> None:
    """Raise an ExportError if a WordPiece lacks the token for unknown words.

    The vocabulary must have that token.
    """
    if original.is_fast:
        backend = original.backend_tokenizer
        if not isinstance(backend.model, WordPiece):
            return
        unknown = backend.model.unk_token
        vocab = backend.get_vocab(with_added_tokens=False)
    else:
        pieces = getattr(original, "wordpiece_tokenizer", None)
        if pieces is None:
            return
        unknown = pieces.unk_token
        vocab = original.vocab
    if unknown not in vocab:
        raise ExportError(
            f"The vocabulary of {source.name_or_path} lacks {unknown!r}, so a word outside the "
            "vocabulary would get no id. Put that token into it, where it was when the model was "
            "trained, or set the right one as `unk_token` in tokenizer_config.json. "
            f"{source.remedy}"
        )


def _check_sampling(original: PreTrainedTokenizerBase, source: Source) -> None:
    """Raise an ExportError if a slow tokenizer draws pieces at random.

    The pieces of a text would be others in every call.
    """
    settings = original.init_kwargs.get("sp_model_kwargs") or {}
    if settings.get("enable_sampling") and not original.is_fast:
        raise ExportError(
            f'The tokenizer of {source.name_or_path} has "enable_sampling" in its sp_model_kwargs, '
            "so that the tokens of a text are drawn at random in every call. Set it to false in "
            "tokenizer_config.json."
        )


def _is_length(stated: object) -> bool:
    """Return whether a tokenizer's maximum is plausible.

    Transformers writes 1e30 for none.
    """
    return isinstance(stated, int | float) and (
        stated >= UNSTATED_LENGTH or (type(stated) is int and stated > 0)
    )


def compare_with_slow(
    source: Source, facts: TokenizerFacts, folder: Path
) -> SlowDifferences | None:
    """Compare the ids of a bundle in the fast mode with the slow tokenizer's.

    The slow tokenizer is bert-score's default.

    Returns None for a model without a slow tokenizer.
    """
    texts = [*PLAIN_TEXTS, *EDGE_CASE_TEXTS]
    written = TextTokenizer(
        folder, spec=None, max_length=facts.max_length, empty_ids=facts.empty_ids
    )
    try:
        slow = load_tokenizer(source, "slow")
        with loading("tokenizer", source):
            different = different_texts(slow, written, facts.max_length, texts)
    except ExportError:
        return None
    return SlowDifferences(len(texts), len(different), different[:EXAMPLES])
