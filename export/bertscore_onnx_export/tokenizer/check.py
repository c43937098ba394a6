"""Tries a tokenizer before it is converted: damaged vocabularies load, and give ids that the model has not."""

from transformers import PreTrainedTokenizerBase

from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.model.source import Source, loading
from bertscore_onnx_export.tokenizer.write import UNSTATED_LENGTH, original_ids
from bertscore_onnx_export.verify.sample_texts import GOLDEN_PAIRS

_LARGEST_ID = 10_000_000
"""Of a vocabulary's; the largest vocabulary of the catalogue has 250,112 ids."""


def check_tokenizer(original: PreTrainedTokenizerBase, source: Source, vocab_size: int) -> None:
    """Encode the golden texts.

    Args:
        original: the tokenizer of transformers.
        source: where it comes from.
        vocab_size: how many ids the model has.

    Raises:
        ExportError: it fails, knows none of their words, or gives ids that the model has not.
    """
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


def _is_length(stated: object) -> bool:
    """Tell whether a tokenizer's maximum can be one; transformers writes 1e30 for none."""
    return isinstance(stated, int | float) and (stated >= UNSTATED_LENGTH or (type(stated) is int and stated > 0))
