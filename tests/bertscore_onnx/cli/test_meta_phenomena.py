"""`bertscore-onnx meta --task phenomena`."""

import csv
import json

import pytest

from tests.support.metaeval import needs_metaeval, tq_autotest

pytest.importorskip("sacrebleu")

ROWS = [
    {"category": "negation", "reference": "it is not so", "good": ["it is not like that"], "bad": ["it is so", "yes"]},
    {"category": "number", "reference": "two cats", "good": ["two cats"], "bad": []},
    {"category": "number", "reference": ["two cats", "a pair of cats"], "good": [], "bad": ["two dogs", "ten dogs"]},
]


@pytest.fixture
def write_rows(write):
    def write_rows(rows):
        return write("rows.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))

    return write_rows


def test_json_has_conditions_and_categories(run, write_rows):
    result = run("meta", write_rows(ROWS), "--task", "phenomena", "--metric", "chrf", "--min-examples", "1", "--json")
    chrf = json.loads(result.stdout)["metrics"]["chrf"]
    numbers = {name: check["n"] for name, check in chrf["checks"].items()}
    assert numbers == {"mean_good": 2, "all_good_above_bad": 1, "order_kept": 2}
    assert chrf["checks"]["order_kept"]["right"] == 2
    assert {name: {*conditions} for name, conditions in chrf["categories"].items()} == {
        "negation": {"mean_good", "all_good_above_bad", "order_kept"},
        "number": {"mean_good", "order_kept"},
    }


def test_a_model_scores_texts(run, write_rows, tiny_bundle):
    result = run("meta", write_rows(ROWS), "--task", "phenomena", "-m", tiny_bundle, "--device", "cpu", "--json")
    assert json.loads(result.stdout)["metrics"]["bertscore"]["checks"]["mean_good"]["n"] == 2


def test_the_table_to_read_explains_the_conditions(run, write_rows):
    result = run("meta", write_rows(ROWS[1:2]), "--task", "phenomena", "--metric", "ter", "chrf")
    assert "ter (nrefs:1|" in result.stdout
    assert "all_good_above_bad: no example has the outputs that this check compares" in result.stdout
    assert "5 examples are not shown" in result.stdout


def test_tsv_has_a_row_for_each_category(run, write_rows):
    arguments = ("--task", "phenomena", "--metric", "chrf", "--min-examples", "1", "--tsv")
    rows = [*csv.DictReader(run("meta", write_rows(ROWS), *arguments).stdout.splitlines(), delimiter="\t")]
    assert [(row["category"], row["mean_good_n"], row["order_kept_right"]) for row in rows] == [
        ("(all)", "2", "2"),
        ("negation", "1", "1"),
        ("number", "1", "1"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"category": None}, "line 2: the column 'category' holds None"),
        ({"category": ""}, "line 2: the column 'category' holds ''"),
        ({"reference": []}, "line 2: the column 'reference' holds an empty list"),
        ({"reference": None}, "line 2: the column 'reference' holds null"),
        ({"bad": [1]}, "line 2: the column 'bad' holds a list with a number in it"),
        ({"good": {"text": "x"}}, "line 2: the column 'good' holds an object"),
        ({"good": None}, "line 2: the column 'good' holds null"),
    ],
)
def test_a_wrong_value_is_told_with_line_and_field(run, write_rows, change, message):
    result = run("meta", write_rows([ROWS[0], ROWS[1] | change]), "--task", "phenomena", "--metric", "chrf")
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@pytest.mark.parametrize("field", ["category", "reference", "good", "bad"])
def test_a_missing_field_is_told_with_its_line(run, write_rows, field):
    row = {name: value for name, value in ROWS[1].items() if name != field}
    result = run("meta", write_rows([ROWS[0], row]), "--task", "phenomena", "--metric", "chrf")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"line 2: there is no {field!r} here" in result.stderr


def test_a_field_that_no_row_has_is_told_with_the_nearest(run, write_rows):
    rows = [{"categories": "x", "reference": "a", "good": ["a"], "bad": []}]
    result = run("meta", write_rows(rows), "--task", "phenomena", "--metric", "chrf")
    assert "there is no column 'category'" in result.stderr
    assert "Did you mean 'categories'? Add it." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "name a model, or a metric such as bleu"),
        (["--metric", "chrf", "--score", "m"], 2, "has no effect on --task phenomena"),
        (["--metric", "rouge"], 2, "'rouge' is none of"),
        (["--metric", "chrf", "--min-examples", "0"], 2, "--min-examples"),
    ],
)
def test_wrong_usage_is_told(run, write_rows, arguments, status, message):
    result = run("meta", write_rows(ROWS), "--task", "phenomena", *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in " ".join(result.stderr.split())


def test_rows_with_references_alone_are_refused(run, write_rows):
    rows = [{"category": "x", "reference": "a", "good": [], "bad": []}]
    result = run("meta", write_rows(rows), "--task", "phenomena", "--metric", "chrf")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no good or bad translation among them" in result.stderr


@needs_metaeval
@pytest.mark.parametrize(
    ("arguments", "metric", "right", "percent"),
    [
        (["--metric", "bleu", "--bleu-smooth", "none"], "bleu", 59, 36.2),
        (["--metric", "bleu"], "bleu", 90, 55.2),
        (["--metric", "chrf"], "chrf", 105, 64.4),
        (["--metric", "chrf", "--chrf-word-order", "2"], "chrf", 102, 62.6),
    ],
)
def test_tq_autotest(run, write_rows, arguments, metric, right, percent):
    rows = [
        {"category": one.category, "reference": one.good[0], "good": one.good[1:], "bad": one.bad}
        for one in tq_autotest()
        if one.good
    ]
    result = run("meta", write_rows(rows), "--task", "phenomena", *arguments, "--json")
    condition = json.loads(result.stdout)["metrics"][metric]["checks"]["all_good_above_bad"]
    assert (condition["right"], condition["n"], round(100 * condition["share"], 1)) == (right, 163, percent)
