"""`bertscore-onnx meta --task` darr, hybrid, auc and phenomena."""

import csv
import json
import re

import numpy as np
import pytest

pytest.importorskip("sacrebleu")

DARR = """\
lang_pair	system	segment	human	m	candidate	reference
cs-en	A	1	90	3	the cat sat	the cat sat
cs-en	B	1	60	2	the dog sat	the cat sat
cs-en	Human-A	1	100	9	a cat was sitting	the cat sat
cs-en	A	2	70	1	it rains	it rains again
cs-en	B	2	20	1	it snows	it rains again
de-en	A	1	10	1	no	yes
de-en	B	1	12	2	yes	yes
"""
AGAIN = "cs-en\tA\t1\t30\t{}\tthe cat sat\tthe cat sat\n"
"""A second judgement of the first output, whose mean is that of B then."""

FEW = ("--num-hybrids", "40", "--num-candidates", "5", "--num-trials", "100")
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
EXAMPLES = [
    {"category": "negation", "reference": "it is not so", "good": ["it is not like that"], "bad": ["it is so", "yes"]},
    {"category": "number", "reference": "two cats", "good": ["two cats"], "bad": []},
    {"category": "number", "reference": ["two cats", "a pair of cats"], "good": [], "bad": ["two dogs", "ten dogs"]},
]


def json_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def outputs():
    """Return a table of three systems with random judgements, scores and texts."""
    rng = np.random.default_rng(0)
    rows = ["lang_pair\tsystem\tsegment\thuman\tm\tcandidate\treference"]
    for system in "ABC":
        for segment in range(6):
            texts = [" ".join(rng.choice(["the", "cat", "sat", "on", "a", "mat"], 5)) for _ in range(2)]
            numbers = [f"{one:.3f}" for one in rng.normal(size=2)]
            rows.append("\t".join(["cs-en", system, str(segment), *numbers, *texts]))
    return "\n".join(rows) + "\n"


TABLES = {
    "darr": ("darr.tsv", DARR),
    "hybrid": ("hybrid.tsv", outputs()),
    "auc": ("paws.tsv", PAWS),
    "phenomena": ("examples.jsonl", json_lines(EXAMPLES)),
}


@pytest.fixture
def command(write):
    """Return the command of a task on its table above, or on another content."""

    def command(task, *options, content=None):
        name, own = TABLES[task]
        few = FEW if task == "hybrid" and "--num-hybrids" not in options else ()
        return ["meta", write(name, content or own), "--task", task, *few, *options]

    return command


@pytest.fixture
def metrics(run_json, command):
    """Run a task; return the values of its metrics or sentinels, where there are language pairs those of cs-en."""

    def metrics(task, *options, content=None, kind="metrics"):
        result = run_json(*command(task, *options, content=content))
        return result.get("language_pairs", {"cs-en": result})["cs-en"][kind]

    return metrics


@pytest.mark.parametrize("task", TABLES)
def test_a_model_and_metrics_score_the_texts(metrics, tiny_bundle, task):
    options = (task, "-m", tiny_bundle, "--device", "cpu", "--metric", "chrf", "ter")
    assert {*metrics(*options, "--no-sentinels")} == {"bertscore", "chrf", "ter"}


@pytest.mark.parametrize("task", ["darr", "hybrid", "auc", "phenomena"])
def test_sentinels_stand_below_the_metrics_and_are_no_part_of_the_pairs(run, metrics, command, task):
    of_texts = ["--metric", "chrf", "ter"]
    sentinels = metrics(task, *of_texts, kind="sentinels")
    assert {"sentinel-constant", "sentinel-length", "sentinel-overlap"} <= {*sentinels}
    assert [*metrics(task, *of_texts)] == ["chrf", "ter"]
    assert metrics(task, *of_texts) == metrics(task, *of_texts, "--no-sentinels")
    rows = csv.DictReader(run(*command(task, *of_texts, "--format", "tsv")).stdout.splitlines(), delimiter="\t")
    kinds = {row["metric"]: row["kind"] for row in rows}
    assert kinds == dict.fromkeys(["chrf", "ter"], "metrics") | dict.fromkeys(sentinels, "sentinels")
    options = ["--metric", "chrf"] if task == "phenomena" else ["--score", "m"]
    shown = run(*command(task, *options)).stdout
    assert re.search("better than (sentinel-|every sentinel)", shown)


