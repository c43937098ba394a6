"""What `compare` and the paired tests take in Python: forms of texts and scores, `Scores`, and the
index of pandas.
"""

import json

import numpy as np
import pytest

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx_evaluation import (
    SegmentMeans,
    compare,
    paired_permutation,
)
from tests.evaluation.tables import texts_of_systems

pandas = pytest.importorskip("pandas")

NUMBER = 24
REFERENCES, TEXTS = texts_of_systems("ABC", NUMBER)
NUMBERS = {
    name: np.random.default_rng(seed).uniform(0, 1, NUMBER).round(3)
    for seed, name in enumerate(("A", "B", "C"))
}
ORDER = np.random.default_rng(9).permutation(NUMBER)
AB = {name: NUMBERS[name] for name in "AB"}


@pytest.fixture
def frame():
    """A table of scores beside other columns, whose index is that of pandas by default."""
    return pandas.DataFrame(
        {"question": "why?", "answer": REFERENCES, "tokens": range(NUMBER), **NUMBERS}
    )


@pytest.fixture
def scored(scorer):
    return {name: scorer.score(TEXTS[name], REFERENCES) for name in "AB"}


def deltas(comparison):
    return {
        metric.name: [system.delta for system in metric.systems[1:]]
        for metric in comparison.metrics
    }


def delta(first, second):
    return pytest.approx([float(np.mean(np.float64(second) - np.float64(first)))], abs=1e-12)


SCORES = {
    "lists": lambda: {name: scores.tolist() for name, scores in AB.items()},
    "arrays": lambda: AB,
    "series": lambda: {name: pandas.Series(scores) for name, scores in AB.items()},
    "series of other orders": lambda: {
        "A": pandas.Series(NUMBERS["A"]),
        "B": pandas.Series(NUMBERS["B"]).sample(frac=1, random_state=1),
    },
    "series with ids": lambda: {
        "A": pandas.Series(NUMBERS["A"], [f"q{row}" for row in range(NUMBER)]),
        "B": pandas.Series(NUMBERS["B"][ORDER], [f"q{row}" for row in ORDER]),
    },
    "tables with ids": lambda: {
        "A": pandas.DataFrame({"id": range(NUMBER), "score": NUMBERS["A"]}),
        "B": pandas.DataFrame({"id": ORDER, "score": NUMBERS["B"][ORDER]}),
    },
    "tables with an index": lambda: {
        "A": pandas.DataFrame({"score": NUMBERS["A"]}),
        "B": pandas.DataFrame({"score": NUMBERS["B"]}).iloc[ORDER],
    },
    "a long table": lambda: (
        pandas.DataFrame(
            {
                "system": ["A"] * NUMBER + ["B"] * NUMBER,
                "id": [*range(NUMBER)] * 2,
                "score": np.concatenate([*AB.values()]),
            }
        )
        .sample(frac=1, random_state=3)
        .sort_values("system")
    ),
    "a long table with an index": lambda: pandas.concat(
        [pandas.DataFrame({"system": name, "score": AB[name]}).iloc[ORDER] for name in "AB"]
    ),
    "runs": lambda: {name: [scores + 0.1, scores - 0.1] for name, scores in AB.items()},
    "runs in tables": lambda: {
        name: [pandas.DataFrame({"score": scores + 0.1}), pandas.DataFrame({"score": scores - 0.1})]
        for name, scores in AB.items()
    },
}


@pytest.mark.parametrize("form", SCORES)
def test_every_form_of_scores_gives_the_same(form):
    found = compare(scores=SCORES[form]())
    assert found.systems == ("A", "B")
    assert deltas(found) == {"score": delta(NUMBERS["A"], NUMBERS["B"])}
    assert deltas(compare(scores=SCORES[form](), systems=["B", "A"])) == {
        "score": delta(NUMBERS["B"], NUMBERS["A"])
    }


