"""`bertscore-onnx meta --task darr`."""

import csv
import json
import math

import pytest

from tests.support.metaeval import FOLDER, needs_metaeval

pytest.importorskip("sacrebleu")

TABLE = """\
lang_pair	system	segment	human	m	candidate	reference
cs-en	A	1	90	3	the cat sat	the cat sat
cs-en	B	1	60	2	the dog sat	the cat sat
cs-en	Human-A	1	100	9	a cat was sitting	the cat sat
cs-en	A	2	70	1	it rains	it rains again
cs-en	B	2	20	1	it snows	it rains again
de-en	A	1	10	1	no	yes
de-en	B	1	12	2	yes	yes
"""


def test_json_has_a_row_for_each_language_pair_and_metric(run, write):
    result = run("meta", write("table.tsv", TABLE), "--task", "darr", "--score", "m", "--json")
    pairs = json.loads(result.stdout)["language_pairs"]
    cs_en = pairs["cs-en"]["metrics"]["m"]
    assert {name: cs_en[name] for name in ("tau", "pairs", "concordant", "discordant", "ties")} == {
        "tau": 0.0,
        "pairs": 2,
        "concordant": 1,
        "discordant": 1,
        "ties": 1,
    }
    assert pairs["cs-en"]["human_systems"] == ["Human-A"]
    assert pairs["de-en"]["metrics"]["m"]["tau"] is None
    assert pairs["de-en"]["metrics"]["m"]["reason"]


def test_the_threshold_may_be_lower(run, write):
    result = run("meta", write("table.tsv", TABLE), "--task", "darr", "--score", "m", "--threshold", "2", "--json")
    assert json.loads(result.stdout)["language_pairs"]["de-en"]["metrics"]["m"]["concordant"] == 1


def test_texts_are_scored_with_metrics(run, write):
    arguments = ("--task", "darr", "--metric", "chrf", "ter", "--json")
    metrics = json.loads(run("meta", write("table.tsv", TABLE), *arguments).stdout)["language_pairs"]["cs-en"][
        "metrics"
    ]
    assert {name: one["concordant"] for name, one in metrics.items()} == {"chrf": 2, "ter": 2}


def test_texts_are_scored_with_a_model(run, write, tiny_bundle):
    arguments = ("--task", "darr", "--model", tiny_bundle, "--device", "cpu", "--json")
    metrics = json.loads(run("meta", write("table.tsv", TABLE), *arguments).stdout)["language_pairs"]["cs-en"][
        "metrics"
    ]
    assert metrics["bertscore"]["pairs"] == 2


def test_judgements_of_one_output_are_averaged(run, write):
    rows = TABLE + "cs-en\tA\t1\t30\t3\tthe cat sat\tthe cat sat\n"  # the mean of A is 60 then, as B's
    result = run("meta", write("table.tsv", rows), "--task", "darr", "--score", "m", "--json")
    assert json.loads(result.stdout)["language_pairs"]["cs-en"]["metrics"]["m"]["pairs"] == 1


def test_judgements_of_one_output_have_one_score(run, write):
    rows = TABLE + "cs-en\tA\t1\t30\t4\tthe cat sat\tthe cat sat\n"
    result = run("meta", write("table.tsv", rows), "--task", "darr", "--score", "m")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "line 9: this judges the same output as" in result.stderr
    assert "line 2, but has another text or score" in result.stderr


def test_people_may_be_named(run, write):
    result = run(
        "meta", write("table.tsv", TABLE), "--task", "darr", "--score", "m", "--human-system", "A", "Human-A", "--json"
    )
    assert json.loads(result.stdout)["language_pairs"]["cs-en"]["systems"] == ["B"]


def test_the_table_to_read_names_reasons(run, write):
    result = run("meta", write("table.tsv", TABLE), "--task", "darr", "--score", "m")
    assert "cs-en: 2 systems, without the human system Human-A" in result.stdout
    assert "m: no two outputs of a segment are far enough apart in the judgements" in result.stdout


def test_tsv_has_all_digits(run, write):
    result = run("meta", write("table.tsv", TABLE), "--task", "darr", "--score", "m", "--tsv")
    rows = [*csv.DictReader(result.stdout.splitlines(), delimiter="\t")]
    assert [(row["lang_pair"], row["tau"], row["ties"]) for row in rows] == [("cs-en", "0.0", "1"), ("de-en", "", "0")]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--score", "n"], 1, "no column 'n', only 'lang_pair'"),
        ([], 2, "name columns of scores, --score COLUMN"),
        (["--score", "m", "--threshold", "0"], 1, "The threshold is 0.0; expected points of assessment above 0"),
        (["--score", "m", "--threshold", "nan"], 1, "The threshold is nan; expected points"),
        (["--score", "m", "--num-trials", "9"], 2, "has no effect on --task darr"),
        (["--score", "m", "--human-system", "C"], 1, "no system called 'C'"),
        (["--score", "candidate"], 1, "line 2: the column 'candidate' holds 'the cat sat'; expected a number"),
    ],
)
def test_wrong_input_is_told(run, write, arguments, status, message):
    result = run("meta", write("table.tsv", TABLE), "--task", "darr", *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in " ".join(result.stderr.split())


@needs_metaeval
def test_wmt20(run, tmp_path):
    metrics = ("chrF", "TER")
    scores = {}
    for metric in metrics:
        for line in (FOLDER / "wmt20" / f"{metric}.cs-en.seg.score").read_text(encoding="utf-8").splitlines():
            *_, system, document, segment, score = line.split("\t")
            scores[system, f"{document}::{segment}", metric] = score
    with (FOLDER / "wmt20" / "metrics-ad-seg-scores-cs-en.csv").open(encoding="utf-8") as file:
        rows = [
            [
                "cs-en",
                row["SYS"],
                row["SEGID"],
                row["RAW.SCR"],
                *(scores[row["SYS"], row["SEGID"], one] for one in metrics),
            ]
            for row in csv.DictReader(file, delimiter=" ")
        ]
    table = tmp_path / "wmt20.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["lang_pair", "system", "segment", "human", *metrics], *rows])
    found = json.loads(run("meta", table, "--task", "darr", "--score", *metrics, "--json").stdout)
    of_metrics = found["language_pairs"]["cs-en"]["metrics"]
    assert {name: (round(one["tau"], 4), one["pairs"]) for name, one in of_metrics.items()} == {
        "chrF": (0.0863, 14_018),
        "TER": (-0.0401, 14_018),
    }
    assert (of_metrics["TER"]["ties"], math.floor(of_metrics["TER"]["tau_without_ties"] * 1000 + 0.5)) == (1880, 109)
