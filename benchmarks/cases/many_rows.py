"""The rows of many files: in one process, on Ray and on Spark."""

import random
import tempfile
from importlib.util import find_spec
from pathlib import Path

from benchmarks.contest.contest import Contest, Contestant, Results
from benchmarks.settings import Settings
from bertscore_onnx.concurrency.cpus import usable_cpus
from harness.results import Case, Figure, Goal, Skipped, Timing, figure
from harness.texts import altered, repeated

ROWS = 200_000
FILES, FEW = 40, 4
"""How many files hold the rows, and how many of them are scored first, so that starting can be left out."""

LOCAL, RAY, SPARK = "InOneProcess", "OnRay", "OnSpark"
LABELS = {LOCAL: "one process", RAY: "Ray", SPARK: "Spark"}
PACKAGES = {LOCAL: "pyarrow", RAY: "ray", SPARK: "pyspark"}
LIMITS = {RAY: 1.15, SPARK: 1.25}
"""How many times as long as one process an engine may take."""


def many_rows(settings: Settings) -> Case:
    """Score files in one process, on Ray and on Spark, each with all CPUs."""
    rows = settings.limit(ROWS)
    model = settings.models.minilm_first_layer
    case = Case("k", f"MiniLM, layer 1, {rows:,} pairs in {FILES} Parquet files, with {usable_cpus()} CPUs")
    case.note = (
        "The times are those of all files less those of the first few, so that starting is left out. Memory is the "
        "most that one of the processes held."
    )
    missing = {way: package for way, package in PACKAGES.items() if find_spec(package) is None}
    case.skipped = [Skipped(LABELS[way], f"{package} is not installed") for way, package in missing.items()]
    ways = [way for way in LABELS if way not in missing]
    bundle = str(model.bundle())
    with tempfile.TemporaryDirectory() as folder:
        files = _write_files(settings, rows, Path(folder))
        contestants = {way: Contestant(LABELS[way], "many-rows", bundle, {"way": way}) for way in ways}
        work = {way: {"files": files, "few": FEW, "output": str(Path(folder, way))} for way in ways}
        results, failed = Contest(contestants, "files", work, watched=ways).run(settings.rounds)
    case.skipped += [Skipped(LABELS[way], reason) for way, reason in failed.items()]
    case.timings = [_timing(LABELS[way], one, rows) for way, one in results.items()]
    if LOCAL in results:
        case.figures = [_overhead(way, one, results[LOCAL]) for way, one in results.items() if way != LOCAL]
        case.figures += [_differences(way, one, results[LOCAL]) for way, one in results.items() if way != LOCAL]
    case.figures += [_threads(way, one) for way, one in results.items() if one.running_threads]
    return case


def steady(result: Results) -> list[float]:
    """Return for each round the seconds of all files less those of the first few."""
    return [every - few for few, every in result.rounds]


def _write_files(settings: Settings, rows: int, folder: Path) -> list[str]:
    """Write pairs that are all different, as the texts are, with their number."""
    import pyarrow
    from pyarrow import parquet

    draw = random.Random(0)  # noqa: S311 -- nothing secret
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


def _overhead(way: str, result: Results, local: Results) -> Figure:
    shares = [theirs / ours for theirs, ours in zip(steady(result), steady(local), strict=True)]
    goal = Goal(LIMITS[way], at_most=True)
    return figure(f"{LABELS[way]}, of the time of one process", "×", shares, goal)


def _differences(way: str, result: Results, local: Results) -> Figure:
    different = sum(one != other for one, other in zip(result.scores, local.scores, strict=True))
    return figure(f"{LABELS[way]}, rows whose F has other bits", "", [different], Goal(0, at_most=True))


def _threads(way: str, result: Results) -> Figure:
    goal = Goal(usable_cpus(), at_most=True)
    return figure(f"{LABELS[way]}, threads that run at a time", "", result.running_threads, goal)
