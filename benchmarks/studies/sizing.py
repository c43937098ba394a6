"""Measures what a machine scores and holds, and reckons from it what larger jobs take.

    python benchmarks/studies/sizing.py NAME=BUNDLE... --texts CANDIDATES REFERENCES [--write DOCUMENT]

Each bundle scores pairs of two files, a text a line, with all CPUs of this machine: by one process with a thread for
each, by one process for each with a single thread, and by what lies between. In a round the processes begin at the same
moment, each with its share of the same pairs, and it ends with the last of them. It prints, or writes between the marks
of a document, what was measured and what follows from it.
"""

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median

from bertscore_onnx import BERTScorer
from bertscore_onnx.concurrency.cpus import usable_cpus
from harness.document import with_figures
from harness.machine import machine_facts
from harness.markdown import table
from harness.memory import peak_memory
from harness.texts import read_pairs, repeated

JOBS = (10**6, 10**8, 10**10)
"""Pairs."""

CPUS_OF_A_MACHINE = 32

FIRST_PAIRS = 64
"""Scored first, to know how many pairs make a round."""

GUARD = 600
"""Seconds that a process waits for the others."""

Pairs = tuple[list[str], list[str]]
"""Candidates and references."""

_begin: Barrier
"""Where a process waits for the others of its layout."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How CPUs are shared out, and what came of it."""

    model: str
    processes: int
    threads: int
    """Of each process."""

    rate: float
    """Pairs a second of all processes, the median of the rounds."""

    memory: float
    """The most that one process held, in MB."""

    @property
    def rate_per_cpu(self) -> float:
        """Pairs a second and CPU."""
        return self.rate / (self.processes * self.threads)


def main() -> None:
    """Measure, and print or write."""
    arguments = _arguments()
    texts = read_pairs(*arguments.texts)
    layouts = []
    for model, _, bundle in (named.partition("=") for named in arguments.bundles):
        layouts += measure_all(model, bundle, texts, arguments.seconds)
    figures = as_markdown(layouts, arguments.seconds)
    if arguments.write:
        document = arguments.write.read_text(encoding="utf-8")
        arguments.write.write_text(with_figures(document, [figures], str), encoding="utf-8")
    else:
        print(figures)


def measure_all(model: str, bundle: str, texts: Pairs, seconds: float) -> list[Layout]:
    """Measure every layout with as many pairs as one process with all CPUs scores in some seconds."""
    cpus = usable_cpus()
    first = measure(model, bundle, 1, cpus, _some(texts, FIRST_PAIRS), rounds=1)
    pairs = _some(texts, max(FIRST_PAIRS, int(seconds * first.rate)))
    return [measure(model, bundle, processes, cpus // processes, pairs) for processes in divisors(cpus)]


def divisors(number: int) -> Iterator[int]:
    """Yield the numbers that divide one."""
    yield from (one for one in range(1, number + 1) if number % one == 0)


def measure(model: str, bundle: str, processes: int, threads: int, pairs: Pairs, rounds: int = 3) -> Layout:
    """Score pairs by some processes side by side, in rounds after one that does not count."""
    context = multiprocessing.get_context("spawn")
    candidates, references = pairs
    shares = [(candidates[number::processes], references[number::processes]) for number in range(processes)]
    begin = context.Barrier(processes)
    with ProcessPoolExecutor(processes, context, initializer=_share, initargs=(begin,)) as pool:
        done = [pool.submit(_work, bundle, threads, share, rounds) for share in shares]
        found = [one.result() for one in done]
    spans = zip(*(times for times, _ in found), strict=True)  # of each round, those of all processes
    seconds = [max(end for _, end in span) - min(start for start, _ in span) for span in spans]
    return Layout(model, processes, threads, len(candidates) / median(seconds), max(memory for _, memory in found))


def _some(texts: Pairs, count: int) -> Pairs:
    candidates, references = texts
    return repeated(candidates, count), repeated(references, count)


def _share(begin: Barrier) -> None:
    """Take what the others of a layout have too; called when a process starts."""
    global _begin  # a barrier can be given to a process at its start only
    _begin = begin


def _work(bundle: str, threads: int, pairs: Pairs, rounds: int) -> tuple[list[tuple[float, float]], float]:
    """Score pairs in one process; return when each round began and ended, and the most memory in MB."""
    candidates, references = pairs
    times = []
    with BERTScorer(bundle, device="cpu", nthreads=threads) as scorer:
        scorer.score(candidates, references)
        for _ in range(rounds):
            _begin.wait(GUARD)
            start = time.monotonic()
            scorer.score(candidates, references)
            times.append((start, time.monotonic()))
    return times, peak_memory()


def as_markdown(layouts: Sequence[Layout], seconds: float) -> str:
    """Return what was measured, and what jobs take by the rate of one process with all CPUs."""
    measured = [
        (
            layout.model,
            f"{layout.processes} × {layout.threads}",
            f"{layout.rate:,.1f}",
            f"{layout.rate_per_cpu:,.2f}",
            f"{layout.memory:,.0f} MB",
        )
        for layout in layouts
    ]
    reckoned = [
        (layout.model, f"10{_power(job)}", _short(hours), _short(hours / 24 / CPUS_OF_A_MACHINE))
        for layout in layouts
        if layout.processes == 1
        for job in JOBS
        for hours in (job / layout.rate_per_cpu / 3600,)
    ]
    machine = machine_facts()
    made_on = (
        f"{machine['processor']} ({machine['family, model, stepping']}: family, model, stepping), "
        f"{machine['cores usable']} CPUs, onnxruntime {machine['onnxruntime']}"
    )
    return "\n\n".join(
        [
            f"Measured {time.strftime('%Y-%m-%d')} in rounds of about {seconds:g} s on {made_on}:",
            table(("model", "processes × threads", "pairs/s", "pairs/s per CPU", "memory per process"), measured),
            "From the rate of one process with all CPUs:",
            table(("model", "pairs", "core-hours", f"machines of {CPUS_OF_A_MACHINE} CPUs for a day"), reckoned) + "\n",
        ]
    )


def _short(number: float) -> str:
    """Return a number with two digits or more that count."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _power(number: int) -> str:
    """Return the exponent of a power of ten as it is written above the line."""
    return str(len(str(number)) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundles", metavar="NAME=BUNDLE", nargs="+", help="bundles, and what to call their models")
    parser.add_argument("--texts", metavar="FILE", nargs=2, type=Path, required=True, help="candidates and references")
    parser.add_argument("--seconds", metavar="S", type=float, default=30, help="about how long a round takes")
    parser.add_argument("--write", metavar="DOCUMENT", type=Path, help="put the figures between its marks")
    return parser.parse_args()


if __name__ == "__main__":
    main()
