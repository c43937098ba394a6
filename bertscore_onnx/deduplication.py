"""Numbers equal things alike, so that each is worked on once."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray


def number_distinct(items: Sequence[Hashable]) -> tuple[list[int], NDArray[np.int64]]:
    """Give equal items the same number, counting up in the order in which they first occur.

    Returns:
        The position of each distinct item's first occurrence, (distinct,), and the number of every item, (items,).
    """
    numbers: dict[Hashable, int] = {}
    first: list[int] = []
    of_item = np.empty(len(items), dtype=np.int64)
    for position, item in enumerate(items):
        number = numbers.setdefault(item, len(numbers))
        if number == len(first):
            first.append(position)
        of_item[position] = number
    return first, of_item
