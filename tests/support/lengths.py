import numpy as np

# The tokens of RoBERTa's tokenizer in English texts at every other percentile, from the shortest to
# the longest.
TRANSLATIONS = (
    *(
        4,
        8,
        10,
        11,
        12,
        12,
        13,
        14,
        15,
        15,
        16,
        16,
        17,
        18,
        19,
        19,
        20,
        21,
        22,
        22,
        23,
        24,
        25,
        26,
        26,
        27,
        28,
        29,
        30,
    ),
    *(31, 32, 34, 35, 36, 37, 39, 40, 42, 43, 46, 49, 52, 56, 61, 71, 87, 110, 134, 171, 217, 511),
)
"""References and translations of WMT16, some of them of several sentences."""

SENTENCES = (
    *(
        2,
        8,
        10,
        11,
        11,
        12,
        13,
        13,
        14,
        14,
        15,
        16,
        16,
        17,
        17,
        18,
        18,
        19,
        19,
        20,
        20,
        21,
        22,
        22,
        23,
        23,
        24,
        24,
        25,
    ),
    *(26, 26, 27, 28, 28, 29, 30, 31, 32, 32, 33, 34, 35, 36, 38, 39, 41, 43, 46, 49, 55, 100),
)
"""Single sentences."""


def lengths_like(percentiles: tuple[int, ...], number: int) -> np.ndarray:
    """Draw lengths, (number,), of the distribution that has these percentiles."""
    at = np.random.default_rng(0).uniform(0, len(percentiles) - 1, number)
    return np.interp(at, np.arange(len(percentiles)), percentiles).round().astype(np.int64)
