"""Scores in files of shared tasks, and printed tables whose digits are compared with those of a script's docstring."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WIDTH = 10


def read_scores(path: Path) -> dict[str, Floats]:
    """Read a file of mt-metrics-eval, lines of `SYSTEM SCORE` by system in the order of segments; None is NaN."""
    rows: dict[str, list[float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        system, score = line.split()
        rows.setdefault(system, []).append(np.nan if score == "None" else float(score))
    return {system: np.array(scores) for system, scores in rows.items()}


def judged_scores(
    folder: Path, language_pair: str, gold: str, reference: str, metrics: Iterable[str], *, level: str = "seg"
) -> tuple[list[str], Floats, dict[str, Floats]]:
    """Read human scores and those of metrics from a folder in the layout of mt-metrics-eval.

    Returns:
        The systems that annotators judged, without the reference; their human scores, (systems, segments), NaN where
        nobody judged, with one segment if the level is `sys`; and the scores of each metric, likewise.
    """
    human = read_scores(folder / "human-scores" / f"{language_pair}.{gold}.{level}.score")
    systems = sorted(name for name, scores in human.items() if name != reference and not np.isnan(scores).all())
    found = {}
    for metric in metrics:
        scores = read_scores(folder / "metric-scores" / language_pair / f"{metric}-{reference}.{level}.score")
        found[metric] = np.stack([scores[name] for name in systems])
    return systems, np.stack([human[name] for name in systems]), found


def number(value: float | None, digits: int = 4) -> str:
    """Return a value as a table has it."""
    return "-" if value is None else f"{value:.{digits}f}"


def print_table(
    title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]], expected: str | None = None
) -> int:
    """Print a table, and return the exit status: 1 if a docstring has its title and expects another row of a name."""
    width = max(20, *(len(name) + 2 for name in rows))
    lines = {name: name.ljust(width) + "".join(cell.rjust(WIDTH) for cell in cells) for name, cells in rows.items()}
    print(title, " " * width + "".join(column.rjust(WIDTH) for column in columns), *lines.values(), sep="\n")
    _, has_title, table = (expected or "").partition(f"{title}\n")
    wanted = {line.split()[0]: line for line in table.partition("\n\n")[0].splitlines()[1:] if has_title and line}
    differing = [wanted[name] for name, line in lines.items() if wanted.get(name, line).split() != line.split()]
    for line in differing:
        print(f"Expected: {line.strip()}", file=sys.stderr)
    return int(bool(differing))
