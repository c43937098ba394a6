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


def score_lines(scores: Scores) -> str:
    lines = []
    for system, row in scores.items():
        lines.extend(f"{system}\t{score}\n" for score in row)
    return "".join(lines)


def means(scores: Scores) -> Scores:
    found = {}
    for system, row in scores.items():
        judged = [score for score in row if score is not None]
        found[system] = [sum(judged) / len(judged)]
    return found


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())
    return path


def write_eval_set(folder: Path) -> Path:
    """Write a set of he-en, of five systems and five segments, of which people judged all but the
    fourth, and return its folder.

    Its reference is refB; refA is another. BLEU has scores of systems that are no means.
    """
    corpus_bleu = {"A": [24], "B": [35], "C": [19], "D": [29], "refA": [36]}
    scores = {
        "human-scores/he-en.mqm.seg": HUMAN,
        "human-scores/he-en.mqm.sys": means(HUMAN),
        "metric-scores/he-en/BLEU-refB.seg": BLEU,
        "metric-scores/he-en/BLEU-refB.sys": corpus_bleu,
        "metric-scores/he-en/chrF-refB.seg": CHRF,
        "metric-scores/he-en/chrF-refB.sys": means(CHRF),
    }
    for name, of_systems in scores.items():
        write(folder, f"{name}.score", score_lines(of_systems))
    texts = {"sources/he-en": "source {}"}
    for name in ("refA", "refB"):
        texts[f"references/he-en.{name}"] = f"the cat number {{}} sat on the mat of {name}"
    for position, system in enumerate([*HUMAN, "refB"]):
        still = "still " * position
        texts[f"system-outputs/he-en/{system}"] = f"a cat number {{}} sat {still}on it"
    for name, text in texts.items():
        write(folder, f"{name}.txt", "".join(f"{text.format(at)}\n" for at in range(1, 6)))
    return folder
