"""`bertscore-onnx score`: the lines of tables of scores."""

import csv
import io

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.cli.score import Means, Output, lines
from bertscore_onnx.scores import Score

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCORES = [Score(0.5, 0.25, 1 / 3, 0), Score(1.0, -0.125, 0.0, 1)]


def written(pairs, format_="tsv"):
    output = Output(format=format_, has_pairs=True)
    return "".join(f"{line}\n" for line in lines(output, iter(pairs), Means(), "signature"))


def test_a_header_comes_before_the_first_pair():
    assert written([(score, None) for score in SCORES]) == (
        "precision\trecall\tf1\n0.500000\t0.250000\t0.333333\n1.000000\t-0.125000\t0.000000\n"
    )


def test_nothing_is_written_without_pairs():
    assert written([]) == ""


def test_texts_are_the_candidate_and_its_best_reference():
    table = written([(score, ("the cat", ["a dog", "a cat"])) for score in SCORES], "csv")
    assert [line.split(",")[3:] for line in table.splitlines()] == [
        ["candidate", "reference"],
        ["the cat", "a dog"],
        ["the cat", "a cat"],
    ]


def test_numpy_and_pandas_read_it():
    table = written([(score, None) for score in SCORES])
    of_numpy = np.genfromtxt(io.StringIO(table), names=True)
    of_pandas = pd.read_csv(io.StringIO(table), sep="\t")
    assert of_numpy["f1"].tolist() == of_pandas["f1"].tolist() == [0.333333, 0.0]
    assert list(of_pandas.columns) == ["precision", "recall", "f1"]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.sampled_from(["csv", "tsv"]))
def test_texts_come_back_as_they_were(rows, format_):
    table = written([(SCORES[0], (candidate, [reference])) for candidate, reference in rows], format_)
    _, *read = csv.reader(io.StringIO(table, newline=""), delimiter="," if format_ == "csv" else "\t", strict=True)
    assert [tuple(row[3:]) for row in read] == rows
