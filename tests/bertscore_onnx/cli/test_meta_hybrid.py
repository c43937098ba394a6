"""`bertscore-onnx meta --task hybrid`."""

import csv
import json

import numpy as np
import pytest

pytest.importorskip("sacrebleu")

FEW = ("--num-hybrids", "40", "--num-candidates", "5", "--num-trials", "100")


@pytest.fixture
def table(write):
    rng = np.random.default_rng(0)
    words = ["the", "cat", "sat", "on", "a", "mat"]
    rows = ["lang_pair\tsystem\tsegment\thuman\tm\tcandidate\treference"]
    for system in "ABC":
        for segment in range(6):
            texts = [" ".join(rng.choice(words, 5)) for _ in range(2)]
            rows.append(
                "\t".join(["cs-en", system, str(segment), *(f"{one:.3f}" for one in rng.normal(size=2)), *texts])
            )
    return write("table.tsv", "\n".join(rows) + "\n")


def metrics_of(result):
    return json.loads(result.stdout)["language_pairs"]["cs-en"]["metrics"]


def test_scores_of_columns_are_means_and_those_of_texts_are_of_corpora(run, table):
    metrics = metrics_of(run("meta", table, "--task", "hybrid", "--score", "m", "--metric", "bleu", *FEW, "--json"))
    assert {name: one["score"] for name, one in metrics.items()} == {"m": "mean of segments", "bleu": "corpus"}
    assert {one["n"] for one in metrics.values()} == {40}
    assert {one["trials"] for one in metrics.values()} == {100}


def test_the_seed_decides(run, table):
    def hits(seed):
        arguments = ("--task", "hybrid", "--score", "m", *FEW, "--seed", seed, "--json")
        return metrics_of(run("meta", table, *arguments))["m"]["mrr"]

    assert hits(1) == hits(1) != hits(2)


def test_every_two_metrics_are_tested(run, table):
    pytest.importorskip("scipy")
    arguments = ("--task", "hybrid", "--score", "m", "--metric", "chrf", "ter", *FEW, "--json")
    whole = json.loads(run("meta", table, *arguments).stdout)
    tests = whole["language_pairs"]["cs-en"]["pairs"]
    assert len(tests) == 3
    assert {test["n"] for test in tests} == {40}


def test_options_of_metrics_reach_corpus_scores(run, table):
    def pearson(*more):
        return metrics_of(run("meta", table, "--task", "hybrid", "--metric", "chrf", *FEW, *more, "--json"))["chrf"][
            "pearson"
        ]

    assert pearson() != pearson("--chrf-word-order", "2")


def test_the_model_scores_segments(run, table, tiny_bundle):
    arguments = ("--task", "hybrid", "-m", tiny_bundle, "--metric", "bleu", "--device", "cpu", *FEW, "--json")
    metrics = metrics_of(run("meta", table, *arguments))
    assert {name: one["score"] for name, one in metrics.items()} == {"bertscore": "mean of segments", "bleu": "corpus"}


def test_the_table_to_read_has_intervals(run, table):
    result = run("meta", table, "--task", "hybrid", "--score", "m", "--metric", "bleu", *FEW)
    assert "cs-en: 3 systems, 40 hybrids of 6 segments" in result.stdout
    assert "better than" in result.stdout
    assert "the best of 5 hybrids is chosen, 100 times" in result.stdout


def test_tsv_has_both_ends_of_intervals(run, table):
    result = run("meta", table, "--task", "hybrid", "--score", "m", *FEW, "--tsv")
    [row] = csv.DictReader(result.stdout.splitlines(), delimiter="\t")
    assert float(row["hits_at_1_low"]) <= float(row["hits_at_1"]) <= float(row["hits_at_1_high"])


def test_fewer_hybrids_than_candidates_are_all_candidates(run, table):
    result = run(
        "meta", table, "--task", "hybrid", "--score", "m", "--num-hybrids", "9", "--num-trials", "10", "--json"
    )
    assert json.loads(result.stdout)["num_candidates"] == 9


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--num-hybrids", "9", "--num-candidates", "10"], 1, "--num-candidates is 10, --num-hybrids 9"),
        (["--num-candidates", "1"], 2, "--num-candidates"),
        (["--human-system", "Z"], 1, "no system called 'Z'"),
        (["--threshold", "3"], 2, "has no effect on --task hybrid"),
        (["--metric", "bertscore"], 2, "bertscore needs a model"),
    ],
)
def test_wrong_input_is_told(run, table, arguments, status, message):
    result = run("meta", table, "--task", "hybrid", "--score", "m", *arguments)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in " ".join(result.stderr.split())


def test_one_system_has_no_hybrids(run, write):
    table = write("one.csv", "lang_pair,system,segment,human,m\ncs-en,A,1,2,3\ncs-en,A,2,3,4\n")
    metric = metrics_of(run("meta", table, "--task", "hybrid", "--score", "m", "--json"))["m"]
    assert (metric["pearson"], metric["reason"]) == (
        None,
        "hybrid systems are drawn from two systems or more, and there are 1",
    )
