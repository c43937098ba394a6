"""Single calls: the first of a process, pairs one by one, requests to a server; and the agreement
with the CPU.
"""

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from unittest import mock

from benchmarks.cases import RANDOM_WEIGHTS
from benchmarks.settings import SYNTHETIC_PAIRS, Settings
from harness.gpu import CHOICE, like_cuda
from harness.processes import call_in_child, environment
from harness.results import Case, Goal, figure, percentile
from harness.texts import synthetic_pairs

AGREEING, SINGLE = 300, 100
CALLERS, REQUESTS = (1, 8, 64), 256
LIMIT = 300.0


def first_and_single(settings: Settings) -> Case:
    """Time the first call of a process, single pairs and a server, and compare the scores with
    those of the CPU.
    """
    model, device = settings.gpu_model, settings.device
    fp16, fp32 = str(model.bundle("fp16")), str(model.bundle("fp32"))
    case = Case("o", f"{model.name}'s architecture, {model.num_layers} layers, fp16, on {device}")
    case.note = RANDOM_WEIGHTS if settings.roberta_folder is None else ""
    number = settings.limit(SYNTHETIC_PAIRS)
    cold = [
        call_in_child(first_call, fp16, device, number, limit=LIMIT) for _ in range(settings.rounds)
    ]
    singly = call_in_child(single_calls, fp16, device, settings.limit(SINGLE), limit=LIMIT)
    agreeing = settings.limit(AGREEING)
    of_fp32, of_fp16 = (
        call_in_child(scores, bundle, device, agreeing, True, limit=LIMIT)
        for bundle in (fp32, fp16)
    )
    on_cpu = call_in_child(scores, fp32, "cpu", agreeing, False, limit=LIMIT)
    case.figures += [
        figure(
            f"{number:,} pairs in the first call of a process", "s", cold, Goal(1.5, at_most=True)
        ),
        figure("one pair a call", "ms", [1000 * percentile(singly, 50)], Goal(2, at_most=True)),
        figure("one pair a call, 95 % within", "ms", [1000 * percentile(singly, 95)]),
        figure(
            "F in fp32, from the CPU's",
            "/ 1,000,000",
            [1e6 * largest(of_fp32, on_cpu)],
            Goal(10, at_most=True),
        ),
        figure(
            "F in fp16, from fp32",
            "/ 1,000,000",
            [1e6 * largest(of_fp16, of_fp32)],
            Goal(1000, at_most=True),
        ),
    ]
    with Server(fp16, device) as server:
        for callers in CALLERS:
            rate, median = server.load(
                callers, REQUESTS if not settings.is_rehearsal else 2 * callers
            )
            case.figures += [
                figure(f"requests of one pair, {callers} callers", "/ s", [rate]),
                figure(f"their answers, {callers} callers", "ms", [median]),
            ]
    return case


def largest(one: list[float], other: list[float]) -> float:
    """Return the largest difference."""
    return max(abs(left - right) for left, right in zip(one, other, strict=True))


class Server(AbstractContextManager["Server"]):
    """`bertscore-onnx serve` with one model, on a port of its own."""

    def __init__(self, bundle: str, device: str) -> None:
        """Start it, and wait until it listens."""
        command = [
            sys.executable,
            "-m",
            "bertscore_onnx",
            "serve",
            "-m",
            bundle,
            "--device",
            device,
            "--port",
            "0",
        ]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment()
        )
        assert self._process.stderr is not None
        log = ""
        for line in self._process.stderr:
            log += line
            if match := re.search(r"http://[^:/]+:(\d+)", line):
                self._port = int(match[1])
                return
        raise RuntimeError(f"The server did not start: {log}")

    def load(self, callers: int, requests: int) -> tuple[float, float]:
        """Send requests of one pair, each caller the next after its answer; return the rate, and
        the median in ms.
        """
        pairs = [*zip(*synthetic_pairs(requests), strict=True)]
        begin = time.perf_counter()
        with ThreadPoolExecutor(callers) as threads:
            seconds = [
                time
                for part in threads.map(self._ask, (pairs[at::callers] for at in range(callers)))
                for time in part
            ]
        return requests / (time.perf_counter() - begin), 1000 * percentile(seconds, 50)

    def _ask(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        seconds = []
        for candidate, reference in pairs:
            body = json.dumps({"pairs": [{"candidate": candidate, "reference": reference}]})
            begin = time.perf_counter()
            connection.request("POST", "/v1/score", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"The server answered {answer.status}: {content!r}")
            seconds.append(time.perf_counter() - begin)
        connection.close()
        return seconds

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.communicate(timeout=60)


# --- in a process of its own ---


def limits_of_cuda(device: str) -> AbstractContextManager[object]:
    """In a rehearsal, let sessions open on the CPU with the limits of CUDA."""
    return mock.patch(CHOICE, return_value=[like_cuda()]) if device == "cpu" else nullcontext()


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def first_call(bundle: str, device: str, number: int) -> float:
    """Return the seconds of the first call of a scorer."""
    from bertscore_onnx import BERTScorer

    with limits_of_cuda(device), BERTScorer(bundle, device=device) as scorer:
        return timed(partial(scorer.score, *synthetic_pairs(number)))


def single_calls(bundle: str, device: str, number: int) -> list[float]:
    """Return the seconds of calls of one pair, the second time that each is made."""
    from bertscore_onnx import BERTScorer

    with limits_of_cuda(device), BERTScorer(bundle, device=device) as scorer:
        calls = [
            partial(scorer.score, [one], [other])
            for one, other in zip(*synthetic_pairs(number), strict=True)
        ]
        return [timed(call) for call in calls * 2][number:]


def scores(bundle: str, device: str, number: int, is_limited: bool) -> list[float]:
    """Return F of some pairs; in a rehearsal with or without the limits of CUDA."""
    from bertscore_onnx import BERTScorer

    with (
        limits_of_cuda(device) if is_limited else nullcontext(),
        BERTScorer(bundle, device=device) as scorer,
    ):
        f1: list[float] = scorer.score(*synthetic_pairs(number)).F.tolist()
        return f1
