"""What `compare` takes at the shell: the right comparison, by numpy and scipy on the same numbers,
or a line of advice.

Nothing that was not named is a system, or the baseline.
"""

import json
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.evaluation.simulations import exact_p
from tests.evaluation.tables import csv_text, json_lines, lines, texts_of_systems

NUMBER = 30
IDS = [f"q{number}" for number in range(1, NUMBER + 1)]
ORDER = np.random.default_rng(5).permutation(NUMBER)


def draw(seed):
    """Draw scores of three systems, which differ in ten segments."""
    rng = np.random.default_rng(seed)
    scores = np.tile(rng.uniform(0.3, 0.7, NUMBER).round(2), (3, 1))
    scores[1, 4:14] += rng.integers(1, 9, 10) / 100
    scores[2, 9:19] -= rng.integers(-3, 9, 10) / 100
    return dict(zip("ABC", scores.round(2).tolist(), strict=True))


FIRST, SECOND = draw(1), draw(2)
TEXTS = {name: [f"text {row} {name}" for row in range(NUMBER)] for name in ("question", "answer")}


def long(*, names=("system", "segment", "score"), systems="ABC", extra=None):
    cells = [(name, IDS[row], FIRST[name][row]) for name in systems for row in range(NUMBER)]
    columns = dict(zip(names, zip(*cells, strict=True), strict=True))
    return csv_text({**columns, **(extra or {})})


def of_system(name, **extra):
    """Return a table of one system with two metrics, as ragas writes it."""
    return csv_text(
        {"id": IDS, **TEXTS, "faithfulness": FIRST[name], "relevancy": SECOND[name], **extra}
    )


def indexed(index=""):
    """Return tables of two systems with two metrics, and the index of pandas in their first column;
    the second is in another order.
    """
    return {
        f"{name}.csv": csv_text(
            {index: range(NUMBER), "faithfulness": FIRST[name], "relevancy": SECOND[name]}, order_of
        )
        for name, order_of in (("A", None), ("B", ORDER))
    }


def comet(names, key="COMET"):
    rows = {
        f"out/{name}.txt": [
            {"src": "s", "mt": "m", "ref": "r", key: score} for score in FIRST[name]
        ]
        for name in names
    }
    return json.dumps(rows, indent=4)


@dataclass
class Case:
    files: dict
    options: str
    metrics: dict = field(default_factory=dict)
    """By metric the numbers of each system, the baseline first."""
    said: tuple = ()
    """On standard error; without `metrics` in the one line of the error."""


def ab(scores=FIRST, names="AB"):
    return {name: scores[name] for name in names}


WIDE = csv_text({"id": IDS, **FIRST})
GAP = WIDE.replace(f"q8,{FIRST['A'][7]}", "q8,")
RICH = csv_text(
    {
        "id": IDS,
        **TEXTS,
        "latency_ms": range(NUMBER),
        "A": FIRST["A"],
        "title": FIRST["B"],
        "year": FIRST["C"],
    }
)
MEAN = {name: np.mean([FIRST[name], SECOND[name]], axis=0).tolist() for name in "ABC"}
BOTH = {"faithfulness": ab(), "relevancy": ab(SECOND)}
MINE = {"precision": FIRST, "recall": SECOND, "f1": MEAN}
LONG = {
    "model": ["A"] * 30 + ["B"] * 30,
    "id": IDS * 2,
    "x": FIRST["A"] + FIRST["B"],
    "y": SECOND["A"] + SECOND["B"],
}
NO_HEADER = (
    "--scores s.csv --input-format csv,header=no,delimiter=; --columns segment=1 --systems 3 2"
)

