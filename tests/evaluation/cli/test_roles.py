"""Each role of `--columns`, in each form of input of each command: it changes the result, or is
refused by its name.

Every table has a column for each role twice: `ROLE` has the usual name, `ROLE2` other values.
"""

import json

import numpy as np
import pytest

from tests.evaluation.tables import csv_text, lines

ROLES = (
    *(
        "candidate",
        "reference",
        "context",
        "segment",
        "document",
        "system",
        "score",
        "metric",
        "run",
    ),
    *("lang_pair", "human", "annotator", "precision", "recall", "f1", "truncated"),
)
NUMBER = 24
DRAWS = np.random.default_rng(7)
WORDS = ["a", "cat", "dog", "log", "mat", "on", "ran", "sat", "the"]


def texts(number=NUMBER):
    return [" ".join(DRAWS.choice(WORDS, 5)) for _ in range(number)]


def numbers(number=NUMBER):
    return DRAWS.normal(size=number).round(3).tolist()


def ids(start, size=1):
    return [f"{start}{row // size:02}" for row in range(NUMBER)]


def frame(role, make):
    return {role: make(), f"{role}2": make()}


def of_system(name):
    """Return the columns of a table of one system; half of the other ids are in both systems'
    tables.
    """
    return {
        "segment": ids("s"),
        "segment2": [f"segment2-{40 - row - 12 * (name == 'B')}" for row in range(NUMBER)],
        "document": ids("d", 2),
        "document2": ids("e", 4),
        **frame("candidate", texts),
        **frame("score", numbers),
        "metric2": ["m"] * NUMBER,
    }


REFERENCES = frame("reference", texts) | {"context": texts(), "context2": texts()}
RUN = {"run2": [row % 2 for row in range(NUMBER)]}
EACH = {name: of_system(name) | REFERENCES for name in "AB"}
LONG = {
    "system": ["A"] * NUMBER + ["B"] * NUMBER,
    "system2": ["C"] * NUMBER + ["A"] * NUMBER,
    **{name: EACH["A"][name] + EACH["B"][name] for name in EACH["A"]},
}
JUDGED = LONG | {
    "lang_pair": ["xx-en"] * 2 * NUMBER,
    "lang_pair2": ["yy-en"] * 2 * NUMBER,
    "segment2": ids("segment2-") + ids("segment2-9"),
    **frame("human", lambda: numbers(2 * NUMBER)),
}
"""A row for each output."""
ANNOTATED = {name: values * 2 for name, values in JUDGED.items()} | {
    "annotator2": ["x"] * 48 + ["y"] * 48
}
"""Two rows for each output, which only a column of annotators tells apart."""
WIDE = {name: values for name, values in EACH["A"].items() if "candidate" not in name}
TEXTS = WIDE | {"A": texts(), "B": texts(), "C": texts()}
NUMBERS = WIDE | {"A": numbers(), "B": numbers(), "C": numbers()}


def twice(columns):
    """Return a table with a second row for each of its rows, of another run."""
    number = len(next(iter(columns.values())))
    rows = {}
    for name, values in columns.items():
        is_output = name[0] in "cABC" and name != "context"
        again = texts(number) if is_output and isinstance(values[0], str) else values
        rows[name] = values + (numbers(number) if isinstance(values[0], float) else again)
    even = [row % 2 for row in range(number)]
    return rows | {"run": [1] * number + [2] * number, "run2": even + [1 - row for row in even]}


def lm_eval(scores):
    keys = {"doc_hash": "h", "resps": [], "filter": "none", "metrics": ["acc"]}
    return "".join(
        json.dumps({"doc_id": row, "acc": score, **keys}) + "\n" for row, score in enumerate(scores)
    )


