import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.encoding.encoder import plan_batches, plan_runs


def batches(lengths, *options):
    return [batch.tolist() for batch in plan_batches(np.array(lengths, dtype=np.int64), *options)]


def test_items_of_like_length_share_a_batch_and_the_longest_come_first():
    assert batches([1, 9, 2, 8], 16) == [[1], [3, 2], [0]]


def test_a_batch_may_be_filled_to_its_last_token():
    assert batches([4, 4, 4, 4], 8) == [[0, 1], [2, 3]]


def test_an_item_over_the_limit_makes_a_batch_of_its_own():
    assert batches([100, 1], 8) == [[0], [1]]


def test_the_number_of_items_can_be_capped():
    assert batches([1, 1, 1], 100, 2) == [[0, 1], [2]]


def test_nothing_makes_no_batch():
    assert batches([], 8) == []


@given(st.lists(st.integers(1, 50)), st.integers(1, 200), st.integers(1, 10) | st.none())
def test_every_item_is_planned_once_and_no_batch_is_too_large(lengths, max_tokens, max_items):
    planned = batches(lengths, max_tokens, max_items)
    assert sorted(index for batch in planned for index in batch) == list(range(len(lengths)))
    for batch in planned:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= max_tokens
        assert max_items is None or len(batch) <= max_items


def test_without_padding_a_batch_holds_one_length_only():
    planned = plan_batches(np.array([3, 2, 3, 3, 1, 2]), 6, padding=False)
    assert [batch.tolist() for batch in planned] == [[0, 2], [3], [1, 5], [4]]


@pytest.mark.parametrize(
    ("lengths", "concurrency", "sizes"),
    [
        ([5, 9], 8, [1, 1]),
        ([5, 9], 1, [2]),
        ([5, 900], 4, [1, 1]),
        ([9] * 8, 4, [2] * 4),
        ([9] * 1000, 4, [100] * 10),
        ([], 4, []),
    ],
)
def test_a_few_texts_are_shared_out(lengths, concurrency, sizes):
    planned = plan_runs(np.array(lengths, dtype=np.int64), 900, concurrency=concurrency)
    assert [len(batch) for batch in planned] == sizes


def test_a_provider_that_likes_it_whole_gets_little_work_whole():
    planned = plan_runs(np.full(8, 9), 900, concurrency=2, splits_little_work=False)
    assert [len(batch) for batch in planned] == [8]