def test_the_order_of_pairs_changes_no_sentinel(run_json, write):
    lines = QQP.splitlines(keepends=True)
    one, other = (
        run_json("meta", write(name, "".join(rows)), "--task", "auc", "--metric", "chrf")
        for name, rows in (("a.jsonl", lines), ("b.jsonl", lines[::-1]))
    )
    assert one == other


def test_options_of_metrics_reach_them(run, metrics, command):
    shown = run(*command("phenomena", "--metric", "bleu,smooth_method=none", "chrf,word_order=2")).stdout
    assert "smooth:none" in shown
    assert "nw:2" in shown
    plain, other = (metrics("hybrid", "--metric", spec)["chrf"]["pearson"] for spec in ("chrf", "chrf,word_order=2"))
    assert plain != other


@pytest.mark.parametrize(
    ("task", "options", "status", "message"),
    [
        ("darr", ["--score", "n"], 1, "no column 'n', only 'lang_pair'"),
        ("darr", [], 2, "name columns of scores, --score COLUMN"),
        ("darr", ["--score", "m", "--threshold", "0"], 1, "The threshold is 0.0; expected"),
        ("darr", ["--score", "m", "--threshold", "nan"], 1, "The threshold is nan; expected"),
        ("darr", ["--score", "m", "--num-trials", "9"], 2, "has no effect on --task darr"),
        ("darr", ["--score", "m", "--human-system", "C"], 1, "no system called 'C'"),
        ("darr", ["--score", "candidate"], 1, "line 2: the column 'candidate' holds 'the cat sat'; expected a number"),
        ("hybrid", ["--score", "m", "--num-hybrids", "9", "--num-candidates", "10"], 1, "num_candidates is 10"),
        ("hybrid", ["--score", "m", "--num-candidates", "1"], 2, "--num-candidates"),
        ("hybrid", ["--score", "m", "--human-system", "Z"], 1, "no system called 'Z'"),
        ("darr", ["--score", "m", "--html", "page.html"], 2, "has no effect on --task darr"),
        ("hybrid", ["--score", "m", "--threshold", "3"], 2, "has no effect on --task hybrid"),
        ("hybrid", ["--score", "m", "--metric", "bertscore"], 2, "name a model"),
        ("hybrid", ["-m", "absent", "--metric", "bleu,tokenize=nope"], 1, "'nope'. Its tokenizers are none, zh, 13a"),
        ("auc", [], 2, "name columns of scores"),
        ("auc", ["--score", "mm"], 1, "Did you mean 'm'?"),
        ("auc", ["--score", "m", "--gold", "mqm"], 2, "has no effect on --task auc"),
        ("auc", ["--score", "m", "--columns", "label=lable"], 1, "Did you mean 'label'?"),
        ("phenomena", [], 2, "name a model, or a metric such as bleu"),
        ("phenomena", ["--metric", "chrf", "--score", "m"], 2, "has no effect on --task phenomena"),
        ("phenomena", ["--metric", "rouge"], 2, "'rouge' is none of"),
        ("phenomena", ["--metric", "chrf", "--min-examples", "0"], 2, "--min-examples"),
    ],
)
def test_wrong_options_are_named(refused, command, task, options, status, message):
    assert message in refused(*command(task, *options), status=status)


def test_darr_has_counts_for_each_language_pair(run_json, command):
    pairs = run_json(*command("darr", "--score", "m"))["language_pairs"]
    found = pairs["cs-en"]["metrics"]["m"]
    assert [found[name] for name in ("tau", "pairs", "concordant", "discordant", "ties")] == [0.0, 2, 1, 1, 1]
    assert pairs["cs-en"]["human_systems"] == ["Human-A"]
    assert (pairs["de-en"]["metrics"]["m"]["tau"], bool(pairs["de-en"]["metrics"]["m"]["reason"])) == (None, True)


def test_darr_takes_another_threshold_and_other_people(run_json, command):
    arguments = command("darr", "--score", "m")
    lower = run_json(*arguments, "--threshold", "2")["language_pairs"]
    assert lower["de-en"]["metrics"]["m"]["concordant"] == 1
    named = run_json(*arguments, "--human-system", "A", "Human-A")["language_pairs"]
    assert named["cs-en"]["systems"] == ["B"]