FILES = {
    "A.txt": lines(texts()),
    "B.txt": lines(texts()),
    "r.txt": lines(texts()),
    "one.csv": csv_text(EACH["A"]),
    "two.csv": csv_text(EACH["B"]),
    "one-runs.csv": csv_text(
        {name: values for name, values in twice(EACH["A"]).items() if name != "run"}
    ),
    "A.csv": csv_text(EACH["A"] | RUN),
    "B.csv": csv_text(EACH["B"] | RUN),
    "r.csv": csv_text({name: EACH["B"][name] for name in ("segment", "segment2")} | REFERENCES),
    "long.csv": csv_text(LONG),
    "runs.csv": csv_text(twice(LONG)),
    "texts.csv": csv_text(TEXTS),
    "texts-runs.csv": csv_text(twice(TEXTS)),
    "numbers.csv": csv_text(NUMBERS),
    "numbers-runs.csv": csv_text(twice(NUMBERS)),
    "A-runs.csv": csv_text(twice(EACH["A"])),
    "B-runs.csv": csv_text(twice(EACH["B"])),
    "1.txt": lines(numbers()),
    "2.txt": lines(numbers()),
    "d.txt": lines(ids("d", 3)),
    "a.jsonl": lm_eval(numbers()),
    "b.jsonl": lm_eval(numbers()),
    "judged.csv": csv_text(JUDGED),
    "annotated.csv": csv_text(ANNOTATED),
}
COMPARE = "compare --resamples 50 --missing drop --format json "
BLEU = f"{COMPARE} --metric bleu "
META = "meta {} --resamples 5 --format json --score score"
FORMS = {
    "texts": BLEU + "-c A.txt B.txt -r r.txt",
    "one text": BLEU + "-c A.txt -r r.txt",
    "a table for each system": BLEU + "-c one.csv two.csv -r r.csv",
    "a table of runs for each system": BLEU + "-c A-runs.csv B-runs.csv -r r.csv",
    "a table of one system": BLEU + "-c one.csv -r r.csv",
    "a table of one system of runs": BLEU + "-c one-runs.csv -r r.csv",
    "a table and lines": BLEU + "-c one.csv -r r.txt",
    "lines and a table": BLEU + "-c A.txt B.txt -r r.csv",
    "long texts": BLEU + "-c long.csv",
    "long texts of runs": BLEU + "-c runs.csv",
    "wide texts": BLEU + "-c texts.csv --systems A B",
    "wide texts of runs": BLEU + "-c texts-runs.csv --systems A B",
    "long scores": COMPARE + "--scores long.csv",
    "long scores of runs": COMPARE + "--scores runs.csv",
    "wide scores by documents": COMPARE + "--scores numbers.csv --systems A B --documents d.txt",
    "wide scores": COMPARE + "--scores numbers.csv --systems A B",
    "wide scores of runs": COMPARE + "--scores numbers-runs.csv --systems A B",
    "scores of each system": COMPARE + "--scores A.csv B.csv",
    "scores of each system by name": COMPARE + "--scores x=B.csv y=A.csv",
    "scores of each system of runs": COMPARE + "--scores A-runs.csv B-runs.csv",
    "numbers": COMPARE + "--scores 1.txt 2.txt",
    "logs": COMPARE + "--scores a.jsonl b.jsonl",
    "judgements": META.format("judged.csv"),
    "judgements without texts": META.format("judged.csv") + " --no-sentinels",
    "judgements of annotators": META.format("annotated.csv"),
    "files": "batch -m BUNDLE -i A.csv -o OUT",
    "layers": "tune-layers judged.csv -m LAYERS --format json --resamples 5",
    "pairs": "score -m BUNDLE -c A.csv --format json",
    "pairs in rows": "score -m BUNDLE -c A.csv --format jsonl",
    "pairs in two tables": "score -m BUNDLE -c A.csv -r r.csv --format json",
    "pairs in lines": "score -m BUNDLE -c A.txt -r r.txt --format json",
    "pairs in lines and a table": "score -m BUNDLE -c A.txt -r r.csv --format json",
    "pairs in contexts": (
        "score -m BUNDLE -c A.csv --context A.csv --matching doc-bert-score --format json"
    ),
    "a pair": "show -m BUNDLE -c cat -r dog",
    "a pair of a table": "show -m BUNDLE -c A.csv --line 3",
    "a pair of two tables": "show -m BUNDLE -c A.csv -r r.csv --line 3",
    "a pair of lines": "show -m BUNDLE -c A.txt -r r.txt --line 3",
    "counts": "count-documents -m BUNDLE -r A.csv -o counts.json",
}
NEEDED = {"judgements of annotators": "annotator", "a table of one system of runs": "run"}
"""The role without which a form is refused, since it has several rows for a segment."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("roles")
    for name, content in FILES.items():
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_a_role_changes_the_result_or_is_refused_by_its_name(
    run, folder, monkeypatch, tiny_bundle, all_layers_bundle, form
):
    monkeypatch.chdir(folder)
    command = (
        FORMS[form]
        .replace("BUNDLE", str(tiny_bundle))
        .replace("LAYERS", str(all_layers_bundle))
        .split()
    )

    def result(*columns):
        out = "".join(columns)
        found = run(*[part.replace("OUT", f"out{out}") for part in command], *columns)
        output = found.stdout
        if found.exit_code == 0 and command[0] == "compare":
            record = json.loads(output)
            output = [record[part] for part in ("headlines", "systems", "segments", "signature")]
        if found.exit_code == 0 and command[0] == "count-documents":
            output = (folder / "counts.json").read_text()
        if found.exit_code == 0 and command[0] == "batch":
            table = pytest.importorskip("pyarrow.parquet").read_table(folder / f"out{out}")
            output = table.to_pydict()
        return found.exit_code, output, found.stderr

    status, output, error = result()
    assert (status == 2) == (form in NEEDED), error
    wrong = []
    for role in [NEEDED[form]] if form in NEEDED else ROLES:
        changed_status, changed, error = result("--columns", f"{role}={role}2")
        is_refused = changed_status == 2 and f"{role}2" in error
        is_used = changed_status == 0 and changed != output
        if not (is_refused or is_used):
            wrong.append(f"{role}, status {changed_status}: {error}")
    assert wrong == []


IDLE = {
    "wide scores": ("--examples 3", "--score-range 0 1", "--ref r.txt"),
    "texts": (
        "--examples 3 --format tsv",
        "--higher-better x",
        "--input-format header=no",
        "--score-range 0 1",
    ),
    "numbers": ("--input-format header=no",),
    "logs": ("--input-format header=no", "--examples 3"),
    "judgements": ("--matching bertscore",),
    "pairs in lines": ("--input-format header=no", "--by domain"),
    "a pair": ("--columns candidate=a",),
}
"""Options that a form of input does not use."""


@pytest.mark.parametrize(
    ("form", "options"), [(form, options) for form in IDLE for options in IDLE[form]]
)
def test_an_option_without_an_effect_is_refused_by_its_name(
    run, folder, monkeypatch, form, options
):
    monkeypatch.chdir(folder)
    found = run(*FORMS[form].replace("BUNDLE", "absent").split(), *options.split())
    assert found.exit_code == 2
    assert options.split()[0] in found.stderr
