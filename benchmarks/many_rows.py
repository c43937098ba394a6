"""Case k: the rows of many files, scored in one process, on Ray and on Spark."""

import random
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.contest import Contest, Contestant, Results
from benchmarks.settings import Settings
from bertscore_onnx.concurrency.cpus import usable_cpus
from harness.results import Case, Figure, Goal, Skipped, Timing, figure
from harness.texts import altered, repeated

ROWS = 200_000
FILES, FEW = 40, 4  # the files with the rows, and how many are scored first, to subtract the time of starting

LOCAL = "one-process"
LABELS = {LOCAL: "one process", "ray": "Ray", "spark": "Spark"}  # by engine
PACKAGES = {LOCAL: "pyarrow", "ray": "ray", "spark": "pyspark"}
LIMITS = {"ray": 1.15, "spark": 1.25}  # the longest time, in times of one process


def many_rows(settings: Settings) -> Case:
    """Score files in one process, on Ray and on Spark, each with all CPUs."""
    rows = settings.limit(ROWS)
    model = settings.models.minilm_first_layer
    case = Case("k", f"MiniLM, layer 1, {rows:,} pairs in {FILES} Parquet files, with {usable_cpus()} CPUs")
    case.note = (
        "The times are those of all files less those of the first few, so that starting is left out. Memory is the "
        "most that one of the processes held."
    )
    missing = {engine: package for engine, package in PACKAGES.items() if find_spec(package) is None}
    case.skipped = [Skipped(LABELS[engine], f"{package} is not installed") for engine, package in missing.items()]
    engines = [engine for engine in LABELS if engine not in missing]
    with tempfile.TemporaryDirectory() as folder:
        files = _write_files(settings, rows, Path(folder))
        contestants = {
            engine: Contestant(LABELS[engine], engine, model.bundle, work={"output": str(Path(folder, engine))})
            for engine in engines
        }
        work = {"files": files, "few": FEW}
        results = Contest(case, contestants, "files", work, rows, is_watched=True).run(settings.rounds).results
    case.timings = [_timing(LABELS[engine], result, rows) for engine, result in results.items()]
    case.figures = [*_figures(results)]
    return case


def steady(result: Results) -> list[float]:
    """Return for each round the seconds of all files less those of the first few."""
    return [every - few for few, every in result.rounds]


def _write_files(settings: Settings, rows: int, folder: Path) -> list[str]:
    """Write pairs that all differ, with their number, into Parquet files; return their paths."""
    import pyarrow
    from pyarrow import parquet

    draw = random.Random(0)
    candidates, references = ([altered(text, draw) for text in repeated(texts, rows)] for texts in settings.all_pairs)
    table = pyarrow.table({"id": range(rows), "candidate": candidates, "reference": references})
    files = []
    for number in range(FILES):
        start, end = (rows * at // FILES for at in (number, number + 1))
        files.append(str(folder / f"{number:02}.parquet"))
        parquet.write_table(table.slice(start, end - start), files[-1])
    return files


def _timing(label: str, result: Results, rows: int) -> Timing:
    seconds = steady(result)
    measured = rows - rows * FEW // FILES
    return Timing(label, seconds, measured / sorted(seconds)[len(seconds) // 2], result.process_memory)


def _figures(results: dict[str, Results]) -> Iterator[Figure]:
    """Compare the engines with one process, and count the threads of each that run at a time."""
    local = results.get(LOCAL)
    for engine, result in results.items():
        if local and engine != LOCAL:
            ratios = [theirs / ours for theirs, ours in zip(steady(result), steady(local), strict=True)]
            different = sum(one != other for one, other in zip(result.scores, local.scores, strict=True))
            goal = Goal(LIMITS[engine], at_most=True)
            yield figure(f"{LABELS[engine]}, of the time of one process", "×", ratios, goal)
            yield figure(f"{LABELS[engine]}, rows whose F has other bits", "", [different], Goal(0, at_most=True))
        if result.running_threads:
            goal = Goal(usable_cpus(), at_most=True)
            yield figure(f"{LABELS[engine]}, threads that run at a time", "", result.running_threads, goal)
