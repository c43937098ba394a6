"""Blocks of draws are those of one draw, and what is drawn next is, too."""

import numpy as np
import pytest

from bertscore_onnx.evaluation.significance import bootstrap_indices, kept_segments


@pytest.mark.parametrize("num_segments", [1, 37, 3001])
def test_indices_are_those_of_one_draw(num_segments):
    whole = np.random.default_rng(5).choice(num_segments, size=(1000, num_segments), replace=True)
    blocks = [*bootstrap_indices(np.random.default_rng(5), num_segments, 1000)]
    assert len(blocks) == (3 if num_segments == 3001 else 1)
    np.testing.assert_array_equal(np.concatenate(blocks), whole)


@pytest.mark.parametrize("num_segments", [1, 37, 3001])
def test_swaps_and_what_follows_are_those_of_one_draw(num_segments):
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    whole = one.integers(2, size=(1001, num_segments), dtype=bool)
    blocks = [*kept_segments(other, num_segments, 1001)]
    assert len(blocks) == (4 if num_segments == 3001 else 1)
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    assert one.integers(1 << 40) == other.integers(1 << 40)
