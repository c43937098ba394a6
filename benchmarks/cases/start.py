"""A fresh process, from its start to its first score."""

import subprocess
import sys
import time

from benchmarks.cases.comparison import OURS, PEER
from benchmarks.contest.contest import REST
from benchmarks.settings import Settings
from harness.checkout import environment
from harness.results import Case, Timing, ratio

FIRST_SCORE = {
    "ours": """
import sys
from bertscore_onnx import BERTScorer
scorer = BERTScorer(sys.argv[1], device="cpu")
scorer.score(["A cat sat on the mat."], ["The cat sat on a mat."])
print("scored", flush=True)
""",
    "bert-score": """
import sys
from bert_score import BERTScorer
scorer = BERTScorer(sys.argv[1], num_layers=int(sys.argv[2]), device="cpu")
scorer.score(["A cat sat on the mat."], ["The cat sat on a mat."])
print("scored", flush=True)
""",
}


def start(settings: Settings) -> Case:
    """Start a fresh process and wait for its first score."""
    model = settings.models.minilm
    case = Case("e", "MiniLM, from the start of a process to its first score")
    commands = {
        OURS: [FIRST_SCORE[OURS], str(model.bundle())],
        PEER: [FIRST_SCORE[PEER], str(model.folder), str(model.num_layers)],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(settings.rounds + 1):
        for name, command in commands.items():
            taken = _seconds_to_first_line(command)
            if number:  # the first time fills the caches of the disk
                seconds[name].append(taken)
    case.timings = [Timing(name, taken) for name, taken in seconds.items()]
    case.figures = [ratio("ours, against bert-score 0.3.13", seconds[OURS], seconds[PEER])]
    return case


def _seconds_to_first_line(command: list[str]) -> float:
    time.sleep(REST)  # or the threads of the process before count in
    begin = time.perf_counter()
    with subprocess.Popen(  # noqa: S603 -- our own code
        [sys.executable, "-c", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        taken = time.perf_counter() - begin
        if not line:
            raise SystemExit(f"This failed; run it to see why: python -c '{command[0]}' {' '.join(command[1:])}")
    return taken
