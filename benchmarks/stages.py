"""Where the time of a call goes: patches functions of the library with clocks, in a run made only
for that.
"""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pkgutil import resolve_name
from types import GeneratorType
from typing import Any
from unittest import mock

STAGES = {  # the functions of each stage, by the names under which their callers look them up
    "tokenise": ["bertscore_onnx.text.tokenizer.TextTokenizer.__call__"],
    "plan": ["bertscore_onnx.encoding.encoder.plan_runs"],
    "encode": [
        "onnxruntime.InferenceSession.run",
        "onnxruntime.InferenceSession.run_with_iobinding",
    ],
    "match": ["bertscore_onnx.matching.pairs.PairMatching.match"],
}
OTHER = "other"  # the stage of the time in which none of these functions runs

Span = tuple[float, float, str]  # begin, end and stage, of one thread


class StageClock:
    """Records the stage of each thread; a timed function inside another one stops the outer
    clock.
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._thread = threading.local()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function, or a generator function, to count its time as that of a stage."""

        def timed_function(*arguments: Any, **named: Any) -> Any:
            with self._at(stage):
                result = function(*arguments, **named)
            return self._each(stage, result) if isinstance(result, GeneratorType) else result

        return timed_function

    def _each(self, stage: str, items: Iterator[Any]) -> Iterator[Any]:
        while True:
            with self._at(stage):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    @contextlib.contextmanager
    def _at(self, stage: str) -> Iterator[None]:
        stack: list[str] = self._thread.__dict__.setdefault("stack", [])
        self._close(stack)
        stack.append(stage)
        try:
            yield
        finally:
            self._close(stack)
            stack.pop()

    def _close(self, stack: list[str]) -> None:
        """End the span of the innermost timed function, if there is one, and begin the next
        span.
        """
        now = time.perf_counter()
        if stack:
            self.spans.append((self._thread.since, now, stack[-1]))
        self._thread.since = now


def replaced(
    name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> AbstractContextManager[Any]:
    """Replace a function of `STAGES` by a wrapped one for a `with` block; raise `RuntimeError` if
    it does not exist.
    """
    try:
        function = resolve_name(name)
    except (AttributeError, ImportError) as error:
        raise RuntimeError(f"There is no function {name}. Adjust STAGES in {__file__}.") from error
    return mock.patch(name, wrap(function))


def profile(call: Callable[[], object], *, on_cpu: bool = True) -> tuple[float, dict[str, float]]:
    """Time a call; return the seconds of the model, and the share of each stage. Raise
    `RuntimeError` without any.

    On a CPU, other stages take their share of the moments in which the model runs. A GPU computes
    at full speed meanwhile, so that the whole of these moments counts.
    """
    clock = StageClock()
    with contextlib.ExitStack() as patches:
        for stage, names in STAGES.items():
            for name in names:
                patches.enter_context(replaced(name, partial(clock.timed, stage)))
        begin = time.perf_counter()
        call()
        end = time.perf_counter()
    shares = stage_shares(clock.spans, begin, end)
    if not shares["encode"]:
        raise RuntimeError(
            f"The call never ran {' or '.join(STAGES['encode'])}. Adjust STAGES in {__file__}."
        )
    if on_cpu:
        return (end - begin) * shares["encode"], shares
    return busy_seconds(
        [(since, until) for since, until, stage in clock.spans if stage == "encode"]
    ), shares


def busy_seconds(spans: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of spans, each with its begin and end."""
    seconds, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        seconds += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return seconds


def stage_shares(spans: list[Span], begin: float, end: float) -> dict[str, float]:
    """Return the share of each stage, `OTHER` included, in the time from begin to end.

    Threads that work at the same moment share that moment equally.
    """
    changes = sorted(
        [(at, stage, 1) for at, _, stage in spans] + [(at, stage, -1) for _, at, stage in spans]
    )
    active: Counter[str] = Counter()
    seconds = dict.fromkeys([*STAGES, OTHER], 0.0)
    before = begin
    for at, stage, change in [*changes, (end, OTHER, 0)]:
        threads = active.total()
        for busy, count in active.items():
            seconds[busy] += (at - before) * count / max(threads, 1)
        if not threads:
            seconds[OTHER] += at - before
        active[stage] += change
        before = at
    return {stage: spent / (end - begin) for stage, spent in seconds.items()}