def test_judgements_of_one_output_are_averaged_and_have_one_score(metrics, refused, command):
    assert metrics("darr", "--score", "m", content=DARR + AGAIN.format(3))["m"]["pairs"] == 1
    stderr = refused(*command("darr", "--score", "m", content=DARR + AGAIN.format(4)))
    assert "line 9: this judges the same output as" in stderr
    assert "line 2, but has another text or score" in stderr


def test_darr_prints_reasons_and_as_tsv_all_digits(run, command):
    shown = run(*command("darr", "--score", "m")).stdout
    assert "cs-en: 2 systems, without the human system Human-A" in shown
    assert "m: no two outputs of a segment are far enough apart" in shown
    rows = [
        *csv.DictReader(run(*command("darr", "--score", "m", "--format", "tsv")).stdout.splitlines(), delimiter="\t")
    ]
    found = [(row["lang_pair"], row["tau"], row["ties"]) for row in rows if row["metric"] == "m"]
    assert found == [("cs-en", "0.0", "1"), ("de-en", "", "0")]


def test_scores_of_columns_are_means_and_those_of_texts_are_of_corpora(metrics):
    found = metrics("hybrid", "--score", "m", "--metric", "bleu", "--no-sentinels")
    assert {name: one["score"] for name, one in found.items()} == {"m": "mean of segments", "bleu": "corpus"}
    assert [(one["n"], one["trials"]) for one in found.values()] == [(40, 100)] * 2


def test_the_seed_decides_which_hybrids_are_drawn(metrics):
    first, again, other = (metrics("hybrid", "--score", "m", "--seed", seed)["m"]["mrr"] for seed in (1, 1, 2))
    assert first == again != other


def test_hybrid_prints_intervals_and_as_tsv_both_ends(run, command):
    shown = run(*command("hybrid", "--score", "m", "--metric", "bleu")).stdout
    assert "cs-en: 3 systems, 40 hybrids of 6 segments" in shown
    assert "better than" in shown
    assert "the best of 5 hybrids is chosen, 100 times" in shown
    row, *_ = csv.DictReader(
        run(*command("hybrid", "--score", "m", "--format", "tsv")).stdout.splitlines(), delimiter="\t"
    )
    assert row["metric"] == "m"
    assert float(row["hits_at_1_low"]) <= float(row["hits_at_1"]) <= float(row["hits_at_1_high"])


def test_fewer_hybrids_than_candidates_are_all_candidates(run_json, command):
    result = run_json(*command("hybrid", "--score", "m", "--num-hybrids", "9", "--num-trials", "10"))
    assert result["num_candidates"] == 9


def test_auc_has_both_areas(run, run_json, command):
    areas = {"n": 4, "positive": 2, "roc_auc": 0.75, "average_precision": (1 + 2 / 3) / 2}
    assert areas.items() <= run_json(*command("auc", "--score", "m"))["metrics"]["m"].items()
    shown = run(*command("auc", "--score", "m", content="label\tm\n1\t2\n1\t3\n")).stdout
    assert "m: of 2 pairs 2 are positive, and both classes are needed" in shown


def test_pairs_of_one_reference_or_document_are_a_unit_of_auc(run_json, command):
    table = PAWS + "5\tit rains\tit rained\t1\t.8\n"
    assert run_json(*command("auc", "--score", "m", content=table))["units"] == 4
    assert run_json(*command("auc", "--score", "m", "--columns", "document=label", content=table))["units"] == 2
    assert run_json(*command("auc", "--score", "m", content="label\tm\n1\t2\n1\t3\n0\t3\n"))["units"] == 3


@pytest.mark.parametrize("task", ["auc", "darr", "phenomena"])
def test_every_two_metrics_are_tested(run, run_json, command, task):
    arguments = command(task, "--metric", "chrf", "ter", "--seed", "3", "--resamples", "50")
    result = run_json(*arguments)
    [pair, *_] = result.get("language_pairs", {"cs-en": result})["cs-en"]["pairs"]
    assert {pair["better"], pair["worse"]} == {"chrf", "ter"}
    assert pair["p_holm"] == pair["p"] > 0
    assert "better than" in run(*arguments).stdout
    [row, *_] = csv.DictReader(run(*arguments, "--format", "tsv").stdout.splitlines(), delimiter="\t")
    assert float(next(value for key, value in row.items() if key.endswith("p_ter"))) == pair["p_holm"]