class Tensor:
    """Numbers as PyTorch has them: neither a list nor an array."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return self._values

    def __iter__(self):
        return map(Tensor, self._values)


ODD_FORMS = {
    "iterators": lambda: {name: iter(scores) for name, scores in AB.items()},
    "a column with nulls": lambda: {
        name: pandas.Series(scores, dtype="Float64") for name, scores in AB.items()
    },
    "tensors": lambda: {name: Tensor(scores) for name, scores in AB.items()},
    "an array of pandas": lambda: {name: pandas.array(scores) for name, scores in AB.items()},
    "a named index": lambda: pandas.DataFrame(
        {"score": np.concatenate([*AB.values()])},
        pandas.MultiIndex.from_product([["A", "B"], range(NUMBER)], names=["system", "segment"]),
    ),
    "an index of dates": lambda: {
        name: pandas.Series(scores, pandas.date_range("2020-01-01", periods=NUMBER))
        for name, scores in AB.items()
    },
}


@pytest.mark.parametrize("form", ODD_FORMS)
def test_unusual_forms_of_scores_give_the_same(form):
    assert deltas(compare(scores=ODD_FORMS[form]())) == {"score": delta(NUMBERS["A"], NUMBERS["B"])}


def test_truth_is_one_and_zero():
    above = {name: scores > 0.5 for name, scores in AB.items()}
    expected = {"score": delta(above["A"], above["B"])}
    lists = {name: scores.tolist() for name, scores in above.items()}
    series = {name: pandas.Series(scores, dtype="boolean") for name, scores in above.items()}
    texts = {name: [str(one) for one in scores] for name, scores in lists.items()}
    for form in (above, lists, series, texts):
        assert deltas(compare(scores=form)) == expected


def test_names_of_systems_are_texts(frame):
    assert compare(scores={0: NUMBERS["A"], 1: NUMBERS["B"]}, systems=[1, 0]).systems == ("1", "0")
    assert compare(scores=frame[["A", "B"]], systems=frame.columns[3:5]).systems == ("A", "B")
    indexed = frame[["A", "B"]].set_index(
        pandas.Index([f"q{row}" for row in range(NUMBER)], name="qid")
    )
    found = compare(scores=indexed, systems=["A", "B"])
    assert (found.systems, found.segments[:2]) == (("A", "B"), ("q0", "q1"))
    assert found.inputs[0] == "scores: systems A, B; segments by index."


@pytest.mark.parametrize("key", ["id", "Line", "segment", "system", "item"])
def test_a_key_of_a_mapping_is_a_system_and_no_column(key):
    options = {"columns": {"segment": "item"}} if key == "item" else {}
    for systems in (None, ["A", "B"]):
        for given in ({"scores": {key: range(NUMBER), **AB}}, {"scores": {"m": {key: AB["A"]}}}):
            with pytest.raises(InputError, match=rf"'{key}' is the name of a column.*DataFrame"):
                compare(**given, systems=systems, **options)
        with pytest.raises(InputError, match="DataFrame"):
            compare(
                {key: REFERENCES, **TEXTS}, REFERENCES, metrics=["chrf"], systems=systems, **options
            )
    found = compare(scores={key: AB["A"], "score": AB["B"]}, systems=[key, "score"])
    assert deltas(found) == {"score": delta(NUMBERS["A"], NUMBERS["B"])}


@pytest.mark.parametrize("form", ["references", "documents", "candidates"])
def test_columns_are_a_table_and_no_mapping(form):
    given = {"candidates": TEXTS, "references": REFERENCES, "metrics": ["chrf"]}
    columns = {"reference": REFERENCES, "document": REFERENCES}
    given[form] = {"A": columns} if form == "candidates" else columns
    with pytest.raises(InputTypeError, match="DataFrame"):
        compare(**given)


@pytest.mark.parametrize(
    "values", [set(range(NUMBER)), np.ma.array(NUMBERS["B"], mask=NUMBERS["B"] < 0.5)]
)
def test_sets_and_masks_are_no_scores(values):
    for scores in ({"A": NUMBERS["A"], "B": values}, {"A": [NUMBERS["A"]], "B": [values]}):
        with pytest.raises(InputError, match="expected a"):
            compare(scores=scores)
    with pytest.raises(InputTypeError, match="expected"):
        paired_permutation([NUMBERS["A"], values])


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"A": 0.5, "B": 0.6}, r"scores\['A'\] is 0.5; expected a number for each segment"),
        ({"A": None, "B": None}, r"scores\['A'\] is None"),
        ({"A": "ab", "B": "cd"}, "is str 'ab'"),
        (
            {"A": pandas.DataFrame({"f1": [1, 2]}), "B": [1, 2]},
            "The system 'B' has scores of score, and none of f1",
        ),
        ({}, "There is no system"),
        (pandas.DataFrame([[1, 2]], columns=["A", "A"]), "2 columns 'A'"),
        (AB | {"B": []}, r"scores\['A'\] has 24 values and scores\['B'\] has 0"),
        ({"x": AB, "y": {"A": [1.0], "B": [2.0]}}, r"scores\['A'\] has 1 value"),
        ({"x": AB, "y": {"A": [1.0]}}, "has scores of x, and none of y"),
    ],
)
def test_what_is_no_scores_is_refused(scores, message):
    with pytest.raises(InputError, match=message):
        compare(scores=scores)


def test_scores_stand_beside_texts_by_the_names_of_systems():
    texts = {name: TEXTS[name] for name in "CA"}
    found = compare(texts, REFERENCES, scores={"BLEU": NUMBERS})
    assert deltas(found) == {"BLEU": delta(NUMBERS["C"], NUMBERS["A"])}
    assert found.metrics[0].signature.startswith("BLEU|scores:given|")
    assert {example.system for example in found.examples} == {"A"}
    with pytest.raises(InputError, match="'BLEU' is computed here too"):
        compare(texts, REFERENCES, scores={"BLEU": NUMBERS}, metrics=["bleu"])
    with pytest.raises(InputError, match=r"has 3 values and .* has 24 values"):
        compare({"A": ["a"] * 3, "B": ["b"] * 3}, ["c"] * 3, scores=AB)
    gap = pandas.DataFrame(NUMBERS).replace({"C": {NUMBERS["C"][3]: None}})
    # before there is no scorer
    with pytest.raises(InputError, match="row 3: there is no value in the column 'C'"):
        compare(texts, REFERENCES, scores={"COMET": gap}, metrics=["bertscore"])


def test_lower_scores_are_better_where_that_is_said():
    comet, mqm = compare(scores={"COMET": NUMBERS, "MQM": NUMBERS}, lower_is_better=["MQM"]).metrics
    assert mqm.ranked == comet.ranked[::-1]
    assert [system.won for system in comet.systems] == [system.lost for system in mqm.systems]
    with pytest.raises(InputError, match="no scores of 'ter'"):
        compare(scores=NUMBERS, lower_is_better=["ter"])


def test_more_systems_than_segments_are_refused_unless_meant():
    matrix = np.random.default_rng(3).normal(size=(60, 3))
    with pytest.raises(InputError, match="There are 60 systems, and scores of 3 segments each"):
        paired_permutation(matrix)
    assert len(paired_permutation(SegmentMeans(matrix)).p) == 59


def test_columns_are_systems_if_they_are_named(frame):
    with pytest.raises(InputError) as refused:
        compare(scores=frame)
    assert "columns of numbers are tokens, A, B, C. Name" in str(refused.value)
    assert 'systems=["A", "B", …]' in str(refused.value)
    assert 'columns={"score": "NAME"}' in str(refused.value)
    found = compare(scores=frame, systems=["C", "A"])
    assert (found.systems, found.choices[0].ignored) == (
        ("C", "A"),
        ("question", "answer", "tokens", "B"),
    )
    assert deltas(found) == {"score": delta(NUMBERS["C"], NUMBERS["A"])}
    with pytest.raises(InputTypeError, match="expected a list of names"):
        compare(scores=frame[["A", "B"]], systems="all")
    with pytest.raises(InputError, match="if columns are systems and there is none called"):
        compare(scores=frame.assign(system="You are helpful."), systems=["C", "A"])
    named = compare(
        scores=frame.rename(columns={"tokens": "segment", "A": "id", "B": "best"}),
        systems=["best", "id"],
        baseline="id",
    )
    assert deltas(named) == {"score": delta(NUMBERS["A"], NUMBERS["B"])}


@pytest.mark.parametrize("form", ["pyarrow", "datasets"])
def test_tables_of_other_packages_are_read(frame, form):
    columns = {name: frame[name].tolist() for name in ("tokens", "A", "B")}
    package = pytest.importorskip(form)
    table = package.table(columns) if form == "pyarrow" else package.Dataset.from_dict(columns)
    expected = {"score": delta(NUMBERS["A"], NUMBERS["B"])}
    assert deltas(compare(scores=table, systems=["A", "B"])) == expected
    by_metric = compare(scores={"x": table, "y": table}, systems=["A", "B"])
    assert deltas(by_metric) == {"x": expected["score"], "y": expected["score"]}


def test_columns_of_tables_of_systems_are_metrics(frame):
    other = frame.assign(A=frame["B"], B=frame["C"])
    found = compare(scores={"base": frame, "new": other}, columns={"score": ["A", "B"]})
    assert deltas(found) == {
        "A": delta(NUMBERS["A"], NUMBERS["B"]),
        "B": delta(NUMBERS["B"], NUMBERS["C"]),
    }
    with pytest.raises(InputError, match=r'columns of numbers are .*columns=\{"score": "NAME"\}'):
        compare(scores={"base": frame, "new": other})
    by_metric = compare(
        scores={"one": frame, "two": other}, systems=["A", "B"], lower_is_better=["two"]
    )
    assert deltas(by_metric) == {
        "one": delta(NUMBERS["A"], NUMBERS["B"]),
        "two": delta(NUMBERS["B"], NUMBERS["C"]),
    }
    assert by_metric.inputs[-1] == "Higher is taken as better: one."


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": "tokens"}, "no role 'id' of columns; expected one of system"),
        ({"system": ["A", "B"]}, "names 2 columns; expected one"),
        (
            {"run": "seed"},
            r"no column 'seed', of columns=\{\"run\": \"seed\"\}; the tables have question",
        ),
    ],
)
def test_a_role_or_a_column_that_is_none_is_refused(frame, columns, message):
    with pytest.raises(InputError, match=message):
        compare(scores=frame, systems=["A", "B"], columns=columns)


TEXT_FORMS = {
    "lists": lambda: (TEXTS, REFERENCES, {}),
    "series": lambda: (
        {
            name: pandas.Series(texts).sample(frac=1, random_state=seed)
            for seed, (name, texts) in enumerate(TEXTS.items())
        },
        pandas.Series(REFERENCES),
        {},
    ),
    "columns of a table": lambda: (
        pandas.DataFrame({"id": range(NUMBER), **TEXTS, "gold": REFERENCES, "note": "x"}).iloc[
            ORDER
        ],
        None,
        {"systems": ["A", "B", "C"], "columns": {"reference": "gold"}},
    ),
    "rows of a table": lambda: (
        pandas.DataFrame(
            [
                (name, row, text, REFERENCES[row])
                for name, texts in TEXTS.items()
                for row, text in enumerate(texts)
            ],
            columns=["model", "item", "output", "gold"],
        ),
        None,
        {
            "columns": {
                "system": "model",
                "segment": "item",
                "candidate": "output",
                "reference": "gold",
            }
        },
    ),
    "a table for each": lambda: (
        {
            name: pandas.DataFrame({"id": range(NUMBER), "candidate": texts}).iloc[ORDER]
            for name, texts in TEXTS.items()
        },
        pandas.DataFrame({"id": range(NUMBER), "reference": REFERENCES}),
        {},
    ),
}


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_every_form_of_texts_gives_the_same(form):
    sacrebleu = pytest.importorskip("sacrebleu")
    candidates, references, options = TEXT_FORMS[form]()
    found = compare(candidates, references, metrics=["chrf"], num_resamples=20, **options)
    scores = {system.name: system.score for system in found.metrics[0].systems}
    assert scores == pytest.approx(
        {name: sacrebleu.corpus_chrf(texts, [REFERENCES]).score for name, texts in TEXTS.items()}
    )


def test_a_paired_test_reads_no_table_and_joins_no_series(frame):
    series = [pandas.Series(scores) for scores in AB.values()]
    plain = paired_permutation(series).p.tolist()
    assert paired_permutation(AB).p.tolist() == plain
    for scores in ([series[0], series[1].sample(frac=1, random_state=1)], frame[["A", "B"]]):
        with pytest.raises(InputError, match="compare"):
            paired_permutation(scores)


def test_an_index_is_ids_or_refused(frame):
    a, b = frame["A"], frame["B"].sample(frac=1, random_state=1)
    with pytest.raises(InputError, match="is not in the order of ids, and"):
        compare(scores={"A": NUMBERS["A"].tolist(), "B": b})
    with pytest.raises(InputError, match=r"segment '3' is not in scores\['B'\]"):
        compare(scores={"A": a, "B": b.drop(3)})
    assert compare(scores={"A": a, "B": b.drop(3)}, missing="drop").dropped == ("3",)
    texts = pandas.DataFrame({"id": range(NUMBER), **TEXTS})
    options = {"systems": ["A", "B"], "metrics": ["chrf"], "num_resamples": 20}
    found = compare(texts, pandas.Series(REFERENCES).iloc[ORDER], **options)
    assert deltas(found) == deltas(compare(texts, REFERENCES, **options))


def test_further_columns_of_references_are_taken_or_left_out_by_name():
    references = pandas.DataFrame(
        {"id": range(NUMBER), "reference": REFERENCES, "Reference_2": TEXTS["A"]}
    )
    candidates = pandas.DataFrame({"id": range(NUMBER), **TEXTS})
    options = {"systems": ["A", "B"], "metrics": ["chrf"], "num_resamples": 20}
    for given in ((candidates, references), (candidates.merge(references), None)):
        found = compare(*given, **options)
        assert found.choices[-1].roles["reference"] == ("reference", "Reference_2")
        assert found.metrics[0].systems[0].score == pytest.approx(100)
    first = compare(candidates, references, columns={"reference": "reference"}, **options)
    assert first.choices[1].ignored == ("Reference_2",)
    with pytest.raises(InputError, match="'reference' and 'target'; expected one of them"):
        compare(candidates, references.rename(columns={"Reference_2": "target"}), **options)


@pytest.mark.parametrize("value", ["P", "R", "F"])
def test_scores_of_ours_are_one_of_three(scored, value):
    first, second = (getattr(scores, value).astype(np.float64) for scores in scored.values())
    options = {} if value == "F" else {"value": value}
    found = compare(scores=scored, **options)
    assert deltas(found) == {"score": [pytest.approx((second - first).mean(), abs=1e-12)]}
    assert found.metrics[0].systems[0].runs is None
    expected = paired_permutation([first, second])
    for scores in ([*scored.values()], scored):
        result = paired_permutation(scores, **options)
        assert result.delta.tolist() == expected.delta.tolist()
    assert SegmentMeans([*scored.values()], **options).observed() == pytest.approx(
        [first.mean(), second.mean()]
    )
    assert compare(scores={"m": scored}, **options).inputs == []  # higher is better, as is known
    runs = compare(scores={name: [one, one] for name, one in scored.items()}, **options)
    assert [system.runs for system in runs.metrics[0].systems] == [2, 2]
    assert deltas(runs)["score"] == [pytest.approx((second - first).mean(), abs=1e-12)]


def test_the_score_of_tables_of_ours_is_f1(scored):
    tables = {name: scores.to_pandas() for name, scores in scored.items()}
    found = compare(scores=tables)
    assert deltas(found) == {"f1": delta(scored["A"].F, scored["B"].F)}
    assert found.choices[0].ignored[:2] == ("precision", "recall")
    both = {name: table.assign(score=table["recall"]) for name, table in tables.items()}
    with pytest.raises(InputError, match="'f1' and 'score'; expected one of them"):
        compare(scores=both)


def test_three_rows_in_a_tuple_may_be_p_r_and_f(scored):
    plain = {name: tuple(scores) for name, scores in scored.items()}
    with pytest.raises(
        InputError, match=r"scores\['A'\] is a tuple of three rows, as P, R and F are"
    ):
        compare(scores=plain)
    with pytest.raises(InputError, match="tuple of three rows"):
        paired_permutation([*plain.values()])
    with pytest.raises(InputError, match="There is one system, whose P, R and F these are"):
        paired_permutation(scored["A"])
    with pytest.raises(InputTypeError, match="The scores are a Scores"):
        compare(scores=scored["A"])
    with pytest.raises(InputError, match="value is 'f'"):
        compare(scores=scored, value="f")


def test_scores_of_all_layers_are_no_runs(all_layers_scorer):
    scores = all_layers_scorer.score(TEXTS["A"], REFERENCES)
    with pytest.raises(InputError, match=r"one layer, such as `scores\.of_layer"):
        compare(scores={"A": scores, "B": scores})


def test_precision_recall_and_f_stand_side_by_side(scorer, monkeypatch):
    metrics = ["bertscore", "bertscore,value=P", "bertscore,value=R"]
    calls = []
    score_pairs = type(scorer).score_pairs
    monkeypatch.setattr(
        type(scorer), "score_pairs", lambda *a, **b: calls.append(1) or score_pairs(*a, **b)
    )
    found = compare(
        TEXTS, REFERENCES, scorer=scorer, metrics=metrics, num_resamples=20, num_examples=0
    )
    assert len(calls) == 1
    assert [metric.title for metric in found.metrics] == [
        "BERTScore F1",
        "BERTScore P",
        "BERTScore R",
    ]
    for metric, value in zip(found.metrics, "FPR", strict=True):
        means = [
            getattr(scorer.score(texts, REFERENCES), value).mean(dtype=np.float64)
            for texts in TEXTS.values()
        ]
        assert [system.score for system in metric.systems] == pytest.approx(means, abs=1e-6)
        assert ("|value:" in metric.signature) == (value != "F")
    single = compare(
        TEXTS, REFERENCES, scorer=scorer, metrics={"bertscore": {"value": "P"}}, num_resamples=20
    )
    assert single.metrics[0].systems == found.metrics[1].systems


def test_the_number_of_references_is_in_signature_and_methods(scorer):
    one = compare(TEXTS, REFERENCES, scorer=scorer, num_resamples=20)
    assert "|refs:" not in one.signature + one.metrics[0].signature
    pairs = [[text, text + "."] for text in REFERENCES]
    two = compare(TEXTS, pairs, scorer=scorer, num_resamples=20)
    assert "|references:2|" in two.signature
    assert "|references:2|" in two.metrics[0].signature
    assert f"on {NUMBER} segments with 2 references" in two.methods
    mixed = compare(
        TEXTS, [pairs[0] + ["x"], REFERENCES[1], *pairs[2:]], scorer=scorer, num_resamples=20
    )
    assert "|references:1-3|" in mixed.signature
    assert "with 1 to 3 references" in mixed.methods


def test_the_standard_error_of_a_difference_is_in_every_table(frame):
    found = compare(scores=frame, systems=["A", "B"], all_pairs=True)
    expected = np.std(NUMBERS["B"] - NUMBERS["A"], ddof=1) / NUMBER**0.5
    assert found.metrics[0].systems[1].delta_error == pytest.approx(expected)
    assert found.metrics[0].pairs[0].delta_error == pytest.approx(expected)
    record = json.loads(found.to_json())
    assert record["systems"][1]["metrics"]["score"]["delta_error"] == pytest.approx(expected)
    header, _, row = (line.split("\t") for line in found.table("tsv").splitlines())
    assert float(row[header.index("delta_error")]) == pytest.approx(expected)
    rows = found.to_pandas()
    assert [*rows["system"]] == ["A", "B"]
    assert rows["delta_error"][1] == pytest.approx(expected)


def test_what_was_taken_stands_in_every_form(frame):
    found = compare(scores=frame, systems=["A", "B"])
    taken = "scores: systems A, B; segments by position; ignored question, answer, tokens, C."
    assert found.inputs == [taken, "The baseline is A.", "Higher is taken as better: score."]
    [choice] = found.to_dict()["columns"]
    assert choice["ignored"] == ("question", "answer", "tokens", "C")
    for shown in (found.to_html(), found._repr_html_(), found.table("latex"), found.to_json()):
        for sentence in found.inputs:
            assert sentence in shown


@pytest.mark.parametrize(
    "given",
    [
        lambda frame: {"scores": {1: NUMBERS["A"], "1": NUMBERS["B"], 2: NUMBERS["C"]}},
        lambda frame: {"scores": {"m": {1: NUMBERS["A"], "1": NUMBERS["B"]}}},
        lambda frame: {"scores": {1: frame, "1": frame}},
        lambda frame: {"scores": frame.rename(columns={"A": 1, "B": "1"}), "systems": ["1", "C"]},
        lambda frame: {"candidates": {1: ["a"], "1": ["b"]}, "references": ["a"]},
        lambda frame: {
            "candidates": {"a": ["a"]},
            "references": ["a"],
            "metrics": {"bleu": {}, "BLEU": {}},
        },
    ],
)
def test_two_names_that_read_alike_are_refused(frame, given):
    with pytest.raises(
        InputError, match=r"1, '1'.*, of which two read alike|2 columns '1'|'bleu' is given twice"
    ):
        compare(**given(frame))


def test_arguments_without_an_effect_are_refused(scorer, scored):
    numbers = {"A": NUMBERS["A"], "B": NUMBERS["B"]}
    with pytest.raises(InputError, match="value='P' has no effect"):
        compare(scores=numbers, value="P")
    assert compare(scores={"m": scored, "n": scored}, value="P").systems
    with pytest.raises(InputError, match="scorer has no effect without the metric bertscore"):
        compare({"a": ["a cat"]}, ["a cat"], metrics=["chrf"], scorer=scorer)
    with pytest.raises(InputError, match=r'columns=\{"segment": "none"\} has no effect'):
        compare(scores=numbers, columns={"segment": "none"})


def test_errors_name_the_way_out():
    frames = {name: pandas.DataFrame({"candidate": texts}) for name, texts in TEXTS.items()}
    with pytest.raises(InputError, match=r"references.*give that table again"):
        compare(frames, metrics=["chrf"])
    with pytest.raises(InputError, match=r'systems=\["A", "B", …\]'):
        compare(pandas.DataFrame(TEXTS), REFERENCES, metrics=["chrf"])
    with pytest.raises(InputTypeError, match=r"'model'. Make a `BERTScorer`"):
        compare(TEXTS, REFERENCES, model="roberta-large")
    judged = pandas.DataFrame({"faithfulness": NUMBERS["A"], "score": NUMBERS["B"]})
    judged.loc[3, "faithfulness"] = None
    with pytest.raises(InputError, match=r"row 3: there is no value.* 'A' in the column 'faithf"):
        compare(scores={"A": judged, "B": judged}, columns={"score": ["score", "faithfulness"]})
