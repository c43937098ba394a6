"""What each architecture needs to be exported exactly, as one table; a new family is a new row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertscore_onnx.errors import UnsupportedFamilyError
from bertscore_onnx_export.tokenizers import SlowConversion, byte_bpe, sentencepiece, wordpiece


@dataclass(frozen=True, slots=True)
class Family:
    """One architecture."""

    name: str
    """Its name in the catalogue and in manifests."""

    convert_tokenizer: SlowConversion
    """How its slow tokenizer becomes a `tokenizer.json` with the same ids."""

    reserved_positions: Callable[[Any], int] = lambda config: 0
    """Positions of the configuration that no token can have."""

    model_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its model class that leave out what does not reach the token vectors."""


_NO_POOLER = {"add_pooling_layer": False}


def _before_first_position(config: Any) -> int:
    """RoBERTa counts positions from the padding id plus one."""
    return int(config.pad_token_id) + 1


FAMILIES: Mapping[str, Family] = {
    "albert": Family("albert", sentencepiece, model_arguments=_NO_POOLER),
    "bert": Family("bert", wordpiece, model_arguments=_NO_POOLER),
    "distilbert": Family("distilbert", wordpiece),
    "electra": Family("electra", wordpiece),
    "roberta": Family("roberta", byte_bpe, _before_first_position, _NO_POOLER),
    "xlm-roberta": Family("xlm-roberta", sentencepiece, _before_first_position, _NO_POOLER),
}
"""By the `model_type` of a configuration of transformers."""


def family_of(config: Any) -> Family:
    """Return the row for a configuration of transformers.

    Raises:
        UnsupportedFamilyError: there is none.
    """
    try:
        return FAMILIES[config.model_type]
    except KeyError:
        raise UnsupportedFamilyError(
            f"Models of the type {config.model_type!r} cannot be exported by this version; it knows "
            f"{', '.join(sorted(FAMILIES))}."
        ) from None
