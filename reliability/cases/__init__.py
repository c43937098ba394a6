"""The cases, by their number: a title, and the function that measures it in a process of its own."""

from collections.abc import Callable

from benchmarks.results import Figure
from reliability.cases import batched, faults, shapes, shared
from reliability.settings import Settings

CASES: dict[str, tuple[str, Callable[[Settings], list[Figure]]]] = {
    "1": ("batching", batched.measure),
    "3": ("faults", faults.measure),
    "4": ("memory", shapes.measure),
    "5": ("threads", shared.measure),
}
