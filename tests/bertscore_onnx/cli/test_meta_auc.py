"""`bertscore-onnx meta --task auc`."""

import json

import pytest

pytest.importorskip("sacrebleu")

PAWS = """\
id	sentence1	sentence2	label	m
1	the cat sat on the mat	the cat sat on a mat	1	.9
2	Ohio but not Utah	Utah but not "Ohio"	0	.8
3	a dog barked	the dog was barking	1	.7
4	it rains	trains are late	0	.1
"""
QQP = """\
{"question1": "Why?", "question2": "Why so?", "is_duplicate": 1}
{"question1": "Who?", "question2": "When?", "is_duplicate": 0}
"""


def test_json_has_both_areas(run, write):
    result = run("meta", write("paws.tsv", PAWS), "--task", "auc", "--score", "m", "--json")
    assert json.loads(result.stdout) == {
        "metrics": {"m": {"n": 4, "positive": 2, "roc_auc": 0.75, "average_precision": (1 + 2 / 3) / 2}}
    }


@pytest.mark.parametrize(("name", "content"), [("paws.tsv", PAWS), ("qqp.jsonl", QQP)])
def test_columns_of_known_sets_are_found(run, write, name, content):
    result = run("meta", write(name, content), "--task", "auc", "--metric", "chrf", "ter", "--json")
    assert {*json.loads(result.stdout)["metrics"]} == {"chrf", "ter"}


def test_columns_may_have_other_names(run, write, tiny_bundle):
    table = write("pairs.csv", "left,right,same\na cat,a cat,1\na dog,red mats,0\n")
    columns = ("--reference-column", "left", "--candidate-column", "right", "--label-column", "same")
    result = run("meta", table, "--task", "auc", "-m", tiny_bundle, "--device", "cpu", *columns, "--json")
    assert json.loads(result.stdout)["metrics"]["bertscore"] == {
        "n": 2,
        "positive": 1,
        "roc_auc": 1.0,
        "average_precision": 1.0,
    }


def test_the_table_to_read_names_reasons(run, write):
    result = run("meta", write("one.csv", "label,m\n1,2\n1,3\n"), "--task", "auc", "--score", "m")
    assert result.exit_code == 0
    assert "m: of 2 pairs 2 are positive, and both classes are needed" in result.stdout


@pytest.mark.parametrize("label", ["2", "", "nan", "0.5"])
def test_a_label_that_is_none_is_told_with_its_line(run, write, label):
    result = run("meta", write("labels.csv", f"label,m\n1,2\n{label},3\n"), "--task", "auc", "--score", "m")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "line 3: the column 'label' holds" in result.stderr
    assert "expected 0 or 1" in result.stderr


def test_missing_scores_have_no_area(run, write):
    result = run("meta", write("labels.csv", "label,m\n1,2\n0,\n"), "--task", "auc", "--score", "m", "--json")
    assert json.loads(result.stdout)["metrics"]["m"]["reason"] == "1 of 2 pairs have no score"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "name columns of scores"),
        (["--score", "mm"], 1, "Did you mean 'm'?"),
        (["--score", "m", "--gold", "mqm"], 2, "has no effect on --task auc"),
        (["--score", "m", "--label-column", "lable"], 1, "Did you mean 'label'?"),
        (["--metric", "bleu", "--bleu-smooth", "none", "--chrf-word-order", "2"], 2, "without --metric chrf"),
        (["--score", "m", "--bleu-smooth", "none"], 2, "without --metric bleu"),
    ],
)
def test_wrong_input_is_told(run, write, arguments, status, message):
    result = run("meta", write("paws.tsv", PAWS), "--task", "auc", *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in " ".join(result.stderr.split())


def test_a_column_is_no_computed_metric(run, write):
    result = run(
        "meta", write("t.csv", "label,bleu\n1,2\n0,1\n"), "--task", "auc", "--score", "bleu", "--metric", "bleu"
    )
    assert result.exit_code == 2
    assert "both a column and a metric" in " ".join(result.stderr.split())
