"""Tables of PyTorch's buckets of distances.

The logarithms in ONNX Runtime may be a bit larger, and so round up.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from transformers import PreTrainedModel

_METHODS = ("_relative_position_bucket", "relative_position_bucket")
"""The names of the method in T5 and its descendants, and in MPNet."""

_FUNCTION = "make_log_bucket_position"
"""The name of the function in the module of DeBERTa-v2."""

_FARTHEST = 1 << 14
"""Farther tokens count as this far, which is in the last bucket of all known models."""


@contextlib.contextmanager
def tabulated_distances(model: PreTrainedModel) -> Iterator[None]:
    """Replace the functions from distances to buckets by tables.

    These are filled when the model is first run with them.
    """
    with contextlib.ExitStack() as patches:
        module = sys.modules[type(model).__module__]
        places = [(module, _FUNCTION), *product(model.modules(), _METHODS)]
        for place, name in places:
            if hasattr(place, name):
                table = _table_of(getattr(place, name))
                patches.enter_context(patch.object(place, name, table))
        yield


def _table_of(buckets_of: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @cache  # so that a tracer, which runs the model again, finds constants
    def table(*arguments: Any, **options: Any) -> tuple[Tensor, int]:
        buckets = buckets_of(torch.arange(-_FARTHEST, _FARTHEST + 1), *arguments, **options).long()
        changes = (buckets[1:] != buckets[:-1]).nonzero().flatten().tolist() or [0]
        first = changes[0]
        return buckets[first : changes[-1] + 2].clone(), first - _FARTHEST

    def look_up(distances: Tensor, *arguments: Any, **options: Any) -> Tensor:
        buckets, first = table(*arguments, **options)
        return buckets[(distances - first).clamp(0, len(buckets) - 1)]

    return look_up
