"""How a model counts positions, and how many tokens it takes.

Both follow from the type in its configuration, without PyTorch, for published graphs.
"""

from typing import Any

_AFTER_PADDING = frozenset(
    {
        "camembert",
        "data2vec-text",
        "ibert",
        "longformer",
        "luke",
        "markuplm",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)
"""Types of models that count positions from the padding id plus one."""

_FROM_ZERO = frozenset(
    {
        "albert",
        "bert",
        "bert-generation",
        "big_bird",
        "convbert",
        "deberta",
        "deberta-v2",
        "distilbert",
        "electra",
        "ernie",
        "eurobert",
        "flaubert",
        "gemma2",
        "gemma3_text",
        "jina_embeddings_v3",
        "layoutlm",
        "llama",
        "megatron-bert",
        "mistral",
        "mobilebert",
        "modernbert",
        "nomic_bert",
        "qwen2",
        "qwen3",
        "rembert",
        "roc_bert",
        "splinter",
        "squeezebert",
        "xlm",
    }
)
"""Types of models that count positions from 0."""

_SPECIAL_TYPES = frozenset({"ctrl", "flaubert", "gpt2", "openai-gpt", "xlm", "xlnet"})
"""Types of models that compute other vectors with token types of 0 than without any."""

_UNBOUNDED = frozenset({"mt5", "prophetnet", "t5", "umt5", "xlm-prophetnet"})
"""Types without a bound of tokens.

They have relative positions, or tokens past the positions share the last one (ProphetNet).
"""

_ABSOLUTE_TOO = frozenset({"deberta", "deberta-v2"})
"""Types with relative positions, which may have absolute ones too.

They have these if `position_biased_input` is set.
"""


def max_positions(config: Any) -> int | None:
    """Return the most tokens that a configuration has positions for.

    None for no bound.
    """
    name = config.model_type if isinstance(config.model_type, str) else ""
    if name in _UNBOUNDED:
        return None
    if name in _ABSOLUTE_TOO and not getattr(config, "position_biased_input", True):
        return None
    setting = "max_encoder_position_embeddings" if name == "led" else "max_position_embeddings"
    positions = getattr(config, setting, None)
    if type(positions) is not int or positions <= 0:  # -1 in XLNet
        return None
    if name in _AFTER_PADDING:
        return after_padding(config)
    return positions


def after_padding(config: Any) -> int:
    """Return the number of positions that follow the padding id.

    It is for a model that counts them from that id plus one, as RoBERTa does.
    """
    return int(config.max_position_embeddings) - _padding(config) - 1


def counts_after(config: Any) -> int | None:
    """Return the padding id that a model counts positions from.

    Padding itself keeps that position. None if the model counts from 0.

    Raises a LookupError for a type whose way of counting is not known.
    """
    if config.model_type in _AFTER_PADDING:
        return _padding(config)
    if config.model_type not in _FROM_ZERO:
        raise LookupError(config.model_type)
    return None


def ignores_type_zero(config: Any) -> bool:
    """Return whether token types of 0 leave the vectors of a model unchanged.

    They are then those that it computes without token types.
    """
    return config.model_type not in _SPECIAL_TYPES


def _padding(config: Any) -> int:
    padding = getattr(config, "pad_token_id", None)
    if config.model_type == "mpnet" or type(padding) is not int:  # MPNet's is fixed
        return 1
    return padding
