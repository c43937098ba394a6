import re
import sys
from pathlib import Path

import numpy as np
import pytest

from bertscore_onnx.encoding.encoder import OWN_PAGES, ReusedMemory, uninitialized


@pytest.mark.parametrize("shape", [(0, 0, 8), (1, 3, 4), (2, 300_000, 3), (OWN_PAGES // 4,)])
def test_an_array_can_be_filled(shape):
    array = uninitialized(shape)
    array[:] = 1.5
    assert (array.shape, array.dtype) == (shape, np.float32)
    assert (array == 1.5).all()


def resident():
    """Return the memory of this process in bytes."""
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1])


@pytest.mark.skipif(sys.platform != "linux", reason="Resident memory is read from /proc.")
def test_a_large_array_gives_its_memory_back_though_others_came_after_it():
    np.empty(7_000_000, dtype=np.float32)  # the C library takes arrays up to this size from its heap from now on
    arrays, others = [], []
    for _ in range(10):
        arrays.append(uninitialized((1, 1000, 1000)))
        arrays[-1][:] = 1
        others.append(np.ones(50_000, dtype=np.float32))
    held = resident()
    arrays.clear()
    assert held - resident() > 35_000_000


def test_memory_that_was_given_back_is_used_again():
    memory = ReusedMemory()
    first = memory.take((2, 1000, 1000))
    second = memory.take((1, 10, 4))
    address = first.ctypes.data
    assert second.ctypes.data != address
    memory.give_back(first)
    again = memory.take((1, 900, 1000))
    assert (again.ctypes.data, again.shape) == (address, (1, 900, 1000))


def test_memory_that_is_too_small_is_not_used():
    memory = ReusedMemory()
    memory.give_back(memory.take((1, 3, 4)))
    larger = memory.take((1, 30, 4))
    larger[:] = 2
    assert larger.shape == (1, 30, 4)
    assert (larger == 2).all()