@pytest.mark.parametrize(("task", "interval"), [("auc", "roc_auc"), ("darr", "tau"), ("phenomena", "order_kept")])
def test_tsv_has_the_ends_of_intervals(run, command, task, interval):
    table = run(*command(task, "--metric", "chrf", "--format", "tsv")).stdout
    [row, *_] = csv.DictReader(table.splitlines(), delimiter="\t")
    assert float(row[f"{interval}_low"]) < float(row[f"{interval}_high"])


def test_columns_of_pairs_are_those_of_known_sets_or_named(run_json, write):
    known = run_json("meta", write("qqp.jsonl", QQP), "--task", "auc", "--metric", "chrf", "ter", "--no-sentinels")
    assert {*known["metrics"]} == {"chrf", "ter"}
    table = write("pairs.csv", "left,right,same\na cat,a cat,1\na dog,red mats,0\n")
    columns = ("--columns", "reference=left", "candidate=right", "label=same")
    named = run_json("meta", table, "--task", "auc", "--metric", "chrf", *columns)["metrics"]["chrf"]
    assert (named["n"], named["positive"], named["roc_auc"]) == (2, 1, 1.0)


@pytest.mark.parametrize("label", ["2", "", "nan", "0.5"])
def test_a_label_that_is_none_is_named_with_its_line(refused, command, label):
    stderr = refused(*command("auc", "--score", "m", content=f"label\tm\n1\t2\n{label}\t3\n"))
    assert "line 3: the column 'label' holds" in stderr
    assert "expected 0 or 1" in stderr


def test_a_column_is_no_computed_metric(refused, command):
    arguments = command("auc", "--score", "bleu", "--metric", "bleu", content="label\tbleu\n1\t2\n0\t1\n")
    assert "both a column and a metric" in refused(*arguments, status=2)


def test_phenomena_have_a_row_for_each_category(run, command):
    tsv = run(*command("phenomena", "--metric", "chrf", "--min-examples", "1", "--format", "tsv")).stdout
    rows = [row for row in csv.DictReader(tsv.splitlines(), delimiter="\t") if row["metric"] == "chrf"]
    assert [(row["category"], row["mean_good_n"], row["order_kept_right"]) for row in rows] == [
        ("(all)", "2", "2"),
        ("negation", "1", "1"),
        ("number", "1", "1"),
    ]


def test_phenomena_print_signatures_and_reasons(run, command):
    options = ["--metric", "ter", "chrf"]
    shown = run(*command("phenomena", *options, content=json_lines(EXAMPLES[1:2]))).stdout
    assert "ter (nrefs:1|" in shown
    assert "all_good_above_bad: no example has the outputs that this check compares" in shown
    assert "5 examples are not shown" in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"category": None}, "the column 'category' holds None"),
        ({"reference": []}, "the column 'reference' holds an empty list"),
        ({"bad": [1]}, "the column 'bad' holds a list with a number in it"),
        ({"good": None}, "the column 'good' holds null"),
        *(({name: ...}, f"there is no {name!r} here") for name in ("category", "reference", "good", "bad")),
    ],
)
def test_a_wrong_or_missing_value_is_named_with_line_and_field(refused, command, change, message):
    row = {name: value for name, value in (EXAMPLES[1] | change).items() if value is not ...}
    arguments = command("phenomena", "--metric", "chrf", content=json_lines([EXAMPLES[0], row]))
    assert f"line 2: {message}" in refused(*arguments)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"categories": "x", "reference": "a", "good": ["a"], "bad": []},
            "there is no column 'category', only .* Did you mean 'categories'",
        ),
        ({"category": "x", "reference": "a", "good": [], "bad": []}, "no good or bad translation among them"),
    ],
)
def test_examples_without_a_category_or_a_translation_are_refused(refused, command, row, message):
    assert re.search(message, refused(*command("phenomena", "--metric", "chrf", content=json_lines([row]))))
