"""What each architecture needs to be exported exactly, as one table; a new family is a new row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertscore_onnx.errors import UnsupportedFamilyError


@dataclass(frozen=True, slots=True)
class Family:
    """One architecture."""

    name: str
    """Its name in the catalogue and in manifests."""

    reserved_positions: Callable[[Any], int] = lambda config: 0
    """Positions of the configuration that no token can have."""

    model_arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its model class that leave out what does not reach the token vectors."""


_NO_POOLER = {"add_pooling_layer": False}


def _before_first_position(config: Any) -> int:
    """RoBERTa counts positions from the padding id plus one."""
    return int(config.pad_token_id) + 1


FAMILIES: Mapping[str, Family] = {
    "albert": Family("albert", model_arguments=_NO_POOLER),
    "bert": Family("bert", model_arguments=_NO_POOLER),
    "distilbert": Family("distilbert"),
    "electra": Family("electra"),
    "roberta": Family("roberta", _before_first_position, _NO_POOLER),
    "xlm-roberta": Family("xlm-roberta", _before_first_position, _NO_POOLER),
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