CASES = {
    # a wide table
    "as pandas writes a frame with its index": Case(
        indexed(),
        "--scores A.csv B.csv --columns segment= score=faithfulness+relevancy",
        BOTH,
        ("segments by the column without a name",),
    ),
    **{
        f"an index {index!r} that nobody named": Case(
            indexed(index),
            "--scores A.csv B.csv --columns score=faithfulness+relevancy",
            said=("By position, A.csv, line 2 meets",),
        )
        for index in ("", "Unnamed: 0")
    },
    "wide, named": Case(
        {"s.csv": WIDE}, "--scores s.csv --systems A B", {"s": ab()}, ("ignored C", "baseline is A")
    ),
    "wide, nothing named": Case(
        {"s.csv": RICH},
        "--scores s.csv",
        said=(
            "no column 'score' or 'f1'; its columns of numbers are latency_ms, A, title, year. ",
            "--systems A B …",
            "--columns score=NAME",
        ),
    ),
    "wide, all": Case(
        {"s.csv": WIDE}, "--scores s.csv --systems all", said=("no system 'all'", "id, A, B, C")
    ),
    "wide, one named": Case(
        {"s.csv": WIDE}, "--scores s.csv --systems A --margin 1", said=("two systems, and A",)
    ),
    "texts and sizes beside, named": Case(
        {"s.csv": RICH},
        "--scores s.csv --systems title A year",
        {"s": {"title": FIRST["B"], "A": FIRST["A"], "year": FIRST["C"]}},
        ("ignored question, answer, latency_ms", "Higher is taken as better: s."),
    ),
    "scores of one system that are not available": Case(
        {"s.csv": csv_text({"id": IDS, **FIRST, "D": ["NA"] * NUMBER})},
        "--scores s.csv --systems A D",
        said=("line 2: there is no value in the column 'D'",),
    ),
    "a missing score, dropped": Case(
        {"s.csv": GAP},
        "--scores s.csv --systems A B --missing drop",
        {"s": {name: scores[:7] + scores[8:] for name, scores in ab().items()}},
        ("Left out 1 of 30 segments, which some file lacks: q8.",),
    ),
    "semicolons, no header": Case(
        {"s.csv": csv_text({"id": IDS, **FIRST}, delimiter=";", header=False)},
        NO_HEADER,
        {"s": {"3": FIRST["B"], "2": FIRST["A"]}},
    ),
    "a role of no table": Case(
        {"s.csv": WIDE}, "--scores s.csv --systems A B --columns run=seed", said=("seed", "run")
    ),
    # a table for each metric
    "a file for each metric, named": Case(
        {"x.csv": WIDE, "y.csv": csv_text({"id": IDS, **SECOND}, order=ORDER)},
        "--scores x.csv y.csv --systems A B --columns segment=id",
        {"x": ab(), "y": ab(SECOND)},
    ),
    "runs of a file for each metric": Case(
        {"1.csv": WIDE, "2.csv": csv_text({"id": IDS, **SECOND}, order=ORDER)},
        "--scores judge=1.csv judge=2.csv --systems A B --columns segment=id",
        {"judge": ab(MEAN)},
    ),
    # a row for each system and segment
    "long": Case(
        {"s.csv": long()},
        "--scores s.csv",
        {"score": FIRST},
        ("systems A, B, C; system system; score score",),
    ),
    "long, other names": Case(
        {"s.csv": long(names=("model", "item", "output"))},
        "--scores s.csv --columns system=model segment=item score=output",
        {"output": FIRST},
    ),
    "long with metrics": Case(
        {
            "s.csv": csv_text(
                {
                    "metric": ["x"] * 60 + ["y"] * 60,
                    "system": LONG["model"] * 2,
                    "id": IDS * 4,
                    "score": LONG["x"] + LONG["y"],
                }
            )
        },
        "--scores s.csv",
        {"x": ab(), "y": ab(SECOND)},
    ),
    "long with a column for each metric": Case(
        {"s.csv": csv_text(LONG)},
        "--scores s.csv --columns system=model score=x+y",
        {"x": ab(), "y": ab(SECOND)},
        ("score x+y; segments by id: nothing else shows it.",),
    ),
    "a system in two files": Case(
        {f"{pair}.csv": long(systems=pair, extra={"metric": ["m"] * 60}) for pair in ("AB", "BC")},
        "--scores AB.csv BC.csv",
        said=("AB.csv and BC.csv have values of m for B",),
    ),
    "long without a system": Case(
        {"s.csv": long()}, "--scores s.csv --systems A D", said=("no system 'D', only A, B and C",)
    ),
    "long without ids": Case(
        {"s.csv": csv_text({"system": "AB", "score": [1, 2]})},
        "--scores s.csv",
        said=("need ids", "--columns segment=NAME"),
    ),
    # a file for each system
    "a file for each system": Case(
        {"A.csv": of_system("A"), "B.csv": of_system("B")},
        "--scores A.csv B.csv --columns score=faithfulness+relevancy",
        BOTH,
        (
            "A is A.csv, B is B.csv; score faithfulness+relevancy; segments by id: 'question' agrees; ignored "
            "question, answer",
        ),
    ),
    "a file for each system, named": Case(
        {"1.csv": of_system("A"), "2.csv": of_system("B")},
        "--scores B=2.csv A=1.csv --columns score=faithfulness+relevancy",
        {"faithfulness": ab(names="BA"), "relevancy": ab(SECOND, "BA")},
    ),
    "a file for each run": Case(
        {
            "1.csv": csv_text({"id": IDS, "score": FIRST["A"]}),
            "2.csv": csv_text({"id": IDS, "score": SECOND["A"]}, order=ORDER),
            "3.csv": csv_text({"id": IDS, "score": FIRST["B"]}),
            "4.csv": csv_text({"id": IDS, "score": SECOND["B"]}),
        },
        "--scores A=1.csv A=2.csv B=3.csv B=4.csv",
        {"score": ab(MEAN)},
        ("A is 1.csv and 2.csv, B is 3.csv and 4.csv",),
    ),
    "other columns": Case(
        {
            "A.csv": csv_text({"id": IDS, "x": FIRST["A"]}),
            "B.csv": csv_text({"id": IDS, "y": FIRST["B"]}),
        },
        "--scores A.csv B.csv --columns score=x",
        said=("B.csv: there is no column 'x', only 'id', 'y'",),
    ),
    "nothing named": Case(
        {f"{name}.csv": of_system(name, gold=["Paris", *range(NUMBER - 1)]) for name in "AB"},
        "--scores A.csv B.csv",
        said=("numbers are faithfulness, relevancy. ", "--columns score=NAME"),
    ),
    "one column of numbers, not named": Case(
        {f"{name}.csv": csv_text({"id": IDS, "latency": FIRST[name]}) for name in "AB"},
        "--scores A.csv B.csv",
        said=("its columns of numbers are latency. ", "--columns score=NAME"),
    ),
    "scores of score -o": Case(
        {
            f"{name}.csv": csv_text(
                {
                    "id": IDS,
                    "candidate": TEXTS["answer"],
                    "reference": TEXTS["question"],
                    "precision": FIRST[name],
                    "recall": SECOND[name],
                    "f1": MEAN[name],
                    "best_reference": [row % 2 for row in range(NUMBER)],
                }
            )
            for name in "AB"
        },
        "--scores A.csv B.csv",
        {"f1": ab(MEAN)},
        ("ignored candidate, reference, precision, recall, best_reference",),
    ),
    "the same file twice": Case(
        {"A.csv": of_system("A")}, "--scores A=A.csv B=A.csv", said=("given twice",)
    ),
    # files of metrics
    "a number a line": Case(
        {f"{name}.txt": lines(FIRST[name]) for name in "AB"},
        "--scores A.txt B.txt",
        {"score": ab()},
        ("A is A.txt, B is B.txt; score score; segments by position: nothing contradicts it.",),
    ),
    "a number a line, one missing": Case(
        {"A.txt": lines(FIRST["A"]), "B.txt": ".5\n" * 29},
        "--scores A.txt B.txt",
        said=("30 rows", "29 rows", "no partner"),
    ),
    "a word among numbers": Case(
        {"A.txt": ".5\nhm\n", "B.txt": ".5\n.6\n"},
        "--scores A.txt B.txt",
        said=("A.txt, line 2", "'hm'"),
    ),
    "WMT": Case(
        {
            "comet-refA.seg.score": "".join(
                f"{name}\t{score}\n" for name in "BA" for score in FIRST[name]
            )
        },
        "--scores comet-refA.seg.score",
        {"comet-refA": ab(names="BA")},
    ),
    "COMET in JSON": Case(
        {"c.json": comet("AB")}, "--scores c.json", {"COMET": ab()}, ("systems A, B",)
    ),
    "COMET in JSON, another key": Case(
        {"c.json": comet("AB", "score")}, "--scores c.json", {"score": ab()}
    ),
    "COMET with names": Case(
        {"1.json": comet("A"), "2.json": comet("A").replace("0.", "0.0")},
        "--scores new=2.json old=1.json",
        {
            "COMET": {
                "new": [float(str(one).replace("0.", "0.0")) for one in FIRST["A"]],
                "old": FIRST["A"],
            }
        },
    ),
    "numbers without a header": Case(
        {"A.csv": ".5\n.6\n", "B.csv": ".4\n.3\n"}, "--scores A.csv B.csv", said=("header=no",)
    ),
    "no ids, in another order": Case(
        {
            f"{name}.csv": csv_text(
                {"prompt": [*TEXTS["answer"][1:], "text 1 answer"], "f": FIRST[name]}, order=order
            )
            for name, order in (("A", None), ("B", ORDER))
        },
        "--scores A.csv B.csv --columns score=f --fail-if-worse",
        said=(
            "By position, A.csv, line 2 meets B.csv, line 2, but its 'prompt' is the 'prompt' of",
            "if the rows are in the same order all the same, --columns segment=none.",
        ),
    ),
    "COMET as printed": Case(
        {"c.txt": "out/A.txt\tSegment 0\tscore: 0.5\n"},
        "--scores c.txt",
        said=("c.txt, line 1", "`comet-score --to_json FILE`"),
    ),
    "MetricX": Case(
        {
            f"{name}.jsonl": json_lines(
                {
                    "hypothesis": TEXTS["answer"],
                    "reference": TEXTS["question"],
                    "prediction": FIRST[name],
                }
            )
            for name in "AB"
        },
        "--scores A.jsonl B.jsonl --columns score=prediction --lower-better prediction",
        {"prediction": ab()},
    ),
    "one JSON object": Case(
        {"r.json": json.dumps({"results": {"a": 1}, "configs": {}}, indent=1)},
        "--scores r.json",
        said=("--log_samples",),
    ),
    "another JSON object": Case(
        {"r.json": json.dumps({"a": 1}, indent=1)}, "--scores r.json", said=("is one JSON object",)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_files_of_scores(compare_files, name):
    case = CASES[name]
    options = (*case.options.split(), "--format", "json", "--resamples", 20)
    result = compare_files(case.files, *options)
    for words in case.said:
        assert words in result.stderr
    if not case.metrics:
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1 or "Usage" in result.stderr
        return
    record = json.loads(result.stdout)
    assert [*record["signatures"]] == [*case.metrics]
    for metric, scores in case.metrics.items():
        systems = {system["name"]: system["metrics"][metric] for system in record["systems"]}
        assert [*systems] == [*scores]
        baseline, *others = scores.values()
        assert [system["score"] for system in systems.values()] == pytest.approx(
            [np.mean(one) for one in scores.values()]
        )
        for other, system in zip(others, [*systems.values()][1:], strict=True):
            assert system["delta"] == pytest.approx(
                np.mean(np.float64(other) - np.float64(baseline))
            )
            if np.sum(np.float64(other) != np.float64(baseline)) <= 12:
                assert system["p"] == pytest.approx(exact_p(np.subtract(other, baseline)))


GOLD, OUTPUTS = texts_of_systems("AB", NUMBER)
CELLS = [(name, IDS[row], OUTPUTS[name][row], GOLD[row]) for name in "AB" for row in range(NUMBER)]
LONG_TEXTS = dict(
    zip(("model", "qid", "output", "gold"), map(list, zip(*CELLS, strict=True)), strict=True)
)
WIDE_TEXTS = {"qid": IDS, "question": TEXTS["question"], "gold": GOLD, **OUTPUTS}
LINES = {name: lines(texts) for name, texts in (OUTPUTS | {"ref": GOLD}).items()}
TABLES = {
    name: csv_text({"id": IDS, "candidate": texts}, order=order)
    for (name, texts), order in zip(OUTPUTS.items(), (ORDER, ORDER[::-1]), strict=True)
}
TABLES_AS_FILES = {f"{name}.csv": text for name, text in TABLES.items()}
TEXT_CASES = {
    "lines": Case(
        {f"{name}.txt": text for name, text in LINES.items()},
        "-c A.txt B.txt -r ref.txt",
        OUTPUTS,
        ("A is A.txt, B is B.txt",),
    ),
    "lines with names": Case(
        {f"{name}.x.txt": text for name, text in LINES.items()},
        "-c A=A.x.txt B=B.x.txt -r ref.x.txt",
        OUTPUTS,
    ),
    "tables, shuffled": Case(
        TABLES_AS_FILES | {"r.csv": csv_text({"id": IDS, "reference": GOLD, "reference2": GOLD})},
        "-c A.csv B.csv -r r.csv",
        OUTPUTS,
        (
            "A is A.csv, B is B.csv; candidate candidate; segments by id",
            "r.csv: reference reference+reference2; segments by id: nothing else shows it.",
        ),
    ),
    "tables of usual names": Case(
        {
            "A.jsonl": json_lines({"id": IDS, "prediction": OUTPUTS["A"], "target": GOLD}),
            "B.jsonl": json_lines({"id": IDS, "output": OUTPUTS["B"]}),
        },
        "-c A.jsonl B.jsonl -r A.jsonl",
        OUTPUTS,
        ("candidate prediction", "candidate output", "reference target"),
    ),
    "wide, with a system of a usual name": Case(
        {
            "o.csv": csv_text(
                {"id": IDS, "reference": GOLD, "A": OUTPUTS["A"], "output": OUTPUTS["B"]}
            )
        },
        "-c o.csv --systems A output",
        {"A": OUTPUTS["A"], "output": OUTPUTS["B"]},
    ),
    "two usual names": Case(
        {
            "o.csv": csv_text(
                {"id": IDS, "prediction": OUTPUTS["A"], "output": OUTPUTS["B"], "reference": GOLD}
            ),
            **TABLES_AS_FILES,
        },
        "-c A.csv o.csv -r o.csv",
        said=("'prediction' and 'output'; expected one of them", "--columns candidate=NAME"),
    ),
    "wide, unnamed": Case(
        {"o.csv": csv_text(WIDE_TEXTS)},
        "-c o.csv --columns reference=gold segment=qid",
        said=(
            "its columns of texts are qid, question, gold, A, B. ",
            "--systems A B …",
            "--columns candidate=NAME",
        ),
    ),
    "wide, named": Case(
        {"o.csv": csv_text(WIDE_TEXTS)},
        "-c o.csv --columns reference=gold segment=qid --systems A B",
        OUTPUTS,
    ),
    "wide, a reference in the way": Case(
        {"o.csv": csv_text(WIDE_TEXTS)},
        "-c o.csv --columns reference=question,gold --systems A B",
        said=("question+gold",),
    ),
    "long": Case(
        {"o.csv": csv_text(LONG_TEXTS)},
        "-c o.csv --columns system=model segment=qid candidate=output reference=gold",
        OUTPUTS,
        ("systems A, B; system model; candidate output; reference gold; segments by qid.",),
    ),
    "long, unnamed": Case(
        {"o.csv": csv_text(LONG_TEXTS)},
        "-c o.csv",
        said=("there is no column 'reference'", "--columns reference=NAME"),
    ),
    "long, as one of several tables": Case(
        TABLES_AS_FILES | {"o.csv": csv_text(LONG_TEXTS)},
        "-c A.csv o.csv -r A.csv --columns system=model",
        said=("o.csv has a column 'model', the system of each row",),
    ),
}


@pytest.mark.parametrize("name", TEXT_CASES)
def test_files_of_texts(compare_files, name):
    sacrebleu = pytest.importorskip("sacrebleu")
    case = TEXT_CASES[name]
    options = (*case.options.split(), "--metric", "chrf", "--format", "json", "--resamples", 20)
    result = compare_files(case.files, *options)
    for words in case.said:
        assert words in result.stderr
    if not case.metrics:
        assert result.exit_code == 2
        return
    record = json.loads(result.stdout)
    expected = {
        name: sacrebleu.corpus_chrf(texts, [GOLD]).score for name, texts in case.metrics.items()
    }
    assert {
        one["name"]: one["metrics"]["chrf"]["score"] for one in record["systems"]
    } == pytest.approx(expected)
    assert record["inputs"][-1] == "The baseline is A."


# Documents in a table that is already given.

DOCUMENTS = [f"d{row // 10}" for row in range(300)]
SHIFT = np.repeat(np.random.default_rng(4).normal(0.02, 0.06, 30), 10)
BY_DOCUMENT = {"A": np.random.default_rng(3).uniform(0.4, 0.8, 300).round(3)}
BY_DOCUMENT["B"] = (BY_DOCUMENT["A"] - SHIFT).round(3)
TEXT = "the cat sat on a red mat"
WORDS = {"A": [TEXT] * 300, "B": ["the cat sat on a log"] * 40 + [TEXT] * 260}
ROWS = {"id": range(300), "reference": [TEXT] * 300}
DOORS = {
    "a table for each system": (
        {f"{name}.csv": ROWS | {"score": scores} for name, scores in BY_DOCUMENT.items()},
        "--scores A.csv B.csv --higher-better score",
    ),
    "long": (
        {
            "A.csv": {
                "id": [*range(300)] * 2,
                "system": ["A"] * 300 + ["B"] * 300,
                "score": [*BY_DOCUMENT["A"], *BY_DOCUMENT["B"]],
            }
        },
        "--scores A.csv --baseline A --higher-better score",
    ),
    "wide": ({"A.csv": ROWS | BY_DOCUMENT}, "--scores A.csv --systems A B --higher-better A"),
    "texts for each system": (
        {f"{name}.csv": ROWS | {"candidate": texts} for name, texts in WORDS.items()},
        "-c A.csv B.csv -r A.csv --metric bleu",
    ),
    "wide texts": ({"A.csv": ROWS | WORDS}, "-c A.csv --systems A B --metric bleu"),
}


@pytest.mark.parametrize("column", ["topic", "doc", "document"])
@pytest.mark.parametrize("door", DOORS)
def test_documents_of_a_given_table_are_used(run, tmp_path, monkeypatch, door, column):
    monkeypatch.chdir(tmp_path)
    files, options = DOORS[door]

    def gate(documents, *further):
        for name, columns in files.items():
            number = len(columns["id"]) // 300
            (tmp_path / name).write_text(csv_text({**columns, documents: DOCUMENTS * number}))
        gate = ("--fail-if-worse", "--format", "json", "--resamples", 500)
        result = run("compare", *options.split(), *gate, *further)
        record = json.loads(result.stdout)
        return result.exit_code, record["num_documents"], record["signatures"], record["systems"]

    named = ("--columns", f"document={column}")
    by_file = gate(column, "--documents", "A.csv", *named)
    by_table = gate(column, *(named if column == "topic" else ()))
    assert by_table == by_file
    assert by_table[:2] == (0, 30)
    assert gate("other")[:2] == (1, None)


def test_a_constant_or_a_system_is_no_document(run_json, write):
    scores = csv_text({"id": IDS, "document": ["d"] * NUMBER, **FIRST})
    assert (
        run_json("compare", "--scores", write("s.csv", scores), "--systems", "A", "B")[
            "num_documents"
        ]
        is None
    )
    scores = csv_text({"id": IDS, "doc": FIRST["A"], "B": FIRST["B"]})
    assert (
        run_json("compare", "--scores", write("s.csv", scores), "--systems", "doc", "B")[
            "num_documents"
        ]
        is None
    )


def test_nested_values_are_ignored_by_name_and_named_where_nothing_else_is_left(
    run, run_json, refused, write
):
    stats = [[{"name": {"name": "exact_match"}, "mean": 1.0}]] * NUMBER
    items = {"instance_id": IDS, "train_trial_index": [0] * NUMBER, "stats": stats}
    files = [write(name, json_lines(items)) for name in ("a.jsonl", "b.jsonl")]
    error = refused("compare", "--scores", *files)
    assert "docs/compare_runs.md writes nested values as columns." in error
    files = [write(f"{name}.jsonl", json_lines(items | {"em": FIRST[name]})) for name in "AB"]
    record = run_json("compare", "--scores", *files, "--columns", "score=em")
    assert [*record["signatures"]] == ["em"]
    assert record["columns"][0]["ignored"] == ["instance_id", "train_trial_index", "stats (nested)"]


def test_one_table_of_one_system_is_as_one_text(run_json, write):
    pairs = write("pairs.csv", csv_text({"candidate": OUTPUTS["A"], "reference": GOLD}))
    options = ("--metric", "chrf")
    by_text = run_json(
        "compare",
        "-c",
        write("pairs.txt", LINES["A"]),
        "-r",
        write("r.txt", LINES["ref"]),
        *options,
    )
    for references in ([], ["-r", pairs]):
        assert (
            run_json("compare", "-c", pairs, *references, *options)["systems"] == by_text["systems"]
        )
