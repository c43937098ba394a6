"""How many tokens a model takes, by the type in its configuration; without PyTorch, for published graphs."""

from typing import Any

_AFTER_PADDING = frozenset(
    {
        *("camembert", "data2vec-text", "longformer", "mpnet"),
        *("roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl"),
    }
)
"""Types of models that count positions from the padding id plus one."""

_UNBOUNDED = frozenset({"mt5", "prophetnet", "t5", "umt5", "xlm-prophetnet"})
"""Types with relative positions, or whose tokens past the positions share the last one (ProphetNet)."""

_ABSOLUTE_TOO = frozenset({"deberta", "deberta-v2"})
"""Types with relative positions, and absolute ones beside them if `position_biased_input` is set."""


def max_positions(config: Any) -> int | None:
    """Return the most tokens that a configuration has positions for; None for no bound."""
    name = config.model_type if isinstance(config.model_type, str) else ""
    if name in _UNBOUNDED or (name in _ABSOLUTE_TOO and not getattr(config, "position_biased_input", True)):
        return None
    positions = getattr(config, "max_encoder_position_embeddings" if name == "led" else "max_position_embeddings", None)
    if type(positions) is not int or positions <= 0:  # -1 in XLNet
        return None
    return after_padding(config) if name in _AFTER_PADDING else positions


def after_padding(config: Any) -> int:
    """Return the number of positions for a model that counts them from the padding id plus one, as RoBERTa does."""
    padding = getattr(config, "pad_token_id", None)
    return int(config.max_position_embeddings) - (padding if type(padding) is int else 1) - 1
