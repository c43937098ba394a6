"""Small test sets in the layout of mt-metrics-eval."""

from collections.abc import Mapping, Sequence
from pathlib import Path

Scores = Mapping[str, Sequence[float | None]]
"""By system, in order of segments."""

HUMAN: Scores = {
    "A": [-1, 0, -5, None, -2],
    "B": [0, 0, -1, None, -1],
    "C": [-6, -2, -5, None, -5],
    "D": [-3, 0, -4, None, -3],
    "refA": [0, 0, 0, None, 0],
}
BLEU: Scores = {
    "A": [30, 35, 20, 10, 26],
    "B": [41, 42, 30, 20, 33],
    "C": [10, 22, 21, 30, 8],
    "D": [22, 37, 25, 40, 21],
    "refA": [35, 30, 45, 50, 40],
}
CHRF: Scores = {
    "A": [0.5, 0.6, 0.4, 0.5, 0.4],
    "B": [0.6, 0.5, 0.5, 0.6, 0.7],
    "C": [0.7, 0.2, 0.3, 0.1, 0.2],
    "D": [0.3, 0.6, 0.2, 0.2, 0.3],
    "refA": [0.4, 0.7, 0.6, 0.5, 0.8],
}


def score_lines(scores: Scores, copies: int = 1) -> str:
    return "".join(
        f"{system}\t{score}\n" for system, row in scores.items() for score in [*row] * copies
    )


def means(scores: Scores) -> Scores:
    judged = {
        system: [score for score in row if score is not None] for system, row in scores.items()
    }
    return {system: [sum(row) / len(row)] for system, row in judged.items()}


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path


def write_eval_set(folder: Path, language_pair: str = "he-en", copies: int = 1) -> Path:
    """Write a set of five systems and five segments, of which people judged all but the fourth, and
    return its folder.

    The segments are repeated as often as there are copies. Its reference is refB; refA is another.
    BLEU has scores of systems that are no means.
    """
    for level, of_level in (("seg", lambda scores: scores), ("sys", means)):
        repeated = copies if level == "seg" else 1
        human, chrf = of_level(HUMAN), of_level(CHRF)
        bleu = (
            BLEU if level == "seg" else {"A": [24], "B": [35], "C": [19], "D": [29], "refA": [36]}
        )
        write(
            folder, f"human-scores/{language_pair}.mqm.{level}.score", score_lines(human, repeated)
        )
        write(
            folder,
            f"metric-scores/{language_pair}/BLEU-refB.{level}.score",
            score_lines(bleu, repeated),
        )
        write(
            folder,
            f"metric-scores/{language_pair}/chrF-refB.{level}.score",
            score_lines(chrf, repeated),
        )
    segments = range(1, 5 * copies + 1)
    write(
        folder,
        f"sources/{language_pair}.txt",
        "".join(f"source {segment}\n" for segment in segments),
    )
    for name in ("refA", "refB"):
        lines = "".join(
            f"the cat number {segment} sat on the mat of {name}\n" for segment in segments
        )
        write(folder, f"references/{language_pair}.{name}.txt", lines)
    for position, system in enumerate([*HUMAN, "refB"]):
        lines = "".join(
            f"a cat number {segment} sat {'still ' * position}on it\n" for segment in segments
        )
        write(folder, f"system-outputs/{language_pair}/{system}.txt", lines)
    return folder
