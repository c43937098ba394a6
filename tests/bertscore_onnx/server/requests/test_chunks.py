import asyncio
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.server.stream import cut, in_order


@given(st.lists(st.integers(0, 12)), st.integers(1, 10))
def test_cuts_are_consecutive_and_as_long_as_may_be(sizes, max_size):
    slices = list(cut(sizes, max_size))
    assert [size for chunk in slices for size in sizes[chunk]] == sizes
    assert all(sum(sizes[chunk]) <= max_size or chunk.stop - chunk.start == 1 for chunk in slices)
    assert all(sum(sizes[one.start : other.start + 1]) > max_size for one, other in pairwise(slices))


async def numbers(count, taken, error=None):
    for number in range(count):
        taken.append(number)
        yield number
    if error:
        raise error


def run_in_order(count, work, error=None):
    taken, emitted, ahead = [], [], []

    async def emit(result):
        await asyncio.sleep(0)
        emitted.append(result)
        ahead.append(len(taken) - len(emitted))

    async def run():
        await in_order(numbers(count, taken, error), work, emit)

    try:
        asyncio.run(run())
    except Exception as raised:
        return emitted, max(ahead, default=0), raised
    return emitted, max(ahead, default=0), None


async def slow_at_first(number):
    await asyncio.sleep(0.01 if number % 3 == 0 else 0)
    return number


def test_results_come_in_order_and_little_is_taken_ahead():
    emitted, ahead, error = run_in_order(50, slow_at_first)
    assert emitted == [*range(50)]
    assert ahead <= 3
    assert error is None


def test_an_error_of_work_comes_at_its_place():
    async def work(number):
        if number == 5:
            raise ValueError(number)
        return await slow_at_first(number)

    emitted, _, error = run_in_order(50, work)
    assert len(emitted) <= 5
    assert isinstance(error, ValueError)


def test_an_api_error_of_the_chunks_comes_after_their_results():
    from bertscore_onnx.server.errors import ApiError

    emitted, _, error = run_in_order(7, slow_at_first, ApiError(408, "read_timeout", "Late."))
    assert emitted == [*range(7)]
    assert error.status == 408
