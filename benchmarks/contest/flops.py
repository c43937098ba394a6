"""How many floating-point operations a transformer takes, by formula; a multiplication and an addition are two."""

from collections.abc import Iterable


def encode_flops(lengths: Iterable[int], *, layers: int, hidden: int, intermediate: int) -> float:
    """Return the operations that encoding texts takes, without padding, embeddings, norms and activations.

    In each layer a token passes four projections (hidden × hidden) and two of the feed-forward block
    (hidden × intermediate), and meets every token of its text twice (scores and weighted sum), 2·hidden operations
    each time.

    Args:
        lengths: the tokens of each text.
        layers, hidden, intermediate: the sizes of the model.
    """
    projections = 2 * (4 * hidden**2 + 2 * hidden * intermediate)
    return float(sum(layers * length * (projections + 4 * length * hidden) for length in lengths))
