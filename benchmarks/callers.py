"""Callers of a batcher, beside two ways without it: `python -m benchmarks.callers BUNDLE` prints a
table.

Callers send a pair each, wait for its scores, and send the next; a tenth of the pairs is long. One
scorer answers them in three ways by turns: pair by pair in order of arrival, all waiting pairs in
one call, or by a `MicroBatcher`.
"""

import argparse
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue

from bertscore_onnx import BERTScorer
from bertscore_onnx.scores import Score, Scores
from bertscore_onnx_service import MicroBatcher
from harness.results import machine_facts, percentile, table
from harness.texts import WORDS

CALLERS = (1, 8, 64, 200)
LONG_SHARE = 0.1
SHORT, LONG = (5, 20), (60, 220)
"""The words of the texts of a pair."""

Answer = tuple[bool, float]
"""Whether a pair was long, and the seconds until its scores."""

Round = tuple[list[Answer], float]
"""The answers of a round, and the seconds until the last."""


class OneThread:
    """Answers callers from one thread without a batcher: pair by pair, or all that wait at a
    time.
    """

    def __init__(self, scorer: BERTScorer, most: int) -> None:
        """Score at most this many pairs a call."""
        self._scorer, self._most = scorer, most
        self._waiting: SimpleQueue[tuple[Future[Score], str, str] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def submit(self, candidate: str, reference: str) -> "Future[Score]":
        """Queue a pair."""
        future: Future[Score] = Future()
        self._waiting.put((future, candidate, reference))
        return future

    def close(self) -> None:
        """End the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            items = [item]
            try:
                while len(items) < self._most and (item := self._waiting.get_nowait()) is not None:
                    items.append(item)
            except Empty:
                pass
            futures, candidates, references = zip(*items, strict=True)
            for future, score in zip(
                futures, self._scorer.score(candidates, references).each(), strict=True
            ):
                future.set_result(score)


class Batched:
    """Answers callers by a `MicroBatcher`."""

    def __init__(self, scorer: BERTScorer) -> None:
        self._batcher = MicroBatcher(scorer)

    def submit(self, candidate: str, reference: str) -> "Future[Scores]":
        """Queue a pair."""
        return self._batcher.submit([candidate], [reference])

    def close(self) -> None:
        """End the threads."""
        self._batcher.close()


WAYS: dict[str, Callable[[BERTScorer], OneThread | Batched]] = {
    "in order of arrival": lambda scorer: OneThread(scorer, 1),
    "all that wait in one call": lambda scorer: OneThread(scorer, 10**6),
    "`MicroBatcher`": Batched,
}


def answers(way: OneThread | Batched, callers: int, seconds: float, seed: int) -> Round:
    """Return the answers to what callers sent within some seconds, each with texts of its own."""
    found: list[Answer] = []
    start = time.perf_counter()

    def call(caller: int) -> None:
        draw = random.Random(f"{seed} {caller}")
        while (begin := time.perf_counter()) < start + seconds:
            is_long = draw.random() < LONG_SHARE
            number = draw.randint(*(LONG if is_long else SHORT))
            way.submit(*(" ".join(draw.choices(WORDS, k=number)) for _ in range(2))).result()
            found.append((is_long, time.perf_counter() - begin))

    threads = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, time.perf_counter() - start


def row(name: str, rounds: Sequence[Round]) -> list[str]:
    """Return a row: the median rate of the rounds, and the times of all their answers."""
    cells = [name, f"{statistics.median(len(found) / seconds for found, seconds in rounds):.0f}"]
    for is_long in (False, True):
        times = [
            1000 * seconds for found, _ in rounds for long, seconds in found if long is is_long
        ]
        cells += [f"{percentile(times, percent):,.0f} ms" if times else "-" for percent in (50, 95)]
    return cells


def main() -> None:
    """Measure, and print the machine and the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.callers", description=__doc__)
    parser.add_argument("bundle")
    parser.add_argument("--seconds", type=float, default=10, help="of each round (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="of each way, by turns (default: 3)")
    options = parser.parse_args()
    rows = []
    with BERTScorer(options.bundle) as scorer:
        for callers in CALLERS:
            found: dict[str, list[Round]] = {name: [] for name in WAYS}
            for seed in range(options.rounds):
                for name, make in WAYS.items():
                    way = make(scorer)
                    found[name].append(answers(way, callers, options.seconds, seed))
                    way.close()
            rows += [[f"{callers}", *row(name, found[name])] for name in WAYS]
    for fact, value in machine_facts().items():
        print(f"{fact}: {value}")
    print(
        table(
            (
                "callers",
                "way",
                "answers/s",
                "short: 50 %",
                "95 % within",
                "long: 50 %",
                "95 % within",
            ),
            rows,
        )
    )


if __name__ == "__main__":
    main()
