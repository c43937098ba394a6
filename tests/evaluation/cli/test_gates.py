"""`compare --fail-if-worse` fails when it must: with 1, or with 2 where it cannot judge; and passes
when it must.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import compare
from tests.evaluation.tables import csv_text

NUMBER = 60
DRAW = np.random.default_rng(52)
OLD = DRAW.uniform(0.4, 0.8, NUMBER).round(3)
NOISE = DRAW.normal(0, 0.04, NUMBER).round(3)
NOISE -= NOISE.mean()
WORSE, BETTER, LIKE = OLD - 0.05 + NOISE, OLD + 0.05 + NOISE, OLD + NOISE
ROWS = np.arange(NUMBER)
BINARY = (ROWS % 3 > 0).astype(int)
HALVES = ["news" if row < NUMBER / 2 else "talks" for row in ROWS]
FIRST_WORSE = np.where(ROWS < NUMBER / 2, WORSE, BETTER)
GAPS = np.where(ROWS % 6 == 1, np.nan, LIKE)


def wide(new, old=OLD, rows=ROWS, **more):
    return {"s.csv": csv_text({"id": ROWS, **more, "old": old, "new": new}, rows)}


def each(new, old=OLD, rows=ROWS, name="score"):
    return {
        "old.csv": csv_text({"id": ROWS, name: old}),
        "new.csv": csv_text({"id": ROWS, name: new}, rows),
    }


def long(new, old=OLD, names=("old", "new"), more=None):
    columns = {
        "system": [name for name in names for _ in ROWS],
        "id": [*ROWS] * 2,
        "score": [*old, *new],
    }
    return {"s.csv": csv_text(columns | (more or {}), range(2 * NUMBER))}


def runs(new, first=LIKE):
    columns = {
        "id": [*ROWS] * 2,
        "run": [1] * NUMBER + [2] * NUMBER,
        "old": [*OLD] * 2,
        "new": [*first, *new],
    }
    return {"s.csv": csv_text(columns, range(2 * NUMBER))}


WIDE = "--scores s.csv --systems old new"
KNOWN = f"{WIDE} --higher-better s"
FILES = "--scores old.csv new.csv --higher-better score"
LONG = "--scores s.csv --baseline old --higher-better score"


@dataclass
class Gate:
    files: dict
    options: str = KNOWN
    status: int = 0
    said: str = ""
    """On standard error, beside what all gates print."""


def fails(files, options=KNOWN, said="Failed: "):
    return Gate(files, options, 1, said)


def errs(files, options, said):
    return Gate(files, options, 2, said)


THREE = {"s.csv": csv_text({"id": ROWS, "old": OLD, "new": LIKE, "third": WORSE})}
FEW = {number: wide(OLD - 0.05 + NOISE, rows=range(number)) for number in (1, 3, 5, 6, 12)}
RARE = np.where(ROWS < 3, OLD - 0.2, OLD)
ERRORS = 1 - OLD
LOSSES = np.where(ROWS % 5 == 0, BINARY - BINARY, BINARY)
UNEVEN = {"group": ["a" if row < 55 else "b" for row in ROWS]}
DOCUMENTS = {"document": [f"d{row // 12}" for row in ROWS]}

GATES = {
    # significantly worse
    "worse": fails(wide(WORSE)),
    "worse, a file for each system": fails(each(WORSE), FILES),
    "worse, long": fails(long(WORSE), LONG),
    "worse, baseline below": fails(long(OLD, WORSE, ("new", "old")), LONG),
    "worse in one of two metrics": fails(
        {
            f"{name}.csv": csv_text(
                {
                    "id": ROWS,
                    "x": LIKE if name == "new" else OLD,
                    "y": WORSE if name == "new" else OLD,
                }
            )
            for name in ("old", "new")
        },
        "--scores old.csv new.csv --columns score=x+y --higher-better x y",
        "Failed: y: new is worse",
    ),
    "worse, the third of three": fails(
        THREE, "--scores s.csv --systems old new third --higher-better s", "third is worse"
    ),
    "worse by a metric whose lower scores are better": fails(
        wide(1 - WORSE, ERRORS), f"{WIDE} --lower-better s"
    ),
    "worse, 0 and 1": fails(wide(LOSSES, BINARY)),
    "worse, 6 segments": fails(FEW[6]),
    "worse by runs": fails(runs(WORSE - 0.1, WORSE - 0.1), said="in these runs, and trained again"),
    "worse, scores of the baseline missing": fails(wide(WORSE, GAPS), f"{KNOWN} --missing drop"),
    "worse in a group": fails(
        wide(FIRST_WORSE, group=HALVES),
        f"{KNOWN} --by group",
        "Failed: s, news: new is worse than old: -0.0",
    ),
    "worse in a group, lower is better": fails(
        wide(1 - FIRST_WORSE, ERRORS, group=HALVES),
        f"{WIDE} --lower-better s --by group",
        "s, news",
    ),
    "worse in a group, with a margin": fails(
        wide(FIRST_WORSE, group=HALVES),
        f"{KNOWN} --by group --margin 0.04 --score-range 0 1",
        "s, news",
    ),
    "worse in a group of long tables": fails(
        long(FIRST_WORSE, more={"group": HALVES * 2}), f"{LONG} --by group", "score, news"
    ),
    "margin, worse by more": fails(
        wide(WORSE), f"{KNOWN} --margin 0.03 --score-range 0 1", "is not excluded"
    ),
    "margin, unclear": fails(
        wide(OLD + 3 * NOISE), f"{KNOWN} --margin 0.005 --score-range 0 1", "is not excluded"
    ),
    "margin, one segment": fails(
        FEW[1], f"{KNOWN} --margin 0.2 --score-range 0 1", "too rare to show in 1 segment ("
    ),
    "margin, 12 segments": fails(
        FEW[12], f"{KNOWN} --margin 0.2 --score-range 0 1", "too rare to show in 12 segments ("
    ),
    "margin, rare losses": fails(
        wide(RARE), f"{KNOWN} --margin 0.05 --score-range 0 1", "is not excluded"
    ),
    "margin, lower is better": fails(
        wide(1 - WORSE, ERRORS),
        f"{WIDE} --lower-better s --margin 0.03 --score-range 0 1",
        "is not excluded",
    ),
    # nothing may be left out
    "scores missing": errs(wide(GAPS), KNOWN, "there is no value in the column 'new'"),
    "scores missing, dropped": errs(wide(GAPS), f"{KNOWN} --missing drop", "new lacks 10 scores"),
    "97 of 100 rows missing": errs(
        each(LIKE, rows=range(6)), f"{FILES} --missing drop", "new lacks 54 scores"
    ),
    "rows missing": errs(each(LIKE, rows=range(50)), FILES, "is not in new.csv"),
    "rows missing, with a margin": errs(
        each(LIKE, rows=range(50)),
        f"{FILES} --missing drop --margin 0.5 --score-range 0 1",
        "new lacks 10 scores",
    ),
    "rows missing, a command to copy": errs(
        each(LIKE, rows=range(50)),
        f"{FILES} --missing drop",
        f"gate: bertscore-onnx compare {FILES} --missing drop",
    ),
    "rows of a long table missing": errs(
        {"s.csv": long(LIKE)["s.csv"].rsplit("\n", 4)[0] + "\n"},
        f"{LONG} --missing drop",
        "new lacks 3 scores",
    ),
    "scores of runs missing": errs(
        runs(np.where(ROWS < 9, np.nan, LIKE)), f"{KNOWN} --missing drop", "new lacks 9 scores"
    ),
    "ids twice": errs(each(LIKE, rows=[*ROWS, 1]), f"{FILES} --missing drop", "occurs again"),
    # no p can be significant
    "one segment": errs(FEW[1], KNOWN, "With 1 segment no p"),
    "three segments": errs(FEW[3], KNOWN, "With 3 segments no p"),
    "five segments": errs(FEW[5], KNOWN, "Give more segments"),
    "six segments, three systems": errs(
        {"s.csv": csv_text({"id": ROWS, "old": OLD, "new": LIKE, "third": LIKE}, range(6))},
        "--scores s.csv --systems old new third --higher-better s",
        "for 2 tests",
    ),
    "19 swaps": errs(wide(LIKE), f"{KNOWN} --resamples 19", "Draw 20 or more"),
    "39 swaps, three systems": errs(
        {"s.csv": csv_text({"id": ROWS, "old": OLD, "new": LIKE, "third": LIKE})},
        "--scores s.csv --systems old new third --higher-better s --resamples 39",
        "Draw 40",
    ),
    "five documents": errs(
        wide(LIKE, **DOCUMENTS), f"{KNOWN} --documents s.csv", "With 5 documents"
    ),
    "a group too small": errs(
        wide(LIKE, **UNEVEN), f"{KNOWN} --by group", "fewer than 20 segments: b"
    ),
    "few swaps for groups": errs(
        wide(LIKE, group=HALVES), f"{KNOWN} --by group --resamples 30", "for 2 tests"
    ),
    # nothing is guessed
    "direction unknown": errs(wide(LIKE), WIDE, "Add --higher-better s or --lower-better s"),
    "range unknown": errs(wide(LIKE), f"{KNOWN} --margin 0.06", "Add --score-range LOW HIGH."),
    "a score outside the range": errs(
        wide(LIKE),
        f"{KNOWN} --margin 0.06 --score-range 0.5 1",
        "that there can be with --score-range LOW HIGH",
    ),
    "direction of one of two unknown": errs(
        {f"{name}.csv": csv_text({"id": ROWS, "x": OLD, "y": OLD}) for name in ("old", "new")},
        "--scores old.csv new.csv --columns score=x+y --lower-better y",
        "--higher-better x or",
    ),
    "direction of a metric of any name": errs(
        each(LIKE, name="F1 "), FILES.split(" --higher")[0], "--higher-better 'F1 '"
    ),
    "both directions": errs(wide(LIKE), f"{KNOWN} --lower-better s", "expected one"),
    "direction of another metric": errs(
        wide(LIKE), f"{WIDE} --higher-better t", "no scores of 't'"
    ),
    "baseline of a long table": errs(
        long(LIKE), "--scores s.csv --higher-better score", "Add --baseline NAME, one of old"
    ),
    # as good, or not worse
    "the same": Gate(wide(OLD)),
    "better": Gate(wide(BETTER)),
    "alike": Gate(wide(LIKE)),
    "alike, a file for each system": Gate(each(LIKE), FILES),
    "alike, long": Gate(long(LIKE), LONG),
    "alike, long, named": Gate(
        long(LIKE), "--scores s.csv --systems old new --higher-better score"
    ),
    "alike, 0 and 1": Gate(wide(BINARY[::-1].copy(), BINARY)),
    "alike, by runs": Gate(runs(OLD - NOISE)),
    "alike, 6 segments": Gate(wide(LIKE, rows=range(6))),
    "alike, 30 documents": Gate(
        wide(LIKE, document=[row // 2 for row in ROWS]), f"{KNOWN} --documents s.csv"
    ),
    "alike, in groups": Gate(wide(LIKE, group=HALVES), f"{KNOWN} --by group"),
    "alike, few swaps": Gate(wide(LIKE), f"{KNOWN} --resamples 30"),
    "alike, all pairs": Gate(
        THREE, "--scores s.csv --systems third new old --all-pairs --higher-better s"
    ),
    "rare losses": Gate(wide(RARE)),
    "the old one is worse": Gate(wide(OLD, WORSE)),
    "the worse one is the baseline": Gate(
        THREE, "--scores s.csv --systems old new third --baseline third --higher-better s"
    ),
    "lower is better, and is lower": Gate(wide(1 - BETTER, ERRORS), f"{WIDE} --lower-better s"),
    "lower is better, alike": Gate(wide(1 - LIKE, ERRORS), f"{WIDE} --lower-better s"),
    "scores of the baseline missing": Gate(wide(LIKE, GAPS), f"{KNOWN} --missing drop"),
    "scores of both missing": Gate(wide(GAPS, GAPS), f"{KNOWN} --missing drop"),
    "rows of the baseline missing": Gate(
        {"old.csv": each(OLD, rows=range(50))["new.csv"], "new.csv": each(LIKE)["new.csv"]},
        f"{FILES} --missing drop",
    ),
    "worse in these runs alone": Gate(runs(WORSE - 0.1), KNOWN),
    "margin, 0 and 1": Gate(wide(BINARY, BINARY), f"{KNOWN} --margin 0.1"),
    "margin, alike": Gate(wide(LIKE), f"{KNOWN} --margin 0.06 --score-range 0 1"),
    "margin, worse by less": Gate(
        wide(OLD - 0.01 + NOISE / 4), f"{KNOWN} --margin 0.09 --score-range 0 1"
    ),
    "margin, lower is better, alike": Gate(
        wide(1 - LIKE, ERRORS), f"{WIDE} --lower-better s --margin 0.06 --score-range 0 1"
    ),
    "margin, in groups": Gate(
        wide(OLD - 0.01 + NOISE / 4, group=HALVES),
        f"{KNOWN} --by group --margin 0.2 --score-range 0 1",
    ),
    "by texts": Gate(
        {"old.txt": "a cat\n" * 9, "new.txt": "a cat\n" * 9, "r.txt": "a cat sat\n" * 9},
        "-c old.txt new.txt -r r.txt --metric chrf ter",
    ),
}


@pytest.mark.parametrize("name", GATES)
def test_a_gate(compare_files, name):
    gate = GATES[name]
    result = compare_files(gate.files, *gate.options.split(), "--fail-if-worse")
    assert result.exit_code == gate.status, result.output
    assert gate.said in result.stderr
    assert ("Failed: " in result.stderr) == (gate.status == 1)


def test_python_has_the_same_gate():
    scores = {"old": OLD, "new": WORSE}
    [sentence] = compare(scores=scores, higher_is_better=["score"]).regressions
    assert sentence.startswith("score: new is worse than old: -0.0")
    with pytest.raises(InputError, match=r'higher_is_better=\["score"\]'):
        _ = compare(scores=scores).regressions
