"""Measures what a machine scores and holds, and reckons from it what larger jobs take.

    python benchmarks/studies/sizing.py NAME=BUNDLE... --texts CANDIDATES REFERENCES [--write DOCUMENT]

Each bundle scores the pairs of two files, a text a line, with all CPUs of this machine: by one process with a thread
for each, by one process for each with a single thread, and by what lies between. In a round the processes begin at the
same moment, each with its own copy of the pairs, and it ends with the last of them. It prints, or writes between the
marks of a document, what was measured and what follows from it.
"""

import argparse
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

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
    pairs = read_pairs(*arguments.texts)
    layouts = [
        measure(model, bundle, processes, usable_cpus() // processes, [side[: arguments.pairs] for side in pairs])
        for model, _, bundle in (named.partition("=") for named in arguments.bundles)
        for processes in divisors(usable_cpus())
    ]
    figures = as_markdown(layouts, arguments.pairs)
    if arguments.write:
        document = arguments.write.read_text(encoding="utf-8")
        arguments.write.write_text(with_figures(document, [figures], str), encoding="utf-8")
    else:
        print(figures)


def divisors(number: int) -> Iterator[int]:
    """Yield the numbers that divide one."""
    yield from (one for one in range(1, number + 1) if number % one == 0)


def measure(
    model: str, bundle: str, processes: int, threads: int, pairs: Sequence[list[str]], rounds: int = 3
) -> Layout:
    """Score all pairs in each of some processes, in rounds after one that does not count."""
    context = multiprocessing.get_context("spawn")
    begin, answers = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_work, args=(bundle, threads, _from(pairs, number, processes), rounds, begin, answers))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    found = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    memory = max(memory for _, memory in found)
    spans = zip(*(times for times, _ in found), strict=True)  # of each round, those of all processes
    seconds = [max(end for _, end in span) - min(start for start, _ in span) for span in spans]
    return Layout(model, processes, threads, processes * len(pairs[0]) / median(seconds), memory)


def _from(pairs: Sequence[list[str]], number: int, processes: int) -> list[list[str]]:
    """Return the pairs in the order of one process, so that not all work on the same ones at once."""
    count = len(pairs[0])
    return [repeated(side, count, number * count // processes) for side in pairs]


def _work(bundle: str, threads: int, pairs: Sequence[list[str]], rounds: int, begin: Any, answers: Any) -> None:
    (candidates, references), times = pairs, []
    with BERTScorer(bundle, device="cpu", nthreads=threads) as scorer:
        scorer.score(candidates, references)
        for _ in range(rounds):
            begin.wait()
            start = time.monotonic()
            scorer.score(candidates, references)
            times.append((start, time.monotonic()))
    answers.put((times, peak_memory()))


def as_markdown(layouts: Sequence[Layout], pairs: int) -> str:
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
            f"Measured {time.strftime('%Y-%m-%d')} with {pairs:,} pairs on {made_on}:",
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
    parser.add_argument("--pairs", metavar="N", type=int, default=256, help="how many each process scores in a round")
    parser.add_argument("--write", metavar="DOCUMENT", type=Path, help="put the figures between its marks")
    return parser.parse_args()


if __name__ == "__main__":
    main()
