"""The cases, one file each."""

from collections.abc import Callable

from benchmarks.cases.documents import documents
from benchmarks.cases.growth import measure_growth
from benchmarks.cases.host_ceiling import host_ceiling
from benchmarks.cases.judging import judging
from benchmarks.cases.many_rows import many_rows
from benchmarks.cases.one_pair import one_pair
from benchmarks.cases.short_texts import minilm, roberta_large
from benchmarks.cases.start import start
from benchmarks.cases.streaming import streaming
from benchmarks.cases.systems import compared_systems, systems
from benchmarks.settings import Settings
from harness.results import Case

CASES: dict[str, Callable[[Settings], Case]] = {
    "a": minilm,
    "b": roberta_large,
    "c": documents,
    "d": one_pair,
    "e": start,
    "f": streaming,
    "g": systems,
    "i": judging,
    "j": compared_systems,
    "k": many_rows,
    "l": host_ceiling,
    "growth": measure_growth,
}
"""The cases on the CPU, by what `--case` chooses from."""
